"""A mailbox that its owner changes at will, a mirror of it that is killed at will, and a client that follows states."""

from __future__ import annotations

import contextlib
import imaplib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import structlog

from agent_reader.config import Account
from agent_reader.errors import Refused
from agent_reader.imap.session import ReadOnlySession
from agent_reader.query import mailbox_get
from agent_reader.store import ChangeList, DataType, Snapshot, Store
from agent_reader.store.emails import keywords_of
from agent_reader.sync.run import Sync
from shared.identity import email_id
from shared.imap_login import ImapFailure
from tests.agent_reader.empty import empty_index
from tests.agent_reader.mirrored import ACCOUNT, Moment, id_of
from tests.fakes.imap_world import Box, ImapWorld
from tests.servers.dovecot import Dovecot, quoted
from tests.servers.dovecot_config import MAILBOXES

Content = Mapping[str, Mapping[int, tuple[str, frozenset[str]]]]
_COUNTS = ("totalEmails", "unreadEmails", "totalThreads", "unreadThreads")


class Owner(Protocol):
    """Who may change the mailboxes; `content` is mailbox name → UID → (Email id, flags)."""

    def content(self) -> Content: ...
    def create(self, name: str) -> None: ...
    def delete(self, name: str) -> None: ...
    def rename(self, name: str, new_name: str) -> None: ...
    def deliver(self, name: str, octets: bytes, flags: frozenset[str]) -> None: ...
    def move(self, name: str, uid: int, target: str) -> None: ...
    def flag(self, name: str, uid: int, flags: frozenset[str]) -> None: ...
    def expunge(self, name: str, uid: int) -> None: ...
    def reset(self, name: str) -> None: ...


class WorldOwner(ImapWorld):
    """The owner of the server in memory."""

    def content(self) -> Content:  # type: ignore[override]  # ids where the other has octets
        return {
            name: {uid: (id_of(octets), flags) for uid, (octets, flags) in messages.items()}
            for name, messages in super().content().items()
        }


class DovecotOwner(WorldOwner):
    """The owner of a Dovecot, by IMAP: everything is done there and in memory, and must come to the same."""

    def __init__(self, dovecot: Dovecot) -> None:
        super().__init__()
        self._dovecot = dovecot
        self._imap = dovecot.connect()
        for name in MAILBOXES:
            self.boxes.setdefault(name, Box(1))
        for name, state in dovecot.snapshot().mailboxes.items():
            self.boxes[name].uidnext = state.status["UIDNEXT"]

    def create(self, name: str) -> None:
        super().create(name)
        with self._dovecot.rearranging() as owner:
            _ok(owner.create(quoted(name)))

    def delete(self, name: str) -> None:
        super().delete(name)
        with self._dovecot.rearranging() as owner:
            _ok(owner.delete(quoted(name)))

    def rename(self, name: str, new_name: str) -> None:
        super().rename(name, new_name)
        with self._dovecot.rearranging() as owner:
            _ok(owner.rename(quoted(name), quoted(new_name)))

    def deliver(self, name: str, octets: bytes, flags: frozenset[str]) -> None:
        super().deliver(name, octets, flags)
        _ok(self._imap.append(quoted(name), f"({' '.join(flags)})", "", octets))

    def move(self, name: str, uid: int, target: str) -> None:
        message = self.boxes[name].messages.pop(uid)
        super().deliver(target, message.octets, message.flags)
        with self._opened(name) as owner:
            _ok(owner._simple_command("UID", "MOVE", str(uid), quoted(target)))

    def flag(self, name: str, uid: int, flags: frozenset[str]) -> None:
        super().flag(name, uid, flags)
        with self._opened(name) as owner:
            _ok(owner.uid("STORE", str(uid), "FLAGS", f"({' '.join(flags)})"))

    def expunge(self, name: str, uid: int) -> None:
        super().expunge(name, uid)
        with self._opened(name) as owner:
            _ok(owner.uid("STORE", str(uid), "+FLAGS", "(\\Deleted)"))
            _ok(owner.uid("EXPUNGE", str(uid)))

    def reset(self, name: str) -> None:
        before = self.boxes[name].messages
        self.delete(name)
        self.create(name)
        for uid in sorted(before, reverse=True):
            self.deliver(name, before[uid].octets, before[uid].flags)

    def finish(self) -> None:
        """Nothing was done to the server but what was done in memory; and all of it is undone."""
        there = {
            name: {
                uid: (email_id(bytes.fromhex(message.sha256)), message.flags | message.keywords)
                for uid, message in state.messages.items()
            }
            for name, state in self._dovecot.snapshot().mailboxes.items()
        }
        with self._dovecot.rearranging() as owner:
            for name in there.keys() - set(MAILBOXES):
                _ok(owner.delete(quoted(name)))
        for name in (name for name in MAILBOXES if there[name]):
            with self._opened(name) as owner:
                _ok(owner.uid("STORE", "1:*", "+FLAGS", "(\\Deleted)"))
                _ok(owner.expunge())
        self._imap.logout()
        assert there == self.content()

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[imaplib.IMAP4]:
        """Not longer than needed: Dovecot has trouble where one is deleted that somebody has open."""
        _ok(self._imap.select(quoted(name)))
        yield self._imap
        _ok(self._imap.unselect())


class Killed(BaseException):
    """The process of the mirror ends here; nothing that runs in it may notice."""


class Fragile:
    """The mirror as sync has it; `at_call` does something at so many calls from now (0 is the next one)."""

    def __init__(self, mirror: Any, at_call: int, happens: Callable[[], None]) -> None:
        self._mirror, self._left, self._happens = mirror, at_call, happens

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._mirror, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == -1:
                self._happens()
            return method(*arguments, **named)

        return call


