"""The settings of a production server, as Django itself judges them."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.services import ROOT


def test_check_deploy_is_clean_with_production_settings() -> None:
    kept = {
        name: value for name, value in os.environ.items() if name.startswith("DATABASE_URL") or name == "PATH"
    }
    production = {
        **kept,
        "SECRET_KEY": "only-a-test-but-long-enough-" * 2,
        "ALLOWED_HOSTS": "advisor.example.com",
        "CSRF_TRUSTED_ORIGINS": "https://advisor.example.com",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "MEMBERINTEL_DATA": os.environ["MEMBERINTEL_TEST_DATA"],
    }
    ran = subprocess.run(
        [sys.executable, "-W", "error", "manage.py", "check", "--deploy", "--fail-level", "INFO"],
        cwd=ROOT,
        env=production,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "no issues" in ran.stdout + ran.stderr
