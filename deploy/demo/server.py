"""The demo's IMAP server: pymap's in-memory backend, one mailbox set, three logins.

`python -m deploy.demo.server --port 0 --secrets DIR`; loopback, plain IMAP, nothing kept: each start has new
UIDVALIDITYs, and UIDs begin at 101. What a client meets here:

- Capabilities after login: MOVE, UIDPLUS, IDLE, ID, BINARY, OBJECTID, LITERAL+, MULTIAPPEND, and UNSELECT, added here.
  No CONDSTORE, ENABLE, NAMESPACE, ESEARCH, LIST-EXTENDED, LIST-STATUS or ACL; a command or an item that it does not
  know (STATUS HIGHESTMODSEQ, FETCH MODSEQ) is BAD, and the fifth BAD in a row ends the connection.
- A plain LIST shows the special uses Archive, Sent and Trash (RFC 6154 §2); no capability says so, since the extended
  LIST is missing.
- UID SEARCH RETURN (ALL) is answered with a plain `* SEARCH`. ID is answered NIL.
  A bare number in UID SEARCH is taken for a UID (RFC 9051 §6.4.9 wants a message number): say `UID n`.
- FETCH puts UID last when it was not asked for by name. BODY[]<n> past the end is an empty string, not NIL.
- MOVE answers COPYUID in an untagged OK (RFC 6851 §4.3); a MOVE of UIDs that are gone is OK without COPYUID.
- CLOSE passes for every login, which the library refuses under EXAMINE.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from argparse import Namespace
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

from proxyprotocol.sock import SocketInfoLocal
from pymap.backend.dict import Config, Identity, Login
from pymap.backend.dict.filter import FilterSet
from pymap.backend.dict.mailbox import MailboxData, MailboxSet
from pymap.context import connection_exit
from pymap.exceptions import InvalidAuth
from pymap.imap import IMAPConnection
from pymap.imap.state import ConnectionState
from pymap.interfaces.login import IdentityInterface
from pymap.parsing.command import CommandNoArgs, CommandSelect
from pymap.parsing.command.select import CloseCommand
from pymap.parsing.commands import Commands
from pymap.parsing.message import AppendMessage
from pymap.parsing.response import CommandResponse, ResponseOk
from pymap.parsing.specials import ObjectId
from pymap.parsing.specials.flag import Flag
from pymap.selected import SelectedMailbox
from pymap.user import Passwords, UserMetadata
from pysasl.creds.server import ServerCredentials
from pysasl.hashing import BuiltinHash

from deploy.demo.mailbox import KEYWORDS, MAILBOXES, DemoMessage, messages
from deploy.demo.roles import Role, RoleSession

LOOPBACK: Final = "127.0.0.1"

# The passwords are random and live as long as the process: stretching them would only make each login slow.
_HASH_ROUNDS: Final = 1


@dataclass(frozen=True, slots=True)
class Logins:
    """The passwords of the three logins; text, never empty."""

    owner: str = field(repr=False)
    reader: str = field(repr=False)
    executor: str = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse an empty password."""
        for role in Role:
            if not self.of(role):
                raise ValueError(f"the password of {role} is empty")

    def of(self, role: Role) -> str:
        """The password of one login."""
        match role:
            case Role.OWNER:
                return self.owner
            case Role.READER:
                return self.reader
            case Role.EXECUTOR:
                return self.executor

    @classmethod
    def from_folder(cls, folder: Path) -> Logins:
        """Read the files `owner`, `reader` and `executor`; a trailing line end is no part of a password.

        Raises OSError for a file that cannot be read, ValueError for an empty one.
        """
        secrets = {role.value: (folder / role).read_text("utf-8").rstrip("\r\n") for role in Role}
        return cls(**secrets)


