"""The executor's configuration file, `executor.toml`."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from change_executor.notify.settings import Notify
from shared.imap_login import LOGIN_ID_PATTERN, ImapLogin
from shared.metrics import Metrics
from shared.proposal import AGENT_PATTERN, QUEUE_PATTERN, ROLE_PATTERN
from shared.settings import AbsolutePath, Section, absolute_sqlite_url

Uid = Annotated[int, Field(ge=0, lt=2**32)]
MailboxName = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]
Address = Annotated[str, StringConstraints(pattern=r"^(localhost|127\.0\.0\.1|\[::1\]):\d{1,5}$|^unix:/")]


class Intake(Section):
    """`[intake]`: where agents propose. `allow_uids`: whose processes may connect; empty means any local process."""

    listen: Address = "127.0.0.1:8621"
    allow_uids: frozenset[Uid] = frozenset()


class Review(Section):
    """`[review]`: where people decide, and the uids of those who may connect.

    `public_url` is the page's address where a proxy stands in front; behind a Unix socket there is no other.
    """

    listen: Address = "127.0.0.1:8622"
    allow_uids: Annotated[frozenset[Uid], Field(min_length=1)]
    public_url: Annotated[str, StringConstraints(pattern=r"^https?://[a-z0-9.:-]+$", max_length=255)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.listen.startswith("unix:") and self.public_url is None:
            raise ValueError("behind a Unix socket `public_url` says which address people open")
        return self

    @property
    def url(self) -> str:
        """The address of the page: a name, since a passkey cannot belong to an IP address."""
        return self.public_url or f"http://localhost:{self.listen.rpartition(':')[2]}"


class Reader(Section):
    """`[reader]`: the reader's private socket, and the uid that must be behind it when given."""

    socket: AbsolutePath = Path("/run/mailwarrant/reader.sock")
    uid: Uid | None = None


class JournalSettings(Section):
    """`[journal]`: the database, e.g. `sqlite:////var/lib/change-executor/journal.db`.

    `heads_file` belongs to another user and is only ever appended to: each line tells the chain's head, at most once in
    `heads_every_seconds`.
    """

    url: Annotated[str, AfterValidator(absolute_sqlite_url)]
    heads_file: AbsolutePath | None = None
    # What happened within a minute can be made unhappened together with its head; each line is some 150 octets.
    heads_every_seconds: Annotated[int, Field(ge=1, le=3600)] = 60


class Destination(Section):
    """`[queues.to.ROLE]`: a mailbox that messages may be moved to, as the credential names it.

    `dangerous` says that it may be Trash, Junk or All Mail, which are refused otherwise.
    """

    mailbox: MailboxName
    dangerous: bool = False


class Queue(Section):
    """`[[queues]]`: one incoming mailbox and the destinations that its messages may be moved to.

    `credential` names the move login, `account` the reader's account, `undo` whether a person may move back.
    `authserv_id` is the name that the mail server signs its Authentication-Results with; without it none is believed.
    `agents` are those that may propose, None for any that has a token. `without_move` says what to do on a server
    without MOVE: refuse to start, or copy, flag and expunge one message by its UID.
    """

    id: Annotated[str, StringConstraints(pattern=QUEUE_PATTERN)]
    credential: str
    # As the reader's configuration has it: of another form, nothing would ever be found there.
    account: Annotated[str, StringConstraints(pattern=LOGIN_ID_PATTERN)]
    incoming: MailboxName
    authserv_id: Annotated[str, StringConstraints(pattern=r"^[!-~]+$", max_length=255)] | None = None
    undo: bool = True
    agents: (
        Annotated[tuple[Annotated[str, StringConstraints(pattern=AGENT_PATTERN)], ...], Field(min_length=1)] | None
    ) = None
    without_move: Literal["refuse", "copy"] = "refuse"
    to: Annotated[
        dict[Annotated[str, StringConstraints(pattern=ROLE_PATTERN)], Destination], Field(min_length=1, max_length=20)
    ]
    # What one agent may leave waiting: past this a person is being flooded.
    max_pending_per_agent: Annotated[int, Field(ge=1, le=10_000)] = 20
    # Every one stays in the journal, withdrawn or stale too; an agent that makes more is broken or hostile.
    max_proposals_per_hour: Annotated[int, Field(ge=1, le=10_000)] = 200
    # Five full hours: what works all day stays below, what runs wild does not fill the journal.
    max_proposals_per_day: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    # A message may be gone by the time the executor looks; an agent that names more than these makes ids up.
    max_unfound_per_hour: Annotated[int, Field(ge=1, le=10_000)] = 20
    max_unfound_per_day: Annotated[int, Field(ge=1, le=100_000)] = 60
    # A person decides some forty times a day; a hundred an hour is a mistake or an attack.
    max_moves_per_hour: Annotated[int, Field(ge=1, le=10_000)] = 100
    # Ten times what a person decides: a day in which more is moved began with a mistake.
    max_moves_per_day: Annotated[int, Field(ge=1, le=100_000)] = 400
    expiry_days: Annotated[int, Field(ge=1, le=90)] = 5

    @model_validator(mode="after")
    def _check(self) -> Self:
        if "incoming" in self.to:
            raise ValueError("`incoming` is where messages come from; a destination needs another role name")
        names = [self.incoming.casefold(), *(destination.mailbox.casefold() for destination in self.to.values())]
        if len(set(names)) != len(names):
            raise ValueError("two roles name the same mailbox")
        return self

    def takes_from(self, agent: str) -> bool:
        """Whether this agent may propose here."""
        return self.agents is None or agent in self.agents


class ExecutorSettings(Section):
    """The whole file. `quiet_seconds` is how long a message found only in the source after a doubt is left alone."""

    intake: Intake = Intake()
    review: Review
    reader: Reader = Reader()
    journal: JournalSettings
    credentials: Annotated[tuple[ImapLogin, ...], Field(min_length=1)]
    queues: Annotated[tuple[Queue, ...], Field(min_length=1)]
    # Lock waits of 207 s were seen on Dovecot; 600 s leaves room for a server process that was stopped and resumed.
    quiet_seconds: Annotated[int, Field(ge=1, le=86_400)] = 600
    # Texts of ended proposals are forgotten after this; ids, digests and codes stay in the chain.
    forget_texts_after_days: Annotated[int, Field(ge=0, le=3650)] = 30
    # While this file is there nothing moves. Whoever may make it may stop everything; resuming stays a person's act.
    stop_file: AbsolutePath | None = None
    notify: Notify = Notify()
    metrics: Metrics = Metrics()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for what, ids in (
            ("credentials", [credential.id for credential in self.credentials]),
            ("queues", [queue.id for queue in self.queues]),
        ):
            if len(set(ids)) != len(ids):
                raise ValueError(f"two of `{what}` have the same id")
        known = {credential.id for credential in self.credentials}
        for queue in self.queues:
            if queue.credential not in known:
                raise ValueError(
                    f"queue `{queue.id}` names the credential `{queue.credential}`, which is not configured; "
                    f"there is {', '.join(f'`{each}`' for each in sorted(known))}"
                )
        return self

    def queue(self, queue_id: str) -> Queue | None:
        """Return the queue of this id, or None."""
        return next((queue for queue in self.queues if queue.id == queue_id), None)

    def credential(self, credential_id: str) -> ImapLogin:
        """Return the move login of this id; the settings were checked, so it exists."""
        return next(credential for credential in self.credentials if credential.id == credential_id)
