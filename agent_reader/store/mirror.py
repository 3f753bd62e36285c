"""The mirror of one account: what sync writes through (`agent_reader.sync.mirror.Mirror`). One writer at a time."""

import base64
import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

import apsw

from agent_reader.identity import Identity
from agent_reader.keep import Retention
from agent_reader.store import (
    catching_up,
    emails,
    mailboxes,
    mending,
    naming,
    progress,
    retention,
    search,
    taking_in,
    threads,
)
from agent_reader.store.database import faults_told
from agent_reader.store.reader import MessageReader
from agent_reader.store.reading_pool import ReadingShare
from agent_reader.store.set_aside import put as put_aside
from agent_reader.store.threads import Threaded
from agent_reader.store.writing import Writing, seconds
from agent_reader.sync.mirror import (
    Examined,
    FetchedMessage,
    KnownCopy,
    KnownMailbox,
    ListedMailbox,
    MessageState,
    SetAside,
    ThreadHeader,
    UidRanges,
)
from shared.time_and_chance import Clock, RandomOctets

_ID_OCTETS: Final = 10
_LAST_UID: Final = 2**32 - 1

# RFC 8620 §5.2 wants states to be answered for 30 days (`changes` goes back that far); five more for slow clocks.
_CHANGES_KEPT_SECONDS: Final = 35 * 24 * 3600

# Two thousand messages after each round: a measure that became narrower is kept to within hours, and sync goes on.
_STEPS_A_ROUND: Final = 10


