"""Google's Gemini models, on Vertex AI or with an API key."""

from memberintel.llm.backends.gemini.backend import Gemini

__all__ = ["Gemini"]
