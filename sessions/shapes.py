"""The answers of the API of sessions, field by field."""

from __future__ import annotations

from typing import Any, Final, cast

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from memberintel.vault.errors import Damaged
from sessions.domain.transcript import Item
from sessions.models import CloseReason, EraseReason, Session
from sessions.search import Hit


class SessionOut(serializers.Serializer[Any]):
    """A session. `title` is null when it has none or cannot be opened."""

    id = serializers.UUIDField()
    title = serializers.SerializerMethodField()
    open = serializers.BooleanField(source="is_open")
    started_at = serializers.DateTimeField(help_text="Time of the first message.")
    ended_at = serializers.DateTimeField(help_text="Time of the newest message.")
    last_activity_at = serializers.DateTimeField(help_text="What lists are ordered by.")
    closed_at = serializers.DateTimeField(allow_null=True)
    close_reason = serializers.ChoiceField(choices=CloseReason.choices, allow_null=True)
    archived_at = serializers.DateTimeField(allow_null=True)
    erased_at = serializers.DateTimeField(allow_null=True, help_text="From then on nothing of it is kept.")
    erase_reason = serializers.ChoiceField(choices=EraseReason.choices, allow_null=True)
    continues = serializers.UUIDField(allow_null=True, help_text="The session this one goes on from.")
    off_record = serializers.BooleanField()
    imported = serializers.BooleanField()
    messages = serializers.IntegerField(source="user_messages")

    class Meta:
        ref_name = "Session"

    def get_title(self, row: Session) -> str | None:
        """Null when there is none or it cannot be opened."""
        try:
            return row.title or None
        except Damaged:
            return None


class SessionsOut(serializers.Serializer[Any]):
    """Sessions; `next` is the address of the next page, or null."""

    items = SessionOut(many=True)
    next = serializers.CharField(allow_null=True)

    class Meta:
        ref_name = "Sessions"


class HitOut(serializers.Serializer[Any]):
    """A text that was found, and its place: event `seq` of the session."""

    session = serializers.UUIDField()
    seq = serializers.IntegerField()
    by = serializers.ChoiceField(choices=["customer", "advisor", "summary"])
    at = serializers.DateTimeField()
    title = serializers.CharField(allow_null=True)
    snippet = serializers.SerializerMethodField(help_text="Null when the text cannot be opened.")

    class Meta:
        ref_name = "Hit"

    def get_snippet(self, hit: Hit) -> str | None:
        """The part of the text, as plain text."""
        return "".join(piece.text for piece in hit.snippet) if hit.readable else None


class HitsOut(serializers.Serializer[Any]):
    """The best hits; `total` texts were found among the newest."""

    items = HitOut(many=True)
    total = serializers.IntegerField()

    class Meta:
        ref_name = "Hits"


class TurnOut(serializers.Serializer[Any]):
    """A message and its answer."""

    session = serializers.UUIDField()
    turn = serializers.UUIDField()
    attempt = serializers.IntegerField()
    stream = serializers.CharField(help_text="The address where the answer is followed.")

    class Meta:
        ref_name = "Turn"


class SaidOut(TurnOut):
    """Where a message went."""

    seq = serializers.IntegerField(help_text="Its number in the session's log.")
    opened = serializers.BooleanField(help_text="A session was opened for it.")
    moved = serializers.BooleanField(help_text="It went to the open session and not to the one you named.")

    class Meta:
        ref_name = "Said"


class OpenedOut(serializers.Serializer[Any]):
    """A session just opened."""

    session = serializers.UUIDField()

    class Meta:
        ref_name = "Opened"


class StoppingOut(serializers.Serializer[Any]):
    """Whether there was an answer to stop."""

    stopping = serializers.BooleanField()

    class Meta:
        ref_name = "Stopping"


class EndedOut(serializers.Serializer[Any]):
    """Whether it ended now; false: it had ended before."""

    ended = serializers.BooleanField()

    class Meta:
        ref_name = "Ended"


class PresenceOut(serializers.Serializer[Any]):
    """The open session."""

    session = serializers.UUIDField(allow_null=True)

    class Meta:
        ref_name = "Presence"


# --- a transcript ----------------------------------------------------------------------------------------


class _ItemOut(serializers.Serializer[Any]):
    kind = serializers.CharField()
    seq = serializers.IntegerField(help_text="Number of its first event in the log.")
    id = serializers.UUIDField()
    at = serializers.DateTimeField()


class OpenedItemOut(_ItemOut):
    """The session began."""

    off_record = serializers.BooleanField()
    imported = serializers.BooleanField()
    continues = serializers.UUIDField(allow_null=True)

    class Meta:
        ref_name = "OpenedItem"


