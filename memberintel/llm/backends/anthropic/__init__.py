"""Anthropic's models, through the Messages API."""

from memberintel.llm.backends.anthropic.backend import Anthropic

__all__ = ["Anthropic"]
