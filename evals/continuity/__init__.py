"""Does the next session know what the last ones came to? Cases told in files, played on the real path.

A case is one customer: some sessions in the past, each ended and wrapped up, then one message in a new session.
Customers, sessions, prompts, wrap-ups and answers are the product's own; only the clock is set back, and the
advisor of the past says what the file says.
"""
