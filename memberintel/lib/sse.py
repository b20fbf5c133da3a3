"""Server-sent events: writing them, and reading them back piece by piece."""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass


def encode(event: str, data: object, id: str | None = None) -> bytes:
    """One event on the wire; `data` goes as one line of JSON. ValueError for a line break in a name or id."""
    return framed(event, line(data), id)


def line(data: object) -> str:
    """The data as one line of JSON."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def framed(event: str, body: str, id: str | None = None) -> bytes:
    """As `encode`, of data that is one line of JSON already."""
    for name in (event, id or ""):
        if any(mark in name for mark in "\r\n\0"):
            raise ValueError("An event's name and id are one line each.")
    head = f"id: {id}\n" if id is not None else ""
    return f"{head}event: {event}\ndata: {body}\n\n".encode("utf-8", "replace")


def comment(text: str = "") -> bytes:
    """A line that readers ignore and that keeps the connection from falling asleep."""
    return f": {text}".rstrip().encode("utf-8", "replace").replace(b"\n", b" ").replace(b"\r", b" ") + b"\n\n"


@dataclass(frozen=True)
class ServerEvent:
    """One event as read: `data` is the text of its data lines, `id` the last id seen so far."""

    event: str
    data: str
    id: str | None

    def json(self) -> object:
        """The data, decoded. json.JSONDecodeError when it is not JSON."""
        decoded: object = json.loads(self.data)
        return decoded


class Reader:
    """Reads server-sent events from chunks cut anywhere, also inside a character or a line end."""

    def __init__(self) -> None:
        self.comments = 0
        self.last_id: str | None = None
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._after_return = False
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that `chunk` completes."""
        text = self._decode.decode(chunk)
        if self._after_return and text:
            text = text.removeprefix("\n")
            self._after_return = False
        self._after_return = self._after_return or text.endswith("\r")
        *lines, self._rest = (self._rest + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not field:
            self.comments += 1
        elif field == "event":
            self._event = value
        elif field == "data":
            self._data.append(value)
        elif field == "id" and "\0" not in value:
            self.last_id = value
        return None

    def _dispatch(self) -> ServerEvent | None:
        name, data = self._event or "message", self._data
        self._event, self._data = "", []
        return ServerEvent(name, "\n".join(data), self.last_id) if data else None
