"""A provider on this machine: one server that speaks Anthropic's Messages API and Gemini's API.

For tests and for runs without keys: the official SDKs talk to it as to the real thing, and nothing leaves the
machine. Where it is told nothing it answers like the offline advisor, with usage counted as the providers
count it, prompt caches included. It refuses requests that the real ones refuse. One module a subject:
`scenario` holds what it was told to do and what it was asked, `messages` and `gemini` are the two wire
formats, `prefixes` the caches, `advisor` the answers, `app` the routes, `server` runs it.
"""
