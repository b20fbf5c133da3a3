"""A process of its own that appends to a session: `python -m tests.sessions.appender TENANT CUSTOMER SESSION N`."""

from __future__ import annotations

import os
import sys
from uuid import UUID

import django


def main() -> None:
    """Append N events."""
    django.setup()

    from memberintel.tenancy.context import Scope, scope
    from sessions import log
    from sessions.domain import events as kinds

    tenant, customer, session = (UUID(given) for given in sys.argv[1:4])
    with scope(Scope(tenant, customer)):
        for number in range(int(sys.argv[4])):
            log.append(session, kinds.pending_state(text=f"{os.getpid()}-{number}"))


if __name__ == "__main__":
    main()
