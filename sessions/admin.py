"""Sessions on the support desk: when, how long, in which state; never what was said."""

from __future__ import annotations

from django.contrib import admin
from django.db import models
from django.db.models import Func, Q
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memberintel.lib import clock
from memberintel.tenancy.desk import SUPPORT, Look, Made, flag, labels, link, listed, opener
from sessions.models import Session, SessionEvent

_EVENTS = 100
_TIMES = ("started_at", "ended_at", "last_activity_at", "leaving_at", "closed_at", "archived_at")


@admin.register(Session)
class SessionDesk(Look):
    """Conversations as metadata, the newest first by the time they were opened."""

    list_display = ("opened", "customer", "state", "user_messages", "last_seq", "last_activity_at", "origin")
    list_filter = (flag("open", "open", "Open now", Q(closed_at=None)), Made)
    fieldsets = (
        (None, {"fields": ("id", "customer_link", "tenant_link", "state", "origin", "continued", "look_at")}),
        ("Log", {"fields": ("user_messages", "substantive", "last_seq", "log")}),
        ("Times (UTC)", {"fields": (*_TIMES, "close_reason")}),
        ("Turn", {"fields": ("turn_id", "turn_attempt", "turn_lease_until", "turn_stop")}),
    )

    def opens(self, row: Session) -> list[tuple[str, str]]:
        """What was said."""
        return [opener("Open the transcript", "session", row.pk)]

    @admin.display(description="opened")
    def opened(self, row: Session) -> str:
        """When; the row has no name that may be shown."""
        return date_format(timezone.localtime(row.started_at), "j M Y, H:i")

    @labels("state", {"open": "success", "answering": "info", "closed": "default", "archived": "default"})
    def state(self, row: Session) -> str:
        """Open, answering, closed or archived."""
        if row.closed_at is None:
            answering = row.turn_lease_until is not None and row.turn_lease_until > clock.now()
            return "answering" if answering else "open"
        return "archived" if row.archived_at else "closed"

    @admin.display(description="origin")
    def origin(self, row: Session) -> str:
        """How it came to be."""
        if row.imported:
            return "imported"
        return "off the record" if row.off_record else "chat"

    @admin.display(description="continues")
    def continued(self, row: Session) -> SafeString | str:
        """The session it goes on from."""
        return link("chat_session", row.continues, str(row.continues)) if row.continues else "-"

    @admin.display(description="look at")
    def look_at(self, row: Session) -> SafeString:
        """What came of it."""
        of_it = {"tenant_id": row.tenant_id, "session_id": row.pk}
        links = (
            (listed("wrapups_sessionlog", "Wrap-up", **of_it),),
            (listed("wrapups_closingjob", "Closing jobs", **of_it),),
            (listed("usage_ledgerentry", "Ledger", tenant_id=row.tenant_id, session=row.pk),),
        )
        return format_html('<span class="desk-links">{}</span>', format_html_join(" ", "{}", links))

    @admin.display(description="newest events")
    def log(self, row: Session) -> SafeString:
        """The newest events: number, kind, time and size."""
        events = (
            SessionEvent.objects.using(SUPPORT)
            .filter(session_id=row.pk)
            .annotate(size=Func("sealed", function="octet_length", output_field=models.IntegerField()))
            .order_by("-seq")
            .values_list("seq", "kind", "attempt", "created_at", "size")[:_EVENTS]
        )
        lines = format_html_join(
            "",
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            (
                (seq, kind, attempt or "", date_format(at, "j M H:i:s"), size)
                for seq, kind, attempt, at, size in events
            ),
        )
        head = "<th>No.</th><th>Kind</th><th>Attempt</th><th>At (UTC)</th><th>Sealed bytes</th>"
        return format_html(
            '<div class="desk-scroll"><table class="desk-table">'
            "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>",
            SafeString(head),
            lines,
        )
