"""Search: each finds their own words, nobody else's, and the database learns no word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from html import unescape
from io import StringIO
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memberintel.accounts import actions as accounts
from memberintel.accounts.domain import Person as Told
from memberintel.lib import clock, terms
from memberintel.tenancy.context import scope
from memberintel.vault import blind, keyring
from memberintel.vault.errors import CannotOpen, KeyUnavailable
from sessions import actions, closing, importer, indexer, log, search
from sessions.domain import events as kinds
from sessions.domain.conversation_file import Conversation, ConversationFile, Said
from sessions.models import CloseReason, SearchProgress, Session, SessionEvent, SessionTerms
from tests.conftest import Person
from tests.sessions.conftest import open_for, say

few = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
WORDS = st.text(min_size=1, max_size=300).filter(lambda text: bool(terms.terms(text, "en")))


def answer(text: str, outcome: kinds.Outcome = "complete") -> kinds.Draft:
    return kinds.assistant_turn(text=text, outcome=outcome, tokens=2, model="m", provider="p")


def write(person: Person, *drafts: kinds.Draft, off_record: bool = False) -> UUID:
    """A closed session of that person with these events from 2 on, indexed."""
    with scope(person.scope):
        session = actions.open_session(close_previous=True, off_record=off_record)
        for draft in drafts:
            log.append(session, draft)
        closing.close(session, reason=CloseReason.ENDED, by="customer", now=clock.now())
        indexer.settle()
    return session


def message(text: str) -> kinds.Draft:
    return kinds.user_message(text=text, tokens=3)


def hits(person: Person, query: str) -> list[tuple[UUID, int]]:
    with scope(person.scope):
        return [(hit.session, hit.seq) for hit in search.search(query, limit=1_000)]


def terms_of(person: Person, session: UUID) -> dict[int, str]:
    with scope(person.scope):
        return dict(SessionTerms.objects.filter(session_id=session).values_list("seq", "terms"))


def indexed(person: Person, session: UUID) -> SearchProgress:
    with scope(person.scope):
        return SearchProgress.objects.get(session_id=session)


def due(person: Person) -> set[UUID]:
    found = indexer.lagging(past=UUID(int=0), limit=100_000)
    return {session for session, who in found if who == person.scope}


# --- what is found ---------------------------------------------------------------------------------------


def test_messages_answers_and_summaries_are_found_where_they_stand(alice: Person) -> None:
    summary = kinds.compaction_applied(
        replaces_through_seq=3, summary="zebra summed up", method="model", tokens_before=9, tokens_after=1
    )
    session = write(
        alice,
        message("zebras asked"),
        answer("a zebra answered"),
        summary,
        message("other"),
        answer("the zebra, stop", "stopped"),
        kinds.pending_state(text="zebra unfinished"),
        kinds.turn_failed(code="x", retryable=True, message="zebra failed"),
    )
    assert sorted(hits(alice, "Zebra")) == [(session, seq) for seq in (2, 3, 4, 6)]


def test_what_was_said_is_found_without_anybody_asking_for_an_index(alice: Person) -> None:
    said = say(alice, "The okapi tariffs are secret", "key-okapi-1")
    indexer.settle()
    with scope(alice.scope):
        [hit] = search.search("tariff okapi")
    assert (hit.session, hit.seq, hit.by) == (said.session, said.seq, "customer")
    assert hit.title == "The okapi tariffs are secret"
    assert [piece.text for piece in hit.snippet if piece.found] == ["okapi", "tariffs"]


def test_an_imported_conversation_is_found(alice: Person) -> None:
    begun = datetime(2024, 3, 9, 23, 30, tzinfo=UTC)
    talk = Conversation(
        begun, (Said("customer", begun, "quagga?"), Said("advisor", begun, "Quaggas are gone"))
    )
    with scope(alice.scope):
        [done] = importer.import_conversations(
            ConversationFile("Ada", "Ben", "UTC", (talk,)), now=clock.now()
        )
        indexer.settle()
    assert sorted(hits(alice, "quagga")) == [(done.session, 2), (done.session, 3)]


@few
@given(text=WORDS, data=st.data())
def test_every_word_of_an_indexed_text_finds_it(alice: Person, text: str, data: st.DataObject) -> None:
    text = text.replace("\x00", "")
    words = terms.read(terms.fold(text)) or ["zebra"]
    session = write(alice, message(text if terms.read(terms.fold(text)) else "zebra"))
    word = data.draw(st.sampled_from(words))
    assert (session, 2) in hits(alice, word)


def test_the_customers_language_makes_the_stems_and_a_change_of_it_loses_nothing(alice: Person) -> None:
    with scope(alice.scope):
        accounts.save_person(Told("", "UTC", "de"))
    german = write(alice, message("Die Häuser sind teuer"))
    assert indexed(alice, german).language == "de"
    assert hits(alice, "Haus") == [(german, 2)]
    with scope(alice.scope):
        accounts.save_person(Told("", "UTC", "en"))
    english = write(alice, message("The houses are dear"))
    assert hits(alice, "Haus") == [(german, 2)]
    assert hits(alice, "house") == [(english, 2)]


def test_a_session_goes_on_in_the_new_language_from_its_beginning(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        log.append(session, message("Häuser"))
        indexer.settle()
        accounts.save_person(Told("", "UTC", "de"))
        log.append(session, answer("Haus"))
        indexer.settle()
    assert indexed(alice, session).language == "de"
    assert len(set(terms_of(alice, session).values())) == 1


def test_the_newest_hits_are_those_ranked(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(alice, message("a lemur, a lemur and a lemur"))
    later = write(alice, message("one lemur"), answer("another lemur"))
    monkeypatch.setattr(search, "HITS", 2)
    with scope(alice.scope):
        found = search.find("lemur")
    assert {hit.session for hit in found.hits} == {later}
    assert (found.total, found.more) == (2, True)
    monkeypatch.setattr(search, "HITS", 3)
    assert hits(alice, "lemur")[0] == (first, 2)


@pytest.mark.parametrize("share", [1, 8, 20])
def test_common_and_rare_words_find_the_same_whichever_way_is_taken(alice: Person, share: int) -> None:
    """Above 6 % of the newest texts the database walks back from them; below, it goes by the index."""
    drafts = [message("ibex" if n % share == 0 else "nothing") for n in range(600)]
    session = write(alice, *drafts)
    wanted = [(session, n + 2) for n in range(600) if n % share == 0]
    assert sorted(hits(alice, "ibex")) == wanted


def test_long_texts_are_opened_within_a_budget(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    session = write(alice, *(message(f"tapir {n}") for n in range(40)))
    monkeypatch.setattr(search, "READ_BYTES", 10)
    with scope(alice.scope):
        found = search.find("tapir")
    assert {hit.seq for hit in found.hits} == set(range(42 - search.PAGE, 42))
    assert found.more
    assert session


# --- whose it is -----------------------------------------------------------------------------------------


def test_nothing_crosses_customers(alice: Person, bob: Person, charlie: Person) -> None:
    mine = {who.user.id: write(who, message("the same numbat")) for who in (alice, bob, charlie)}
    for who in (alice, bob, charlie):
        assert hits(who, "numbat") == [(mine[who.user.id], 2)]


def test_equal_words_of_two_customers_have_different_hashes(alice: Person, bob: Person) -> None:
    one, other = (terms_of(who, write(who, message("numbat and quoll")))[2] for who in (alice, bob))
    assert set(one.split()).isdisjoint(other.split())


def test_another_customers_hashes_find_nothing(alice: Person, bob: Person) -> None:
    """Even who knows the hashes is held to their own rows: the scope stands inside the function."""
    write(alice, message("numbat"))
    with scope(alice.scope):
        stolen = f"'{blind.blinder().hash('numbat')}'"
    assert _database_finds(alice, stolen)
    assert not _database_finds(bob, stolen)


def _database_finds(who: Person, lexemes: str) -> list[object]:
    with scope(who.scope), connection.cursor() as cursor:
        cursor.execute("SELECT * FROM app.search_terms(%s, 10)", [lexemes])
        return list(cursor.fetchall())


def test_the_database_refuses_to_search_without_a_scope() -> None:
    with pytest.raises(DatabaseError, match="permission denied"), connection.cursor() as cursor:
        cursor.execute("SELECT * FROM app.search_terms('a', 10)")


# --- what the database learns ----------------------------------------------------------------------------

PLANTED = "The purple heron campaign raises retention among lapsed members"


def test_the_index_holds_no_term_and_no_order(alice: Person) -> None:
    stored = terms_of(alice, write(alice, message(PLANTED)))[2]
    assert all(re.fullmatch(r"'[A-Za-z0-9+/]{8}'", lexeme) for lexeme in stored.split())
    assert len(stored.split()) == len(terms.terms(PLANTED, "en"))
    assert stored.split() == sorted(stored.split())
    for term in terms.terms(PLANTED, "en"):
        assert f"'{term}'" not in stored.lower()


@few
@given(text=WORDS)
def test_whatever_was_written_stands_there_as_hashes_alone(alice: Person, text: str) -> None:
    session = write(alice, message(text))
    for stored in terms_of(alice, session).values():
        assert all(re.fullmatch(r"'[A-Za-z0-9+/]{8}'", lexeme) for lexeme in stored.split())


# --- staying up with the log -----------------------------------------------------------------------------


def test_what_is_rolled_back_is_not_indexed(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        with transaction.atomic():
            log.append(session, message("vanished"))
            transaction.set_rollback(True)
        indexer.settle()
    assert hits(alice, "vanished") == []


def test_an_index_that_fails_fails_nothing_and_is_healed(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(indexer, "_write", _boom)
        session = write(alice, message("aardvark"), answer("noted"))
    assert hits(alice, "aardvark") == []
    assert session in due(alice)
    with scope(alice.scope):
        assert indexer.index(session) == 2
    assert hits(alice, "aardvark") == [(session, 2)]
    assert session not in due(alice)


def _boom(*args: object) -> None:
    raise RuntimeError("no index today")


def test_a_session_that_is_indexed_to_its_end_is_not_due(alice: Person) -> None:
    opened, closed = write(alice), write(alice, message("done"), answer("yes"))
    assert due(alice).isdisjoint({opened, closed})


def test_a_session_indexed_by_older_rules_is_due_and_made_anew(alice: Person) -> None:
    session = write(alice, message("dugong"))
    with scope(alice.scope):
        SearchProgress.objects.filter(session_id=session).update(version=terms.VERSION + 1)
        SessionTerms.objects.filter(session_id=session).delete()
    assert session in due(alice)
    with scope(alice.scope):
        indexer.index(session)
    assert hits(alice, "dugong") == [(session, 2)]


def test_a_running_turn_is_not_due(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(indexer, "_write", _boom)
        said = say(alice, "narwhal", "key-narwhal")
        indexer.settle()
    assert said.session not in due(alice)


@few
@given(texts=st.lists(st.text(max_size=200), min_size=1, max_size=6))
def test_a_rebuild_equals_what_was_indexed_bit_by_bit(alice: Person, texts: list[str]) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        for text in texts:
            log.append(session, message(text))
            indexer.index(session)
        before = terms_of(alice, session)
        for _ in range(2):
            assert indexer.rebuild(session) == len(texts)
            assert terms_of(alice, session) == before
    assert indexed(alice, session).indexed_seq == len(texts) + 1


def test_many_events_are_read_a_batch_at_a_time(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "BATCH", 2)
    session = write(alice, *(message(f"gnu {n}") for n in range(5)))
    assert len(hits(alice, "gnu")) == 5
    assert indexed(alice, session).indexed_seq >= 6


def test_off_the_record_is_off_the_index(alice: Person) -> None:
    session = write(alice, message("hush puma"), off_record=True)
    assert hits(alice, "puma") == []
    assert terms_of(alice, session) == {}
    assert session not in due(alice)
    with scope(alice.scope):
        assert indexer.rebuild(session) == 0


def test_what_is_forgotten_leaves_nothing_behind(alice: Person) -> None:
    session, kept = write(alice, message("ocelot")), write(alice, message("ocelot again"))
    with scope(alice.scope):
        indexer.forget(session)
    assert hits(alice, "ocelot") == [(kept, 2)]
    assert terms_of(alice, session) == {}


def test_the_eraser_may_remove_terms() -> None:
    with connection.cursor() as cursor:
        for table in ("session_terms", "search_progress"):
            cursor.execute("SELECT has_table_privilege('eraser', %s, 'DELETE')", [table])
            assert cursor.fetchone() == (True,)


# --- damage and lost keys --------------------------------------------------------------------------------


def _plant_damaged(session: UUID, word: str) -> None:
    """An event that is in the index and cannot be opened, as number 3 of the session."""
    SessionEvent(
        session_id=session, seq=3, id=uuid4(), kind="user_message", payload={"v": 1, "tokens": 1},
        sealed=b"\x01" + bytes(40), created_at=clock.now(),
    ).save(force_insert=True)  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO session_terms (tenant_id, customer_id, session_id, seq, terms)"
            " SELECT tenant_id, customer_id, id, 3, array_to_tsvector(%s) FROM sessions WHERE id = %s",
            [blind.blinder().hashes(terms.terms(word, "en")), session],
        )
    Session.objects.filter(id=session).update(last_seq=3)


def test_a_damaged_hit_is_shown_as_such_and_the_others_are_there(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        log.append(session, message("caracal"))
        indexer.settle()
        _plant_damaged(session, "caracal")
        found = search.search("caracal")
    assert [(hit.seq, hit.readable) for hit in found] == [(2, True), (3, False)]
    assert found[1].snippet == ()


def test_a_damaged_event_does_not_stop_the_index(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        log.append(session, message("caracal"))
        _plant_damaged(session, "caracal")
        log.append(session, message("caracal again"))
        indexer.rebuild(session)
    assert sorted(hits(alice, "caracal")) == [(session, 2), (session, 4)]


@contextmanager
def _without_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def lost(*args: object) -> None:
        raise KeyUnavailable("no key today")

    with monkeypatch.context() as without:
        without.setattr(keyring, "key_of", lost)
        yield


def test_without_the_key_nothing_is_found_aloud_and_nothing_written(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = write(alice, message("serval"))
    before = terms_of(alice, session)
    with scope(alice.scope), _without_key(monkeypatch):
        with pytest.raises(CannotOpen):
            search.search("serval")
        with pytest.raises(CannotOpen):
            indexer.rebuild(session)
    assert terms_of(alice, session) == before
    assert indexed(alice, session).indexed_seq > 1


# --- bad input -------------------------------------------------------------------------------------------

NASTY = [
    "",
    "   ",
    "\x00",
    "!?…",
    "a",
    "'",
    "''; DROP TABLE sessions; --",
    "a & b | !c <-> d:*",
    "\\' | 'x",
    "%s %d {}",
    "\ud800 lone",
    "word " * 2_000,
    "x" * 10_000,
    '"',
    '"" "   "',
    "猫",
    "👍🏽",
]


@pytest.mark.parametrize("query", NASTY)
def test_no_input_breaks_it(alice: Person, query: str) -> None:
    write(alice, message("a word"))
    found = hits(alice, query)
    assert len(found) == (1 if query in ("a", "word " * 2_000) else 0)


def test_one_letter_and_operators_are_words_like_others(alice: Person) -> None:
    session = write(alice, message("plan b & c | d:*"))
    assert hits(alice, "b & D") == [(session, 2)]
    assert hits(alice, "b & e") == []


# --- the command -----------------------------------------------------------------------------------------


def _command(*args: str) -> str:
    out = StringIO()
    with suppress(CommandError):  # sessions of other tests, whose key was destroyed before they were indexed
        call_command("rebuild_search", *args, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_the_command_indexes_what_lags(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(indexer, "_write", _boom)
        session = write(alice, message("bongo"))
    assert "sessions indexed" in _command()
    assert hits(alice, "bongo") == [(session, 2)]


def test_the_command_makes_all_anew_and_goes_on_where_it_was_stopped(alice: Person) -> None:
    one, two = write(alice, message("kudu")), write(alice, message("kudu"))
    with scope(alice.scope):
        SessionTerms.objects.filter(session_id__in=[one, two]).delete()
        began = clock.now()
        indexer.rebuild(one)
        untouched = indexed(alice, one).indexed_at
    printed = _command("--all", "--before", began.isoformat())
    assert f"--before {began.isoformat()}" in printed
    assert sorted(hits(alice, "kudu")) == sorted([(one, 2), (two, 2)])
    assert indexed(alice, one).indexed_at == untouched
    assert indexed(alice, two).indexed_at > untouched


# --- the page --------------------------------------------------------------------------------------------


def _page(who: Person, query: dict[str, str]) -> tuple[int, str]:
    client = Client(SERVER_NAME="localhost")
    client.force_login(who.user)
    response = client.get("/sessions/search/", query, secure=True)
    return response.status_code, re.sub(r"\s+", " ", response.content.decode())


def test_the_page_shows_hits_and_leads_to_their_place(alice: Person) -> None:
    session = write(alice, message("<b>impala</b> & co"), answer("The impala, too"))
    status, page = _page(alice, {"q": "impala"})
    assert status == 200
    assert f'href="/sessions/{session}/?at=2#e2"' in page
    assert f'href="/sessions/{session}/?at=3#e3"' in page
    assert "&lt;b&gt;<mark>impala</mark>&lt;/b&gt; &amp; co" in page
    assert "<b>impala" not in page
    client = Client(SERVER_NAME="localhost")
    client.force_login(alice.user)
    transcript = client.get(f"/sessions/{session}/", secure=True).content.decode()
    assert 'id="e2"' in transcript
    assert 'id="e3"' in transcript


def test_an_answer_saved_in_parts_has_the_place_its_hit_leads_to(alice: Person) -> None:
    said = say(alice, "question", "key-parts")
    turn = said.turn
    with scope(alice.scope):
        log.append(said.session, kinds.pending_state(text="The ki"), turn=turn, lease=log.Lease.HOLD)
        seq = log.append(said.session, answer("The kiwi"), turn=turn, lease=log.Lease.RELEASE)
        indexer.settle()
    assert hits(alice, "kiwi") == [(said.session, seq)]
    client = Client(SERVER_NAME="localhost")
    client.force_login(alice.user)
    page = client.get(f"/sessions/{said.session}/", secure=True).content.decode()
    assert page.count(f'id="e{seq}"') == 1


@pytest.mark.parametrize("query", NASTY)
def test_the_page_takes_any_query(alice: Person, query: str) -> None:
    status, page = _page(alice, {"q": query.encode("utf-8", "replace").decode()})
    assert status == 200
    assert "Search" in page


@pytest.mark.parametrize("page", ["0", "-1", "x", "99999", "²"])
def test_a_page_that_is_none_is_refused(alice: Person, page: str) -> None:
    assert _page(alice, {"q": "a", "page": page})[0] == 400


def test_there_are_further_pages(alice: Person) -> None:
    write(alice, *(message(f"eland {n}") for n in range(search.PAGE + 5)))
    _, first = _page(alice, {"q": "eland"})
    assert "q=eland&amp;page=2" in first
    _, second = _page(alice, {"q": "eland", "page": "2"})
    assert second.count("<mark>eland</mark>") == 5
    assert "page=3" not in second
    assert unescape(second).count('"?q=eland&page=1"') == 1


def test_a_damaged_hit_has_a_line_on_the_page(alice: Person) -> None:
    session = open_for(alice)
    with scope(alice.scope):
        log.append(session, message("caracal"))
        indexer.settle()
        _plant_damaged(session, "caracal")
    _, page = _page(alice, {"q": "caracal"})
    assert "cannot be opened" in page
    assert "<mark>caracal</mark>" in page


def test_the_list_of_sessions_has_the_box(alice: Person) -> None:
    write(alice, message("hello"))
    client = Client(SERVER_NAME="localhost")
    client.force_login(alice.user)
    page = client.get("/sessions/", secure=True).content.decode()
    assert 'action="/sessions/search/"' in page


def test_age_counts_from_the_event(alice: Person) -> None:
    write(alice, message("potoroo"))
    with scope(alice.scope):
        [now] = search.find("potoroo").hits
        [later] = search.find("potoroo", now=clock.now() + timedelta(days=30)).hits
    assert now.score - later.score == pytest.approx(0.5, abs=0.01)
