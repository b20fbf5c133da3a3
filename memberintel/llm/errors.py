"""What can go wrong with a model, as types. No provider's exception leaves this package.

Each carries a sentence for the person who waits. None carries a prompt, an answer or a key: `reason` comes
from a fixed vocabulary of ours ("http 529", "no first token"), never from a provider's text.
"""

from __future__ import annotations


class ModelError(Exception):
    """A call to a model failed.

    `retryable`: the same request may succeed later. `retry_after`: seconds the provider asked to wait.
    """

    code = "model_error"
    retryable = True
    message = "The advisor could not answer. Your message is saved; please try again."

    def __init__(
        self,
        message: str = "",
        *,
        reason: str = "",
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.message = message or type(self).message
        self.reason = reason
        self.retryable = type(self).retryable if retryable is None else retryable
        self.retry_after = retry_after
        super().__init__(f"{self.code} ({reason})" if reason else self.code)


class RateLimited(ModelError):
    """The provider's limit for our account is used up for the moment."""

    code = "rate_limited"
    message = "The advisor is answering too many people right now. Please try again in a minute."


class Overloaded(ModelError):
    """The provider has more work than it can take."""

    code = "overloaded"
    message = "The model behind the advisor is overloaded. Please try again in a minute."


class BadRequest(ModelError):
    """The provider refuses the request as it is: unknown model, too long, not allowed."""

    code = "bad_request"
    retryable = False
    message = "The model behind the advisor did not accept the request. Our staff can see why."


class TimedOut(ModelError):
    """No first piece, no further piece, or no end of the answer within the deadline."""

    code = "timed_out"
    message = "The advisor took too long to answer. Your message is saved; please try again."


class Refused(ModelError):
    """The model declines to answer."""

    code = "refused"
    retryable = False
    message = "The model behind the advisor declined to answer this. Try putting it differently."


class InvalidOutput(ModelError):
    """The answer does not have the shape that was asked for, also after it was told what is wrong."""

    code = "invalid_output"
    message = "The model behind the advisor answered in a form we could not read. Please try again."


class Unavailable(ModelError):
    """The provider cannot be reached, broke off, or is not configured."""

    code = "unavailable"
    message = "The advisor cannot be reached right now. Your message is saved; please try again."


ERRORS: dict[str, type[ModelError]] = {
    error.code: error
    for error in (RateLimited, Overloaded, BadRequest, TimedOut, Refused, InvalidOutput, Unavailable)
}
