"""A customer at a browser without a screen: signs in through the form, speaks over HTTP, follows the stream."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from uuid import UUID, uuid4

import httpx

from evals.smoke.stage import PASSWORD, Customer
from memberintel.lib import sse

TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


@dataclass
class Answer:
    """What came of a message: where it went, and the stream's events put together. `broke_at` is how many characters
    had come when the connection was dropped, where it was."""

    session: UUID
    turn: UUID
    text: str = ""
    end: str = ""
    detail: str = ""
    broke_at: int | None = None
    events: list[str] = field(default_factory=list)


class Visitor:
    """One browser. Use it in a `with` block."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()

    def sign_in(self, who: Customer) -> httpx.Response:
        """Fill in the sign-in form; the page one lands on."""
        page = self.http.get("/accounts/login/")
        found = TOKEN.search(page.text)
        token = found.group(1) if found else ""
        form = {"csrfmiddlewaretoken": token, "login": who.email, "password": PASSWORD}
        return self.http.post("/accounts/login/", data=form, follow_redirects=True)

    def get(self, path: str) -> httpx.Response:
        """A page, or an answer of the API; redirects are not followed."""
        return self.http.get(path)

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """A call of the API with a JSON body."""
        return self.http.post(path, json=body, headers={"X-CSRFToken": self._token()})

    def put(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """The same, for what is replaced."""
        return self.http.put(path, json=body, headers={"X-CSRFToken": self._token()})

    def submit(self, path: str, form: dict[str, str]) -> httpx.Response:
        """A form of a page."""
        return self.http.post(path, data={**form, "csrfmiddlewaretoken": self._token()})

    def say(self, text: str, *, breaking_off: bool = False) -> Answer:
        """Send a message and follow the answer to its end; with `breaking_off` over two connections."""
        sent = self.post("/api/v1/messages/", {"text": text, "client_key": f"smoke-{uuid4()}"})
        if sent.status_code != 201:
            raise RuntimeError(f"a message was answered with {sent.status_code}: {sent.text[:300]}")
        given = sent.json()
        answer = Answer(UUID(given["session"]), UUID(given["turn"]))
        last = self._follow(given["stream"], answer, breaking_off=breaking_off)
        if breaking_off:
            answer.broke_at = len(answer.text)
            self._follow(given["stream"], answer, after=last)
        return answer

    def _follow(
        self, path: str, answer: Answer, *, after: str | None = None, breaking_off: bool = False
    ) -> str | None:
        """The id of the last event that was taken; `breaking_off` drops the connection after the first piece."""
        reader, last = sse.Reader(), after
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        with self.http.stream("GET", path, headers=headers) as response:
            response.raise_for_status()
            for chunk in response.iter_bytes():
                for event in reader.feed(chunk):
                    _take(answer, event)
                    last = event.id
                    if breaking_off and answer.text:
                        return last
        return last

    def _token(self) -> str:
        return self.http.cookies.get("csrftoken") or ""


def _take(answer: Answer, event: sse.ServerEvent) -> None:
    data: Any = event.json()
    answer.events.append(event.event)
    if event.event == "turn":
        answer.text = data["text"]
    elif event.event == "text":
        answer.text += data["text"]
    elif event.event == "done":
        answer.end = data["outcome"]
    elif event.event == "error":
        answer.end, answer.detail = "error", data["message"]
