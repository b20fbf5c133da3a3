"""What a person sees, told by examples."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from sessions.domain import events as kinds
from sessions.domain.transcript import (
    AnswerItem,
    ClosedItem,
    CompactionItem,
    MessageItem,
    OpenedItem,
    PromptItem,
    RecallItem,
    ToolItem,
    UnknownItem,
    ui_transcript,
)
from tests.sessions.domain.logs import Log, call


def asked() -> Log:
    log = Log()
    log.open()
    log.ask("Should I raise the price?")
    log.freeze("You are the advisor.")
    return log


def answers(log: Log, running: UUID | None = None, attempt: int | None = None) -> list[AnswerItem]:
    items = ui_transcript(log.events, running=running, attempt=attempt)
    return [item for item in items if isinstance(item, AnswerItem)]


def states(log: Log, running: UUID | None = None, attempt: int | None = None) -> list[tuple[int, str]]:
    return [(item.attempt, item.state) for item in answers(log, running, attempt)]


def test_a_session_is_shown_in_the_order_of_its_log() -> None:
    log = Log()
    log.open(off_record=True, continues=UUID(int=7))
    log.ask("One")
    log.freeze("You are the advisor.", None)
    log.flush("An")
    log.answer("Answer")
    log.ask("Two")
    log.recall("insight", late=True)
    log.answer("Again")
    log.compact(5, summary="One was answered.", method="extractive")
    log.refresh("You are the advisor.")
    log.unknown()
    log.close("idle", "sweep")
    items = ui_transcript(log.events)
    assert [(item.seq, item.kind) for item in items] == [
        (1, "opened"),
        (2, "message"),
        (3, "prompt"),
        (4, "answer"),
        (6, "message"),
        (7, "recall"),
        (8, "answer"),
        (9, "compaction"),
        (10, "prompt"),
        (11, "unknown"),
        (12, "closed"),
    ]
    opened, message, frozen, answer, _, recalled, _, compaction, refreshed, unknown, closed = items
    assert isinstance(opened, OpenedItem)
    assert opened.off_record
    assert opened.continues == UUID(int=7)
    assert isinstance(message, MessageItem)
    assert (message.text, message.id, message.at) == ("One", log.events[1].id, log.events[1].at)
    assert isinstance(frozen, PromptItem)
    assert not frozen.refreshed
    assert [(part.text is None, part.removed_on) for part in frozen.sections] == [
        (False, None),
        (True, "2023-08-01"),
    ]
    assert isinstance(answer, AnswerItem)
    assert (answer.text, answer.state, answer.seqs, answer.model) == ("Answer", "complete", (4, 5), "m")
    assert isinstance(recalled, RecallItem)
    assert recalled.late
    assert isinstance(compaction, CompactionItem)
    assert (compaction.summary, compaction.method, compaction.through) == (
        "One was answered.",
        "extractive",
        5,
    )
    assert (compaction.tokens_before, compaction.tokens_after) == (900, 90)
    assert isinstance(refreshed, PromptItem)
    assert refreshed.refreshed
    assert isinstance(unknown, UnknownItem)
    assert (unknown.name, unknown.payload["mood"]) == ("mood_noted", "calm")
    assert isinstance(closed, ClosedItem)
    assert (closed.reason, closed.by) == ("idle", "sweep")


def test_tool_calls_are_shown_with_arguments_and_results() -> None:
    log = asked()
    running = call("site_metrics", '{"b": 1, "a": 2}', None)
    log.flush(reasoning="Let me look", tools=(running,))
    log.flush("Well", tools=({**running, "result": "boom", "error": True},))
    (item,) = answers(log)
    assert item.reasoning == "Let me look"
    assert item.tools == (ToolItem("c1", "site_metrics", '{"b": 1, "a": 2}', "boom", True),)
    assert item.memory.failures[0].error == "boom"


def test_a_model_that_uses_an_id_again_loses_no_call() -> None:
    log = asked()
    log.flush(tools=(call("first"), call("second")))
    assert [tool.name for tool in answers(log)[0].tools] == ["first", "second"]


def test_a_message_without_an_answer_yet_shows_as_running_or_interrupted() -> None:
    log = asked()
    assert states(log, running=log.turn) == [(1, "running")]
    assert states(log) == [(1, "interrupted")]
    (item,) = answers(log)
    assert (item.text, item.seqs, item.may_retry) == ("", (), True)
    assert [item.kind for item in ui_transcript(log.events)] == ["opened", "message", "prompt", "answer"]


def test_a_running_answer_shows_what_was_saved_so_far() -> None:
    log = asked()
    log.flush("To ")
    log.flush("49")
    (item,) = answers(log, running=log.turn)
    assert (item.state, item.text, item.may_retry) == ("running", "To 49", False)


def test_each_attempt_is_shown_with_how_it_ended() -> None:
    log = asked()
    log.flush("To 4")
    log.fail("overloaded", "The model is busy. Try again in a minute.")
    (failed,) = answers(log)
    assert (failed.state, failed.text, failed.error_code) == ("failed", "To 4", "overloaded")
    assert failed.error_text == "The model is busy. Try again in a minute."
    assert failed.may_retry
    log.retry()
    assert states(log, running=log.turn) == [(1, "failed"), (2, "running")]
    assert not any(item.may_retry for item in answers(log, running=log.turn))
    log.flush("To 49")
    assert states(log, running=log.turn) == [(1, "failed"), (2, "running")]
    log.answer("To 49.", outcome="stopped")
    assert states(log) == [(1, "failed"), (2, "stopped")]


def test_an_attempt_that_was_killed_is_told_from_the_one_that_runs() -> None:
    log = asked()
    log.flush("To 4")
    assert states(log, running=log.turn, attempt=2) == [(1, "interrupted"), (2, "running")]


def test_what_cannot_help_or_is_past_is_not_offered_for_retry() -> None:
    log = asked()
    log.fail(retryable=False)
    assert [item.may_retry for item in answers(log)] == [False]
    log.retry()
    log.fail(retryable=True)
    assert [item.may_retry for item in answers(log)] == [False, True]
    log.close()
    assert [item.may_retry for item in answers(log)] == [False, False]


def test_an_imported_answer_stands_without_a_question() -> None:
    log = Log()
    log.open(imported=True)
    log.unasked("How did the opening go?")
    _, item = ui_transcript(log.events)
    assert isinstance(item, AnswerItem)
    assert (item.text, item.imported, item.state) == ("How did the opening go?", True, "complete")


def test_a_row_that_cannot_be_opened_does_not_hide_the_rest() -> None:
    log = asked()
    log.answer("Yes.")
    log.events[1] = replace(log.events[1], content=kinds.UNREADABLE)
    _, message, _, answer = ui_transcript(log.events)
    assert isinstance(message, MessageItem)
    assert not message.readable
    assert isinstance(answer, AnswerItem)
    assert (answer.readable, answer.text) == (True, "Yes.")
