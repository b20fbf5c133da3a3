"""The API of MEMORY."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn
from uuid import UUID

from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from brain.domain.memory import (
    Changed,
    Empty,
    Full,
    Known,
    Memory,
    NotKept,
    Similar,
    TooLong,
)
from brain.domain.memory import NotFound as Missing
from brain.memory import actions, queries
from brain.memory.actions import Choice, New
from memberintel.accounts.fields import Flag, Id, Strict, Text, Whole
from memberintel.accounts.problems import Invalid, NotFound, Problem
from memberintel.accounts.rest import Endpoint, body, described, wait
from memberintel.vault.errors import CannotOpen, Damaged

READ, CHANGE = ("read", "brain"), ("brain",)
CONFLICTS = {
    409: "`memory-known`: an entry says just this. `memory-similar`: say which of `entries` to replace, or keep both. "
    "`memory-full`: say which to replace. `memory-changed`: compare with `memory`. `memory-unreadable`: the entry "
    "to replace cannot be opened.",
    413: "More characters than an entry may have; `length` and `limit` say how many.",
}


class MemoryOut(serializers.Serializer[Any]):
    """An entry as it stands, why it was kept, and the message it came from, if it came from one."""

    id = serializers.UUIDField()
    version = serializers.IntegerField()
    text = serializers.CharField()
    reason = serializers.CharField()
    changes = serializers.ListField(
        child=serializers.CharField(), help_text="What cleaning did to a model's text."
    )
    source = serializers.ChoiceField(choices=["customer", "advisor", "staff"])  # type: ignore[assignment]
    session_id = serializers.UUIDField(allow_null=True)
    message_seq = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    readable = serializers.BooleanField(help_text="False when it cannot be opened; then its texts are empty.")

    class Meta:
        ref_name = "Memory"


class MemoriesOut(serializers.Serializer[Any]):
    """All entries, newest first, and how many the plan has room for."""

    items = MemoryOut(many=True)
    cap = serializers.IntegerField()

    class Meta:
        ref_name = "Memories"


class MemoryVersionOut(serializers.Serializer[Any]):
    """What an entry said before."""

    version = serializers.IntegerField()
    text = serializers.CharField()
    reason = serializers.CharField()
    source = serializers.ChoiceField(choices=["customer", "advisor", "staff"])  # type: ignore[assignment]
    at = serializers.DateTimeField()
    replaced_at = serializers.DateTimeField()

    class Meta:
        ref_name = "MemoryVersion"


class MemoryVersionsOut(serializers.Serializer[Any]):
    """Earlier texts, newest first."""

    items = MemoryVersionOut(many=True)

    class Meta:
        ref_name = "MemoryVersions"


class MemoryIn(Strict):
    """Something to keep. `replace`: in the place of that entry. `keep_both`: though something similar is kept."""

    text = Text()
    reason = Text(allow_blank=True, default="", max_length=600)
    replace = Id(required=False, allow_null=True, default=None)
    keep_both = Flag(default=False)


class MemoryEdit(Strict):
    """What an entry says from now on."""

    text = Text()
    reason = Text(allow_blank=True, default="", max_length=600)
    base_version = Whole(min_value=1, help_text="The version this edit was made on.")


class Memories(Endpoint):
    """All entries."""

    scopes = {"GET": READ, "POST": CHANGE}

    @described("list_memories", tag="memory", gives={200: MemoriesOut})
    def get(self, request: Request) -> Response:
        """All entries, newest first; there are never more than a few hundred."""
        return Response(MemoriesOut({"items": queries.memories(), "cap": queries.cap()}).data)

    @described("keep_memory", tag="memory", takes=MemoryIn, gives={201: MemoryOut}, errors=CONFLICTS)
    def post(self, request: Request) -> Response:
        """Keep something. At the cap of the plan, and beside something similar, you choose what to replace."""
        given = body(request, MemoryIn)
        choice = Choice(given["replace"], given["keep_both"])
        return Response(_remembered(self, given, choice), 201)


class OneMemory(Endpoint):
    """One entry."""

    scopes = {"GET": READ, "PUT": CHANGE, "DELETE": CHANGE}

    @described("get_memory", tag="memory", by_id=True, gives={200: MemoryOut})
    def get(self, request: Request, memory: UUID) -> Response:
        """One entry."""
        return Response(MemoryOut(_found(memory)).data)

    @described(
        "edit_memory",
        tag="memory",
        by_id=True,
        takes=MemoryEdit,
        gives={200: MemoryOut},
        errors=CONFLICTS,
    )
    def put(self, request: Request, memory: UUID) -> Response:
        """Change what an entry says; what it said is kept as a version."""
        given = body(request, MemoryEdit)
        _found(memory)
        return Response(_remembered(self, given, Choice(memory, base_version=given["base_version"])))

    @described("delete_memory", tag="memory", by_id=True, gives={204: None})
    def delete(self, request: Request, memory: UUID) -> HttpResponse:
        """Delete an entry with all its versions, also from what the advisor knew in earlier conversations."""
        try:
            actions.delete(memory)
        except Missing:
            raise NotFound from None
        return HttpResponse(status=204)


class MemoryVersions(Endpoint):
    """What an entry said before."""

    scopes = {"GET": READ}

    @described("list_memory_versions", tag="memory", by_id=True, gives={200: MemoryVersionsOut})
    def get(self, request: Request, memory: UUID) -> Response:
        """What an entry said before, newest first."""
        _found(memory)
        try:
            return Response(MemoryVersionsOut({"items": queries.before(memory)}).data)
        except Damaged:
            raise Problem(
                409, "memory-unreadable", "An earlier text of this entry cannot be opened."
            ) from None


def _found(memory: UUID) -> Memory:
    found = queries.memory(memory)
    if found is None:
        raise NotFound
    return found


def _remembered(endpoint: Endpoint, given: dict[str, Any], choice: Choice) -> Any:
    new = New(given["text"], given["reason"], "customer")
    try:
        kept = wait(actions.remember, new=new, who=endpoint.caller.scope, choice=choice)
    except NotKept as problem:
        _refuse(problem)
    except CannotOpen:
        text = "The entry to replace cannot be opened, so nothing was written over it."
        raise Problem(409, "memory-unreadable", text) from None
    return MemoryOut(kept).data


def _refuse(problem: NotKept) -> NoReturn:
    match problem:
        case Empty():
            raise Invalid([("text", str(problem))]) from None
        case Missing():
            raise Invalid([("replace", str(problem))]) from None
        case TooLong(length=length, limit=limit):
            raise Problem(413, "memory-too-long", str(problem), length=length, limit=limit) from None
        case Known(entry=entry):
            raise Problem(409, "memory-known", str(problem), entries=_told([entry])) from None
        case Changed(fresh=fresh):
            raise Problem(409, "memory-changed", str(problem), memory=MemoryOut(fresh).data) from None
        case Similar(entries=entries):
            raise Problem(409, "memory-similar", str(problem), entries=_told(entries)) from None
        case Full(entries=entries, cap=cap):
            raise Problem(409, "memory-full", str(problem), entries=_told(entries), cap=cap) from None
        case _:
            raise problem


def _told(entries: Iterable[Memory]) -> list[Any]:
    return [MemoryOut(entry).data for entry in entries]
