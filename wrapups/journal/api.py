"""The API of the journal."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts.fields import NO_DAY, Strict, Text
from memberintel.accounts.fields import Day as DayIn
from memberintel.accounts.problems import Invalid, NotFound, Problem
from memberintel.accounts.rest import Endpoint, body, described, parameters
from memberintel.lib import clock
from wrapups.domain.journal import ENERGIES, MOODS, Day, Entry, clock_time, local_day
from wrapups.journal import actions, queries

READ = ("read", "journal")
CHANGE = ("journal",)
DAYS = 30


class Range(Strict):
    """Which days, both included; by default the last thirty."""

    since = DayIn(required=False, help_text="The first day.")
    until = DayIn(required=False, help_text="The last day; today in the customer's time zone if left out.")

    def get_fields(self) -> dict[str, Any]:
        """`from` is a word of Python's, so the fields get their names here."""
        fields = super().get_fields()
        return {"from": fields["since"], "to": fields["until"]}


class EntryOut(serializers.Serializer[Any]):
    """A closed session on its day. What is not there, or not yet, is null."""

    id = serializers.UUIDField(help_text="The session's id.")
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField()
    local_start = serializers.CharField(help_text="In the customer's time zone, such as 4:00 PM.")
    local_end = serializers.CharField()
    summary = serializers.CharField(allow_null=True, help_text="The passage, in the customer's own voice.")
    mood = serializers.ChoiceField(choices=MOODS, allow_null=True)
    energy = serializers.ChoiceField(choices=ENERGIES, allow_null=True)
    reason = serializers.CharField(allow_null=True, help_text="Where the mood came from.")
    themes = serializers.ListField(child=serializers.CharField(), allow_null=True)
    edited_at = serializers.DateTimeField(allow_null=True)
    readable = serializers.BooleanField(help_text="False when the entry cannot be opened.")

    class Meta:
        ref_name = "JournalEntry"


class DayOut(serializers.Serializer[Any]):
    """A day of the customer's and what they talked about on it, the earliest first."""

    date = serializers.DateField()
    sessions = EntryOut(many=True)

    class Meta:
        ref_name = "JournalDay"


class JournalOut(serializers.Serializer[Any]):
    """Days in their order; those without a session have none."""

    time_zone = serializers.CharField()
    days = DayOut(many=True)

    class Meta:
        ref_name = "Journal"


class EntriesOut(serializers.Serializer[Any]):
    """The sessions of a day, the earliest first."""

    items = EntryOut(many=True)

    class Meta:
        ref_name = "JournalEntries"


class EntryIn(Strict):
    """The customer's own words."""

    summary = Text(allow_blank=True, help_text="Empty: nothing stands there.")


class Journal(Endpoint):
    """Some days."""

    scopes = {"GET": READ}

    @described("list_journal", tag="journal", query=Range, gives={200: JournalOut})
    def get(self, request: Request) -> Response:
        """The days from one to another, both included, in the customer's time zone; at most 366."""
        given = parameters(request, Range)
        where = queries.zone()
        last = given.get("to") or local_day(clock.now(), where)
        first = given.get("from") or last - timedelta(days=DAYS - 1)
        try:
            found = queries.between(first, last, where)
        except ValueError:
            text = f"Give a day from `from` on, and at most {queries.DAYS_AT_MOST} days."
            raise Invalid([("to", text)]) from None
        told = {"time_zone": where.key, "days": [_day(day, where) for day in found]}
        return Response(JournalOut(told).data)


class OneDay(Endpoint):
    """One day."""

    scopes = {"GET": READ}

    @described("get_journal_day", tag="journal", by_id=True, gives={200: DayOut})
    def get(self, request: Request, day: str) -> Response:
        """One day in the customer's time zone."""
        return Response(DayOut(_told(day)).data)


class OfDay(Endpoint):
    """The sessions of a day."""

    scopes = {"GET": READ}

    @described("list_journal_sessions", tag="journal", by_id=True, gives={200: EntriesOut})
    def get(self, request: Request, day: str) -> Response:
        """The closed sessions that began on that day in the customer's time zone, the earliest first."""
        return Response(EntriesOut({"items": _told(day)["sessions"]}).data)


class OfSession(Endpoint):
    """The entry of one session."""

    scopes = {"PUT": CHANGE}

    @described(
        "edit_journal_entry",
        tag="journal",
        by_id=True,
        takes=EntryIn,
        gives={200: EntryOut},
        errors={413: "More words than an entry may have; `words` and `limit` say how many."},
    )
    def put(self, request: Request, session: UUID) -> Response:
        """Write what the journal says of a session. No model writes over it."""
        given = body(request, EntryIn)
        try:
            actions.edit(session, given["summary"])
        except actions.NotFound:
            raise NotFound from None
        except actions.TooLong as long:
            text = f"These are {long.words:,} words; at most {long.limit:,} fit. Nothing was saved."
            raise Problem(413, "journal-entry-too-long", text, words=long.words, limit=long.limit) from None
        found = queries.entry(session)
        if found is None:
            raise NotFound
        return Response(EntryOut(_entry(found, queries.zone())).data)


def _told(day: str) -> dict[str, Any]:
    """The day that an address names."""
    try:
        found = DayIn().run_validation(day)
    except serializers.ValidationError:
        raise Invalid([("day", NO_DAY)]) from None
    where = queries.zone()
    (one,) = queries.between(found, found, where)
    return _day(one, where)


def _day(day: Day, where: Any) -> dict[str, Any]:
    return {"date": day.day, "sessions": [_entry(entry, where) for entry in day.entries]}


def _entry(entry: Entry, where: Any) -> dict[str, Any]:
    feeling = entry.feeling
    return {
        "id": entry.session,
        "started_at": entry.started_at,
        "ended_at": entry.ended_at,
        "local_start": clock_time(entry.started_at, where),
        "local_end": clock_time(entry.ended_at, where),
        "summary": entry.blob,
        "mood": feeling.mood if feeling else None,
        "energy": feeling.energy if feeling else None,
        "reason": (feeling.reason or None) if feeling else None,
        "themes": list(feeling.themes) if feeling else None,
        "edited_at": entry.edited_at,
        "readable": entry.readable,
    }
