"""The executor killed at points of an approval, the connection broken at points of the MOVE: one move each time."""

import hashlib
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from change_executor import checkpoints
from tests.end_to_end.conftest import mail_server
from tests.end_to_end.houses import PASSWORD, PERSON, House, Houses, Person, furnish, houses_in
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


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("wide") as server:
        yield server


@pytest.fixture(scope="module")
def street(server: Dovecot, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Houses]:
    """One reader and one mailbox for all the deaths: what a death leaves behind, the next one meets."""
    with houses_in(tmp_path_factory.mktemp("kills"), mail_server(server), quiet_seconds=1) as houses:
        furnish(houses)
        houses.reader.start()
        houses.executor.start()
        with Person(houses) as person:
            person.sign_in_first_time()
        houses.executor.stop()
        yield houses


def _dying(executor: House, at: str) -> House:
    return House(
        "dying",
        executor.folder,
        executor.port,
        entry=(sys.executable, "-m", "tests.end_to_end.dying_executor"),
        environment={"DIE_AT": at},
    )


def _one_moved_and_its_twin_left(server: Dovecot, octets: bytes) -> None:
    digest = hashlib.sha256(octets).hexdigest()
    places = [
        name
        for name, mailbox in server.snapshot().mailboxes.items()
        for message in mailbox.messages.values()
        if message.sha256 == digest
    ]
    assert ["Incoming", "Processed"] == sorted(places)


@pytest.mark.parametrize("point", [*LOOKING, *MOVING])
def test_g6_a_killed_executor_moves_the_message_once_after_its_restart(
    server: Dovecot, street: Houses, point: str
) -> None:
    octets = letter(f"Killed at {point.replace(':', ' ')}")
    for _ in range(2):
        server.deliver("Incoming", octets)
    email_id = street.found(f"Killed at {point.replace(':', ' ')}")
    dying = _dying(street.executor, point).start()
    try:
        if point in LOOKING:
            # The executor may be dead before it answers.
            with suppress(httpx.TransportError):
                street.propose(email_id)
        else:
            proposal_id = street.propose(email_id)
            with Person(street) as person:
                person.sign_in(PERSON, PASSWORD)
                page = person.can_decide(proposal_id)
                # Here too: on two busy cores the page that follows takes longer than the second of quiet.
                with suppress(httpx.TransportError):
                    person.submit(page, f"/p/{proposal_id}/approve", {})
        assert -signal.SIGKILL == dying.wait_for_end()
    finally:
        dying.close()
    street.executor.start()
    try:
        if point in LOOKING:
            # Asked again, it is the same proposal.
            proposal_id = street.propose(email_id)
            with Person(street) as person:
                person.sign_in(PERSON, PASSWORD)
                person.decide(proposal_id, "approve")
        view = street.reaches(proposal_id, "applied", "stale", "failed")
        assert ("applied", "moved") == (view["state"], view["outcome"]["code"])
        _one_moved_and_its_twin_left(server, octets)
        assert 0 == street.executor.run("audit", "verify").returncode
    finally:
        street.executor.stop()


@pytest.mark.parametrize(
    "point",
    [BreakPoint.BEFORE_COMMAND, BreakPoint.BEFORE_CRLF, BreakPoint.RESPONSE_DROPPED],
    ids=lambda point: point.name,
)
def test_g6_a_broken_connection_ends_in_one_move(dovecot: Dovecot, tmp_path: Path, point: BreakPoint) -> None:
    octets = letter("Broken on the way")
    for _ in range(2):
        dovecot.deliver("Incoming", octets)
    with BreakingProxy(dovecot.port, b"UID MOVE", point) as proxy:
        login = mail_server(dovecot, executor_port=proxy.port)
        with houses_in(tmp_path, login, quiet_seconds=1) as houses, Person(houses) as person:
            furnish(houses)
            houses.reader.start()
            houses.executor.start()
            person.sign_in_first_time()
            proposal_id = houses.propose(houses.found("Broken on the way"))
            person.decide(proposal_id, "approve")
            assert proxy.broken.wait(30)
            assert "moved" == houses.reaches(proposal_id, "applied", "stale", "failed")["outcome"]["code"]
            _one_moved_and_its_twin_left(dovecot, octets)
            assert 0 == houses.executor.run("audit", "verify").returncode
