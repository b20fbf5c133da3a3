"""What a log must not tell: links that let their holder in."""

from __future__ import annotations

import logging
import re

_LINK = re.compile(r"(/invitations/|/accounts/confirm-email/|/accounts/password/reset/key/)[^/\s]+")


class HideLinks(logging.Filter):
    """Takes what opens something out of the addresses in a record: a link stands in it whole otherwise."""

    def filter(self, record: logging.LogRecord) -> bool:
        """The record goes on, without it."""
        told = record.getMessage()
        if (kept := _LINK.sub(r"\1…", told)) != told:
            record.msg, record.args = kept, None
        return True
