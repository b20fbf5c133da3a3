#!/usr/bin/env python
"""Django's command line. Commands that change the schema run as the owner of the tables."""

import os
import sys

OWNER_COMMANDS = {"migrate", "makemigrations", "sqlmigrate", "showmigrations", "rotate_kek"}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")
    if len(sys.argv) > 1 and sys.argv[1] in OWNER_COMMANDS:
        os.environ["MEMBERINTEL_PROCESS"] = "owner"
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
