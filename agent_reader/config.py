"""The reader's configuration file, `reader.toml`."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from agent_reader.door.limits import DEFAULT_LIMITS
from agent_reader.identity import Identity
from agent_reader.keep import READS_KEPT_DAYS, Keep, Retention
from shared.imap_login import ImapLogin
from shared.metrics import Metrics
from shared.settings import Section, absolute_sqlite_url

DEFAULT_PATH: Final = Path("/etc/mailwarrant/reader.toml")
_SQLITE: Final = "sqlite:///"
# These show the newest 10,000 messages of a mailbox over IMAP; the older ones are hidden, not gone.
_WINDOWS: Final = {"imap.mail.yahoo.com": 10_000, "imap.aol.com": 10_000}

Uid = Annotated[int, Field(ge=0, lt=2**32)]
Address = Annotated[str, StringConstraints(pattern=r"^(localhost|127\.0\.0\.1|\[::1\]):\d{1,5}$")]
_USUAL_PORT: Final = re.compile(r"(?<=^http)(://.*):0*80$|(?<=^https)(://.*):0*443$", re.ASCII)


def _without_usual_port(url: str) -> str:
    """As clients spell an address: whoever writes the usual port of its scheme would meet none of them."""
    return _USUAL_PORT.sub(r"\1\2", url)


# As a browser spells it: lower case, no slash at the end, no port where it is the usual one.
Origin = Annotated[
    str,
    StringConstraints(pattern=r"^https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d{1,5})?$", max_length=255),
    AfterValidator(_without_usual_port),
]
PublicUrl = Annotated[
    str, StringConstraints(pattern=r"^https?://[^\s/?#]+$", max_length=255), AfterValidator(_without_usual_port)
]
MailboxName = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]


class Server(Section):
    """`[server]`: where agents connect (`listen`), and where the executor asks (`socket`).

    `executor_uid` is the one uid besides the reader's own that the private socket answers, root where it is left out;
    `public_url` is the address that agents see when a proxy stands in front.
    """

    listen: Address = "127.0.0.1:8620"
    socket: Path = Path("/run/mailwarrant/reader.sock")
    executor_uid: Uid | None = None
    public_url: PublicUrl | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.socket.is_absolute():
            raise ValueError("`socket` is an absolute path")
        # A Unix socket's path ends at 107 octets on Linux.
        if len(bytes(self.socket)) > 107:  # noqa: PLR2004 - the line above says why
            raise ValueError("the path of `socket` is longer than the 107 octets that a Unix socket can have")
        if self.port > 65535:  # noqa: PLR2004 - the last TCP port
            raise ValueError("`listen` names a port above 65535")
        return self

    @property
    def host(self) -> str:
        """The host of `listen`, without brackets."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port of `listen`; 0 takes any free one."""
        return int(self.listen.rpartition(":")[2])


class Jmap(Section):
    """`[jmap]`: what one agent may ask at once, and which web pages may ask.

    The floors of `max_size_request` (octets) and `max_objects_in_get` are those of the read-only profile; fewer than
    four calls would not hold the chain from a search to whole threads. `max_query_seconds` ends a search that takes
    longer; all calls of a request together may take four times that. `max_answer_octets` bounds an answer, which is
    asked for in parts past it. `allow_origins` are the origins of web pages whose scripts may read answers; a token
    they need all the same.
    """

    max_size_request: Annotated[int, Field(ge=65_536, le=100_000_000)] = DEFAULT_LIMITS.max_size_request
    max_calls_in_request: Annotated[int, Field(ge=4, le=256)] = DEFAULT_LIMITS.max_calls_in_request
    max_objects_in_get: Annotated[int, Field(ge=64, le=5_000)] = DEFAULT_LIMITS.max_objects_in_get
    max_concurrent_requests: Annotated[int, Field(ge=1, le=64)] = DEFAULT_LIMITS.max_concurrent_requests
    max_query_seconds: Annotated[float, Field(gt=0, le=60)] = DEFAULT_LIMITS.max_query_seconds
    max_answer_octets: Annotated[int, Field(ge=1024 * 1024, le=1024 * 1024 * 1024)] = DEFAULT_LIMITS.max_answer_octets
    allow_origins: tuple[Origin, ...] = ()


class StoreSettings(Section):
    """`[store]`: the folder of the index, e.g. `sqlite:////var/lib/agent-reader`; plain text on disk to its readers."""

    url: Annotated[str, AfterValidator(absolute_sqlite_url)]

    @property
    def folder(self) -> Path:
        """The folder that the URL names."""
        return Path(self.url.removeprefix(_SQLITE))


