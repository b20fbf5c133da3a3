"""Knowledge for all: files, drafts, publishing, recall."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connections
from pytest_django.fixtures import Settings

from brain import tasks
from brain.domain.knowledge import NotAnArticle, Written, read
from brain.domain.prompt import Entry, SectionRequest
from brain.management.commands.import_knowledge import STARTER
from brain.models import Knowledge, KnowledgeDraft
from brain.shared import actions, queries, recall, vectors
from memberintel.lib.ids import uuid7
from memberintel.lib.text import count_words
from memberintel.tenancy.context import outside_scopes, scope
from tests.conftest import Person

Login = Callable[[str], AbstractContextManager[None]]
FILE = "---\ntitle: {title}\ntopic: Beekeeping\n---\n\n{text}\n"
SMOKE = "Smoke the hive gently before you open it, and work from behind."


@pytest.fixture
def owner(login: Login) -> Iterator[None]:
    """The login that imports; what it has written about bees goes afterwards."""
    with login("owner"):
        yield
        KnowledgeDraft.objects.filter(topic="Beekeeping").delete()
        Knowledge.objects.filter(topic="Beekeeping").delete()


def folder(at: Path, **articles: str) -> Path:
    for slug, text in articles.items():
        (at / f"{slug}.md").write_text(FILE.format(title=f"On {slug}", text=text))
    return at


def imported(at: Path, **options: bool) -> str:
    told = io.StringIO()
    call_command("import_knowledge", str(at), stdout=told, **options)
    return told.getvalue().strip()


def name() -> str:
    return f"hive{uuid4().hex[:8]}"


# --- files -------------------------------------------------------------------------------------------------


def test_the_starter_set_is_whole() -> None:
    articles = [read(file.stem, file.read_bytes()) for file in STARTER.glob("*.md")]
    assert len(articles) >= 20
    assert all(80 <= count_words(article.text) <= 220 for article in articles)
    assert len({article.title for article in articles}) == len(articles)
    assert len({article.topic for article in articles}) >= 10


@pytest.mark.parametrize(
    ("slug", "raw", "words"),
    [
        ("a", b"\xff\xfe", "not UTF-8"),
        ("A b", b"---\ntitle: x\ntopic: y\n---\nz", "small letters"),
        ("a", b"no front matter", "begins with"),
        ("a", b"---\ntitle: x\n---\nz", "no topic"),
        ("a", b"---\ntitle: x\ntopic: y\n---\n\n", "no text"),
        ("a", b"---\ntitle: x\ntopic: y\n---\n" + b"z" * 4_001, "4,001 characters"),
    ],
)
def test_a_file_of_another_form_is_named_with_what_is_wrong(slug: str, raw: bytes, words: str) -> None:
    with pytest.raises(NotAnArticle, match=words):
        read(slug, raw)


def test_importing_again_changes_nothing_and_a_changed_file_changes_its_article(
    owner: None, tmp_path: Path
) -> None:
    hive = name()
    folder(tmp_path, **{hive: SMOKE})
    assert imported(tmp_path).startswith("1 new, 0 changed, 0 as before")
    first = Knowledge.objects.get(slug=hive)
    assert imported(tmp_path).startswith("0 new, 0 changed, 1 as before")
    assert Knowledge.objects.get(slug=hive).changed_at == first.changed_at
    folder(tmp_path, **{hive: "Two puffs are enough."})
    assert imported(tmp_path).startswith("0 new, 1 changed")
    assert Knowledge.objects.get(slug=hive).text == "Two puffs are enough."


def test_what_staff_have_changed_or_withdrawn_stays_as_they_made_it(owner: None, tmp_path: Path) -> None:
    edited, withdrawn = name(), name()
    folder(tmp_path, **{edited: SMOKE, withdrawn: SMOKE})
    imported(tmp_path)
    KnowledgeDraft.objects.filter(slug=edited).update(text="Staff know better.")
    actions.withdraw(KnowledgeDraft.objects.get(slug=withdrawn), using="default")
    folder(tmp_path, **{edited: "A new edition.", withdrawn: "A new edition."})
    assert imported(tmp_path) == "0 new, 1 changed, 0 as before, 1 left as staff have made them."
    assert KnowledgeDraft.objects.get(slug=edited).text == "Staff know better."
    assert not Knowledge.objects.filter(slug=withdrawn).exists()


def test_of_a_folder_with_a_bad_file_nothing_is_imported(owner: None, tmp_path: Path) -> None:
    hive = name()
    folder(tmp_path, **{hive: SMOKE})
    (tmp_path / "bad.md").write_text("no front matter")
    with pytest.raises(CommandError, match="bad: begins with"):
        imported(tmp_path)
    assert not KnowledgeDraft.objects.filter(slug=hive).exists()
    with pytest.raises(CommandError, match="no files"):
        imported(tmp_path / "nowhere")


def test_a_draft_is_nobodys_but_staffs(owner: None, login: Login, alice: Person, tmp_path: Path) -> None:
    hive = name()
    imported(folder(tmp_path, **{hive: SMOKE}), draft=True)
    assert not Knowledge.objects.filter(slug=hive).exists()
    for who in ("web", "worker"):
        with login(who):
            with pytest.raises(ProgrammingError, match="permission denied"):
                KnowledgeDraft.objects.exists()
            with scope(alice.scope), pytest.raises(ProgrammingError, match="permission denied"):
                KnowledgeDraft.objects.exists()
            with pytest.raises(ProgrammingError, match="permission denied"):
                Knowledge.objects.filter(slug=hive).update(text="mine")
    with login("web"), pytest.raises(ProgrammingError, match="permission denied"):
        Knowledge.objects.filter(slug=hive).update(embedder="mine")


# --- vectors and recall --------------------------------------------------------------------------------------


def recalled(who: Person, text: str, already: frozenset[object] = frozenset()) -> list[Entry]:
    assert who.scope.customer_id
    asked = SectionRequest(
        who.scope.tenant_id,
        who.scope.customer_id,
        uuid7(),
        text=text,
        already=already,  # type: ignore[arg-type]
    )
    found = asyncio.run(recall.section(asked))
    return list(found.entries) if found else []


def test_a_published_article_is_found_before_and_after_it_has_its_vector(
    owner: None, login: Login, alice: Person, tmp_path: Path
) -> None:
    hive = name()
    imported(folder(tmp_path, **{hive: SMOKE}))
    question = "How do I open a hive, with smoke from behind?"
    with login("web"):
        first = recalled(alice, question)[0]
        assert (first.label, first.body, first.source_kind) == (f"Beekeeping: On {hive}", SMOKE, "shared")
    with login("worker"):
        tasks.embed_knowledge()
    row = Knowledge.objects.get(slug=hive)
    assert row.embedder == "offline:words-and-stems-1"
    with login("web"):
        assert recalled(alice, question)[0].source_id == row.id
        assert row.id not in {each.source_id for each in recalled(alice, question, frozenset({row.id}))}
        assert recalled(alice, "Good night!") == []


def test_at_most_three_are_recalled_and_a_withdrawn_one_is_not(
    owner: None, login: Login, alice: Person, tmp_path: Path
) -> None:
    hives = [name() for _ in range(5)]
    imported(folder(tmp_path, **{hive: f"{SMOKE} Hive {number}." for number, hive in enumerate(hives)}))
    with login("web"):
        found = recalled(alice, SMOKE)
        assert len(found) == 3
    draft = KnowledgeDraft.objects.get(id=str(found[0].source_id))
    actions.withdraw(draft, using="default")
    with login("web"):
        assert found[0].source_id not in {each.source_id for each in recalled(alice, SMOKE)}


def test_a_vector_is_not_given_to_a_text_it_was_not_made_of(
    owner: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from brain import embedding

    hive = name()
    imported(folder(tmp_path, **{hive: SMOKE}))
    made = embedding.vectors

    def change() -> None:
        Knowledge.objects.filter(slug=hive).update(text="Changed meanwhile.")
        connections.close_all()

    async def meanwhile(texts: list[str], who: object) -> object:
        await asyncio.to_thread(change)
        return await made(texts, who)  # type: ignore[arg-type]

    monkeypatch.setattr(embedding, "vectors", meanwhile)
    vectors.run("")
    assert Knowledge.objects.get(slug=hive).embedder == ""


def test_all_articles_get_vectors_of_a_new_embedder(owner: None, settings: Settings, tmp_path: Path) -> None:
    imported(folder(tmp_path, **{name(): SMOKE}))
    vectors.run("")
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "embed": ("scripted:other",)}
    assert vectors.run("scripted:other") >= 1
    assert vectors.left("scripted:other") == 0
    with outside_scopes():
        assert {thing.vector.embedder for thing in queries.things() if thing.vector} == {"scripted:other"}


def test_reading_knows_articles_by_slug_and_id(owner: None, login: Login, tmp_path: Path) -> None:
    hive = name()
    imported(folder(tmp_path, **{hive: SMOKE}))
    with login("web"):
        found = queries.article(slug=hive)
        assert found
        assert found == queries.article(id=found.id)
        assert found in queries.articles()
        assert queries.article(slug="nothing") is None
    assert Written(hive, found.title, found.topic, found.text).digest() == (
        KnowledgeDraft.objects.get(slug=hive).imported
    )
