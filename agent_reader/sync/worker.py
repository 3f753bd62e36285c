"""A thread per account: a round, then a pause that news ends; on failure a longer one that nothing does.

It ends when asked, whatever it waits for. Each account has a thread, connections and a back-off of its own: one that
fails or is huge takes nothing from another.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Final

from structlog.typing import FilteringBoundLogger

from agent_reader.config import Account
from agent_reader.damage import MessageDamaged
from agent_reader.errors import IndexDamaged, IndexFull, NoReadingProcess, ReadingEnded, Refused, Throttled
from agent_reader.imap.precedence import Precedence
from agent_reader.imap.session import ReadOnlySession
from agent_reader.sync.backoff import pause_after, pause_of
from agent_reader.sync.meter import COUNTED_OCTETS, Meter
from agent_reader.sync.mirror import Mirror
from agent_reader.sync.order import Age
from agent_reader.sync.proven import ProvenLogins
from agent_reader.sync.push import Push
from agent_reader.sync.reading_notice import ReadingNotice
from agent_reader.sync.run import Ending, Round, Sync
from agent_reader.sync.terms import Terms
from agent_reader.sync.wakings import Wakings
from shared.imap_login import ImapFailure
from shared.settings import ConfigurationError
from shared.time_and_chance import Clock, Monotonic, utc_now

_OfTheMachine = IndexFull | IndexDamaged | MessageDamaged | NoReadingProcess
_OF_THE_MACHINE: Final = (IndexFull, IndexDamaged, MessageDamaged, NoReadingProcess)

# A long backlog is left after so long, at least, so that all mailboxes are looked at anew.
_SHORTEST_SLICE_SECONDS: Final = 15.0
# Of a day's octets this part is kept for what is new: the older mail waits until tomorrow.
_BACKLOG_SHARE: Final = 0.8


class Worker:
    """Keeps one account in step. `first_contact` is done once the login, the list and the names were tried.

    It ends with None or with the `ImapFailure` or `ConfigurationError` of that first try. `chance` gives numbers in
    0..1, `clock` the present, `monotonic` seconds that only go on.
    """

    def __init__(
        self,
        account: Account,
        mirror: Mirror,
        proven: ProvenLogins,
        log: FilteringBoundLogger,
        chance: Callable[[], float],
        *,
        precedence: Precedence | None = None,
        clock: Clock = utc_now,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        self.account = account
        self.first_contact: Future[None] = Future()
        self._mirror, self._proven, self._chance = mirror, proven, chance
        self._clock, self._monotonic = clock, monotonic
        self._precedence = precedence or Precedence()
        self._log = log.bind(account=account.id)
        self._wakings = Wakings()
        self._push = Push(
            account, account.listened_to, account.renew_seconds, self._wakings, self._log, chance, monotonic
        )
        self._meter = Meter(mirror)
        self._reading_notice = ReadingNotice(mirror, self._log)
        self._sync: Sync | None = None
        self._session: ReadOnlySession | None = None
        self._lock = threading.Lock()
        self._stopping = False
        self._is_spent = self._is_let_in = False
        self._round_due = monotonic()
        self._slice_over = 0.0
        # A daemon: a connection attempt cannot be interrupted, and must not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name=f"sync-{account.id}", daemon=True)

    def start(self) -> None:
        """Begin the rounds."""
        self._thread.start()

    def wake(self) -> None:
        """Begin a round now instead of waiting."""
        self._wakings.insist()

    def stop(self) -> None:
        """Ask it to end: what it waits for is interrupted. See `join`."""
        with self._lock:
            self._stopping = True
            if self._session is not None:
                self._session.interrupt()
        self._mirror.stop_reading()
        self._push.stop()
        self._wakings.end()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def join(self, seconds: float) -> bool:
        """Wait for its end; whether it came."""
        until = self._monotonic() + seconds
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return self._push.join(max(0.0, until - self._monotonic())) and not self._thread.is_alive()

    def _run(self) -> None:
        failures = 0
        while not self._stopping:
            try:
                self._turn()
            except ReadingEnded:
                self._drop()
            except (ImapFailure, ConfigurationError, Refused, *_OF_THE_MACHINE) as trouble:
                failures += 1
                self._rest(self._failed(trouble, failures))
            except Exception as error:  # noqa: BLE001 - a full disk or a bug in one account must not end the others
                failures += 1
                self._rest(self._broke(error, failures))
            else:
                failures = 0
                self._wakings.wait(max(0.0, self._round_due - self._monotonic()))
        self._drop()
        if not self.first_contact.done():
            self.first_contact.cancel()

    def _rest(self, seconds: float) -> None:
        """After a failure news wakes nobody: the server is left alone, and the next turn is a whole round."""
        self._round_due = self._monotonic()
        if not self._stopping:
            self._wakings.rest(seconds)

    def _turn(self) -> None:
        session = self._connected()
        try:
            self._look(session)
        finally:
            # Also what came before a failure, which the provider counts too; what a full disk does not take is counted
            # with the next.
            with contextlib.suppress(IndexFull):
                self._meter.count(session)

    def _look(self, session: ReadOnlySession) -> None:
        names = self._wakings.take()
        if self._sync is not None and names and self._monotonic() < self._round_due and not self._wakings.everything:
            done = self._sync.look_at(session, names)
            # What vanished may have been moved elsewhere: only a whole round can tell.
            if done.vanished:
                self._round_due = self._monotonic()
        else:
            done = self._round(session, names)
        self._note(done)

    def _round(self, session: ReadOnlySession, names: Collection[str]) -> Round:
        # In which there is news: a round opens a mailbox that it is told of, whatever the server's STATUS says of it.
        names = {*names, *self._wakings.take_all()}
        if self._mirror.is_damaged():
            self._mend()
        if self._sync is None:
            self._sync = Sync(
                self._mirror,
                self.account.mailboxes,
                self._log,
                restart_all=self._proven.knows_other(self.account),
                terms=self._terms(),
            )
        if not self.first_contact.done():
            self._check_names(self._sync.missing(self._sync.listing(session)))
            self.first_contact.set_result(None)
            self._push.start()
        if not self._is_let_in:
            self._mirror.let_in()
            self._is_let_in = True
        began = self._monotonic()
        self._slice_over = began + max(_SHORTEST_SLICE_SECONDS, self.account.sync_seconds)
        done = self._sync.round(session, names)
        is_over = done.ending is Ending.OVER
        self._round_due = self._monotonic() + (0.0 if is_over else self.account.sync_seconds)
        if done.whole and not done.missing:
            self._proven.prove(self.account)
        return done

    def _mend(self) -> None:
        """Have what is damaged read again: it is missing now, and nothing is remembered of what was there."""
        messages = self._mirror.mend()
        self._sync = None
        self._log.warning("index:mended", messages=messages)

    def _terms(self) -> Terms:
        return Terms(
            clock=self._clock,
            between=self._between_steps,
            is_over=lambda: self._monotonic() >= self._slice_over or self._wakings.everything,
            allows=self._allows,
            window=self.account.window,
        )

    def _between_steps(self) -> Collection[str]:
        self._reading_notice.look()
        if self._session is not None:
            self._meter.count(self._session, COUNTED_OCTETS)
        self._precedence.give_way()
        return self._wakings.take()

    def _allows(self, age: Age) -> bool:
        limit = self.account.daily_octets
        if limit is None:
            return True
        return self._mirror.octets_today() < (limit if age is Age.WEEK else limit * _BACKLOG_SHARE)

    def _note(self, done: Round) -> None:
        self._reading_notice.look()
        is_spent = done.ending is Ending.SPENT
        if is_spent and not self._is_spent:
            limit = f"{self.account.daily_mebibytes} MiB"
            self._mirror.failed(
                "daily_limit",
                f"The {limit} of `daily_mebibytes` are used up; the rest of the mail comes in later.",
                "Nothing needs to be done; raise `daily_mebibytes` if the provider allows more.",
            )
            self._log.info("sync:daily_limit", limit=limit)
        self._is_spent = is_spent
        is_whole = done.whole or done.ending is Ending.ALL_IN
        if done.taken_in or done.changed or done.vanished or done.set_aside or not is_whole:
            self._log.info(
                "sync:round",
                whole=done.whole,
                taken_in=done.taken_in,
                changed=done.changed,
                vanished=done.vanished,
                set_aside=done.set_aside,
            )

    def _check_names(self, missing: list[str]) -> None:
        if not missing:
            return
        what = ", ".join(f"`{name}`" for name in missing)
        if self._proven.knows(self.account):
            self._log.warning("sync:mailboxes_missing", mailboxes=missing)
            return
        raise ConfigurationError(
            f"the account `{self.account.id}`",
            f"`mailboxes` names {what}, which the login {self.account.user} does not see on {self.account.host}.",
            "Mend the name as this login sees it (leave `mailboxes` out to read all), or give the login the right `l`.",
        )

    def _connected(self) -> ReadOnlySession:
        if self._session is None:
            session = ReadOnlySession.open(self.account)
            with self._lock:
                self._session = session
                if self._stopping:
                    session.interrupt()
            self._log.info("sync:connected")
        return self._session

    def _failed(self, trouble: ImapFailure | ConfigurationError | Refused | _OfTheMachine, failures: int) -> float:
        self._drop()
        if self._stopping:
            return 0.0
        if isinstance(trouble, MessageDamaged):
            self._mirror.note_damage()
        if isinstance(trouble, Refused) and trouble.is_throttling:
            trouble = Throttled(self.account.host, str(trouble))
        elif isinstance(trouble, Refused):
            trouble = trouble.as_failure(self.account)
        match trouble:
            case ImapFailure() | IndexFull() | IndexDamaged() | MessageDamaged() | NoReadingProcess():
                code, detail, fix = trouble.code, trouble.detail, trouble.fix
            case ConfigurationError():
                code, detail, fix = "configuration", f"{trouble.where}: {trouble.what}", trouble.fix
        chance = self._chance()
        if isinstance(trouble, Throttled):
            pause = pause_of(trouble, failures, chance)
        else:
            pause = pause_after(failures, code, chance)
        self._log.warning("sync:failed", code=code, detail=detail, fix=fix, retry_seconds=round(pause, 1))
        with contextlib.suppress(IndexFull, IndexDamaged):  # then the log alone can say it
            self._mirror.failed(code, detail, fix)
        if not self.first_contact.done():
            self.first_contact.set_exception(trouble)
        return pause

    def _broke(self, error: Exception, failures: int) -> float:
        self._drop()
        pause = pause_after(failures, "internal", self._chance())
        # The type and the place, never the text: an error's text can quote mail.
        self._log.error("sync:broke", error=type(error).__name__, at=_place_of(error), retry_seconds=round(pause, 1))
        with contextlib.suppress(Exception):  # the store itself may be what broke
            self._mirror.failed(
                "internal",
                f"The reader itself failed ({type(error).__name__}).",
                "It is tried again by itself; see the reader's log, and the free space of its disk.",
            )
        if not self.first_contact.done():
            self.first_contact.set_exception(error)
        return pause

    def _drop(self) -> None:
        with self._lock:
            session, self._session = self._session, None
        self._is_let_in = False
        if session is not None:
            session.close()


def _place_of(error: Exception) -> str:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return ""
    return f"{traceback.tb_frame.f_code.co_filename.rpartition('/')[2]}:{traceback.tb_lineno}"
