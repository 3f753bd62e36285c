"""Looking at every queue at start: the mailboxes exist, are different, may be moved between, and none is a trap.

What is wrong here is the operator's to mend, so it ends the start, naming the queue, the mailbox and the mend.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Final, Protocol

from sqlalchemy import select
from sqlalchemy.dialects.sqlite import insert

from change_executor.carrying_out import method_on
from change_executor.config import ExecutorSettings, Queue
from change_executor.errand import mailboxes_of
from change_executor.errors import MailboxRefused
from change_executor.journal import schema
from change_executor.journal.journal import Journal
from change_executor.journal.moves import EXECUTOR
from change_executor.looking import MailboxStatus, OpenedMailbox
from change_executor.policy import FROM_ROLE, policy_version
from change_executor.traps import trap_of
from shared.imap_login import ImapFailure, ImapLogin
from shared.settings import ConfigurationError

# Two mailboxes whose first ten messages agree in UID, size and date are one mailbox under two names.
_FIRST_MESSAGES: Final = 10

# RFC 6154 §2: where a message is deleted after a while, learnt from as junk, or in no one place.
_TRAPS: Final = {"\\trash": "Trash", "\\junk": "Junk", "\\all": "All Mail"}


class ExamineSession(Protocol):
    """What the examination needs of the mover's session; it opens mailboxes and moves nothing."""

    def select(self, mailbox: str) -> OpenedMailbox: ...  # noqa: D102 - see the mover
    def examine(self, mailbox: str) -> OpenedMailbox: ...  # noqa: D102 - see the mover
    def status(self, mailbox: str) -> MailboxStatus: ...  # noqa: D102 - see the mover
    def first_messages(self, count: int) -> list[tuple[int, int, str]]: ...  # noqa: D102 - see the mover
    def special_uses(self) -> dict[str, frozenset[str]]: ...  # noqa: D102 - see the mover
    def rights(self, mailbox: str) -> frozenset[str] | None: ...  # noqa: D102 - see the mover
    def has_capability(self, name: str) -> bool: ...  # noqa: D102 - see the mover


OpenSession = Callable[[ImapLogin, frozenset[str]], AbstractContextManager[ExamineSession]]


@dataclass(frozen=True, slots=True)
class Examination:
    """A queue whose mailboxes were found right, whether its login may move back, and whether flags seem to be kept.

    `lossy` names the destinations in which a moved message would lose flags or keywords, as the rights tell it.
    """

    queue: str
    policy_version: str
    undo_permitted: bool
    lossy: tuple[str, ...] = ()


def examine_queues(settings: ExecutorSettings, open_session: OpenSession, journal: Journal) -> list[Examination]:
    """Examine every queue and record each in the journal.

    Raises `ConfigurationError` for what the operator has to mend, `shared.imap_login.ImapFailure` where a server does
    not answer (then `examined_before` says whether the start may go on), and `JournalUnavailable`.
    """
    _refuse_destinations_that_are_incoming(settings)
    try:
        found = _examine_all(settings, open_session)
    except ImapFailure as failure:
        if failure.code != "protocol":
            raise
        # One connection that broke is nothing to mend, and a first start would end by it: a Dovecot was seen to close
        # one.
        found = _examine_all(settings, open_session)
    for examination in found:
        _record(journal, examination)
    return found


def _examine_all(settings: ExecutorSettings, open_session: OpenSession) -> list[Examination]:
    found: list[Examination] = []
    identities: dict[str, dict[str, str | None]] = {}
    for queue in settings.queues:
        with open_session(settings.credential(queue.credential), mailboxes_of(queue)) as session:
            undo_permitted = _examine(session, queue, _watched_by_others(settings, queue))
            lossy = _where_flags_are_lost(session, queue)
            identities[queue.id] = {mailbox: session.examine(mailbox).mailbox_id for _, mailbox in _roles(queue)}
        found.append(Examination(queue.id, policy_version(settings, queue), undo_permitted, lossy))
    _refuse_what_other_logins_watch(settings, identities)
    return found


def examined_before(settings: ExecutorSettings, journal: Journal) -> bool:
    """Whether every queue was found right earlier under the settings of now: then a start may wait for a server.

    Raises `JournalUnavailable`.
    """
    with journal.reading() as connection:
        rows = connection.execute(select(schema.examinations.c.queue, schema.examinations.c.policy_version)).all()
    before = {row.queue: row.policy_version for row in rows}
    return all(before.get(queue.id) == policy_version(settings, queue) for queue in settings.queues)