class AccountMirror:
    """One account's mirror. Each call is one transaction: all of it lands or nothing. Any thread may call.

    `announce` is called after each commit that made a new state; `kept` is what is kept of messages; `processes`
    gives a share in those that read a long backlog; `identity` is what names messages.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        clock: Clock,
        random_octets: RandomOctets,
        announce: Callable[[], None],
        forget: Callable[[Collection[str]], None],
        kept: Retention,
        processes: Callable[[], ReadingShare],
        identity: Identity,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._random_octets = random_octets
        self._announce = announce
        self._forget = forget
        self._retention = kept
        self._lock = threading.RLock()
        # What LIST said last: the same once more changes nothing.
        self._listing: tuple[ListedMailbox, ...] | None = None
        # Whether words came in since the search table's pieces were counted, which takes the longer the more there are.
        self._is_to_be_joined = True
        self._identity = identity
        self._reader = MessageReader(processes, identity)
        self._damage = threading.Event()

    def put_mailboxes(self, listing: Iterable[ListedMailbox]) -> None:
        """Make the set of mailboxes equal to a full LIST; ids survive, gone mailboxes lose their copies.

        What has a name of the other kind, from before the settings changed, is read anew.
        """
        listing = tuple(listing)
        if listing == self._listing:
            return
        with self._writing() as writing:
            naming.restart_named_otherwise(writing, self._identity)
            mailboxes.put_listing(writing, listing, self._new_mailbox_id)
        self._listing = listing

    def mailboxes(self) -> list[KnownMailbox]:
        """Return every mailbox that is listed now, INBOX first."""
        with self._reading():
            return mailboxes.known(self._connection)

    def is_threaded(self) -> bool:
        """Whether ids can be given: the newest messages were threaded, or some came in without that."""
        with self._reading():
            return bool(self._connection.execute("SELECT threaded FROM account").get)

    def headers_known(self, mailbox_id: str, uidvalidity: int) -> Collection[int]:
        """Return the UIDs whose headers wait to be threaded."""
        with self._reading():
            rows = self._connection.execute(
                "SELECT uid FROM first_headers WHERE uidvalidity = ? AND mailbox_key = "
                "(SELECT key FROM mailboxes WHERE handle = ?)",
                (uidvalidity, mailbox_id),
            )
            return {int(uid) for (uid,) in rows}

    def await_backlog(self, messages: int) -> int:
        """So many messages will come in soon: processes are started that read them; or end, where none will.

        Returns how many batches it pays to have begun at once.
        """
        return self._reader.await_backlog(messages)

    def reads_in_place_of_processes(self) -> bool:
        """Whether a long backlog is read in the reader itself, since no process for it could be started."""
        return self._reader.is_in_place_of_processes

    def stop_reading(self) -> None:
        """End at once what `begin_add` and `begin_headers` began; they raise `ReadingEnded`."""
        self._reader.end()

    def begin_headers(self, mailbox_id: str, uidvalidity: int, headers: Iterable[ThreadHeader]) -> Callable[[], None]:
        """Begin to read headers of messages that did not come in yet; what is returned keeps them, to be threaded."""
        links = self._reader.links_of(list(headers))

        def keep() -> None:
            found = links()
            with self._writing() as writing:
                if threads.threaded(writing) is Threaded.NO:
                    threads.put_first_headers(writing, mailboxes.key_of(writing, mailbox_id), uidvalidity, found)

        return self._begun(keep)

    def _begun(self, take: Callable[[], None]) -> Callable[[], None]:
        """What reads here gains nothing by waiting, and new mail is to be seen at once."""
        if self._reader.is_beside:
            return take
        take()
        return _nothing

    def thread(self) -> None:
        """Thread all headers that were kept; ids are given from now on."""
        with self._writing() as writing:
            if threads.threaded(writing) is Threaded.NO:
                threads.thread_first_headers(writing)

    def restart(self, mailbox_id: str, uidvalidity: int) -> None:
        """Begin a mailbox anew under another UIDVALIDITY: its copies are forgotten, their Emails held."""
        with self._writing() as writing:
            mailboxes.restart(writing, mailboxes.key_of(writing, mailbox_id), uidvalidity)

    def states(self, mailbox_id: str, uids: UidRanges | None = None) -> Mapping[int, MessageState]:
        """Return flags and MODSEQ of each UID that the mirror holds, of these only if they are given."""
        ranges = ((1, _LAST_UID),) if uids is None else uids.ranges
        with self._reading():
            found = catching_up.states(self._connection, mailbox_id, ranges)
            return {uid: MessageState(_flags(flags), modseq) for uid, flags, modseq in found}

    def count(self, mailbox_id: str) -> int:
        """Return how many messages of a mailbox are taken in or set aside."""
        with self._reading():
            return catching_up.count(self._connection, mailbox_id)

    def set_aside(self, mailbox_id: str) -> Mapping[int, SetAside]:
        """Return the messages set aside in this mailbox."""
        with self._reading():
            rows = self._connection.execute(
                "SELECT uid, code, cause, fix FROM set_aside WHERE mailbox_key = "
                "(SELECT key FROM mailboxes WHERE handle = ? AND standing <> 'gone')",
                (mailbox_id,),
            )
            return {uid: SetAside(uid, code, cause, fix) for uid, code, cause, fix in rows}

    def begin_add(self, mailbox_id: str, messages: Iterable[FetchedMessage]) -> Callable[[], None]:
        """Begin to read new messages; what is returned takes them in. One bad message is set aside alone."""
        with self._reading():
            row = self._connection.execute(
                "SELECT uidvalidity FROM mailboxes WHERE handle = ? AND standing <> 'gone'", (mailbox_id,)
            ).get
        # Reading takes most of the time and needs no lock.
        now = seconds(self._clock())
        readings = self._reader.readings_of(messages, mailbox_id, int(row or 0), lambda at: self._retention.of(at, now))

        def take() -> None:
            taken, aside = readings()
            with self._writing() as writing:
                taking_in.put(writing, mailbox_id, taken, aside)
                progress.note_intake(writing, messages=len(taken))

        return self._begun(take)

    def add_copies(self, mailbox_id: str, copies: Iterable[KnownCopy]) -> Collection[int]:
        """Take in messages that the mirror has from another mailbox; return those UIDs that it has indeed."""
        with self._writing() as writing:
            return catching_up.add_copies(writing, mailbox_id, copies)

    def put_aside(self, mailbox_id: str, message: SetAside) -> None:
        """Remember a message that cannot be had."""
        with self._writing() as writing:
            put_aside(writing, mailboxes.key_of(writing, mailbox_id), message)

    def caught_up(
        self,
        mailbox_id: str,
        changed: Mapping[int, MessageState],
        gone: Collection[int],
        examined: Examined,
        *,
        whole: bool,
    ) -> None:
        """Take in changed flags, forget copies that are gone, and only with them the new HIGHESTMODSEQ."""
        with self._writing() as writing:
            key = mailboxes.key_of(writing, mailbox_id)
            for uid, state in changed.items():
                emails.change_copy(writing, key, uid, state)
            emails.forget_copies(writing, key, gone)
            progress.expect(writing, key, examined.exists)
            if whole:
                mailboxes.looked(writing, key, examined.uidnext, examined.highestmodseq)
            else:
                catching_up.reached(writing, key, examined.highestmodseq)

    def received(self, octets: int) -> None:
        """Count octets that the server sent, whatever they were of: providers count them so."""
        with self._writing() as writing:
            progress.note_intake(writing, octets=octets)

    def octets_today(self) -> int:
        """Return how many octets the server sent within 24 hours."""
        with self._reading():
            return progress.octets_today(self._connection, self._clock())

    def mailbox_failed(self, mailbox_id: str, code: str, detail: str, fix: str) -> None:
        """Record why a mailbox cannot be looked at; the status says so until the next look."""
        with self._writing() as writing:
            progress.mailbox_failed(writing, mailboxes.key_of(writing, mailbox_id), code, detail, fix)

    def looked(self, mailbox_id: str, uidnext: int, highestmodseq: int | None) -> None:
        """Record that the mailbox was brought up to these values just now."""
        with self._writing() as writing:
            mailboxes.looked(writing, mailboxes.key_of(writing, mailbox_id), uidnext, highestmodseq)

    def found_unchanged(self, mailbox_ids: Collection[str]) -> None:
        """Record that these mailboxes, which were whole, are as they were just now."""
        if mailbox_ids:
            with self._writing() as writing:
                mailboxes.found_unchanged(writing, mailbox_ids)

    def settle(self, unchanged: Collection[str] = ()) -> None:
        """Destroy held Emails whose every mailbox was looked at once after the last copy vanished: end of a round.

        `unchanged`: as `found_unchanged`, where nothing else was looked at in this round.
        """
        with self._writing() as writing:
            mailboxes.found_unchanged(writing, unchanged)
            mailboxes.settle(writing)
            writing.forget_changes(writing.now - _CHANGES_KEPT_SECONDS)
        self._bring_down()
        self._join_pieces()

    def release_overdue(self) -> None:
        """Destroy Emails held for longer than an hour: end of a round in which a mailbox could not be looked at."""
        with self._writing() as writing:
            mailboxes.release_overdue(writing)

    def let_in(self) -> None:
        """Record that the server let this login in; a first sync, which is long, no longer says what prevented it."""
        with self._writing() as writing:
            progress.let_in(writing)

    def failed(self, code: str, detail: str, fix: str) -> None:
        """Record that a round ended early; the status says so, and since when, until the next whole round."""
        with self._writing() as writing:
            writing.connection.execute(
                "UPDATE account SET failed_at = coalesce(failed_at, ?), failure_code = ?, failure_detail = ?, "
                "failure_fix = ?",
                (writing.now, code, detail, fix),
            )

    def is_over(self, code: str) -> None:
        """Forget a failure of this code, if it is what the status says."""
        with self._writing() as writing:
            progress.over(writing, code)

    def note_damage(self) -> None:
        """Remember that what is kept of some message is damaged, until `mend`."""
        self._damage.set()

    def is_damaged(self) -> bool:
        """Whether damage was seen since the last `mend`."""
        return self._damage.is_set()

    def mend(self) -> int:
        """Look at what is kept of every message, and forget the copies of the damaged ones; return how many."""
        self._damage.clear()
        last, damaged = None, 0
        while True:
            with self._writing() as writing:
                last, found = mending.mend_some(writing, last)
            damaged += found
            if last is None:
                return damaged

    def close(self) -> None:
        """Close the writing connection, after the transaction that runs."""
        self._reader.end()
        with self._lock:
            self._connection.close()

    def _bring_down(self) -> None:
        """Keep no more than should be kept; questions go between the steps, and after ten of them new mail."""
        if self._retention == Retention():
            return
        with self._reading():
            self._connection.pragma("secure_delete", True)
            try:
                for step in range(_STEPS_A_ROUND):
                    with self._writing() as writing:
                        count = retention.bring_down(writing, self._retention)
                    if count == 0:
                        if step:
                            retention.overwrite_what_was_forgotten(self._connection)
                        return
            finally:
                self._connection.pragma("secure_delete", False)

    def _join_pieces(self) -> None:
        """Have questions look into one piece of the search table rather than into a dozen."""
        if not self._is_to_be_joined:
            return
        self._is_to_be_joined = False
        with self._reading():
            is_more = is_first = search.is_scattered(self._connection)
        while is_more:
            with self._writing() as writing:
                is_more = search.join_pieces(writing.connection, is_first_step=is_first)
            is_first = False

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock, faults_told():
            yield

    @contextmanager
    def _writing(self) -> Iterator[Writing]:
        with self._reading():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                writing = Writing(self._connection, seconds(self._clock()))
                yield writing
                emails.bring_up_to_date(writing)
                mailboxes.note_moved_places(writing)
                has_new_state = writing.finish()
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        if writing.met_damage:
            self.note_damage()
        if writing.forgotten:
            self._forget(writing.forgotten)
        if has_new_state:
            self._is_to_be_joined = True
            self._announce()

    def _new_mailbox_id(self) -> str:
        return "F" + base64.b32hexencode(self._random_octets(_ID_OCTETS)).decode("ascii").lower()


def _nothing() -> None:
    pass


# A mailbox has a few dozen sets of flags, however many messages.
@lru_cache(maxsize=4096)
def _flags(array: str) -> frozenset[str]:
    return frozenset(json.loads(array))
