"""How an endpoint stands in the OpenAPI document: what it declares of itself, told to the reader."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

from drf_spectacular.openapi import AutoSchema


class Schema(AutoSchema):
    """Tells what the method's docstring says, and which scopes let a token in, as the gate goes by them."""

    def get_auth(self) -> list[dict[str, Any]]:
        """A signed-in browser, or a token with any one of the scopes."""
        return [*({"token": [scope]} for scope in self._scopes()), {"session": []}]

    def get_summary(self) -> str:
        """The docstring's first line."""
        return self._doc()[0]

    def get_description(self) -> str:  # type: ignore[override]  # as the library itself does
        """The rest of the docstring, and the scopes."""
        scopes = " or ".join(f"`{scope}`" for scope in self._scopes())
        needs = (
            f"A token needs the scope {scopes}."
            if scopes
            else "No token may do this: sign in with a browser."
        )
        return f"{self._doc()[1]}\n\n{needs}".strip()

    def _doc(self) -> tuple[str, str]:
        method = getattr(self.view, self.method.lower())
        first, _, rest = cleandoc(method.__doc__).partition("\n")
        return first, " ".join(rest.split())

    def _scopes(self) -> tuple[str, ...]:
        view: Any = self.view
        scopes: tuple[str, ...] = view.scopes[self.method]
        return scopes
