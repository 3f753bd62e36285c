"""An executor without its doors: a journal, the real mover on a real server, and a person who approves at once."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from change_executor import audit
from change_executor.apply import Apply
from change_executor.checkpoints import pass_by
from change_executor.config import ExecutorSettings
from change_executor.connections import Connections
from change_executor.journal import evidence, moves
from change_executor.journal.evidence import Evidence
from change_executor.journal.journal import NewProposal, Proposal, read_proposal
from change_executor.lifecycle import Event
from change_executor.looking import Looker
from change_executor.mover import Mover
from change_executor.policy import policy_version
from change_executor.reconcile import Reconcile
from shared.identity import email_id
from shared.settings import settings_from
from tests.change_executor.journal.clock import MovableClock
from tests.change_executor.journal.empty import empty_journal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from change_executor.checkpoints import Checkpoint
    from change_executor.journal.moves import Move
    from tests.servers.dovecot import Dovecot

PERSON = "person:ann"
MAIL = b"From: ann@example.org\r\nSubject: an order\r\nMessage-ID: <1@example.org>\r\n\r\nhello\r\n"
# A quiet time that the tests' own clock passes in one step.
QUIET_SECONDS = 600


def settings_for(
    folder: Path, port: int, password: str, *, queue: Mapping[str, Any] | None = None, socket: Path | None = None
) -> ExecutorSettings:
    secret = folder / "secret"
    secret.write_text(password)
    secret.chmod(0o400)
    secret.chmod(0o600)
    raw = {
        "review": {"allow_uids": [0]},
        "reader": {"socket": str(socket or folder / "reader.sock")},
        "journal": {"url": f"sqlite:///{folder / 'journal.db'}"},
        "credentials": [
            {
                "id": "move",
                "host": "127.0.0.1",
                "port": port,
                "tls": "none",
                "user": "executor",
                "secret_file": str(secret),
            }
        ],
        "queues": [
            {
                "id": "support",
                "credential": "move",
                "account": "shop",
                "incoming": "Incoming",
                "to": {"processed": {"mailbox": "Processed"}, "escalate": {"mailbox": "Escalate"}},
                **(queue or {}),
            }
        ],
        "quiet_seconds": QUIET_SECONDS,
    }
    return settings_from(raw, ExecutorSettings, "test")


class Workshop:
    """`port` is where the mail server is reached: its own port, or a proxy's."""

    def __init__(
        self,
        dovecot: Dovecot,
        folder: Path,
        *,
        port: int | None = None,
        queue: Mapping[str, Any] | None = None,
        checkpoint: Checkpoint = pass_by,
        stop_file: Path | None = None,
    ) -> None:
        self.dovecot = dovecot
        self.clock = MovableClock()
        settings = settings_for(folder, port or dovecot.port, dovecot.passwords["executor"], queue=queue)
        self.settings = settings.model_copy(update={"stop_file": stop_file})
        self.journal = empty_journal(self.settings.journal.url, self.clock)
        self.connections = Connections()
        self.mover = Mover(self.connections)
        self.apply = Apply(self.journal, self.settings, self.mover, checkpoint)
        self.reconcile = Reconcile(
            self.journal, self.settings, Looker(self.connections).session, checkpoint, open_move=self.mover.session
        )
        self._numbers = iter(range(1, 1000))

    def close(self) -> None:
        """Whatever a test did, the chain is whole and says of every proposal what its row says."""
        with self.journal.reading() as connection:
            findings = audit.verify(connection).findings
        self.journal.close()
        assert findings == ()

    def deliver(self, octets: bytes = MAIL, flags: tuple[str, ...] = (), internaldate: datetime | None = None) -> int:
        return self.dovecot.deliver("Incoming", octets, flags, internaldate)

    def approved(
        self, uid: int, octets: bytes = MAIL, *, to: str = "processed", copies: int = 1, of_queue: int = 0
    ) -> str:
        """A proposal that a person has approved, with evidence as the executor would have made it."""
        number = next(self._numbers)
        digest = hashlib.sha256(octets)
        incoming = self.dovecot.snapshot()["Incoming"]
        queue = self.settings.queues[of_queue]
        new = NewProposal(
            id=f"P{number:020d}",
            agent="mailbot",
            queue=queue.id,
            email_id=email_id(digest.digest()),
            from_role="incoming",
            to_role=to,
            expires_at=self.clock.now.replace(year=2027),
            predecessor=None,
        )
        with self.journal.writing() as writing:
            writing.create(new)
            seen = Evidence(
                proposal=new.id,
                uidvalidity=incoming.uidvalidity,
                uid=uid,
                octets_sha256=digest.hexdigest(),
                size=len(octets),
                internaldate="2026-11-29T12:00:00+00:00",
                copies=copies,
                reading_version="1",
                reading_sha256="0" * 64,
            )
            evidence.record(writing, seen)
            writing.advance(
                new.id,
                Event.APPROVE,
                PERSON,
                decided_by="ann",
                decided_at=writing.now,
                policy_version=policy_version(self.settings, queue),
                shown="0" * 64,
            )
        return new.id

    def happen(self, proposal_id: str, event: Event) -> None:
        with self.journal.writing() as writing:
            writing.advance(proposal_id, event, PERSON)

    def proposal(self, proposal_id: str) -> Proposal:
        with self.journal.reading() as connection:
            return read_proposal(connection, proposal_id)

    def under_way(self, proposal_id: str) -> Move | None:
        with self.journal.reading() as connection:
            return moves.under_way(connection, proposal_id)

    def told(self, proposal_id: str) -> tuple[str, str | None, str | None]:
        """State, outcome code and waiting code."""
        proposal = self.proposal(proposal_id)
        return proposal.state.value, proposal.outcome_code, proposal.waiting_code

    def copies(self, octets: bytes = MAIL) -> dict[str, int]:
        """How many messages of these octets lie in each mailbox that has any."""
        digest = hashlib.sha256(octets).hexdigest()
        counts = {
            name: sum(message.sha256 == digest for message in mailbox.messages.values())
            for name, mailbox in self.dovecot.snapshot().mailboxes.items()
        }
        return {name: count for name, count in counts.items() if count}
