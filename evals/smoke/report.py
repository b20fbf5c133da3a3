"""What was checked: a line each as it happens, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """Counts checks and prints them."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)

    def check(self, holds: bool, what: str, detail: object = "") -> None:
        """Count one check. `detail` says what was found, whichever way it went."""
        if holds:
            self.passed += 1
        else:
            self.failed.append(what)
        said = f" ({detail})" if detail != "" else ""
        print(f"{'ok  ' if holds else 'FAIL'} {what}{said}", flush=True)

    def finish(self) -> int:
        """Print the verdict as the last line; the exit status."""
        if self.failed:
            print(f"smoke: {len(self.failed)} of {self.passed + len(self.failed)} checks failed", flush=True)
            return 1
        print(f"smoke: {self.passed} checks passed", flush=True)
        return 0
