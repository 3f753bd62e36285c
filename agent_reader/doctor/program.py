"""What only the reader can look at: its logins, its index, its tokens and its read log."""

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import apsw

from agent_reader.access import chain
from agent_reader.access.database import FILE_NAME
from agent_reader.access.read_log import moment_of
from agent_reader.config import Account, ReaderSettings
from agent_reader.doctor.octets import look_at_octets
from agent_reader.doctor.rights import Enforcement, Finding, overall, read_findings
from agent_reader.errors import Refused
from agent_reader.imap.session import ReadOnlySession
from agent_reader.store.database import FILE_PATTERN, account_file
from shared.doctor.copying import BY_HAND, Copying, look_at_copies
from shared.doctor.finding import Fault, Looking, Report
from shared.doctor.upkeep import look_at_clock, look_at_date, look_at_disk, look_at_tokens
from shared.doctor.web_clock import provider_date
from shared.imap_login import ImapFailure
from shared.settings import ConfigurationError

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
        _look_at_newest(account_file(folder, account.id), account.host, now(), looking)
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
        looking.find(Fault.DATABASE, f"{file}: {'; '.join(said)[:300]}", _mended(file))


def _mended(file: Path) -> str:
    """How a damaged database is mended: what tokens and read log say is said nowhere else, all others are made anew."""
    if file.name == FILE_NAME:
        return f"Stop the reader; restore {file.name} from a copy"
    what = "the mail is read again" if file.match(FILE_PATTERN) else "each agent's next look at the news is its first"
    return f"systemctl stop agent-reader; rm {file}*; systemctl start agent-reader   # {what}"


def _look_at_access(file: Path, now: datetime, looking: Looking) -> None:
    try:
        with closing(_opened(file)) as connection:
            verified = chain.verify(connection, None)
            rows = connection.execute("SELECT id, agent, expires_at FROM tokens WHERE revoked_at IS NULL").fetchall()
            tokens = [(str(token), str(agent), moment_of(int(end or 0))) for token, agent, end in rows]
            last_read = connection.execute("SELECT max(at) FROM reads").get
            latest = None if last_read is None else moment_of(int(last_read))
    except (apsw.Error, ValueError, TypeError, OverflowError) as error:
        looking.unseen.append(f"{file}: {type(error).__name__}")
        return
    if verified.wrong:
        looking.find(
            Fault.CHAIN, f"the read log: {verified.wrong}", "agent-reader reads verify; then look who wrote there"
        )
    look_at_tokens(tokens, now, _ANOTHER, looking)
    look_at_clock(latest, "the read log", now, looking)


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
        look_at_clock(datetime.fromtimestamp(int(latest), UTC), f"the newest message at {host}", now, looking)


def _opened(file: Path) -> apsw.Connection:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(5_000)
    connection.pragma("query_only", True)
    return connection
