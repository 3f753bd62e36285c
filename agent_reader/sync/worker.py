"""A thread per account: a round, then a pause; on failure a longer one. It ends when asked, whatever it waits for."""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from structlog.typing import FilteringBoundLogger

from agent_reader.config import Account
from agent_reader.errors import Refused
from agent_reader.imap.session import ReadOnlySession
from agent_reader.sync.mirror import Mirror
from agent_reader.sync.proven import ProvenLogins
from agent_reader.sync.run import Sync
from shared.imap_login import ImapFailure
from shared.settings import ConfigurationError

# A server that restarts is back within seconds; one that is down is asked every five minutes.
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 300.0
# Many refused logins in a row lock an account.
_REFUSED_LOGIN_PAUSE_SECONDS: Final = 300.0
# Providers count by the hour; asking sooner makes it longer.
_THROTTLED_PAUSE_SECONDS: Final = 1_800.0


def pause_after(failures: int, code: str, chance: float) -> float:
    """Return the seconds to wait after so many failures in a row; `chance` in 0..1 spreads the clients of a server."""
    pause = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 16))
    if code == "login_refused":
        pause = max(pause, _REFUSED_LOGIN_PAUSE_SECONDS)
    elif code == "throttled":
        pause = max(pause, _THROTTLED_PAUSE_SECONDS)
    return pause * (0.75 + chance / 2)


class Worker:
    """Keeps one account in step. `first_contact` is done once the login, the list and the names were tried.

    It ends with None or with the `ImapFailure` or `ConfigurationError` of that first try. `chance` gives numbers in
    0..1.
    """

    def __init__(
        self,
        account: Account,
        mirror: Mirror,
        proven: ProvenLogins,
        log: FilteringBoundLogger,
        chance: Callable[[], float],
    ) -> None:
        self.account = account
        self.first_contact: Future[None] = Future()
        self._mirror, self._proven, self._chance = mirror, proven, chance
        self._log = log.bind(account=account.id)
        self._sync: Sync | None = None
        self._session: ReadOnlySession | None = None
        self._lock = threading.Lock()
        self._stopping = False
        self._awake = threading.Event()
        # A daemon: a connection attempt cannot be interrupted, and must not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name=f"sync-{account.id}", daemon=True)

    def start(self) -> None:
        """Begin the rounds."""
        self._thread.start()

    def wake(self) -> None:
        """Begin a round now instead of waiting."""
        self._awake.set()

    def stop(self) -> None:
        """Ask it to end: what it waits for is interrupted. See `join`."""
        with self._lock:
            self._stopping = True
            if self._session is not None:
                self._session.interrupt()
        self._awake.set()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def join(self, seconds: float) -> bool:
        """Wait for its end; whether it came."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        failures = 0
        while not self._stopping:
            try:
                self._round()
            except (ImapFailure, ConfigurationError, Refused) as trouble:
                failures += 1
                pause = self._failed(trouble, failures)
            except Exception as error:  # noqa: BLE001 - a full disk or a bug in one account must not end the others
                failures += 1
                pause = self._broke(error, failures)
            else:
                failures = 0
                pause = float(self.account.sync_seconds)
            if not self._stopping:
                self._awake.wait(pause)
                self._awake.clear()
        self._drop()
        if not self.first_contact.done():
            self.first_contact.cancel()

    def _round(self) -> None:
        session = self._connected()
        if self._sync is None:
            self._sync = Sync(
                self._mirror,
                self.account.mailboxes,
                self._log,
                restart_all=self._proven.knows_other(self.account),
            )
        if not self.first_contact.done():
            self._check_names(self._sync.missing(self._sync.listing(session)))
            self.first_contact.set_result(None)
        done = self._sync.round(session)
        if done.whole and not done.missing:
            self._proven.prove(self.account)
        if done.taken_in or done.changed or done.vanished or done.set_aside or not done.whole:
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

    def _failed(self, trouble: ImapFailure | ConfigurationError | Refused, failures: int) -> float:
        self._drop()
        if self._stopping:
            return 0.0
        match trouble:
            case ImapFailure():
                code, detail, fix = trouble.code, trouble.detail, trouble.fix
            case ConfigurationError():
                code, detail, fix = "configuration", f"{trouble.where}: {trouble.what}", trouble.fix
            case Refused():
                code, detail, fix = "refused", str(trouble), "Look at the rights of this login on the mail server."
        pause = pause_after(failures, code, self._chance())
        self._log.warning("sync:failed", code=code, detail=detail, retry_seconds=round(pause, 1))
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
        if session is not None:
            session.close()


def _place_of(error: Exception) -> str:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return ""
    return f"{traceback.tb_frame.f_code.co_filename.rpartition('/')[2]}:{traceback.tb_lineno}"
