"""Starts the services a run stands on, before Django reads its settings (pytest loads this with `-p`)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests import services

# How long an example takes says how busy the machine is, and nothing of the product. The examples are the same each
# time, so that a run tells of what was changed; EXPLORE=1 looks for new ones.
settings.register_profile(
    "untimed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not os.environ.get("EXPLORE"),
)
settings.load_profile("untimed")

# No test may reach a real provider: whatever keys the machine has are not ours to spend.
for name in ("ANTHROPIC_API_KEY", "GOOGLE_CLOUD_PROJECT", "GEMINI_API_KEY"):
    os.environ.pop(name, None)
services.start()
os.environ["MEMBERINTEL_PROCESS"] = "web"
os.environ["DATABASE_POOL"] = "0"  # tests switch logins on one connection; the pool has tests of its own
services.use_database_of(os.environ.get("PYTEST_XDIST_WORKER", "main"))


def pytest_sessionfinish() -> None:
    """The services end with the run that started them."""
    from django.db import connections

    connections.close_all()
    services.stop()
