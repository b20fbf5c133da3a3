"""Whether the process lives, and whether what it needs answers."""

from __future__ import annotations

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from redis import Redis, RedisError


def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the process serves at all."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """200 when database and Redis answer, else 503 naming the one that does not."""
    states = {"database": _database(), "redis": _redis()}
    ready = all(state == "ok" for state in states.values())
    return JsonResponse({"status": "ok" if ready else "down", **states}, status=200 if ready else 503)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "cannot be reached: check DATABASE_URL_WEB"
    return "ok"


def _redis() -> str:
    if not settings.REDIS_URL:
        return "not configured: set REDIS_URL"
    try:
        with Redis.from_url(settings.REDIS_URL, socket_connect_timeout=1, socket_timeout=1) as client:
            client.ping()
    except RedisError:
        return "cannot be reached: check REDIS_URL"
    return "ok"
