"""What is told: all but the last session is imported, the last one is played live."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from memberintel.embedded.place import CHECKOUT
from memberintel.lib import clock, tokens
from sessions.domain import conversation_file
from sessions.domain.conversation_file import Conversation, ConversationFile
from wrapups.demo.history import CONVERSATION

GIVEN = CHECKOUT.parent / "shared" / "data" / "jon-dance-studio.json"


@dataclass(frozen=True)
class Story:
    """`past` is what the file written by `write_past` holds; `live` are the customer's last messages."""

    source: Path
    raw: dict[str, Any]
    past: ConversationFile
    live: Conversation

    def write_past(self, path: Path) -> None:
        """Write the file without its last session, for the import."""
        path.write_text(json.dumps({**self.raw, "sessions": self.raw["sessions"][:-1]}))

    @property
    def said_live(self) -> list[str]:
        """What the customer says in the last session, in order."""
        return [said.text for said in self.live.messages if said.role == "customer"]

    def texts(self) -> list[str]:
        """Every message of the file."""
        return [said.text for session in (*self.past.sessions, self.live) for said in session.messages]


def load() -> Story:
    """The conversation of MEMBERINTEL_SMOKE_DATA, else the one beside the checkout, else the demo's own."""
    chosen = os.environ.get("MEMBERINTEL_SMOKE_DATA")
    source = Path(chosen) if chosen else GIVEN if GIVEN.exists() else CONVERSATION
    raw = source.read_bytes()
    whole = conversation_file.parse(raw, now=clock.now(), most_characters=settings.MESSAGE_LIMIT_CHARACTERS)
    past = ConversationFile(whole.customer, whole.advisor, whole.timezone, whole.sessions[:-1])
    return Story(source, json.loads(raw), past, whole.sessions[-1])


def is_substantive(session: Conversation) -> bool:
    """Whether the customer said anything long enough to be worth notes."""
    own = (said.text for said in session.messages if said.role == "customer")
    return any(tokens.count(text) >= settings.SUBSTANTIVE_TOKENS for text in own)
