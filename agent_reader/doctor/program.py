"""What only the reader can look at: its logins, its index, its tokens and its read log."""

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import apsw

from agent_reader.access import chain
from agent_reader.access.database import FILE_NAME
from agent_reader.config import Account, ReaderSettings
from agent_reader.doctor.octets import look_at_octets
from agent_reader.doctor.rights import Enforcement, Finding, overall, read_findings
from agent_reader.errors import Refused
from agent_reader.imap.session import ReadOnlySession
from shared.doctor.copying import BY_HAND, Copying, look_at_copies
from shared.doctor.finding import Fault, Looking, Report
from shared.doctor.upkeep import look_at_clock, look_at_date, look_at_disk, look_at_tokens
from shared.doctor.web_clock import provider_date
from shared.imap_login import ImapFailure
from shared.settings import ConfigurationError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ANOTHER: Final = "sudo -u agent-reader agent-reader token create --agent AGENT"
_COPY: Final = "systemctl enable --now agent-reader-backup.timer; systemctl start agent-reader-backup"
# Virtual-machine instructions of SQLite between two looks at the clock; a look is well below a microsecond each.
_STEPS: Final = 100_000
# The index of a large mailbox is gigabytes; what was not reached by then is said.
CHECK_SECONDS: Final = 60.0


def look_at_program(settings: ReaderSettings, now: Callable[[], datetime], copying: Copying = BY_HAND) -> Report:
    """Look at every account's login and rights, and at what is kept in the store's folder; nothing is written.

    `copying`: how copies of it are made.
    """
    looking = Looking()
    for account in settings.accounts:
        _look_at_login(account, settings.store.folder, looking)
        if (told := provider_date(account)) is not None:
            look_at_date(told[1], told[0], now(), looking)
    folder = settings.store.folder
    if not folder.is_dir():
        looking.notes.append(f"{folder}: the reader was not started yet")
        return looking.report()
    look_at_disk(folder, looking)
    look_at_copies(copying, folder, _COPY, now, looking)
    for file in sorted(folder.glob("*.db")):
        _look_at_database(file, now, looking)
    if (folder / FILE_NAME).exists():
        _look_at_access(folder / FILE_NAME, now(), looking)
    for account in settings.accounts:
        _look_at_newest(folder / f"mail-{account.id}.db", account.host, now(), looking)
    return looking.report()


def _look_at_login(account: Account, folder: Path, looking: Looking) -> None:
    try:
        with closing(ReadOnlySession.open(account)) as session:
            listing = session.list_mailboxes()
            names = {mailbox.name for mailbox in listing}
            has_rights = session.can("ACL")
            look_at_octets(account, session, listing, looking)
            session.log_out()
    except (ImapFailure, Refused) as refused:
        failure = refused.as_failure(account) if isinstance(refused, Refused) else refused
        looking.find(Fault.LOGIN, f"{account.id}: {failure.code}: {failure.detail}", failure.fix)
        return
    except ConfigurationError as error:
        if account.secret_credential is not None and "CREDENTIALS_DIRECTORY" not in error.fix and _not_handed(error):
            looking.unseen.append(f"the login `{account.id}`: {error.what} {error.fix}")
        else:
            looking.find(Fault.LOGIN, f"{account.id}: {error.what}", error.fix)
        return
    for name in account.mailboxes or ():
        if name not in names:
            looking.find(
                Fault.MAILBOX, f"{account.id}: this login sees no mailbox {name!r}", "Mend `mailboxes`, or its rights."
            )
    _tell_rights(account.id, read_findings(folder, account.id), looking, has_rights=has_rights)


def _not_handed(error: ConfigurationError) -> bool:
    return "was not handed over" in error.what


def _tell_rights(account_id: str, found: dict[str, Finding], looking: Looking, *, has_rights: bool) -> None:
    if not found:
        looking.notes.append(
            f"{account_id}: read-only by this program only: the server was never asked (--probe-rights asks it)"
        )
        return
    looking.notes.append(f"{account_id}: read-only {overall(found).value}")
    for name, each in sorted(found.items()):
        looking.notes.append(f"  {each.at:%Y-%m-%d}: {name}: {each.enforcement.value}")
        if has_rights and each.enforcement is Enforcement.PROGRAM:
            fix = "Give this login `lr` alone there (docs/providers.md), then: doctor --probe-rights"
            looking.find(Fault.LOGIN_MAY_WRITE, f"{account_id}: the login may write to {name!r}", fix)


def _look_at_database(file: Path, now: Callable[[], datetime], looking: Looking) -> None:
    again = f"Stop the reader; restore {file.name} from a copy"
    if file.name != FILE_NAME:
        again = f"systemctl stop agent-reader; rm {file}*; systemctl start agent-reader   # the mail is read again"
    until = now() + timedelta(seconds=CHECK_SECONDS)
    try:
        with closing(_opened(file)) as connection:
            connection.set_progress_handler(lambda: now() > until, _STEPS)
            said = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
    except apsw.InterruptError:
        looking.notes.append(f"{file}: not all was checked in {CHECK_SECONDS:.0f} s")
        return
    except apsw.Error as error:
        said = [type(error).__name__]
    if said != ["ok"]:
        looking.find(Fault.DATABASE, f"{file}: {'; '.join(said)[:300]}", again)


def _look_at_access(file: Path, now: datetime, looking: Looking) -> None:
    try:
        with closing(_opened(file)) as connection:
            verified = chain.verify(connection, None)
            tokens = connection.execute("SELECT id, agent, expires_at FROM tokens WHERE revoked_at IS NULL").fetchall()
            latest = connection.execute("SELECT max(at) FROM reads").get
    except (apsw.Error, ValueError, TypeError) as error:
        looking.unseen.append(f"{file}: {type(error).__name__}")
        return
    if verified.wrong:
        looking.find(
            Fault.CHAIN, f"the read log: {verified.wrong}", "agent-reader reads verify; then look who wrote there"
        )
    look_at_tokens([(str(token), str(agent), _moment(end)) for token, agent, end in tokens], now, _ANOTHER, looking)
    look_at_clock(None if latest is None else _moment(latest), "the read log", now, looking)


def _look_at_newest(file: Path, host: str, now: datetime, looking: Looking) -> None:
    """Compare the clock with the mail server's: it stamps each message when it comes (RFC 9051 §2.3.3)."""
    if not file.exists():
        return
    try:
        with closing(_opened(file)) as connection:
            latest = connection.execute("SELECT received_at FROM emails ORDER BY key DESC LIMIT 1").get
    except apsw.Error:
        # A damaged file was told already; one of a version before is made anew at the next start.
        return
    if latest is not None:
        look_at_clock(_EPOCH + timedelta(seconds=int(latest)), f"the newest message at {host}", now, looking)


def _opened(file: Path) -> apsw.Connection:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(5_000)
    connection.pragma("query_only", True)
    return connection


def _moment(microseconds: Any) -> datetime:  # noqa: ANN401 - a column of SQLite holds anything
    return _EPOCH + timedelta(microseconds=int(microseconds))
