"""The reader's event source as a row of knocks (RFC 8620 §7.3): something may be new, or the reader is gone.

A thread of its own reads the stream and connects again whenever it ends; nothing is polled.
"""

import queue
import threading
from dataclasses import dataclass
from typing import Final

from agent_reader.relay.endpoint import Endpoint, Refused, Unreachable
from agent_reader.relay.jmap_client import EVENTS_PATH, SILENT_SECONDS

# A token that is not taken now is not taken later either.
FINAL_STATUSES: Final = frozenset({401, 403})

# A reader that restarts is back within seconds; one that is down for long is asked once a minute.
_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Knock:
    """`lost` is a code where the stream ended or did not open, else None; `is_final`: no other attempt is made."""

    lost: str | None = None
    is_final: bool = False


class EventStream:
    """The knocks of one reader, one after the other."""

    def __init__(self, reader: Endpoint) -> None:
        self._reader = reader
        self._knocks: queue.SimpleQueue[Knock] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="events", daemon=True)

    def start(self) -> None:
        """Begin to listen; the first knock comes once the stream is open."""
        self._thread.start()

    def stop(self) -> None:
        """Listen no more. The thread is a daemon: it may be waiting for the reader, and is not waited for."""
        self._ended.set()

    def wait(self, seconds: float | None) -> Knock | None:
        """Return the next knock, None where none came within so many seconds; knocks alike are one."""
        try:
            knock = self._knocks.get(timeout=seconds)
        except queue.Empty:
            return None
        while knock.lost is None and not self._knocks.empty():
            knock = self._knocks.get()
        return knock

    def _listen(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._ended.is_set():
            lost = "stream_ended"
            try:
                with self._reader.stream(EVENTS_PATH, SILENT_SECONDS) as lines:
                    # What came while nobody listened is found by the look that this leads to.
                    self._knocks.put(Knock())
                    pause = _FIRST_PAUSE_SECONDS
                    for line in lines:
                        if line.startswith(b"event: state"):
                            self._knocks.put(Knock())
            except Refused as refused:
                lost = str(refused).partition(":")[0]
                if refused.reply.status in FINAL_STATUSES:
                    self._knocks.put(Knock(str(refused), is_final=True))
                    return
            except Unreachable as error:
                lost = f"reader_unreachable ({error.why})"
            self._knocks.put(Knock(lost))
            self._ended.wait(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
