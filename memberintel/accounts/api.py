"""The API of an account: settings and personal tokens."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts import actions, queries, tokens
from memberintel.accounts.domain import LANGUAGES, time_zones
from memberintel.accounts.fields import Moment, Strict, Text
from memberintel.accounts.problems import NotFound, Problem
from memberintel.accounts.rest import Endpoint, body, described
from memberintel.lib import clock

READ = ("read", "account")
CHANGE = ("account",)


class ProfileIn(Strict):
    """What the customer tells us about themselves; what is left out stays as it is."""

    display_name = Text(
        max_length=80, allow_blank=True, required=False, help_text="How the advisor addresses you."
    )
    time_zone = Text(required=False, help_text="Such as Europe/Berlin; wrap-ups tell times in it.")
    language = Text(
        required=False, help_text="Two letters: " + ", ".join(code for code, _ in LANGUAGES) + "."
    )

    def validate_time_zone(self, name: str) -> str:
        """A zone people live in."""
        if name not in time_zones():
            raise serializers.ValidationError("No time zone has this name. One that has: Europe/Berlin.")
        return name

    def validate_language(self, code: str) -> str:
        """A language we know."""
        if code not in dict(LANGUAGES):
            raise serializers.ValidationError(f"Choose one of {', '.join(dict(LANGUAGES))}.")
        return code


class PlanOut(serializers.Serializer[Any]):
    """A plan."""

    key = serializers.CharField()
    name = serializers.CharField()

    class Meta:
        ref_name = "Plan"


class ProfileOut(serializers.Serializer[Any]):
    """A customer."""

    id = serializers.UUIDField()
    email = serializers.EmailField()
    display_name = serializers.CharField()
    time_zone = serializers.CharField()
    language = serializers.CharField()
    owner = serializers.BooleanField(help_text="Whether they own the account they work in.")
    plan = PlanOut()

    class Meta:
        ref_name = "Profile"


class Profile(Endpoint):
    """The customer's settings."""

    scopes = {"GET": READ, "PATCH": CHANGE}

    @described("get_profile", tag="account", gives={200: ProfileOut})
    def get(self, request: Request) -> Response:
        """Who you are, your settings and your plan."""
        return self._answer()

    @described("change_profile", tag="account", takes=ProfileIn, gives={200: ProfileOut})
    def patch(self, request: Request) -> Response:
        """Change your settings; what you leave out stays as it is."""
        given = body(request, ProfileIn)
        if given:
            actions.save_person(replace(queries.person(), **given))
        return self._answer()

    def _answer(self) -> Response:
        user, person = self.caller.user, queries.person()
        told = {"id": user.pk, "email": user.email, "owner": user.is_owner, "plan": self.caller.tier}
        return Response(ProfileOut({**told, **asdict(person)}).data)


class TokenIn(Strict):
    """A token to be made."""

    name = Text(max_length=80, help_text="What it is for, to tell it from others.")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=list(tokens.SCOPES.items())), allow_empty=False, max_length=20
    )
    expires_at = Moment(required=False, allow_null=True, default=None, help_text="Without it: never.")

    def validate_name(self, name: str) -> str:
        """Not a name of blanks."""
        if not name.strip():
            raise serializers.ValidationError("Give it a name.")
        return name

    def validate_expires_at(self, moment: Any) -> Any:
        """Not in the past."""
        if moment is not None and moment <= clock.now():
            raise serializers.ValidationError("This moment has passed.")
        return moment


class TokenOut(serializers.Serializer[Any]):
    """A token, without what makes it work."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="How it begins.")
    scopes = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="To the hour.")

    class Meta:
        ref_name = "Token"


class NewTokenOut(TokenOut):
    """A token just made."""

    token = serializers.CharField(help_text="The token itself. It is shown this once.")

    class Meta:
        ref_name = "NewToken"


class TokensOut(serializers.Serializer[Any]):
    """All tokens, newest first."""

    items = TokenOut(many=True)

    class Meta:
        ref_name = "Tokens"


class Tokens(Endpoint):
    """The customer's tokens. No token makes another: a stolen one cannot outlive being revoked."""

    scopes = {"GET": ("account",), "POST": ()}

    @described("list_tokens", tag="account", gives={200: TokensOut})
    def get(self, request: Request) -> Response:
        """Your tokens that were not revoked, newest first."""
        return Response(TokensOut({"items": queries.tokens()}).data)

    @described(
        "create_token",
        tag="account",
        takes=TokenIn,
        gives={201: NewTokenOut},
        errors={409: "You have as many tokens as one can have; revoke one first."},
    )
    def post(self, request: Request) -> Response:
        """Make a token. Needs a signed-in browser; no token makes another."""
        given = body(request, TokenIn)
        try:
            made = actions.make_token(**given)
        except actions.TooManyTokens:
            text = f"You have {actions.TOKENS_AT_MOST} tokens, which is as many as one can have. Revoke one first."
            raise Problem(409, "too-many-tokens", text) from None
        return Response(NewTokenOut({**asdict(made.token), "token": made.secret}).data, status=201)


class Token(Endpoint):
    """One token."""

    scopes = {"GET": ("account",), "DELETE": ("account",)}

    @described("get_token", tag="account", by_id=True, gives={200: TokenOut})
    def get(self, request: Request, token: UUID) -> Response:
        """One of your tokens."""
        found = queries.token(token)
        if found is None:
            raise NotFound
        return Response(TokenOut(found).data)

    @described("revoke_token", tag="account", by_id=True, gives={204: None})
    def delete(self, request: Request, token: UUID) -> HttpResponse:
        """Revoke a token: from now on nobody gets in with it."""
        if not actions.revoke_token(token):
            raise NotFound
        return HttpResponse(status=204)
