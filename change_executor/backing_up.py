"""The journal copied while it is in use, and put back so that nothing moves again unseen.

A copy is of yesterday: what was decided and moved since is not in it. Where a head that was told outside is ahead of
the copy, or none is there to compare with, the stop button is pressed, what was approved has to be decided again, and
what may have been under way is looked for at the mail server.
"""

import contextlib
import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import insert, select, update

from change_executor.audit import Fault, verify
from change_executor.config import ExecutorSettings
from change_executor.journal import migrations, moves, schema
from change_executor.journal.journal import Clock, Journal, Proposal, Writing
from change_executor.journal.moves import Intent, Move, MoveKind
from change_executor.journal.open import journal_path, open_journal
from change_executor.lifecycle import Event
from change_executor.outcomes import Outcome
from change_executor.switch import STOP
from change_executor.worker import take_worker_lock
from shared.backup import keep_newest, make_backup, put_back, read_backup
from shared.proposal import State
from shared.settings import ConfigurationError

PROGRAM: Final = "change-executor"
_OPERATOR: Final = "operator"
# What comes after a file that is not whole yet.
_RESTORING: Final = ".restoring"


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore found: events in the copy, whether some are missing, and what was done about it."""

    events: int
    is_behind: bool
    asked_again: int
    doubtful: int


def backup_journal(settings: ExecutorSettings, into: Path, clock: Clock, keep: int | None) -> Path:
    """Copy the journal into a new folder below `into`, and return it; with `keep`, only the newest so many stay.

    Raises `ConfigurationError`.
    """
    path = journal_path(settings.journal.url)
    if not path.exists():
        raise ConfigurationError(f"[journal] url = {settings.journal.url}", "there is no journal.", "Mend the path.")
    made = make_backup(into, PROGRAM, [path], clock(), lambda folder: _head_of(folder / path.name))
    if keep is not None:
        keep_newest(into, PROGRAM, keep)
    return made


def restore_journal(settings: ExecutorSettings, source: Path, published: Mapping[int, str], clock: Clock) -> Restored:
    """Put a copy of the journal where none is, in a state in which nothing moves unseen.

    `published` holds the heads that were told outside. Raises `ConfigurationError`; then there is still no journal.
    """
    path = journal_path(settings.journal.url)
    manifest = read_backup(source, PROGRAM, {"": migrations.HEAD})
    if len(manifest.files) != 1:
        raise ConfigurationError(str(source), "holds more than a journal.", "Name the folder that `backup` printed.")
    for each in (path, path.with_name(path.name + "-wal")):
        if each.exists():
            raise ConfigurationError(
                str(each), "is there already.", "Nothing is written over: move it away, and keep it."
            )
    lock = take_worker_lock(settings.journal.url)
    working = path.with_name(path.name + _RESTORING)
    try:
        _remove(working)
        put_back(source / manifest.files[0].name, working)
        with contextlib.closing(open_journal(f"sqlite:///{working}", clock, may_create=False)) as journal:
            restored = _settled(journal, published, manifest.files[0].sha256)
        # Unlike a rename, a link fails where somebody made a journal meanwhile.
        os.link(working, path)
    except FileExistsError:
        raise ConfigurationError(str(path), "was made meanwhile.", "Stop the executor, and move it away.") from None
    finally:
        _remove(working)
        os.close(lock)
    return restored


def _head_of(copy: Path) -> dict[str, str | int]:
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        row = connection.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    return {"events": 0} if row is None else {"events": int(row[0]), "head": str(row[1])}


def _remove(working: Path) -> None:
    for end in ("", "-wal", "-shm"):
        working.with_name(working.name + end).unlink(missing_ok=True)


def _settled(journal: Journal, published: Mapping[int, str], copied: str) -> Restored:
    with journal.reading() as connection:
        found = verify(connection, published)
    faults = {finding.fault for finding in found.findings}
    if faults - {Fault.HEAD_MISSING, Fault.HEAD_DIFFERS}:
        raise ConfigurationError(
            "the copy",
            f"is no honest journal: {found.findings[0].detail}.",
            "Use another copy: audit verify says more.",
        )
    # With nothing to compare, the copy may be older than the last move.
    is_behind = bool(faults) or not published
    with journal.writing() as writing:
        asked_again = doubtful = 0
        if is_behind:
            _press_stop(writing)
            approved = _in_state(writing, State.APPROVED)
            for each in approved:
                _ask_again(writing, each)
            became = [_doubt(writing, each) for each in _in_state(writing, State.APPLYING, State.UNDOING)]
            asked_again = len(approved) + became.count(State.PENDING)
            doubtful = len(became) - became.count(State.PENDING) - became.count(State.APPLIED)
        _sign_everybody_out(writing)
        details: dict[str, Any] = {
            "copy": copied,
            "events": found.events,
            "published": max(published, default=0),
            "behind": is_behind,
            "askedAgain": asked_again,
            "doubtful": doubtful,
        }
        writing.append("journal:restore", "journal", _OPERATOR, details)
    return Restored(found.events, is_behind, asked_again, doubtful)


def _press_stop(writing: Writing) -> None:
    if not writing.stopped():
        writing.connection.execute(insert(schema.switches).values(name=STOP, since=writing.now, by=_OPERATOR))
        writing.append("stop:press", STOP, _OPERATOR, {"restored": True})


def _in_state(writing: Writing, *states: State) -> list[Proposal]:
    rows = writing.connection.execute(
        select(schema.proposals)
        .where(schema.proposals.c.state.in_([state.value for state in states]))
        .order_by(schema.proposals.c.created_at, schema.proposals.c.id)
    ).mappings()
    return [Proposal.from_row(row) for row in rows.all()]


def _ask_again(writing: Writing, proposal: Proposal) -> None:
    # The evidence goes too: the message may lie elsewhere by now, so the executor looks anew.
    writing.advance(
        proposal.id,
        Event.RESTORE,
        _OPERATOR,
        decided_by=None,
        decided_at=None,
        policy_version=None,
        shown=None,
        evidence=None,
        outcome_code=Outcome.RESTORED.value,
        outcome_at=writing.now,
    )


def _doubt(writing: Writing, proposal: Proposal) -> State:
    """Make a proposal doubtful whose command may have left since; return what it is now."""
    if moves.under_way(writing.connection, proposal.id) is None:
        move = moves.last_moved(writing.connection, proposal.id)
        if proposal.state is State.APPLYING:
            _ask_again(writing, writing.advance(proposal.id, Event.NOTHING_SENT, _OPERATOR))
            return State.PENDING
        if move is None:
            # To be moved back from nobody knows where: that cannot have been done since.
            return writing.advance(proposal.id, Event.REFUSED, _OPERATOR).state
        # Asked for when the copy was made, and perhaps done since: this is where to look.
        moves.begin(writing, _taken_back(move))
    return writing.advance(proposal.id, Event.DOUBT, _OPERATOR).state


def _taken_back(move: Move) -> Intent:
    intent = move.intent
    assert move.new_uid is not None, "a move whose UID nobody knows is not taken back"
    return Intent(
        proposal=intent.proposal,
        kind=MoveKind.UNDO,
        credential=intent.credential,
        source_mailbox=intent.target_mailbox,
        source_uidvalidity=intent.target_uidvalidity,
        source_uid=move.new_uid,
        target_mailbox=intent.source_mailbox,
        target_uidvalidity=intent.source_uidvalidity,
        # Whatever came back since has a larger UID than the message had before.
        target_uidnext=intent.source_uid + 1,
        octets_sha256=intent.octets_sha256,
        size=intent.size,
        internaldate=intent.internaldate,
        method=intent.method,
    )


def _sign_everybody_out(writing: Writing) -> None:
    # A browser that was signed out since, or a link that was used, would open the page again.
    for table, ended in ((schema.sessions, schema.sessions.c.ended_at), (schema.links, schema.links.c.spent_at)):
        writing.connection.execute(update(table).where(ended.is_(None)).values({ended.name: writing.now}))
