"""The API of the hand-over to an external memory."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts.fields import Flag, Strict
from memberintel.accounts.problems import Problem
from memberintel.accounts.rest import Endpoint, body, described
from wrapups.handover import actions, queries

OWNERS_ONLY = {403: "Only an owner of the account may change this."}


class ExternalMemoryOut(serializers.Serializer[Any]):
    """Whether there is an external memory, whether an owner agreed to it, and how far your own hand-over is."""

    available = serializers.BooleanField(help_text="Whether this installation has one.")
    agreed = serializers.BooleanField()
    pending = serializers.IntegerField(help_text="Sessions and days that are to be handed over.")
    done = serializers.IntegerField()
    failed = serializers.IntegerField()

    class Meta:
        ref_name = "ExternalMemory"


class ExternalMemoryIn(Strict):
    """An owner's yes or no."""

    agreed = Flag()


class ExternalMemory(Endpoint):
    """The external memory."""

    scopes = {"GET": ("read", "account"), "PUT": ("account",)}

    @described("get_external_memory", tag="account", gives={200: ExternalMemoryOut})
    def get(self, request: Request) -> Response:
        """Whether sessions are handed over to an external memory, and how far that is."""
        return Response(ExternalMemoryOut(_told()).data)

    @described(
        "set_external_memory",
        tag="account",
        takes=ExternalMemoryIn,
        gives={200: ExternalMemoryOut},
        errors=OWNERS_ONLY | {409: "This installation has no external memory."},
    )
    def put(self, request: Request) -> Response:
        """Agree to the hand-over, or take it back: then everything is deleted there."""
        given = body(request, ExternalMemoryIn)
        if not self.caller.user.is_owner:
            raise Problem(403, "owners-only", "Only an owner of the account may change this.")
        if not actions.available():
            raise Problem(409, "no-external-memory", "This installation has no external memory.")
        if given["agreed"]:
            actions.agree(by=self.caller.user.pk)
        else:
            actions.withdraw()
        return Response(ExternalMemoryOut(_told()).data)


def _told() -> dict[str, Any]:
    return {"available": actions.available(), "agreed": actions.agreed(), **queries.counts()}
