"""`python -m evals.sanitiser`: hostile texts that get through, and honest ones that are refused or changed."""

from __future__ import annotations

from evals.sanitiser.corpora import HONEST, HOSTILE, harmed, missed, read


def main() -> None:
    """Print what is wrong, kind by kind, and both rates."""
    hostile, honest = read(HOSTILE), read(HONEST)
    through, hurt = missed(hostile), harmed(honest)
    for label, wrong in (("hostile, got through", through), ("honest, refused or changed", hurt)):
        for text in wrong:
            print(f"{label}: [{text.kind}] {text.text!r}")
    for label, every, wrong in (("miss rate", hostile, through), ("false-positive rate", honest, hurt)):
        print(f"{label}: {len(wrong)} of {len(every)} ({len(wrong) / len(every):.1%})")


if __name__ == "__main__":
    main()
