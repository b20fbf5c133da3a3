"""What a review shows: only what enough tenants share, in words that enough of them use; and who stands behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection

from brain import embedding
from memberintel.privacy import erase
from memberintel.tenancy.context import Scope, scope
from memberintel.usage import runs
from sessions import actions as sessions
from tests.conftest import Person, login_as, make_person
from tests.wrapups.pooling.conftest import behind, groups, noted, reviewed_by_lawyers, run, shown
from wrapups import actions
from wrapups.actions import Edit, EditedItem
from wrapups.models import LegalReview
from wrapups.pooling import choices, legal, review

Member = Callable[..., Person]

RAISE = "Raise the price of the yearly plan for new members"
WORDS = ["price of the yearly plan", "yearly plan for new members", "raise the price"]
WELCOME = "Send a welcome letter with a short video in the first days"


def says_no(who: Person) -> None:
    with login_as("web"), scope(who.scope):
        choices.choose(by=who.user.pk, takes_part=False)


def test_what_six_tenants_share_is_shown_in_their_common_words(lawyers: LegalReview, member: Member) -> None:
    people = [member(f"{RAISE} to ${59 + number}, says Olga") for number in range(6)]
    assert run() == {"customers": 6, "items": 6, "groups": 1}
    assert shown() == [WORDS]
    assert [behind(person) for person in people] == [1] * 6


def test_five_are_too_few_to_come_in(lawyers: LegalReview, member: Member) -> None:
    for _ in range(5):
        member(RAISE)
    assert run() == {"customers": 5, "items": 5, "groups": 0}
    assert (shown(), groups(), behind()) == ([], 0, 0)


def test_a_tenant_with_many_accounts_counts_once(lawyers: LegalReview, member: Member) -> None:
    first = member(RAISE)
    for number in range(6):
        colleague = make_person(tier="pro", tenant=first.user.tenant, owner=False, name=f"colleague{number}")
        noted(colleague.scope, RAISE, RAISE)
        noted(colleague.scope, RAISE)
    for _ in range(4):
        member(RAISE)
    assert run()["groups"] == 0
    assert (shown(), behind()) == ([], 0)
    member(RAISE)
    assert run()["groups"] == 1
    assert shown() == [WORDS]


def test_what_one_of_them_said_besides_does_not_show(lawyers: LegalReview, member: Member) -> None:
    for _ in range(6):
        member(RAISE)
    for _ in range(2):
        member(f"{RAISE} who enter through the secret door")
    assert run()["groups"] == 1
    assert shown() == [WORDS]


def test_no_other_field_takes_part(lawyers: LegalReview, member: Member) -> None:
    for _ in range(7):
        noted(member().scope, summary=RAISE, new_context=RAISE, note=RAISE)
    assert run() == {"customers": 0, "groups": 0}
    assert shown() == []


def test_decisions_and_open_items_are_kept_apart(lawyers: LegalReview, member: Member) -> None:
    for number in range(8):
        member(*([RAISE] if number < 4 else []), open_items=(RAISE,) if number >= 4 else ())
    assert run()["groups"] == 0
    for _ in range(2):
        member(WELCOME, open_items=(RAISE,))
    assert run()["groups"] == 1
    assert shown() == [WORDS]


def test_with_notice_all_take_part_but_those_who_said_no(lawyers: LegalReview, member: Member) -> None:
    people = [member(RAISE, agrees=False) for _ in range(6)]
    assert run() == {"customers": 0, "groups": 0}
    reviewed_by_lawyers(LegalReview.Ground.NOTICE)  # now tenants that other tests have left take part as well
    run()
    assert [behind(who) for who in people] == [1] * 6
    says_no(people[0])
    assert (behind(people[0]), behind(people[1])) == (0, 1)
    run()
    assert behind(people[0]) == 0


def test_the_words_are_sealed(lawyers: LegalReview, member: Member) -> None:
    for _ in range(6):
        member(RAISE)
    run()
    with login_as("owner"), connection.cursor() as cursor:
        cursor.execute("SELECT wording FROM pooled_groups")
        assert b"price" not in b"".join(bytes(row[0]) for row in cursor.fetchall())


def test_twice_is_once_and_pages_lose_nobody(
    lawyers: LegalReview, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review, "PAGE", 2)
    for _ in range(7):
        member(RAISE)
    assert run() == run() == {"customers": 7, "items": 7, "groups": 1}
    assert (shown(), groups(), behind()) == ([WORDS], 1, 7)


def test_a_run_that_was_killed_leaves_the_review_before_it(
    lawyers: LegalReview, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(6):
        member(RAISE)
    run()
    with monkeypatch.context() as patch:
        patch.setattr(review, "_open", killed)
        with pytest.raises(KeyboardInterrupt):
            run()
    assert (shown(), groups(), behind()) == ([WORDS], 2, 12)
    run()
    assert (shown(), groups(), behind()) == ([WORDS], 1, 6)


def killed(*_: Any) -> None:
    raise KeyboardInterrupt


def test_without_an_embedder_the_review_before_stands(
    lawyers: LegalReview, member: Member, settings: LazySettings
) -> None:
    for _ in range(6):
        member(RAISE)
    run()
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "embed": ("anthropic:claude-opus-5-5",)}
    with pytest.raises(review.NoEmbedder):
        run()
    assert shown() == [WORDS]


# --- leaving -------------------------------------------------------------------------------------------------


def test_one_who_leaves_is_not_missed_and_two_take_the_whole_group_along(
    lawyers: LegalReview, member: Member
) -> None:
    """From what is gone nobody learns what the last one had said: it is all of the group's words, or none."""
    both = [member(f"{RAISE} and stop selling the monthly plan") for _ in range(6)]
    for _ in range(3):
        member(RAISE)
    run()
    before = shown()
    assert "stop selling the monthly plan" in before[0]
    says_no(both[0])
    assert (behind(both[0]), shown()) == (0, before)
    says_no(both[1])
    assert shown() == [], "seven still share the first words, and four the last"


