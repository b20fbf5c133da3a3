"""Where a message goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from sessions.domain.routing import (
    Append,
    CloseAndSucceed,
    Conflict,
    GoToOpen,
    Open,
    OpenSuccessor,
    Route,
    Target,
    TargetState,
    route_message,
    route_opening,
)

NOW = datetime(2023, 7, 21, 12, 0, tzinfo=UTC)
IDLE = 2 * 60 * 60
THIS, OTHER = UUID(int=1), UUID(int=2)


def quiet(seconds: float, session: UUID = THIS) -> Open:
    """An open session whose customer has been silent that long."""
    return Open(session, NOW - timedelta(seconds=seconds))


def sent(target: Target | None, open_session: Open | None, *, close_previous: bool = False) -> Route:
    return route_message(
        target, open_session=open_session, now=NOW, idle_seconds=IDLE, close_previous=close_previous
    )


def hand(open_session: Open | None, *, close_previous: bool = False) -> Route:
    return route_opening(open_session=open_session, now=NOW, idle_seconds=IDLE, close_previous=close_previous)


def test_the_first_message_ever_opens_a_session_that_follows_none() -> None:
    assert sent(None, None) == OpenSuccessor(continues=None)


@pytest.mark.parametrize("target", [None, Target(THIS, "open")])
def test_a_message_belongs_to_the_open_session_for_less_than_two_hours(target: Target | None) -> None:
    assert sent(target, quiet(0)) == Append(THIS)
    assert sent(target, quiet(IDLE - 0.000001)) == Append(THIS)


@pytest.mark.parametrize("target", [None, Target(THIS, "open")])
@pytest.mark.parametrize("silence", [IDLE, IDLE + 1, 90 * 24 * 3600])
def test_at_exactly_two_hours_or_later_a_successor_opens(target: Target | None, silence: int) -> None:
    assert sent(target, quiet(silence)) == CloseAndSucceed(THIS, reason="idle", continues=THIS)


def test_it_is_the_same_when_the_sweep_was_there_first() -> None:
    def after_the_sweep(target: Target | None, open_session: Open | None = None) -> Route:
        return route_message(target, open_session=open_session, now=NOW, idle_seconds=IDLE, lapsed=THIS)

    assert after_the_sweep(None) == OpenSuccessor(continues=THIS)
    assert after_the_sweep(Target(OTHER, "closed")) == OpenSuccessor(continues=OTHER)
    assert after_the_sweep(None, quiet(60, OTHER)) == Append(OTHER)


def test_a_clock_that_went_back_closes_nothing() -> None:
    assert sent(None, quiet(-3600)) == Append(THIS)


def test_a_message_to_a_closed_session_opens_a_successor() -> None:
    assert sent(Target(THIS, "closed"), None) == OpenSuccessor(continues=THIS)


def test_if_another_session_is_open_the_message_goes_there_and_is_told() -> None:
    assert sent(Target(THIS, "closed"), quiet(60, OTHER)) == GoToOpen(OTHER, told=True)


def test_continuing_ends_the_open_session_first_when_asked_to() -> None:
    route = sent(Target(THIS, "closed"), quiet(60, OTHER), close_previous=True)
    assert route == CloseAndSucceed(OTHER, reason="ended", continues=THIS)


@pytest.mark.parametrize("close_previous", [True, False])
def test_an_open_session_that_is_over_is_not_in_the_way_of_continuing_another(close_previous: bool) -> None:
    route = sent(Target(THIS, "closed"), quiet(IDLE, OTHER), close_previous=close_previous)
    assert route == CloseAndSucceed(OTHER, reason="idle", continues=THIS)


def test_a_session_seen_open_that_has_closed_since_counts_as_closed() -> None:
    assert sent(Target(THIS, "open"), None) == OpenSuccessor(continues=THIS)
    assert sent(Target(THIS, "open"), quiet(60, OTHER)) == GoToOpen(OTHER)


@pytest.mark.parametrize("state", ["archived", "erased"])
@pytest.mark.parametrize("open_session", [None, quiet(60, OTHER), quiet(IDLE, OTHER)])
@pytest.mark.parametrize("close_previous", [True, False])
def test_archived_and_erased_sessions_refuse_and_touch_nothing(
    state: TargetState, open_session: Open | None, close_previous: bool
) -> None:
    route = sent(Target(THIS, state), open_session, close_previous=close_previous)
    assert isinstance(route, Conflict)
    assert (route.code, route.session) == (f"session_{state}", THIS)
    assert "new conversation" in route.text


def test_continue_pressed_on_the_open_session_itself_just_appends() -> None:
    assert sent(Target(THIS, "open"), quiet(60), close_previous=True) == Append(THIS)


def test_opening_by_hand_ends_the_previous_session_only_when_asked_to() -> None:
    assert hand(None) == OpenSuccessor(continues=None)
    assert hand(quiet(60), close_previous=True) == CloseAndSucceed(THIS, reason="ended", continues=None)
    refused = hand(quiet(60))
    assert isinstance(refused, Conflict)
    assert (refused.code, refused.session) == ("session_open", THIS)


def test_opening_by_hand_needs_no_leave_once_the_previous_is_over() -> None:
    assert hand(quiet(IDLE)) == CloseAndSucceed(THIS, reason="idle", continues=None)
