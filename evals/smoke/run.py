"""All of it, in order."""

from __future__ import annotations

import time
import traceback
from pathlib import Path

from brain.actions import save_document
from evals.loopback.scenario import Scenario
from evals.smoke import leaks, long, play, providers, record, stage, story, strangers
from evals.smoke.report import Report
from evals.smoke.stage import Customer, Stage
from evals.smoke.story import Story
from memberintel.accounts import actions as accounts
from memberintel.accounts.domain import Person
from memberintel.tenancy.context import scope

SOUL = "Speak plainly to me and say first what you would do first; praise can wait until there is a result."
BIBLE = (
    "The business was begun with savings and no loan, and the doors are meant to stay open six days a week."
)


def run(data: Path, scenario: Scenario | None) -> Report:
    """Run every check; `scenario` is the loopback server's, where that answers.

    What breaks off counts as a failed check, with the end of the logs below it.
    """
    report = Report()
    began = time.monotonic()
    told = story.load()
    print(f"The story is {told.source.name}, {len(told.past.sessions) + 1} sessions.", flush=True)
    migrated = stage.manage("migrate", "--no-input", "--verbosity", "0", process="owner")
    report.check(
        migrated.returncode == 0,
        "the database is migrated from nothing",
        f"{time.monotonic() - began:.1f} s" if migrated.returncode == 0 else migrated.stderr[-600:],
    )
    if migrated.returncode:
        return report
    with leaks.overhearing() as heard, stage.served(data) as place:
        try:
            _play(report, place, told, heard, scenario)
        except Exception as error:
            traceback.print_exc(limit=-4)
            report.check(False, "the run goes through to its end", f"{type(error).__name__}: {error}")
        if report.failed:
            _show_logs(place)
    return report


def _play(
    report: Report, place: Stage, told: Story, heard: leaks.Overheard, scenario: Scenario | None
) -> None:
    owner = _people(told)
    others = {
        "colleague": stage.customer("colleague", "pro", beside=owner),
        "stranger": stage.customer("stranger", "pro"),
        "free": stage.customer("free", "free"),
        "talker": stage.customer("talker", "pro"),
    }
    play.bring_in(report, place, owner, told)
    place.wait_for_web()
    happened = play.tell(report, place, owner, told)
    record.check(report, owner, happened)
    if scenario is not None:
        providers.check(report, scenario, owner, happened)
    said = long.check(report, place, owner, others["talker"], told, scenario)
    strangers.check(report, place, owner, others, happened)
    texts = [*told.texts(), *record.texts(owner), *said, SOUL, BIBLE, play.AGAIN]
    leaks.check(report, place, owner, texts, heard)


def _people(told: Story) -> Customer:
    """The customer of the story, with documents of their own."""
    owner = stage.customer("owner", "pro")
    with scope(owner.scope):
        accounts.save_person(Person(told.past.customer, told.past.timezone))
        save_document(kind="soul", body=SOUL, base_version=0, by="customer", reason="")
        save_document(kind="bible", body=BIBLE, base_version=0, by="customer", reason="")
    return owner


def _show_logs(place: Stage) -> None:
    for log in place.logs:
        if said := stage.tail(log):
            print(f"--- the end of {log.name}\n{said}", flush=True)
