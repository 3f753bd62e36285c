"""The executor killed at points of an approval, the connection broken at points of the MOVE: one move each time."""

import hashlib
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from change_executor import checkpoints
from change_executor.audit import verify
from change_executor.journal.open import open_journal
from tests.end_to_end.conftest import mail_server
from tests.end_to_end.furnished import furnish_by_copy
from tests.end_to_end.houses import House, Houses, Person, houses_in
from tests.end_to_end.letters import letter
from tests.servers.dovecot import Dovecot
from tests.servers.proxy import BreakingProxy, BreakPoint

# Before the person can decide.
LOOKING = (checkpoints.EVIDENCE_BEFORE, checkpoints.EVIDENCE_COMMITTED)
# From the approval to the outcome.
MOVING = (
    checkpoints.CLAIM_BEFORE,
    checkpoints.CLAIM_COMMITTED,
    checkpoints.SOURCE_OPENED,
    checkpoints.MESSAGE_READ,
    checkpoints.TARGET_ASKED,
    checkpoints.INTENT_BEFORE,
    checkpoints.INTENT_COMMITTED,
    checkpoints.MOVE_BEFORE,
    checkpoints.MOVE_ANSWERED,
    checkpoints.MOVE_VERIFIED,
    checkpoints.OUTCOME_BEFORE,
    checkpoints.OUTCOME_COMMITTED,
)


NOWHERE = ""


@dataclass
class Street:
    """One reader, one mailbox and one executor for all the deaths: what a death leaves behind, the next one meets."""

    server: Dovecot
    proxy: BreakingProxy
    houses: Houses
    # Where the executor reads at which checkpoint it dies.
    fatal: Path
    # Of the person who signed in once: a session outlives the executor.
    cookies: httpx.Cookies

    @contextmanager
    def person(self) -> Iterator[Person]:
        with Person(self.houses) as person:
            person.browser.cookies.update(self.cookies)
            yield person

    def two_alike(self, subject: str) -> tuple[bytes, str]:
        """Deliver a message twice; its octets, and its Email id once the reader has it."""
        octets = letter(subject)
        for _ in range(2):
            self.server.deliver("Incoming", octets)
        return octets, self.houses.found(subject)

    def has_moved_once(self, proposal_id: str, octets: bytes) -> None:
        """Wait for the end: one of two was moved, its twin was left, and the journal is whole."""
        view = self.houses.reaches(proposal_id, "applied", "stale", "failed")
        assert ("applied", "moved") == (view["state"], view["outcome"]["code"])
        digest = hashlib.sha256(octets).hexdigest()
        places = [
            name
            for name, mailbox in self.server.snapshot().mailboxes.items()
            for message in mailbox.messages.values()
            if message.sha256 == digest
        ]
        assert ["Incoming", "Processed"] == sorted(places)
        url = f"sqlite:///{self.houses.executor.folder / 'journal.db'}"
        with closing(open_journal(url, lambda: datetime.now(UTC))) as journal, journal.reading() as connection:
            assert () == verify(connection).findings


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    folder = tmp_path_factory.mktemp("kills")
    (fatal := folder / "die-at").write_text(NOWHERE)
    with (
        Dovecot("wide") as server,
        BreakingProxy(server.port, b"", BreakPoint.BEFORE_COMMAND, times=0) as proxy,
        houses_in(folder, mail_server(server, proxy.port), quiet_seconds=1) as houses,
    ):
        furnish_by_copy(houses)
        executor, houses.executor = houses.executor, _mortal(houses.executor, fatal)
        houses.reader.start()
        houses.executor.start()
        with Person(houses) as person:
            person.come_in()
            yield Street(server, proxy, houses, fatal, httpx.Cookies(person.browser.cookies))
        houses.executor.stop()
        executor.said("audit", "verify")


def _mortal(executor: House, fatal: Path) -> House:
    entry = (sys.executable, "-m", "tests.end_to_end.dying_executor")
    return House("dying", executor.folder, executor.port, entry=entry, environment={"DIE_AT": str(fatal)})


@pytest.mark.parametrize("point", [*LOOKING, *MOVING])
def test_g6_a_killed_executor_moves_the_message_once_after_its_restart(street: Street, point: str) -> None:
    houses = street.houses
    octets, email_id = street.two_alike(f"Killed at {point.replace(':', ' ')}")
    street.fatal.write_text(point)
    try:
        if point in LOOKING:
            # The executor may be dead before it answers.
            with suppress(httpx.TransportError):
                houses.propose(email_id)
        else:
            proposal_id = houses.propose(email_id)
            with street.person() as person:
                page = person.can_decide(proposal_id)
                # Here too: on two busy cores the page that follows takes longer than the second of quiet.
                with suppress(httpx.TransportError):
                    person.submit(page, f"/p/{proposal_id}/approve", {})
        assert -signal.SIGKILL == houses.executor.wait_for_end()
    finally:
        houses.executor.close()
        street.fatal.write_text(NOWHERE)
        houses.executor.start()
    if point in LOOKING:
        # Asked again, it is the same proposal.
        proposal_id = houses.propose(email_id)
        with street.person() as person:
            person.decide(proposal_id, "approve")
    street.has_moved_once(proposal_id, octets)


@pytest.mark.parametrize(
    "point",
    [BreakPoint.BEFORE_COMMAND, BreakPoint.BEFORE_CRLF, BreakPoint.RESPONSE_DROPPED],
    ids=lambda point: point.name,
)
def test_g6_a_broken_connection_ends_in_one_move(street: Street, point: BreakPoint) -> None:
    octets, email_id = street.two_alike(f"Broken at {point.name}")
    street.proxy.arm(b"UID MOVE", point)
    proposal_id = street.houses.propose(email_id)
    with street.person() as person:
        person.decide(proposal_id, "approve")
    assert street.proxy.broken.wait(30)
    street.has_moved_once(proposal_id, octets)
