"""The queue's way to Redis: kombu's own, for a worker that loses Redis while it has messages in hand.

Kombu gives the messages of a lost connection back over that very connection, or ends them on it; by then its
parameters are gone, and an AttributeError that nobody expects ends the worker. There is nobody to give them back to:
Redis hands them out again after the visibility timeout, if it still has them, and owed work is rows in any case.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis, virtual


class QoS(redis.QoS):
    """The messages a channel has in hand."""

    def _lost(self) -> bool:
        """Whether the channel's connection is over for good."""
        return self.channel.connection is None or self.channel.connection.client is None

    def restore_unacked(self, client: Any = None) -> None:
        """Give them back, where there is somebody to give them to."""
        if self._lost():
            self._delivered.clear()
        else:
            super().restore_unacked(client)  # type: ignore[no-untyped-call]

    def ack(self, delivery_tag: Any) -> None:
        """It is done with."""
        if self._lost():
            virtual.QoS.ack(self, delivery_tag)  # type: ignore[no-untyped-call]
        else:
            super().ack(delivery_tag)  # type: ignore[no-untyped-call]

    def reject(self, delivery_tag: Any, requeue: bool = False) -> None:
        """It is not done, and comes again if `requeue`."""
        if self._lost():
            virtual.QoS.ack(self, delivery_tag)  # type: ignore[no-untyped-call]
        else:
            super().reject(delivery_tag, requeue=requeue)  # type: ignore[no-untyped-call]


class Channel(redis.Channel):
    """As kombu's."""

    QoS = QoS


class Transport(redis.Transport):
    """As kombu's."""

    Channel = Channel
