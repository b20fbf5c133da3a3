"""The API of an owner's word on pooling."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts.fields import Flag, Strict
from memberintel.accounts.problems import Problem
from memberintel.accounts.rest import Endpoint, body, described
from wrapups.pooling import choices


class PoolingOut(serializers.Serializer[Any]):
    """Whether decisions and open items are compared across accounts, and how this account stands to it."""

    running = serializers.BooleanField(help_text="Whether anything is compared across accounts at all.")
    takes_part = serializers.BooleanField(help_text="Whether items of this account are, now.")
    said = serializers.BooleanField(
        allow_null=True, help_text="An owner's yes or no; null where nobody said anything."
    )

    class Meta:
        ref_name = "Pooling"


class PoolingIn(Strict):
    """An owner's yes or no."""

    takes_part = Flag()


class Pooling(Endpoint):
    """Pooling across accounts."""

    scopes = {"GET": ("read", "account"), "PUT": ("account",)}

    @described("get_pooling", tag="account", gives={200: PoolingOut})
    def get(self, request: Request) -> Response:
        """Whether decisions and open items of this account are compared with those of others."""
        return Response(PoolingOut(choices.standing()).data)

    @described(
        "set_pooling",
        tag="account",
        takes=PoolingIn,
        gives={200: PoolingOut},
        errors={403: "Only an owner of the account may change this."},
    )
    def put(self, request: Request) -> Response:
        """Say yes or no. A no counts at once, and outlives whatever is decided about pooling later."""
        given = body(request, PoolingIn)
        if not self.caller.user.is_owner:
            raise Problem(403, "owners-only", "Only an owner of the account may change this.")
        choices.choose(by=self.caller.user.pk, takes_part=given["takes_part"])
        return Response(PoolingOut(choices.standing()).data)
