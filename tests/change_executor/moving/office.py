"""A workshop with its worker, and a reader that knows every message of incoming."""

from __future__ import annotations

import hashlib
import threading
import time
from typing import TYPE_CHECKING, Any

import structlog

from change_executor.connections import Connections
from change_executor.journal.journal import NewProposal
from change_executor.lifecycle import Event
from change_executor.mover import Mover
from change_executor.policy import policy_version
from change_executor.sign_ins import Failure, SignIns, failure_code
from change_executor.worker import Worker, make_worker
from shared.identity import email_id
from tests.change_executor.moving.workshop import MAIL, PERSON, Workshop
from tests.fakes.reader import FakeReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from tests.servers.dovecot import Dovecot

PATIENCE = 20.0


class CountedSignIns(SignIns):
    """Remembers each failure to sign in that a server, or a file, really gave."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(clock)
        self.failures: list[str] = []

    def failed(self, credential: str, failure: Failure) -> None:
        self.failures.append(failure_code(failure))
        super().failed(credential, failure)


class Office:
    """A workshop with its worker and a reader that knows every message of incoming."""

    def __init__(self, dovecot: Dovecot, folder: Path, reader: FakeReader, **workshop: Any) -> None:
        self.workshop = Workshop(dovecot, folder, **workshop)
        self.reader = reader
        self.logged: list[dict[str, Any]] = []
        self.worker = self.hire()

    def hire(self) -> Worker:
        shop = self.workshop
        self.sign_ins = CountedSignIns(shop.clock)
        connections = Connections(self.sign_ins)
        log = structlog.wrap_logger(None, processors=[self._keep])
        return make_worker(shop.journal, shop.settings, mover=Mover(connections), connections=connections, log=log)

    def _keep(self, _: object, name: str, event: Any) -> Any:
        self.logged.append({**event, "level": name})
        raise structlog.DropEvent

    def deliver(self, octets: bytes = MAIL) -> int:
        uid = self.workshop.deliver(octets)
        incoming = self.workshop.dovecot.snapshot()["Incoming"]
        self.reader.locates(*((incoming.uidvalidity, each) for each in incoming.messages))
        return uid

    def propose(self, octets: bytes = MAIL, number: int = 1) -> str:
        new = NewProposal(
            id=f"P{number:020d}",
            agent="mailbot",
            queue="support",
            email_id=email_id(hashlib.sha256(octets).digest()),
            from_role="incoming",
            to_role="processed",
            expires_at=self.workshop.clock.now.replace(year=2027),
            predecessor=None,
        )
        with self.workshop.journal.writing() as writing:
            writing.create(new)
        return new.id

    def approve(self, proposal: str) -> None:
        version = policy_version(self.workshop.settings, self.workshop.settings.queues[0])
        with self.workshop.journal.writing() as writing:
            writing.advance(
                proposal,
                Event.APPROVE,
                PERSON,
                decided_by="ann",
                decided_at=writing.now,
                policy_version=version,
                shown="0" * 64,
            )

    def until(self, wanted: Callable[[], bool]) -> None:
        """Wait for something that the worker's thread does; woken by each commit."""
        committed = threading.Event()
        self.workshop.journal.listen(committed.set)
        deadline = time.monotonic() + PATIENCE
        while not wanted():
            committed.wait(0.5)
            committed.clear()
            assert time.monotonic() < deadline, self.logged
        self.workshop.journal.unlisten(committed.set)

    def close(self) -> None:
        assert self.worker.stop()
        self.workshop.close()
