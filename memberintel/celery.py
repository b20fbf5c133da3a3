"""The queue: tuned so that a broker that is down costs a request a moment and never an answer."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.schedules import crontab
from celery.signals import task_postrun, task_prerun, worker_init
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")

from django.conf import settings
from structlog.contextvars import bind_contextvars, clear_contextvars


def broker_address(redis_url: str) -> str:
    """The address of a Redis, as Celery writes it."""
    return redis_url.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=")


for alias in ("redis", "rediss"):
    TRANSPORT_ALIASES[alias] = "memberintel.queue:Transport"
app = Celery("memberintel")
app.conf.update(
    broker_url=broker_address(settings.REDIS_URL),
    broker_connection_timeout=1,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,  # a worker waits for its queue however long it is away, and never leaves
    broker_transport_options={
        "visibility_timeout": 60 * 60,  # above the longest task, so that nothing runs twice for being slow
        "socket_connect_timeout": 1,
        "socket_timeout": 5,
        "retry_policy": {"max_retries": 1},
        # A publish that finds no broker gives up at once; tried again by default, each costs two seconds.
        "max_retries": 0,
        "interval_start": 0,
        "interval_step": 0,
    },
    task_publish_retry=False,
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_default_queue="default",
    task_routes={"wrapups.tasks.do_owed_work": {"queue": "wrapups"}},
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    beat_schedule={
        "close-idle-sessions": {"task": "sessions.tasks.sweep", "schedule": crontab(minute="*/15")},
        "close-left-sessions": {"task": "sessions.tasks.sweep", "schedule": 60.0, "kwargs": {"idle": False}},
        "heal-search": {"task": "sessions.tasks.heal_search", "schedule": crontab(minute="5-59/15")},
        "heal-all-search": {
            "task": "sessions.tasks.heal_search",
            "schedule": crontab(hour="3", minute="40"),
            "kwargs": {"everything": True},
        },
        # Days end at another hour in every zone, and a source that was down is tried again the same day.
        "sync-again": {"task": "brain.heartbeat.tasks.sync_again", "schedule": crontab(minute="35")},
        "hand-over": {"task": "wrapups.tasks.hand_over", "schedule": crontab(minute="2-59/5")},
        "embed-memory": {"task": "brain.tasks.embed_all_missing", "schedule": crontab(minute="20")},
        "embed-knowledge": {"task": "brain.tasks.embed_knowledge", "schedule": crontab(minute="25")},
        "go-on-erasing": {
            "task": "memberintel.privacy.tasks.go_on_erasing",
            "schedule": crontab(minute="*/5"),
        },
        "daily": {"task": "memberintel.usage.tasks.daily", "schedule": crontab(minute="10-59/15")},
    },
    timezone="UTC",
)
app.autodiscover_tasks()
app.autodiscover_tasks(["brain.heartbeat"])


@worker_init.connect  # type: ignore[untyped-decorator]
def refuse_unsafe_login(**kwargs: Any) -> None:
    """A worker starts only on a login that row-level security binds, and with the keys it needs."""
    from memberintel.checks import verify_start

    verify_start()


@task_prerun.connect  # type: ignore[untyped-decorator]
def name_task(task_id: str = "", task: Any = None, **kwargs: Any) -> None:
    """What a task logs names it."""
    clear_contextvars()
    bind_contextvars(task=getattr(task, "name", ""), task_id=task_id)


@task_postrun.connect  # type: ignore[untyped-decorator]
def forget_task(**kwargs: Any) -> None:
    """The next one has another name."""
    clear_contextvars()
