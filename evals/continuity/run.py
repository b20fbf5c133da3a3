"""One run: play, check, ask the judge where there is one, print, record, and say whether a release may go out."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from django.conf import settings

from evals.continuity import checks, judge, results
from evals.continuity.cases import Case, Suite
from evals.continuity.play import notes_written_by_worker, play
from evals.continuity.results import OFFLINE, Judged
from memberintel.llm import routes
from wrapups import prompting

Manage = Callable[..., subprocess.CompletedProcess[str]]


def judged(cases: Sequence[Case], manage: Manage, *, ask: bool) -> list[Judged]:
    """Every case with what does not hold of it; with `ask` a model judges answers too."""
    played = play(cases, write_notes=partial(notes_written_by_worker, manage))
    return [Judged(one.case, [*checks.faults(one), *(judge.faults(one) if ask else ())]) for one in played]


def run(cases: Sequence[Case], manage: Manage, *, provider: str, folder: Path) -> int:
    """The exit status: 1 when a pathway case fails, or a recorded quality rate is too low without a reason.

    Pathway cases count on any provider. Quality cases count on a real one; the offline advisor's figures are
    printed as what they are.
    """
    settings.LLM_OFFLINE_PACE_SECONDS = 0
    real = provider != OFFLINE
    found = judged(cases, manage, ask=real and judge.can_judge())
    results.show(found)
    pathway, quality = results.of_suite(found, "pathway"), results.of_suite(found, "quality")
    model = ", ".join(dict.fromkeys(str(routes.chain(purpose)[0]) for purpose in ("chat", "wrap_up")))
    suites: tuple[tuple[Suite, Sequence[Judged]], ...] = (("pathway", pathway), ("quality", quality))
    for suite, part in suites:
        if part:
            file = results.record(
                part, suite, provider=provider, model=model, prompt_version=prompting.VERSION, folder=folder
            )
            print(f"{suite}: {results.words(part)}, by {model} with {prompting.VERSION}; {file}")
    if not real:
        print("quality not measured: no key is set; above are the figures of extraction without a model")
    open_gate, said = results.gate()
    print(f"gate: {said}")
    counted = found if real else pathway
    print(f"evals: {results.words(counted)}", flush=True)
    enough = not real or sum(one.passed for one in quality) >= results.NEEDED * len(quality)
    return 0 if all(one.passed for one in pathway) and open_gate and enough else 1