def _refuse_destinations_that_are_incoming(settings: ExecutorSettings) -> None:
    incoming = {(_login(settings, queue), queue.incoming.casefold()): queue.id for queue in settings.queues}
    for queue in settings.queues:
        for role, destination in queue.to.items():
            other = incoming.get((_login(settings, queue), destination.mailbox.casefold()))
            if other is not None:
                raise _is_incoming(queue, role, other)


def _refuse_what_other_logins_watch(
    settings: ExecutorSettings, identities: Mapping[str, Mapping[str, str | None]]
) -> None:
    """Compare by RFC 8474's ids: the same mailbox has other names for other logins on some servers."""
    for queue, other in permutations(settings.queues, 2):
        watched = identities[other.id][other.incoming]
        if watched is None or _login(settings, queue)[:2] != _login(settings, other)[:2]:
            continue
        for role, destination in queue.to.items():
            if identities[queue.id][destination.mailbox] == watched:
                raise _is_incoming(queue, role, other.id)


def _login(settings: ExecutorSettings, queue: Queue) -> tuple[str, int, str]:
    """Who signs in where: two credentials may be of one login, and then a name means one mailbox."""
    login = settings.credential(queue.credential)
    return login.host.casefold(), login.port, login.user


def _is_incoming(queue: Queue, role: str, other: str) -> ConfigurationError:
    return _wrong(
        queue,
        queue.to[role].mailbox,
        f"is `{role}` here and `incoming` of the queue `{other}`: what is moved would be proposed again.",
        "Give the role a mailbox that no queue watches.",
    )


def _watched_by_others(settings: ExecutorSettings, queue: Queue) -> dict[str, str]:
    """Which other queue of the same login watches which mailbox, by the mailbox's name."""
    same_login = (other for other in settings.queues if _login(settings, other) == _login(settings, queue))
    return {other.incoming: other.id for other in same_login if other.incoming != queue.incoming}


def _examine(session: ExamineSession, queue: Queue, watched: Mapping[str, str]) -> bool:
    _refuse_a_server_that_cannot_move(session, queue)
    statuses = {mailbox: _status(session, queue, mailbox) for _, mailbox in _roles(queue)}
    _refuse_traps(session, queue)
    _refuse_twins(session, queue, statuses)
    _refuse_what_others_watch(session, queue, statuses, watched)
    if _select(session, queue, queue.incoming).read_only:
        raise _wrong(
            queue,
            queue.incoming,
            f"is open to the login `{queue.credential}` for reading only, so nothing can be moved out of it.",
            "Give the login the rights `lrte` on it (RFC 4314), and `lrswi` on the destinations.",
        )
    return queue.undo and _undo_seems_permitted(session, queue)


def _refuse_a_server_that_cannot_move(session: ExamineSession, queue: Queue) -> None:
    if method_on(session, queue) is not None:
        return
    if not session.has_capability("UIDPLUS"):
        raise _wrong(
            queue,
            queue.incoming,
            "lies on a server without MOVE (RFC 6851) and without UIDPLUS (RFC 4315), so one message cannot be moved "
            "and no other touched.",
            "Use a server that offers MOVE: all but very old ones do.",
        )
    raise _wrong(
        queue,
        queue.incoming,
        "lies on a server without MOVE (RFC 6851), and without it a message cannot be moved in one step.",
        'Use a server that offers MOVE; or write `without_move = "copy"`: then a message is copied, flagged and '
        "expunged by its UID, and what breaks in between leaves it in both mailboxes until the executor looks again.",
    )


def _roles(queue: Queue) -> Iterator[tuple[str, str]]:
    yield FROM_ROLE, queue.incoming
    for role, destination in queue.to.items():
        yield role, destination.mailbox


def _status(session: ExamineSession, queue: Queue, mailbox: str) -> MailboxStatus:
    try:
        return session.status(mailbox)
    except MailboxRefused:
        raise _not_opened(queue, mailbox) from None


def _select(session: ExamineSession, queue: Queue, mailbox: str) -> OpenedMailbox:
    try:
        return session.select(mailbox)
    except MailboxRefused:
        raise _not_opened(queue, mailbox) from None


