"""The check a process makes before it serves: it must not be able to step around row-level security."""

from __future__ import annotations

from django.db import DatabaseError, connections

from memberintel import env

# Of the login and of every role it is a member of, however far: it could become any of them.
_POWERS = """
SELECT bool_or(rolsuper), bool_or(rolbypassrls),
       bool_or(EXISTS (SELECT FROM pg_catalog.pg_class c
                       WHERE c.relowner = r.oid AND c.relkind IN ('r', 'p', 'v', 'm')))
FROM pg_catalog.pg_roles r WHERE pg_has_role(session_user, r.oid, 'MEMBER')
"""


def verify_login(alias: str = "default") -> None:
    """Misconfigured when the database cannot be reached or its login could bypass row-level security."""
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(_POWERS)
            superuser, bypass, owns = cursor.fetchone()
    except DatabaseError as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise env.Misconfigured(
            f"The database cannot be reached ({first_line}). Check DATABASE_URL_WEB, DATABASE_URL_WORKER and"
            " that PostgreSQL runs; then start again."
        ) from None
    finally:
        connections[alias].close()
    faults = [
        text
        for text, found in (
            ("is a superuser", superuser),
            ("has BYPASSRLS", bypass),
            ("owns tables", owns),
        )
        if found
    ]
    if faults:
        login = connections[alias].settings_dict["USER"]
        raise env.Misconfigured(
            f"Refusing to start: the login {login!r} {' and '.join(faults)}, so row-level security would not"
            " bind it. Use the logins that `make roles` creates."
        )