class BlobSettings(Section):
    """`[blobs]`: downloads, which are fetched from the mail server when an agent asks for them.

    `cache_octets` bounds what is kept of them on disk, in the index's folder and without a name; `largest_octets` is
    the largest message that is fetched for one.
    """

    # A week's attachments of one agent, seldom more; and no more of the disk than a log file.
    cache_octets: Annotated[int, Field(ge=0, le=2**40)] = 256 * 1024 * 1024
    # What the largest providers accept, several times over.
    largest_octets: Annotated[int, Field(ge=1024 * 1024, le=2**40)] = 256 * 1024 * 1024


class ReadLogSettings(Section):
    """`[reads]`: the log of what each agent was shown; `keep_days` is how long a line is kept."""

    # A year answers what a reviewer asks, and an index of who read what should not grow for ever.
    keep_days: Annotated[int, Field(ge=1, le=3_660)] = READS_KEPT_DAYS

    @property
    def keep(self) -> timedelta:
        """How long a line is kept."""
        return timedelta(days=self.keep_days)


class Account(ImapLogin):
    """`[[accounts]]`: one mailbox account, read with a login of its own.

    `keep` is what is kept of each message besides its header and structure: `everything` (text attachments too), the
    `text` of its body, or `metadata` alone; after `keep_days` since it was received, metadata alone in any case.
    `mailboxes` are the names, as this login sees them, that are read; left out, all are. `sync_seconds` is the pause
    between two looks; mailboxes in `push` are listened to besides (each a connection; a server with NOTIFY tells of all
    on one), INBOX where it is left out, none where it is empty. `renew_seconds` is how long one IDLE lasts.
    `authserv_id` is the name that the mail server signs its Authentication-Results with; without it none is believed.
    `daily_mebibytes` bounds the mail that is fetched in 24 hours; `visible_messages` is how many of a mailbox the
    server shows, where it hides the older ones. `identity` is what names a message: its `octets`, or its `headers`
    where a server does not give the same octets twice (`doctor` finds out); such mail is read and cannot be proposed.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None
    mailboxes: Annotated[tuple[MailboxName, ...], Field(min_length=1)] | None = None
    # New mail is seen within seconds, and one EXAMINE per mailbox four times a minute is below what mail clients do.
    sync_seconds: Annotated[int, Field(ge=1, le=86_400)] = 15
    authserv_id: Annotated[str, StringConstraints(pattern=r"^[!-~]+$", max_length=255)] | None = None
    keep: Literal["everything", "text", "metadata"] = "everything"
    keep_days: Annotated[int, Field(ge=1, le=36_600)] | None = None
    # Gmail allows 15 connections, some hosts 4, shared with the person's own mail programs.
    push: Annotated[tuple[MailboxName, ...], Field(max_length=5)] | None = None
    # RFC 2177 wants less than 29 minutes; some servers and many routers forget an idle connection after ten.
    renew_seconds: Annotated[int, Field(ge=10, le=28 * 60)] = 9 * 60
    daily_mebibytes: Annotated[int, Field(ge=1)] | None = None
    visible_messages: Annotated[int, Field(ge=1)] | None = None
    identity: Literal["octets", "headers"] = "octets"

    @property
    def listened_to(self) -> tuple[str, ...]:
        """The mailboxes to listen to where the server has no NOTIFY."""
        return self.push if self.push is not None else (self.mailboxes or ("INBOX",))[:1]

    @property
    def daily_octets(self) -> int | None:
        """How many octets of mail may be fetched in 24 hours."""
        return None if self.daily_mebibytes is None else self.daily_mebibytes * 1024 * 1024

    @property
    def window(self) -> int | None:
        """How many messages of a mailbox the server shows, None for all."""
        return self.visible_messages or _WINDOWS.get(self.host.lower())

    @property
    def named_by(self) -> Identity:
        """What names the account's messages."""
        return Identity(self.identity)

    @property
    def retention(self) -> Retention:
        """What is kept of the account's messages, and for how long."""
        return Retention(Keep[self.keep.upper()], self.keep_days)


class ReaderSettings(Section):
    """The whole file."""

    server: Server = Server()
    jmap: Jmap = Jmap()
    store: StoreSettings
    blobs: BlobSettings = BlobSettings()
    reads: ReadLogSettings = ReadLogSettings()
    metrics: Metrics = Metrics()
    accounts: Annotated[tuple[Account, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        ids = [account.id for account in self.accounts]
        if len(set(ids)) != len(ids):
            raise ValueError("two of `accounts` have the same id")
        return self
