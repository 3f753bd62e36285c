"""What only the executor can look at: its logins, the mailboxes of its queues, and its journal."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from change_executor.audit import verify
from change_executor.carrying_out import method_on
from change_executor.config import ExecutorSettings, Queue
from change_executor.connections import Connections
from change_executor.doctor.move_rights import look_at_rights
from change_executor.errand import mailboxes_of
from change_executor.errors import JournalUnavailable
from change_executor.heads import published_heads
from change_executor.journal.engine import reader_engine
from change_executor.journal.file import journal_path
from change_executor.looking import Looker
from change_executor.looking import Looking as MailLooking
from shared.doctor.copying import BY_HAND, Copying, look_at_copies
from shared.doctor.finding import Fault, Looking, Report
from shared.doctor.upkeep import look_at_clock, look_at_date, look_at_disk, look_at_tokens
from shared.doctor.web_clock import provider_date
from shared.imap_login import ImapFailure
from shared.settings import ConfigurationError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ANOTHER: Final = "sudo -u change-executor change-executor token create --agent AGENT --queue QUEUE"
_COPY: Final = "systemctl enable --now change-executor-backup.timer; systemctl start change-executor-backup"
_VERIFY: Final = "sudo -u change-executor change-executor audit verify   # docs/journal.md says what each means"


def look_at_program(settings: ExecutorSettings, now: Callable[[], datetime], copying: Copying = BY_HAND) -> Report:
    """Look at every login and queue, and at the journal; nothing is written.

    `copying`: how copies of it are made.
    """
    looking = Looking()
    looker = Looker(Connections())
    for credential in settings.credentials:
        if (told := provider_date(credential)) is not None:
            look_at_date(told[1], told[0], now(), looking)
        try:
            with looker.session(credential) as session:
                for queue in (queue for queue in settings.queues if queue.credential == credential.id):
                    _look_at_queue(session, queue, looking)
        except ImapFailure as failure:
            looking.find(Fault.LOGIN, f"{credential.id}: {failure.code}: {failure.detail}", failure.fix)
        except ConfigurationError as error:
            if "was not handed over" in error.what:
                looking.unseen.append(f"the login `{credential.id}`: {error.what} {error.fix}")
            else:
                looking.find(Fault.LOGIN, f"{credential.id}: {error.what}", error.fix)
    _look_at_journal(settings, now(), looking)
    _look_for_copies(settings, copying, now, looking)
    return looking.report()


def _look_at_queue(session: MailLooking, queue: Queue, looking: Looking) -> None:
    if method_on(session, queue) is None:
        fix = f'In the queue `{queue.id}`: without_move = "copy" (needs UIDPLUS), or another server'
        looking.find(Fault.CAPABILITY, f"{queue.id}: the server offers no MOVE (RFC 6851)", fix)
    seen = session.special_uses()
    missing = sorted(mailboxes_of(queue) - seen.keys())
    for name in missing:
        fix = "Make it in a mail program, or mend its name or this login's rights"
        looking.find(Fault.MAILBOX, f"{queue.id}: this login sees no mailbox {name!r}", fix)
    if not missing:
        look_at_rights(session, queue, looking)


def _look_at_journal(settings: ExecutorSettings, now: datetime, looking: Looking) -> None:
    path = journal_path(settings.journal.url)
    if not path.exists():
        looking.notes.append(f"{path}: the executor was not started yet")
        return
    look_at_disk(path.parent, looking)
    published = heads_told(settings.journal.heads_file, path, looking)
    engine = reader_engine(settings.journal.url)
    try:
        with engine.begin() as connection:
            _check_whole(connection)
            for each in verify(connection, published).findings:
                looking.find(Fault.CHAIN, f"{each.fault}: {each.subject}: {each.detail}", _VERIFY)
            _look_at_rows(connection, now, looking)
    except (DBAPIError, JournalUnavailable) as error:
        detail = error.orig if isinstance(error, DBAPIError) else error
        fix = "systemctl stop change-executor; restore the journal from a copy; keep the damaged file"
        looking.find(Fault.DATABASE, f"{path}: {detail}", fix)
    finally:
        engine.dispose()


def _look_for_copies(
    settings: ExecutorSettings, copying: Copying, now: Callable[[], datetime], looking: Looking
) -> None:
    path = journal_path(settings.journal.url)
    if path.exists():
        look_at_copies(copying, path.parent, _COPY, now, looking)


def _check_whole(connection: Connection) -> None:
    said = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA quick_check(3)")]
    if said != ["ok"]:
        raise JournalUnavailable("; ".join(said)[:300])


def heads_told(file: Path | None, journal: Path, looking: Looking) -> dict[int, str]:
    """Return the heads that a file tells, by their number of events; none where it cannot be read, which is said."""
    if file is None:
        return {}
    mend = f"install -o root -g change-executor -m 0660 /dev/null {file}; chattr +a {file}"
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            heads = published_heads(lines)
        owner = file.stat().st_uid
    except PermissionError:
        looking.unseen.append(
            f"{file}: the executor's user may append and not read: audit verify --heads FILE, as root"
        )
        return {}
    except OSError as error:
        looking.find(Fault.HEADS, f"{file}: {error.strerror}", mend)
        return {}
    if owner == journal.stat().st_uid:
        looking.find(Fault.HEADS, f"{file} belongs to the executor's own user, who could take a head back", mend)
    return heads


def _look_at_rows(connection: Connection, now: datetime, looking: Looking) -> None:
    tokens = connection.exec_driver_sql("SELECT id, agent, queue, expires_at FROM tokens WHERE revoked_at IS NULL")
    known = [(str(token), f"{agent} ({queue})", _moment(end)) for token, agent, queue, end in tokens]
    look_at_tokens(known, now, _ANOTHER, looking)
    latest = connection.exec_driver_sql("SELECT max(at) FROM events").scalar()
    look_at_clock(None if latest is None else _moment(latest), "the journal", now, looking)


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
