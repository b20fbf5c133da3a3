"""The queue's transport: what a worker has in hand when it loses Redis does not end it."""

from __future__ import annotations

from uuid import uuid4

from kombu.entity import Queue

from memberintel import queue
from memberintel.celery import app, broker_address


def test_messages_of_a_lost_connection_are_let_go_without_an_error() -> None:
    with app.connection_for_write() as connection:
        assert isinstance(connection.transport, queue.Transport)
        channel = connection.channel()
        waiting = Queue(f"lost-{uuid4()}", channel=channel)  # type: ignore[no-untyped-call]
        waiting.declare()  # type: ignore[no-untyped-call]
        for text in ("done", "given back"):
            connection.Producer(channel).publish(text, routing_key=waiting.name)
        done, _ = waiting.get(), waiting.get()  # type: ignore[no-untyped-call]
        channel.connection.client = None  # what kombu leaves of a connection that broke
        done.ack()
        channel.qos.restore_unacked_once()
        assert not channel.qos._delivered


def test_every_way_to_write_the_address_leads_to_it() -> None:
    for address in ("unix:///run/redis.sock?db=0", "redis://host:6379/1", "rediss://host:6379/1"):
        with app.connection_for_write(broker_address(address)) as connection:
            assert connection.get_transport_cls() is queue.Transport