class MessageItemOut(_ItemOut):
    """What the customer wrote."""

    turn = serializers.UUIDField(allow_null=True)
    text = serializers.CharField()
    readable = serializers.BooleanField()

    class Meta:
        ref_name = "MessageItem"


class ToolOut(serializers.Serializer[Any]):
    """A call of a tool and what came back, as exact texts."""

    id = serializers.CharField()
    name = serializers.CharField()
    arguments = serializers.CharField()
    result = serializers.CharField(allow_null=True)
    error = serializers.BooleanField()

    class Meta:
        ref_name = "ToolCall"


class ChangeOut(serializers.Serializer[Any]):
    """A document the advisor changed."""

    document = serializers.CharField()
    version = serializers.IntegerField(allow_null=True)
    change = serializers.CharField()

    class Meta:
        ref_name = "DocumentChange"


class FailureOut(serializers.Serializer[Any]):
    """A tool that failed, and how."""

    tool = serializers.CharField()
    error = serializers.CharField()

    class Meta:
        ref_name = "ToolFailure"


class MemoryOut(serializers.Serializer[Any]):
    """What later turns still see of an answer's tool traffic."""

    documents_changed = ChangeOut(many=True)
    failures = FailureOut(many=True)
    key_findings = serializers.ListField(child=serializers.CharField())

    class Meta:
        ref_name = "TurnMemory"


class AnswerItemOut(_ItemOut):
    """One attempt at an answer."""

    turn = serializers.UUIDField(allow_null=True)
    attempt = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["complete", "stopped", "interrupted", "failed", "running"])
    text = serializers.CharField()
    reasoning = serializers.CharField()
    tools = ToolOut(many=True)
    memory = MemoryOut()
    error_code = serializers.CharField()
    error_text = serializers.CharField()
    may_retry = serializers.BooleanField()
    imported = serializers.BooleanField()
    model = serializers.CharField()
    provider = serializers.CharField()
    readable = serializers.BooleanField()

    class Meta:
        ref_name = "AnswerItem"


class SectionOut(serializers.Serializer[Any]):
    """A section of a prompt; `text` is null when it was removed, on `removed_on`."""

    name = serializers.CharField()
    text = serializers.CharField(allow_null=True)
    removed_on = serializers.CharField(allow_null=True)

    class Meta:
        ref_name = "PromptSection"


class PromptItemOut(_ItemOut):
    """What the advisor was told at the start, or anew; `late` when something it should have recalled did not come."""

    refreshed = serializers.BooleanField()
    late = serializers.BooleanField()
    sections = SectionOut(many=True)

    class Meta:
        ref_name = "PromptItem"


class RecallItemOut(_ItemOut):
    """What was recalled for a message; `late` when something did not come in time."""

    turn = serializers.UUIDField(allow_null=True)
    late = serializers.BooleanField()
    sections = SectionOut(many=True)

    class Meta:
        ref_name = "RecallItem"


class CompactionItemOut(_ItemOut):
    """From here on the advisor sees `summary` in place of everything up to event `through`."""

    summary = serializers.CharField()
    method = serializers.CharField()
    through = serializers.IntegerField()
    tokens_before = serializers.IntegerField()
    tokens_after = serializers.IntegerField()
    readable = serializers.BooleanField()

    class Meta:
        ref_name = "CompactionItem"


class ClosedItemOut(_ItemOut):
    """The session ended: why, and by whom."""

    reason = serializers.CharField()
    by = serializers.CharField()

    class Meta:
        ref_name = "ClosedItem"


class UnknownItemOut(_ItemOut):
    """An event this version of the product does not know."""

    name = serializers.CharField()
    payload = serializers.DictField()
    content = serializers.DictField()

    class Meta:
        ref_name = "UnknownItem"


ITEMS: Final[dict[str, serializers.Serializer[Any] | type[serializers.Serializer[Any]]]] = {
    "opened": OpenedItemOut,
    "message": MessageItemOut,
    "answer": AnswerItemOut,
    "prompt": PromptItemOut,
    "recall": RecallItemOut,
    "compaction": CompactionItemOut,
    "closed": ClosedItemOut,
    "unknown": UnknownItemOut,
}


def told(item: Item) -> Any:
    """An item of a transcript as it is sent."""
    return cast("type[serializers.Serializer[Any]]", ITEMS[item.kind])(item).data


class SessionPartOut(SessionOut):
    """A session with a part of its log; `previous` and `next` are the addresses of the parts around it, or null."""

    running = TurnOut(allow_null=True, help_text="The answer that is being given, if any.")
    items = PolymorphicProxySerializer(
        component_name="Item", serializers=ITEMS, resource_type_field_name="kind", many=True
    )
    previous = serializers.CharField(allow_null=True)
    next = serializers.CharField(allow_null=True)

    class Meta:
        ref_name = "SessionPart"
