"""Delivering on one channel: a thread of its own, the newest message only, retries that grow rarer."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from structlog.typing import FilteringBoundLogger

from change_executor.notify.channels import Channel, NotDelivered
from change_executor.notify.message import MAX_SUBJECTS, Message, MessageKind

# A receiver that restarts is back soon; one that is gone for the night is not asked more than twice an hour.
FIRST_RETRY_SECONDS: Final = 5.0
LONGEST_RETRY_SECONDS: Final = 1800.0

_URGENCY: Final = (MessageKind.WAITING, MessageKind.CLEARED, MessageKind.ALARM)


class Delivery:
    """One channel and what is to be sent on it; at most one message waits, however long the receiver is away."""

    def __init__(
        self,
        channel: Channel,
        log: FilteringBoundLogger,
        make_id: Callable[[], str],
        *,
        first_retry_seconds: float = FIRST_RETRY_SECONDS,
    ) -> None:
        self._channel, self._log, self._make_id = channel, log, make_id
        self._first_retry_seconds = first_retry_seconds
        self._changed = threading.Condition()
        self._message: Message | None = None
        self._ending = False
        self._thread = threading.Thread(target=self._run, name=f"notify-{channel.name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def post(self, message: Message) -> None:
        """Send this as soon as it can be; never waits. What still waits to be sent becomes part of it."""
        with self._changed:
            self._message = message if self._message is None else merged(self._message, message)
            self._changed.notify()

    def stop(self, seconds: float) -> None:
        """End; a message that is being sent gets so many seconds."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while (message := self._next()) is not None:
            # The same id at each try, so that a receiver knows one that it has taken already.
            message_id, tried = self._make_id(), 0
            while not self._sent(message, message_id):
                tried += 1
                pause = min(self._first_retry_seconds * 2 ** min(tried - 1, 16), LONGEST_RETRY_SECONDS)
                if not self._pause(pause):
                    return
                with self._changed:
                    if self._message is not None:
                        message, self._message = merged(message, self._message), None
                        message_id = self._make_id()

    def _next(self) -> Message | None:
        with self._changed:
            self._changed.wait_for(lambda: self._message is not None or self._ending)
            if self._ending:
                return None
            message, self._message = self._message, None
            return message

    def _pause(self, seconds: float) -> bool:
        # Newer messages do not shorten it: a receiver that is down is left in peace.
        until = time.monotonic() + seconds
        with self._changed:
            while not self._ending and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return not self._ending

    def _sent(self, message: Message, message_id: str) -> bool:
        try:
            self._channel.send(message, message_id)
        except NotDelivered as failure:
            self._log.warning("notify:not_delivered", channel=self._channel.name, reason=failure.reason)
            return False
        except Exception as error:  # noqa: BLE001 - a bug in one channel must not end the telling
            self._log.error("notify:failed", channel=self._channel.name, error=type(error).__name__)
            return False
        self._log.info("notify:delivered", channel=self._channel.name, kind=message.kind.value)
        return True


def merged(older: Message, newer: Message) -> Message:
    """Return one message for two of which the older was not sent: the newer picture, and everything that is new."""
    return replace(
        newer,
        kind=max(older.kind, newer.kind, key=_URGENCY.index) if newer.alarms else newer.kind,
        new=min(older.new + newer.new, newer.pending),
        subjects=(*older.subjects, *newer.subjects)[:MAX_SUBJECTS],
    )
