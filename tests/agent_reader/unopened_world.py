"""A server with a few mailboxes that may lie about them, and who mirrors it: what is opened of it is told."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from agent_reader.imap.session import ReadOnlySession
from agent_reader.store import Store
from agent_reader.sync.run import Round, Sync
from agent_reader.sync.terms import Terms
from tests.agent_reader.empty import empty_index
from tests.agent_reader.mirrored import ACCOUNT, letter
from tests.fakes.accounts import plain_account
from tests.fakes.imap_server import ScriptedImapServer
from tests.fakes.imap_world import LISTING_STATUS, Box, ImapWorld
from tests.fakes.mirror import FakeMirror

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


NONE = frozenset[str]()


class Clock:
    """The sync's own, moved by a test."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Liar(ImapWorld):
    """`lie` alters what STATUS tells of a mailbox; `refused` is not opened; `happens` just before one is."""

    def __init__(self) -> None:
        super().__init__()
        self.lie: Callable[[dict[str, int]], dict[str, int]] = lambda told: told
        self.refused = b"nothing"
        self.happens: Callable[[], None] | None = None

    def answer(self, command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"EXAMINE") and self.happens is not None:
            happens, self.happens = self.happens, None
            happens()
        if command.startswith(b'EXAMINE "%s"' % self.refused):
            return [], b"NO [UNAVAILABLE] not now"
        return super().answer(command)

    def told_by_status(self, box: Box) -> dict[str, int]:
        return self.lie(super().told_by_status(box))


class Scripted:
    """A scripted server with letters in three mailboxes, and a mirror that is whole."""

    def __init__(self, server: ScriptedImapServer, world: Liar, folder: Path) -> None:
        self.server, self.world, self.mirror, self.clock = server, world, FakeMirror(), Clock()
        self.session = ReadOnlySession.open(plain_account(server.port, folder))
        self.sync = self.new_sync()
        assert self.sync.round(self.session).whole

    def new_sync(self) -> Sync:
        return Sync(self.mirror, None, structlog.get_logger(), terms=Terms(clock=self.clock))

    def round(self, sync: Sync | None = None) -> tuple[Round, list[bytes]]:
        """One round, and which mailboxes were opened for it."""
        begin = len(self.server.commands)
        done = (sync or self.sync).round(self.session)
        said = self.server.commands[begin:]
        return done, [line.split(b'"')[1] for line in said if line.startswith(b"EXAMINE")]


@contextlib.contextmanager
def scripted(folder: Path, capabilities: bytes = LISTING_STATUS) -> Iterator[Scripted]:
    world = Liar()
    for name in ("Archive", "Work"):
        world.create(name)
    for name in ("INBOX", "Archive", "Work"):
        world.deliver(name, letter(name), NONE)
    with ScriptedImapServer(world.answer, capabilities) as server:
        of_it = Scripted(server, world, folder)
        with contextlib.closing(of_it.session):
            yield of_it


@contextlib.contextmanager
def scripted_store(folder: Path) -> Iterator[tuple[ScriptedImapServer, Liar, Store, Clock, Callable[[], Round]]]:
    world, clock = Liar(), Clock()
    world.create("Archive")
    world.deliver("INBOX", letter("INBOX"), NONE)
    world.deliver("Archive", letter("Archive"), NONE)
    empty_index(folder / "store", ACCOUNT)
    with (
        ScriptedImapServer(world.answer, LISTING_STATUS) as server,
        contextlib.closing(Store(folder / "store", clock)) as store,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, folder))) as session,
    ):
        sync = Sync(store.account(ACCOUNT), None, structlog.get_logger())
        yield server, world, store, clock, lambda: sync.round(session)