class DemoMailbox(MailboxData):
    """A mailbox that keeps the sample's keywords; the library's own drops every keyword on STORE."""

    @classmethod
    def create(cls, mailbox_set: MailboxSet, uid_validity: int) -> DemoMailbox:
        """An empty mailbox of this set with this UIDVALIDITY."""
        mailbox = cls(mailbox_set._content_cache, mailbox_set._thread_cache)  # noqa: SLF001 (no public way in)
        mailbox._uid_validity = uid_validity
        return mailbox

    @property
    def permanent_flags(self) -> frozenset[Flag]:
        """The system flags and a closed list of keywords, so PERMANENTFLAGS tells the truth."""
        return frozenset(super().permanent_flags | {Flag(keyword) for keyword in KEYWORDS})


class DemoMailboxSet(MailboxSet):
    """Mailboxes whose UIDVALIDITYs differ for certain; the library draws them at random from 65,536."""

    def __init__(self, first_uid_validity: int) -> None:
        super().__init__()
        self._next_uid_validity = first_uid_validity
        self._inbox = self._new_mailbox()

    def _new_mailbox(self) -> DemoMailbox:
        uid_validity = self._next_uid_validity
        self._next_uid_validity = uid_validity + 1
        return DemoMailbox.create(self, uid_validity)

    async def add_mailbox(self, name: str) -> ObjectId:
        """Create a mailbox; ValueError where the name is taken."""
        async with self._set_lock.write_lock():
            if name in self._set:
                raise ValueError(name)
            mailbox = self._new_mailbox()
            self._set[name] = mailbox
            return mailbox.mailbox_id


class UnselectCommand(CommandNoArgs, CommandSelect):
    """UNSELECT: leave the mailbox and expunge nothing (RFC 3691 §2)."""

    command = b"UNSELECT"


class DemoConfig(Config):
    """The library's settings, with UNSELECT and a greeting that asks no name server."""

    @property
    def commands(self) -> Commands:
        """The library's commands and UNSELECT."""
        commands = super().commands
        commands.register(UnselectCommand)
        return commands

    @property
    def login_capability(self) -> list[bytes]:
        """The library's capabilities and UNSELECT."""
        return [*super().login_capability, b"UNSELECT"]

    @property
    def greeting(self) -> bytes:
        """The text of the greeting."""
        return b"Mailwarrant demo ready"


class DemoState(ConnectionState):
    """The library's commands; CLOSE passes for all and expunges for the owner (RFC 9051 §6.4.1)."""

    async def do_close(self, cmd: CloseCommand) -> tuple[CommandResponse, SelectedMailbox | None]:
        """Leave the mailbox; an owner's read-write CLOSE expunges. The library answers NO under EXAMINE."""
        session = self.session
        assert isinstance(session, RoleSession)
        if session.role is Role.OWNER and not self.selected.readonly:
            return await super().do_close(cmd)
        self._selected = None
        return ResponseOk(cmd.tag, b"CLOSE completed."), None

    async def do_unselect(self, cmd: UnselectCommand) -> tuple[CommandResponse, SelectedMailbox | None]:
        """Leave the mailbox."""
        self._selected = None
        return ResponseOk(cmd.tag, b"UNSELECT completed."), None


class DemoIdentity(Identity):
    """A login that opens a session on the one mailbox set, in its role."""

    @asynccontextmanager
    async def new_session(self) -> AsyncIterator[RoleSession]:
        """The session of this login."""
        login = self.login
        assert isinstance(login, DemoLogin)
        yield RoleSession(Role(self.name), login.config, login.mailbox_set, login.filter_set)


class DemoLogin(Login):
    """The three logins; nobody may act for another."""

    def __init__(self, config: Config, mailbox_set: MailboxSet) -> None:
        super().__init__(config)
        self.mailbox_set: Final = mailbox_set
        self.filter_set: Final = FilterSet()

    async def authenticate(self, credentials: ServerCredentials) -> DemoIdentity:
        """Check the password; InvalidAuth otherwise."""
        identity = await super().authenticate(credentials)
        return DemoIdentity(identity.name, self, None, frozenset())

    async def authorize(self, authenticated: IdentityInterface, authzid: str) -> DemoIdentity:
        """Refuse to let one login act for another."""
        if authenticated.name != authzid:
            raise InvalidAuth
        return DemoIdentity(authzid, self, None, frozenset())


