"""Rules of the house that hold for all code."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tests.architecture.test_tenancy import PRODUCT, named, sources
from tests.services import ROOT

CLOCK = ROOT / "memberintel" / "lib" / "clock.py"
READINGS = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}
READINGS |= {("timezone", "now"), ("time", "time"), ("time", "time_ns")}


def test_the_import_contracts_hold() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]


def test_the_clock_is_read_in_one_place() -> None:
    for path in sources(*PRODUCT):
        if path == CLOCK:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and (named(node.value), node.attr) in READINGS:
                raise AssertionError(f"{path.relative_to(ROOT)}:{node.lineno} reads a clock of its own")


def test_no_package_is_a_grab_bag() -> None:
    names = {part for path in sources(*PRODUCT) for part in (path.stem, *path.relative_to(ROOT).parts)}
    assert not names & {"utils", "util", "helpers", "services", "managers", "common", "misc"}


def test_every_folder_of_tests_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_every_rule_of_a_stylesheet_is_closed() -> None:
    """A brace lost in a merge takes every rule after it along, and nothing says so."""
    for sheet in (ROOT / "static").rglob("*.css"):
        depth = 0
        for number, line in enumerate(sheet.read_text().splitlines(), 1):
            depth += line.count("{") - line.count("}")
            assert 0 <= depth <= 2, f"{sheet.relative_to(ROOT)}:{number}"
        assert depth == 0, sheet.relative_to(ROOT)
