from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from django.db import connections

from brain import actions, queries
from brain.domain.prompt import Part, RenderedPart, assemble
from brain.models import PromptPart
from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import scope
from tests.conftest import Person


def part(text: str, source: UUID | None, name: str = "wrap_ups") -> RenderedPart:
    return RenderedPart(name, text, "wrap_up", source)


def test_a_text_is_kept_once_and_comes_back_in_the_order_asked_for(alice: Person) -> None:
    one, two = part("one", uuid7()), part("two", uuid7())
    with scope(alice.scope):
        digests = actions.store_parts([one, two])
        assert actions.store_parts([two, one]) == digests[::-1]
        assert PromptPart.objects.count() == 2
        pairs = [("wrap_ups", digest) for digest in reversed(digests)]
        assert queries.prompt_parts(pairs) == [Part("wrap_ups", "two"), Part("wrap_ups", "one")]


def test_removing_a_source_removes_its_text_and_nobody_elses(alice: Person) -> None:
    gone, stays = uuid7(), uuid7()
    with scope(alice.scope):
        words = '<section name="wrap_ups" label="Notes">\nthe same words\n</section>'
        digests = actions.store_parts([part(words, gone), part(words, stays)])
        assert actions.remove_parts(source_kind="wrap_up", source_id=gone) == 1
        first, second = queries.prompt_parts([("wrap_ups", digest) for digest in digests])
        assert first == Part("wrap_ups", None, clock.now().date())
        assert second.text == words
        assert assemble([first, second])[0].splitlines()[1].startswith("(removed by you on ")
        assert actions.remove_parts(source_kind="wrap_up", source_id=gone) == 0


def test_what_was_removed_and_is_said_again_stands_again(alice: Person) -> None:
    source = uuid7()
    with scope(alice.scope):
        digests = actions.store_parts([part("words", source)])
        actions.remove_parts(source_kind="wrap_up", source_id=source)
        assert actions.store_parts([part("words", source)]) == digests
        assert queries.prompt_parts([("wrap_ups", digests[0])]) == [Part("wrap_ups", "words")]


def test_equal_texts_of_two_customers_do_not_show_as_equal(alice: Person, bob: Person) -> None:
    words = part("words", None)
    digests = []
    for person in (alice, bob):
        with scope(person.scope):
            digests += actions.store_parts([words])
    assert digests[0] != digests[1]
    with scope(bob.scope):
        assert not PromptPart.objects.filter(digest=digests[0]).exists()


def test_two_turns_that_store_the_same_text_at_once_share_it(alice: Person) -> None:
    words = [part("words", uuid7()), part("more words", uuid7())]

    def store(_: int) -> list[str]:
        try:
            with scope(alice.scope):
                return actions.store_parts(words)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(store, range(4)))
    assert all(each == results[0] for each in results)
    with scope(alice.scope):
        assert PromptPart.objects.count() == 2