async def _fill(mailbox_set: MailboxSet, sample: Iterable[DemoMessage]) -> None:
    for name in MAILBOXES:
        if name != "INBOX":
            await mailbox_set.add_mailbox(name)
            await mailbox_set.set_subscribed(name, name != "Trash")
    for message in sample:
        mailbox = await mailbox_set.get_mailbox(message.mailbox)
        flags = frozenset(Flag(flag) for flag in message.flags)
        await mailbox.append(AppendMessage(message.octets, message.received, flags), recent=True)


class Connections:
    """Serves each connection of one server through `DemoState`."""

    def __init__(self, login: DemoLogin, config: DemoConfig) -> None:
        self._login = login
        self._config = config
        self._commands = config.commands

    async def __call__(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one connection until it ends."""
        info = SocketInfoLocal(writer, unique_id=uuid4().bytes)
        connection = IMAPConnection(self._commands, self._config, reader, writer, info)
        async with AsyncExitStack() as stack:
            connection_exit.set(stack)
            stack.enter_context(closing(connection))
            await connection.run(DemoState(self._login, self._config))


def _config(port: int) -> DemoConfig:
    # What the library reads from its command line although each setting is given here.
    no_arguments = Namespace(passlib_cfg=None, proxy_protocol=None)
    return DemoConfig(
        no_arguments,
        host=LOOPBACK,
        port=port,
        tls_enabled=False,
        demo_data=False,
        demo_user="",
        demo_password="",
        hash_context=BuiltinHash(rounds=_HASH_ROUNDS),
    )


async def start(logins: Logins, sample: Iterable[DemoMessage], now: datetime, port: int) -> asyncio.Server:
    """Listen on loopback at `port` (0: any free one) with `sample` in the mailboxes.

    UIDVALIDITYs count up from `now` in seconds. The caller closes the server.
    Raises OSError where the port is taken.
    """
    config = _config(port)
    config.apply_context()
    mailbox_set = DemoMailboxSet(int(now.timestamp()))
    await _fill(mailbox_set, sample)
    login = DemoLogin(config, mailbox_set)
    passwords = Passwords(config)
    for role in Role:
        hashed = await passwords.hash_password(logins.of(role))
        login.users_dict[role.value] = UserMetadata(config, role.value, password=hashed)
    return await asyncio.start_server(Connections(login, config), LOOPBACK, port)


async def _serve_until_told(logins: Logins, now: datetime, port: int) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    sample = messages(now)
    server = await start(logins, sample, now, port)
    bound = server.sockets[0].getsockname()[1]
    print(json.dumps({"host": LOOPBACK, "port": bound, "messages": len(sample)}), flush=True)
    await told.wait()
    # Not wait_closed(): since Python 3.12 it waits for clients, and an idling one never leaves by itself.
    server.close()


def main(arguments: list[str]) -> int:
    """Run the server until SIGTERM or SIGINT; 0, or 2 where the start failed, with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m deploy.demo.server", description="the demo's IMAP server")
    parser.add_argument("--port", type=int, default=0, help="TCP port on 127.0.0.1; 0 takes any free one")
    parser.add_argument(
        "--secrets",
        type=Path,
        required=True,
        help="folder with one password in each of: owner, reader, executor",
    )
    parser.add_argument(
        "--now",
        type=datetime.fromisoformat,
        help="the sample's present, ISO 8601 with offset; default: the clock",
    )
    options = parser.parse_args(arguments)
    now: datetime = options.now or datetime.now(UTC)
    if now.tzinfo is None:
        parser.error(f"--now {options.now.isoformat()} has no offset: add +00:00")
    try:
        logins = Logins.from_folder(options.secrets)
        asyncio.run(_serve_until_told(logins, now, options.port))
    except (OSError, ValueError) as error:
        print(f"deploy.demo.server: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