def test_one_who_leaves_between_a_review_and_the_look_at_it_counts_no_more(
    lawyers: LegalReview, member: Member
) -> None:
    people = [member(RAISE) for _ in range(6)]
    run()
    for left, who in enumerate(people[:2]):
        assert len(shown()) == 1, left
        says_no(who)
    assert (shown(), behind()) == ([], 4)


def test_one_who_leaves_while_a_review_is_made_is_not_in_it(
    lawyers: LegalReview, member: Member, reads: Reads
) -> None:
    people = [member(RAISE) for _ in range(6)]
    reads(3, lambda: says_no(people[0]))
    assert run()["groups"] == 0
    assert (shown(), behind()) == ([], 0)


type Reads = Callable[[int, Callable[[], None]], None]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """`reads(3, act)`: something happens when the customers have been read twice, and the third time begins."""
    wanted: dict[int, Callable[[], None]] = {}
    times = 0
    real = review._customers

    def read(drawn: bytes) -> Iterator[Scope]:
        nonlocal times
        times += 1
        everybody = list(real(drawn))
        if times in wanted:
            # Somebody is in the middle of being read: their words are in memory already.
            yield everybody[0]
            wanted[times]()
            yield from everybody[1:]
        else:
            yield from everybody

    monkeypatch.setattr(review, "_customers", read)
    return lambda when, act: wanted.update({when: act})


def test_pooling_that_is_turned_off_while_a_review_is_made_leaves_nothing(
    lawyers: LegalReview, member: Member, reads: Reads
) -> None:
    for _ in range(6):
        member(RAISE)
    reads(3, lambda: legal.turn(lawyers, on=False, using="support"))
    with pytest.raises(review.SwitchedOff):
        run()
    assert (shown(), groups(), behind()) == ([], 0, 0)


@pytest.mark.parametrize("how", ["deleted", "edited", "session deleted", "customer erased", "tenant erased"])
def test_what_is_gone_stands_behind_nothing(
    lawyers: LegalReview, member: Member, settings: LazySettings, how: str
) -> None:
    people = [member() for _ in range(6)]
    notes = [noted(who.scope, RAISE) for who in people]
    run()
    for who, row in zip(people[:2], notes, strict=False):
        with scope(who.scope):
            if how == "deleted":
                actions.delete(row.pk, by=who.user.pk)
            elif how == "edited":
                actions.edit(row.pk, edited("Keep the price as it stands for all members"), by=who.user.pk)
            elif how == "session deleted":
                sessions.delete(session=row.session_id)
        if how == "customer erased":
            erase.proceed(erase.begin(who.scope, by=who.user.pk))
        elif how == "tenant erased":
            erase.proceed(erase.begin(Scope(who.scope.tenant_id), by=who.user.pk))
    with login_as("owner"), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pooled_support WHERE tenant_id = ANY(%s)",
            [[who.scope.tenant_id for who in people[:2]]],
        )
        assert cursor.fetchone() == (0,)
    assert shown() == []


def edited(decision: str) -> Edit:
    return Edit("They talked.", [EditedItem(decision)], [], [], "Ask how it went.")


def test_what_is_deleted_is_not_read(lawyers: LegalReview, member: Member) -> None:
    for number in range(6):
        who = member()
        row = noted(who.scope, RAISE)
        if number == 0:
            with scope(who.scope):
                actions.delete(row.pk, by=who.user.pk)
    assert run()["groups"] == 0


# --- comparing two reviews -----------------------------------------------------------------------------------


def test_a_review_is_made_once_in_seven_days(
    lawyers: LegalReview, member: Member, settings: LazySettings
) -> None:
    settings.POOLING_EVERY_DAYS = 7
    for _ in range(6):
        member(RAISE)
    with login_as("worker"), runs.recorded(review.KIND) as recorded:
        review._make(recorded)
    with login_as("worker"), runs.recorded(review.KIND) as again:
        review.step(again)
    assert (dict(again.counts), len(shown())) == ({}, 1)


def test_a_group_comes_and_goes_without_anybody_leaving(
    lawyers: LegalReview, member: Member, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that one that is gone from the next review does not tell that somebody left."""
    settings.POOLING_SHARE = 0.8
    for _ in range(7):
        member(RAISE)
    keys = iter(bytes([number]) * 32 for number in range(250))
    monkeypatch.setattr("wrapups.pooling.review.secrets.token_bytes", lambda size: next(keys))
    seen: set[bool] = set()
    for _ in range(60):
        run()
        seen.add(bool(shown()))
        if seen == {True, False}:
            return
    pytest.fail(f"in sixty reviews of the same seven tenants the group was there {seen}")


def test_what_is_embedded_is_redacted(
    lawyers: LegalReview, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = embedding.vectors

    async def spied(texts: Any, who: Scope) -> Any:
        asked.extend(texts)
        return await real(texts, who)

    monkeypatch.setattr(embedding, "vectors", spied)
    for _ in range(6):
        member(f"{RAISE} to $59, says Олга")
    run()
    assert set(asked) == {"raise the price of the yearly plan for new members to … says"}