@dataclass(frozen=True)
class View:
    """What a client sees at a state."""

    state: str
    emails: Mapping[str, tuple[frozenset[str], frozenset[str]]]
    mailboxes: Mapping[str, Mapping[str, Any]]
    threads: Mapping[str, tuple[str, ...]]


@dataclass
class Mirror:
    """The reader's side: a store that outlives its process, and a sync that does not."""

    account: Account
    clock: Moment = field(default_factory=Moment)
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp()))
    session: ReadOnlySession | None = None
    sync: Sync | None = None

    def __post_init__(self) -> None:
        empty_index(self.folder / "0", ACCOUNT)
        self.store = Store(self.folder / "0", self.clock)
        self.deaths = 0

    def close(self) -> None:
        self._hang_up()
        self.store.close()
        shutil.rmtree(self.folder)

    def round(self, at_call: int | None = None, happens: Callable[[], None] = lambda: None) -> bool:
        """One round, as the worker makes them; whether it was whole. `Killed` in it ends the process."""
        self.clock.now += timedelta(seconds=1)
        mirror = self.store.account(ACCOUNT)
        try:
            if self.session is None:
                self.session = ReadOnlySession.open(self.account)
            if self.sync is None:
                self.sync = Sync(mirror, None, structlog.get_logger())
            self.sync._mirror = mirror if at_call is None else Fragile(mirror, at_call, happens)
            return self.sync.round(self.session).whole
        except (ImapFailure, Refused):
            self._hang_up()
        except Killed:
            self._die()
        return False

    def settle(self) -> None:
        """Rounds until all is as the server has it: a deletion needs one look at every mailbox after it."""
        whole = 0
        for _ in range(12):
            whole = whole + 1 if self.round() else 0
            if whole == 2:
                return
        raise AssertionError(self.store.status(ACCOUNT))

    def view(self) -> View:
        with self.store.snapshot(ACCOUNT) as snapshot:
            return _view(snapshot)

    def changes(self, data_type: DataType, since: str, limit: int) -> Iterator[ChangeList]:
        with self.store.snapshot(ACCOUNT) as snapshot:
            page = snapshot.changes(data_type, since, limit)
            yield page
            while page.has_more:
                page = snapshot.changes(data_type, page.new_state, limit)
                yield page
            assert page.new_state == snapshot.state

    def _hang_up(self) -> None:
        if self.session is not None:
            self.session.close()
        self.session = None

    def _die(self) -> None:
        """As after SIGKILL: what is on the disk now, the log included, is what the next process finds."""
        self._hang_up()
        self.sync = None
        before = self.folder / str(self.deaths)
        self.deaths += 1
        shutil.copytree(before, self.folder / str(self.deaths), ignore=shutil.ignore_patterns("*-shm"))
        self.store.close()
        shutil.rmtree(before)
        self.store = Store(self.folder / str(self.deaths), self.clock)


def expected_emails(content: Content) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Email id → names of its mailboxes and keywords, as RFC 8621 §4.1.1 has it from what the server holds."""
    shown: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    for name, messages in content.items():
        for email, flags in messages.values():
            if "\\Deleted" not in flags:
                names, keywords = shown.get(email, (frozenset[str](), frozenset[str]()))
                shown[email] = (names | {name}, keywords | keywords_of(flags))
    return shown


def check_equal(view: View, content: Content) -> None:
    """The store shows what the server has."""
    names = {mailbox_id: str(mailbox["_name"]) for mailbox_id, mailbox in view.mailboxes.items()}
    assert {
        email: (frozenset(names[each] for each in mailboxes), keywords)
        for email, (mailboxes, keywords) in view.emails.items()
    } == expected_emails(content)
    assert set(names.values()) == set(content)


def check_changes(mirror: Mirror, before: View, now: View, limit: int) -> None:
    """The sum of the answers is the difference between two views; nothing less, and nothing there twice."""
    for data_type, old, new in (
        (DataType.EMAIL, before.emails, now.emails),
        (DataType.MAILBOX, before.mailboxes, now.mailboxes),
        (DataType.THREAD, before.threads, now.threads),
    ):
        there, updated = set(old), set[str]()
        for page in mirror.changes(data_type, before.state, limit):
            assert len(page.created) + len(page.updated) + len(page.destroyed) <= limit
            assert there.isdisjoint(page.created), (data_type, page)
            assert there.issuperset((*page.updated, *page.destroyed)), (data_type, page)
            there = (there | set(page.created)) - set(page.destroyed)
            updated |= {*page.updated, *page.created}
            if page.counts_only:
                for each in set(page.updated) & set(old) & set(new):
                    differing = {name for name in old[each] if old[each][name] != new[each][name]}  # type: ignore[index,call-overload]
                    assert page.has_more or updated - set(page.updated) or differing <= set(_COUNTS)
        assert there == set(new), data_type
        differing_ids = {each for each in set(old) & set(new) if old[each] != new[each]}
        assert differing_ids <= updated, data_type


def _view(snapshot: Snapshot) -> View:
    rows = snapshot.connection.execute("SELECT id FROM emails WHERE visible")
    emails = snapshot.emails([str(email) for (email,) in rows])
    threads: dict[str, set[str]] = {}
    for email in emails.values():
        threads.setdefault(email.thread_id, set()).add(email.id)
    names = {mailbox.id: mailbox.name for mailbox in snapshot.mailboxes()}
    return View(
        snapshot.state,
        {each.id: (frozenset(each.mailbox_ids), frozenset(each.keywords)) for each in emails.values()},
        {str(each["id"]): {**each, "_name": names[str(each["id"])]} for each in mailbox_get(snapshot).list},
        {thread: tuple(sorted(members)) for thread, members in threads.items()},
    )


def _ok(answer: tuple[str, Any]) -> None:
    assert answer[0] == "OK", answer
