"""The metrics of all processes of this machine, for Prometheus; and the counting of requests."""

from __future__ import annotations

import hmac
import os
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from memberintel.lib import clock
from memberintel.lib.logs import bound
from memberintel.lib.metrics import REQUEST_SECONDS, REQUESTS
from memberintel.tenancy.desk import configured
from memberintel.usage import daily
from memberintel.usage.models import Run
from wrapups import oversight


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Everything counted, for who holds METRICS_TOKEN as a bearer. To anybody else there is nothing here."""
    token = settings.METRICS_TOKEN
    given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    if not token or not hmac.compare_digest(given.encode(), token.encode()):
        raise Http404
    shared = "PROMETHEUS_MULTIPROC_DIR" in os.environ
    registry = CollectorRegistry()
    if shared:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    registry.register(_Owed())
    counted = b"" if shared else generate_latest(REGISTRY)
    return HttpResponse(counted + generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _Owed:
    """What waits to be done, as the database has it at this moment."""

    def collect(self) -> Iterable[Metric]:
        """Owed wrap-ups by state (500 is the most that is told), and the age of each daily step that ended well."""
        if configured():
            owed = oversight.owed(clock.now())
            waiting = GaugeMetricFamily("memberintel_owed_wrap_ups", "Wrap-ups owed.", labels=["state"])
            for state, number in (
                ("failed", owed.failed),
                ("waiting", owed.waiting),
                ("overdue", owed.overdue),
            ):
                waiting.add_metric([state], number)
            yield waiting
        ages = GaugeMetricFamily(
            "memberintel_daily_step_seconds", "Seconds since a daily step last ended well.", labels=["kind"]
        )
        steps = [kind for kind in settings.DAILY_STEPS if daily.wanted(kind)]
        ended = Run.objects.filter(kind__in=steps, error="", finished_at__isnull=False).values_list("kind")
        for kind, finished in ended.annotate(Max("finished_at")):
            ages.add_metric([kind], (clock.now() - finished).total_seconds())
        yield ages


class Counting:
    """Middleware: counts each answer under the name of its route, never its path, which holds ids. What is logged on
    the way names the request."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._next = get_response
        self._async = iscoroutinefunction(get_response)
        if self._async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        """The answer, counted."""
        if self._async:
            return self._later(request)
        began = time.perf_counter()
        with bound(request=_name()):
            return _counted(request, self._next(request), began)

    async def _later(self, request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        with bound(request=_name()):
            return _counted(request, await self._next(request), began)


def _name() -> str:
    """A name for one request, which tells nothing and binds its lines in the log together."""
    return secrets.token_hex(6)


def _counted(request: HttpRequest, answer: HttpResponseBase, began: float) -> HttpResponseBase:
    match = request.resolver_match
    route = match.view_name if match and match.view_name else "none"
    method = request.method if request.method in _METHODS else "other"
    REQUESTS.labels(route, method, str(answer.status_code)).inc()
    REQUEST_SECONDS.labels(route).observe(time.perf_counter() - began)
    return answer


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
