"""Watching over the executor: alarms are logged when they are raised and when they are over, and people are told.

A thread of its own, which reads the journal and never holds up the worker; a receiver that does not answer holds up
nobody but itself.
"""

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select
from structlog.typing import FilteringBoundLogger

from change_executor.alarms import (
    Alarm,
    AlarmCode,
    alarms,
    oldest_for_person,
    waiting_for_person,
    without_journal,
)
from change_executor.config import ExecutorSettings
from change_executor.errors import JournalFault, JournalUnavailable
from change_executor.journal import schema
from change_executor.journal.journal import Journal
from change_executor.journal.troubles import WATCH
from change_executor.notify.channels import Channel, CommandChannel, NtfyChannel, WebhookChannel
from change_executor.notify.delivery import Delivery
from change_executor.notify.message import MAX_SUBJECTS, Message, MessageKind, one_line
from change_executor.notify.plan import Memory, Picture, decide
from shared.time_and_chance import Clock

# Alarms count minutes, so half of one is soon enough; a commit does not wake it more often than `_PAUSE_SECONDS`.
LOOK_SECONDS: Final = 30.0
# A hundred proposals in a second are one message, and the journal is read once for them.
PAUSE_SECONDS: Final = 1.0
# Nothing is told in the first minute but in the log: an executor that ends and begins again must not tell each time.
QUIET_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 1.0


class Notifier:
    """Looks, logs alarms, and posts messages to every channel that is configured.

    Raises `shared.settings.ConfigurationError` where a channel's secret cannot be read.
    """

    def __init__(
        self,
        journal: Journal,
        settings: ExecutorSettings,
        log: FilteringBoundLogger,
        random_octets: Callable[[int], bytes],
        *,
        pause_seconds: float = PAUSE_SECONDS,
        quiet_start_seconds: float = QUIET_START_SECONDS,
    ) -> None:
        self._journal, self._settings, self._log = journal, settings, log
        self._digest = timedelta(minutes=settings.notify.digest_minutes)
        self._pause_seconds = pause_seconds
        self._quiet_seconds = quiet_start_seconds
        self._quiet_until = journal.now() + timedelta(seconds=quiet_start_seconds)
        self._memory = Memory()
        self._seen = Picture((), None, ())
        self._logged: frozenset[AlarmCode] = frozenset()
        self._deliveries = [
            Delivery(channel, log, lambda: f"msg_{random_octets(16).hex()}")
            for channel in channels(settings, journal.now)
        ]
        self._changed, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._journal.listen(self._changed.set)
        for delivery in self._deliveries:
            delivery.start()
        self._thread.start()

    def stop(self) -> None:
        """End; whatever could not be sent yet is told after the next start, if it still waits then."""
        self._journal.unlisten(self._changed.set)
        self._ending.set()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join()
        for delivery in self._deliveries:
            delivery.stop(_STOP_SECONDS)

    def look(self) -> float:
        """Look once, log and post; return for how many seconds nothing is due.

        Where the journal cannot be read or written, that is what is told, beside what was seen before.
        """
        now = self._journal.now()
        picture = self._picture(now)
        self._tell_log(picture.alarms)
        if not self._deliveries:
            return LOOK_SECONDS
        # A clock that was set back would keep it quiet for as long as that.
        if 0 < (left := (self._quiet_until - now).total_seconds()) <= self._quiet_seconds:
            return min(LOOK_SECONDS, left)
        decision = decide(self._memory, picture, now, self._digest)
        if decision.kind is not None:
            self._post(decision.kind, decision.new, picture, self._subjects(decision.new))
        # Once it is on its way: what this look fails at is told by the next one.
        self._memory = decision.memory
        due = LOOK_SECONDS if decision.due is None else (decision.due - now).total_seconds()
        return max(0.0, min(LOOK_SECONDS, due))

    def _picture(self, now: datetime) -> Picture:
        troubles = self._journal.troubles
        try:
            # A disk that is full shows when somebody writes, and there may be nothing to write until it matters.
            self._journal.probe()
            with self._journal.reading() as connection:
                wrong = alarms(connection, self._settings, now)
                self._seen = Picture(tuple(waiting_for_person(connection)), oldest_for_person(connection), wrong)
        except JournalUnavailable as error:
            self._log.error("journal:unavailable", error=str(error), fault=error.fault.value, fix=error.fix)
            troubles.failed(WATCH, error.fault, now)
        except Exception as error:  # noqa: BLE001 - rows that nobody can read any more are a damage too
            self._log.error("notify:failed", error=type(error).__name__)
            troubles.failed(WATCH, JournalFault.NOT_UNDERSTOOD, now)
        else:
            troubles.worked(WATCH)
        return replace(self._seen, alarms=(*without_journal(troubles.found()), *self._seen.alarms))

    def _run(self) -> None:
        while not self._ending.is_set():
            self._changed.clear()
            seconds = LOOK_SECONDS
            try:
                seconds = self.look()
            except Exception as error:  # noqa: BLE001 - whoever watches must not fall asleep over one bad look
                self._log.error("notify:failed", error=type(error).__name__)
            self._ending.wait(self._pause_seconds)
            self._changed.wait(seconds)

    def _tell_log(self, wrong: Sequence[Alarm]) -> None:
        codes = frozenset(alarm.code for alarm in wrong)
        for alarm in wrong:
            if alarm.code not in self._logged:
                self._log.warning(
                    "alarm:raise",
                    code=alarm.code.value,
                    count=alarm.count,
                    since=alarm.since.isoformat(),
                    reasons=list(alarm.reasons),
                    **({"fix": alarm.fix} if alarm.fix else {}),
                )
        for code in sorted(self._logged - codes):
            self._log.info("alarm:clear", code=code.value)
        self._logged = codes

    def _post(self, kind: MessageKind, new: Sequence[str], picture: Picture, subjects: tuple[str, ...]) -> None:
        message = Message(
            kind=kind,
            at=self._journal.now(),
            new=len(new),
            pending=len(picture.pending),
            oldest=picture.oldest,
            alarms=picture.alarms,
            subjects=subjects,
            page=self._settings.review.url,
        )
        for delivery in self._deliveries:
            delivery.post(message)

    def _subjects(self, new: Sequence[str]) -> tuple[str, ...]:
        if self._settings.notify.tell != "subjects" or not new:
            return ()
        texts = schema.texts.c
        wanted = select(texts.proposal, texts.text).where(
            texts.kind == "reading", texts.proposal.in_(new[:MAX_SUBJECTS])
        )
        # That something waits is told, whether or not anybody can say what.
        with suppress(JournalUnavailable), self._journal.reading() as connection:
            found = {row.proposal: _subject(row.text) for row in connection.execute(wanted)}
            return tuple(found[each] for each in new[:MAX_SUBJECTS] if found.get(each))
        return ()


def channels(settings: ExecutorSettings, now: Clock) -> list[Channel]:
    """Return the channels that are configured; `now` dates what is sent. Raises `ConfigurationError`."""
    notify = settings.notify
    found: list[Channel] = []
    if notify.webhook is not None:
        found.append(WebhookChannel.opened(notify.webhook, now))
    if notify.ntfy is not None:
        found.append(NtfyChannel.opened(notify.ntfy))
    if notify.command is not None:
        found.append(CommandChannel(notify.command))
    return found


def _subject(reading: str) -> str:
    try:
        subject = json.loads(reading).get("subject")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return one_line(subject) if isinstance(subject, str) else ""
