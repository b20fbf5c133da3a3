"""`python -m evals.retrieval`: measure how well questions find what was said, and print a table.

Without arguments on the conversation of the demo and questions written for it. A route of the setting LLM_ROUTES
(`--route gemini:gemini-embedding-001`) is measured beside the offline embedder and its two halves.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from evals.retrieval.measure import Embed, measured, read
from memberintel.lib import stems
from memberintel.llm import routes
from memberintel.llm.backends.offline import vectors
from memberintel.llm.backends.registry import backend
from memberintel.llm.routes import Route

HERE = Path(__file__).parent
DEMO = HERE.parent.parent / "wrapups" / "demo" / "conversation.json"


def main() -> None:
    """Measure every way of embedding and print what came of it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")
    os.environ.setdefault("SECRET_KEY", "retrieval")
    given = _arguments()
    ways: dict[str, Embed] = {
        "stems alone": lambda texts: [stems.vector(text) for text in texts],
        "word vectors alone": lambda texts: [vectors.meaning(text) for text in texts],
        f"offline:{vectors.MODEL}": lambda texts: [vectors.vector(text) for text in texts],
    }
    ways |= {named: _through(routes.parse(named)) for named in given.route}
    material = read(given.conversation, given.questions, HERE / "asides.txt")
    console = Console()
    console.print(
        f"{given.conversation.name}: {len(material.texts)} messages in {max(material.sessions)} sessions, "
        f"{len(material.questions)} questions, {len(material.asides)} asides"
    )
    found = {name: measured(material, way) for name, way in ways.items()}
    table = Table("the session that answers is among the first", "1", "3", "5")
    for name, each in found.items():
        table.add_row(name, *(f"{each.recall[most]:.0%}" for most in (1, 3, 5)))
    console.print(table)
    for name, each in found.items():
        table = Table(
            "threshold", "answers among the five", "others beside them", "asides that recall", title=name
        )
        for at in each.at:
            table.add_row(f"{at.threshold:.2f}", f"{at.found:.0%}", f"{at.beside:.1f}", f"{at.disturbed:.0%}")
        console.print(table)


def _through(route: Route) -> Embed:
    """The embeddings of a provider, asked for without the ledger: no customer's text is among them."""
    return lambda texts: asyncio.run(backend(route.provider).embed(route.model, texts)).vectors


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.retrieval", description=__doc__)
    parser.add_argument("--conversation", type=Path, default=DEMO, help="a file memberintel-transcript/1")
    parser.add_argument("--questions", type=Path, default=HERE / "questions.json")
    parser.add_argument(
        "--route", action="append", default=[], help="provider:model, beside the offline ones"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
