"""Reading the process environment, with errors that name the variable and say what to set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

NOWHERE = "postgresql://unset@127.0.0.1:1/unset"


class Misconfigured(SystemExit):
    """A variable is missing or wrong. A SystemExit, so that a command ends with the sentence and no trace."""


def text(name: str, default: str | None = None) -> str:
    """The variable, else the default; Misconfigured when there is neither."""
    value = os.environ.get(name) or default
    if value is None:
        raise Misconfigured(f"{name} is not set. `make run` sets it for one machine; see .env.example.")
    return value


def flag(name: str, default: bool = False) -> bool:
    """True for 1, true, yes, on (any case); the default when unset."""
    value = os.environ.get(name, "")
    return value.lower() in {"1", "true", "yes", "on"} if value else default


def whole(name: str, default: int) -> int:
    """A whole number, or Misconfigured."""
    value = os.environ.get(name, "")
    try:
        return int(value) if value else default
    except ValueError:
        raise Misconfigured(f"{name} must be a whole number, not {value!r}.") from None


def one_of(name: str, known: tuple[str, ...], default: str) -> str:
    """The variable, which must be one of the known words."""
    found = text(name, default)
    if found not in known:
        raise Misconfigured(f"{name} must be one of {', '.join(known)}, not {found!r}.")
    return found


def names(name: str, default: str = "") -> list[str]:
    """A comma-separated list without blanks."""
    return [part.strip() for part in os.environ.get(name, default).split(",") if part.strip()]


def path(name: str, default: Path) -> Path:
    """A folder or file."""
    return Path(os.environ.get(name) or default)


def database(name: str) -> dict[str, Any]:
    """A Django database entry from `postgresql://login:password@host:port/database?host=/socket/folder`.

    An unset variable gives an entry that cannot connect, so that commands which need no database still start.
    """
    url = urlsplit(os.environ.get(name) or NOWHERE)
    options = dict(parse_qsl(url.query))
    return {
        "NAME": unquote(url.path.lstrip("/")),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": options.pop("host", "") or url.hostname or "",
        "PORT": str(url.port or options.pop("port", "")),
        "OPTIONS": options,
    }