def _refuse_traps(session: ExamineSession, queue: Queue) -> None:
    # A server that takes `inbox/Bin` for INBOX/Bin lists it by one of its names.
    uses = {name.casefold(): use for name, use in session.special_uses().items() if use & _TRAPS.keys()}
    for role, destination in queue.to.items():
        mailbox = destination.mailbox
        by_use = next((_TRAPS[use] for use in sorted(uses.get(mailbox.casefold(), frozenset())) if use in _TRAPS), None)
        trap = by_use or trap_of(mailbox)
        if trap is not None and not destination.dangerous:
            raise _wrong(
                queue,
                mailbox,
                f"is `{role}` and the account's {trap}: a message there is deleted, learnt from, or in no one place.",
                f"Give the role an ordinary mailbox; or, if it must be this one, write `dangerous = true` under "
                f"[queues.to.{role}].",
            )


def _refuse_twins(session: ExamineSession, queue: Queue, statuses: Mapping[str, MailboxStatus]) -> None:
    for (role, mailbox), (other_role, other) in combinations(_roles(queue), 2):
        if _are_one(session, statuses, mailbox, other):
            raise _wrong(
                queue,
                other,
                f"is `{other_role}` and the same mailbox as `{mailbox}`, which is `{role}`.",
                "Give each role a mailbox of its own.",
            )


def _refuse_what_others_watch(
    session: ExamineSession, queue: Queue, statuses: Mapping[str, MailboxStatus], watched: Mapping[str, str]
) -> None:
    for incoming, other in watched.items():
        # Where it is not there, the examination of its own queue says so.
        with suppress(MailboxRefused):
            known = {**statuses, incoming: session.status(incoming)}
            for role, destination in queue.to.items():
                if _are_one(session, known, destination.mailbox, incoming):
                    raise _is_incoming(queue, role, other)


def _are_one(session: ExamineSession, statuses: Mapping[str, MailboxStatus], one: str, other: str) -> bool:
    if one.casefold() == other.casefold():
        return True
    first_id, second_id = session.examine(one).mailbox_id, session.examine(other).mailbox_id
    if first_id is not None and second_id is not None:
        return first_id == second_id
    first, second = statuses[one], statuses[other]
    # Some servers give every mailbox the same UIDVALIDITY, so the messages must agree too; two empty ones tell nothing.
    if first.uidvalidity != second.uidvalidity or not first.messages or not second.messages:
        return False
    session.examine(one)
    messages = session.first_messages(_FIRST_MESSAGES)
    session.examine(other)
    return messages == session.first_messages(_FIRST_MESSAGES)


def _undo_seems_permitted(session: ExamineSession, queue: Queue) -> bool:
    """A hint: rights that the server claims, and READ-WRITE. Only an undo tells, and its refusal is believed."""
    into_incoming = session.rights(queue.incoming)
    if into_incoming is not None and "i" not in into_incoming:
        return False
    for destination in queue.to.values():
        rights = session.rights(destination.mailbox)
        if rights is not None and not _may_take_out(rights):
            return False
        if _select(session, queue, destination.mailbox).read_only:
            return False
    return True


def _where_flags_are_lost(session: ExamineSession, queue: Queue) -> tuple[str, ...]:
    """Destinations without the rights to set flags: a server drops those of what is moved there (RFC 4314 §4)."""
    rights = {destination.mailbox: session.rights(destination.mailbox) for destination in queue.to.values()}
    return tuple(mailbox for mailbox, claimed in rights.items() if claimed is not None and not {"w", "s"} <= claimed)


def _may_take_out(rights: frozenset[str]) -> bool:
    # RFC 4314 §2.1.1: `d` stood for `t` and `e` before 2005.
    return {"t", "e"} <= rights or ("d" in rights and not {"t", "e"} & rights)


def _record(journal: Journal, examination: Examination) -> None:
    with journal.writing() as writing:
        values = {
            "policy_version": examination.policy_version,
            "examined_at": writing.now,
            "undo_permitted": int(examination.undo_permitted),
        }
        statement = insert(schema.examinations).values(queue=examination.queue, **values)
        writing.connection.execute(statement.on_conflict_do_update(index_elements=["queue"], set_=values))
        writing.append(
            "queue:examine",
            examination.queue,
            EXECUTOR,
            {"policyVersion": examination.policy_version, "undoPermitted": examination.undo_permitted},
        )


def _not_opened(queue: Queue, mailbox: str) -> ConfigurationError:
    return _wrong(
        queue,
        mailbox,
        f"is not there for the login `{queue.credential}`, or it may not look at it.",
        "Mend its name (other logins may see it under another name), make it, or give the login the right to read it.",
    )


def _wrong(queue: Queue, mailbox: str, what: str, fix: str) -> ConfigurationError:
    return ConfigurationError(f"[[queues]] {queue.id}", f"the mailbox `{mailbox}` {what}", fix)
