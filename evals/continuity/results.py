"""The table, the result file, and the gate of a release.

A result file says what was run: suite, provider, model, version of the wrap-up prompt, day, how many of how many
passed, and what failed. Those that are kept stand in `evals/results/`, one a suite, provider and day. One of a real
model below the rate a release needs must say why it was let through, in its field `reason`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from evals.continuity.cases import Case, Suite
from evals.continuity.checks import Fault
from memberintel.lib import clock

KEPT = Path(__file__).parent.parent / "results"
NEEDED = 0.85
OFFLINE = "offline"


@dataclass(frozen=True)
class Judged:
    """A case and what does not hold of it."""

    case: Case
    faults: Sequence[Fault]

    @property
    def passed(self) -> bool:
        """Whether everything holds."""
        return not self.faults


def show(judged: Sequence[Judged]) -> None:
    """Print a line for each case and, below it, what does not hold."""
    wide = max(len(one.case.name) for one in judged)
    for one in judged:
        mark = "ok  " if one.passed else "FAIL"
        print(f"{mark} {one.case.suite:<8} {one.case.name:<{wide}}  {one.case.title}")
        for fault in one.faults:
            print(f"     {'':<8} {'':<{wide}}  - {fault}")


def of_suite(judged: Iterable[Judged], suite: Suite) -> list[Judged]:
    """The cases of one suite."""
    return [one for one in judged if one.case.suite == suite]


def words(judged: Sequence[Judged]) -> str:
    """ "P of N passed (R %)"."""
    passed = sum(one.passed for one in judged)
    return f"{passed} of {len(judged)} passed ({_percent(passed, len(judged))} %)"


def record(
    judged: Sequence[Judged], suite: Suite, *, provider: str, model: str, prompt_version: str, folder: Path
) -> Path:
    """Write the result file of a suite; returns where it is."""
    passed = sum(one.passed for one in judged)
    day = clock.now().date()
    result = {
        "suite": suite,
        "provider": provider,
        "model": model,
        "prompt_version": prompt_version,
        "date": day.isoformat(),
        "passed": passed,
        "total": len(judged),
        "rate": round(passed / len(judged), 4),
        "reason": "",
        "failed": {one.case.name: [str(fault) for fault in one.faults] for one in judged if one.faults},
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{day.isoformat()}-{provider}-{suite}.json"
    file.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    return file


def gate(folder: Path = KEPT) -> tuple[bool, str]:
    """Whether a release may go out by the newest quality result of a real model, and the sentence that says so."""
    newest = _newest_quality(folder)
    if newest is None:
        return True, "quality not measured: there is no recorded result of a real model"
    said = f"quality of {newest['model']} on {newest['date']}: {newest['passed']} of {newest['total']}"
    if newest["rate"] >= NEEDED:
        return True, said
    if str(newest.get("reason", "")).strip():
        return True, f"{said}, below {NEEDED:.0%}, let through because: {newest['reason']}"
    return False, f"{said}, below {NEEDED:.0%}: write why it is let through into its file, or improve it"


def _newest_quality(folder: Path) -> dict[str, Any] | None:
    found = [json.loads(file.read_text()) for file in folder.glob("*-quality.json")]
    real = [result for result in found if result["provider"] != OFFLINE]
    return max(real, key=lambda result: date.fromisoformat(result["date"]), default=None)


def _percent(passed: int, total: int) -> int:
    return passed * 100 // total if total else 0
