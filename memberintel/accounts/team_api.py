"""The API of a team: who is in it, who is asked to join, who was removed. For owners."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts import colleagues, invitations, letters
from memberintel.accounts.colleagues import Refused
from memberintel.accounts.fields import Strict
from memberintel.accounts.invitations import Invited
from memberintel.accounts.problems import NotFound, Problem
from memberintel.accounts.rest import Endpoint, body, described

ACCOUNT = ("account",)
OWNERS = {403: "Only an owner of the account may do this, or the token lacks the scope."}
AGAINST = {409: "It cannot be done as things are; `detail` says why."}


class InvitationIn(Strict):
    """Whom to ask."""

    email = serializers.EmailField(max_length=254)


class ColleagueOut(serializers.Serializer[Any]):
    """Somebody of the team."""

    id = serializers.UUIDField()
    email = serializers.EmailField()
    owner = serializers.BooleanField(source="is_owner")
    active = serializers.BooleanField(source="is_active", help_text="False for somebody who was removed.")

    class Meta:
        ref_name = "Colleague"


class InvitationOut(serializers.Serializer[Any]):
    """An open invitation. `sent` is false when its letter could not be sent just now."""

    id = serializers.UUIDField()
    email = serializers.EmailField()
    expires_at = serializers.DateTimeField()
    sent = serializers.BooleanField(required=False)

    class Meta:
        ref_name = "Invitation"


class TeamOut(serializers.Serializer[Any]):
    """The team."""

    members = ColleagueOut(many=True)
    removed = ColleagueOut(many=True)
    invitations = InvitationOut(many=True)

    class Meta:
        ref_name = "Team"


class OwnersOnly(Endpoint):
    """An address for owners; a colleague's answer is the same for every id."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Let an owner in."""
        super().initial(request, *args, **kwargs)
        if not self.caller.user.is_owner:
            raise Problem(403, "owners-only", "Only an owner of the account may do this. Ask one of them.")


class Colleagues(OwnersOnly):
    """The team."""

    scopes = {"GET": ACCOUNT}

    @described("get_team", tag="team", gives={200: TeamOut}, errors=OWNERS)
    def get(self, request: Request) -> Response:
        """Who is in the team, who was removed, who is asked to join."""
        team = {
            "members": colleagues.members(),
            "removed": colleagues.removed(),
            "invitations": invitations.open_invitations(),
        }
        return Response(TeamOut(team).data)


class Colleague(OwnersOnly):
    """One colleague."""

    scopes = {"DELETE": ACCOUNT, "POST": ACCOUNT}

    @described("remove_colleague", tag="team", by_id=True, gives={204: None}, errors={**OWNERS, **AGAINST})
    def delete(self, request: Request, person: UUID) -> HttpResponse:
        """Remove a colleague: they are signed out everywhere; what is theirs stays theirs."""
        try:
            colleagues.remove(person, by=self.caller.user.id)
        except colleagues.NotFound:
            raise NotFound from None
        except Refused as refusal:
            raise _against(refusal) from None
        return HttpResponse(status=204)

    @described("let_colleague_back", tag="team", by_id=True, gives={200: ColleagueOut}, errors=OWNERS)
    def post(self, request: Request, person: UUID) -> Response:
        """Let somebody back in who was removed."""
        try:
            found = colleagues.let_back(person)
        except colleagues.NotFound:
            raise NotFound from None
        return Response(ColleagueOut(found).data)


class Invitations(OwnersOnly):
    """Invitations."""

    scopes = {"POST": ACCOUNT}

    @described(
        "invite", tag="team", takes=InvitationIn, gives={201: InvitationOut}, errors={**OWNERS, **AGAINST}
    )
    def post(self, request: Request) -> Response:
        """Ask somebody to join. The link in the letter works once, for seven days."""
        try:
            invited = invitations.invite(body(request, InvitationIn)["email"], by=self.caller.user.id)
        except Refused as refusal:
            raise _against(refusal) from None
        return Response(_sent(request, invited), status=201)


class Invitation(OwnersOnly):
    """One open invitation."""

    scopes = {"POST": ACCOUNT, "DELETE": ACCOUNT}

    @described(
        "send_invitation_again",
        tag="team",
        by_id=True,
        gives={200: InvitationOut},
        errors={**OWNERS, **AGAINST},
    )
    def post(self, request: Request, invitation: UUID) -> Response:
        """Send the letter again; the seven days begin anew."""
        try:
            return Response(_sent(request, invitations.again(invitation)))
        except invitations.Gone:
            raise NotFound from None
        except Refused as refusal:
            raise _against(refusal) from None

    @described("withdraw_invitation", tag="team", by_id=True, gives={204: None}, errors=OWNERS)
    def delete(self, request: Request, invitation: UUID) -> HttpResponse:
        """Withdraw it: its link no longer works."""
        try:
            invitations.withdraw(invitation)
        except invitations.Gone:
            raise NotFound from None
        return HttpResponse(status=204)


def _sent(request: Request, invited: Invited) -> Any:
    sent = letters.send_invitation(request._request, invited)
    told = {"id": invited.id, "email": invited.email, "expires_at": invited.expires_at, "sent": sent}
    return InvitationOut(told).data


def _against(refusal: Refused) -> Problem:
    return Problem(409, "refused", refusal.text)
