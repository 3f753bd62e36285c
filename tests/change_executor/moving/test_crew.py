"""One worker for each login: a server that drips holds up its own queues, and what it was asked is settled."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest
import structlog

from change_executor.connections import Connections
from change_executor.crew import Crew, make_crew
from change_executor.journal.moves import EXECUTOR
from change_executor.lifecycle import Event
from change_executor.looking import Looker
from change_executor.mover import Mover
from change_executor.worker import take_worker_lock
from shared.imap_login import ImapFailure
from shared.settings import ConfigurationError
from tests.change_executor.moving.office import PATIENCE
from tests.change_executor.moving.workshop import MAIL, Workshop
from tests.servers.proxy import BreakingProxy, BreakPoint

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from tests.servers.dovecot import Dovecot

OTHER = MAIL.replace(b"hello", b"another")


class Dripping(BreakingProxy):
    """Runs the command, and instead of its answer sends an octet now and then, until it is told to end it."""

    def __init__(self, upstream: int, matcher: bytes) -> None:
        super().__init__(upstream, matcher, BreakPoint.BLACKHOLE)
        self.enough = threading.Event()

    def _break(self, client: socket.socket, server: socket.socket, line: bytes) -> None:
        server.sendall(line)
        self._answer_to(server, line.split(b" ", 1)[0])
        client.sendall(b"*")
        self.broken.set()
        while not self.enough.wait(0.05):
            client.sendall(b" ")

    def __exit__(self, *raised: object) -> None:
        self.enough.set()
        super().__exit__(*raised)


def two_logins(shop: Workshop, port: int) -> None:
    """A second queue whose login is at another port."""
    (login,), (queue,) = shop.settings.credentials, shop.settings.queues
    slow = login.model_copy(update={"id": "slow", "port": port})
    of_slow = queue.model_copy(update={"id": "slow", "credential": "slow"})
    shop.settings = shop.settings.model_copy(update={"credentials": (login, slow), "queues": (queue, of_slow)})


def crew_of(shop: Workshop) -> Crew:
    connections = Connections()
    return make_crew(
        shop.journal, shop.settings, mover=Mover(connections), connections=connections, log=structlog.get_logger()
    )


def until(shop: Workshop, wanted: Callable[[], bool]) -> None:
    committed = threading.Event()
    shop.journal.listen(committed.set)
    deadline = time.monotonic() + PATIENCE
    while not wanted():
        committed.wait(0.5)
        committed.clear()
        assert time.monotonic() < deadline
    shop.journal.unlisten(committed.set)


def test_g6_a_server_that_drips_holds_up_no_other_login_and_its_move_is_a_doubt_that_is_settled(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    shop = Workshop(dovecot, tmp_path)
    with Dripping(dovecot.port, b"UID MOVE") as drip:
        two_logins(shop, drip.port)
        held = shop.approved(shop.deliver(), of_queue=1)
        crew = crew_of(shop)
        crew.start()
        assert drip.broken.wait(PATIENCE)
        quick = shop.approved(shop.deliver(OTHER), OTHER)
        until(shop, lambda: shop.told(quick) == ("applied", "moved", None))
        # Its command has run, and nobody takes it up a second time.
        assert ("applying", None, None) == shop.told(held)
        assert crew.is_alive
        drip.enough.set()
        until(shop, lambda: shop.told(held) == ("applied", "moved", None))
        with shop.journal.reading() as connection:
            kinds = connection.exec_driver_sql("SELECT kind FROM events WHERE subject = ?", (held,)).scalars().all()
        assert ["proposal:claim", "proposal:doubt", "proposal:found_in_target"] == [
            kind for kind in kinds if kind in {"proposal:claim", "proposal:doubt", "proposal:found_in_target"}
        ]
        assert crew.stop()
    assert ({"Processed": 1}, {"Processed": 1}) == (shop.copies(), shop.copies(OTHER))
    shop.close()


def test_g6_one_lock_is_held_for_all_of_them_and_given_back_when_all_have_ended(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    shop = Workshop(dovecot, tmp_path)
    two_logins(shop, dovecot.port)
    url, crew = shop.settings.journal.url, crew_of(shop)
    crew.start()
    with pytest.raises(ConfigurationError, match="another change-executor"):
        take_worker_lock(url)
    assert crew.stop()
    assert not crew.is_alive
    crew.hold(take_worker_lock(url))
    assert crew.stop()
    shop.close()


def test_g6_the_lock_is_kept_where_one_of_them_has_not_ended(
    dovecot: Dovecot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Workshop(dovecot, tmp_path)
    two_logins(shop, dovecot.port)
    crew = crew_of(shop)
    crew.start()
    (other,) = crew._others
    monkeypatch.setattr(other, "stop", lambda: False)
    assert not crew.stop()
    with pytest.raises(ConfigurationError, match="another change-executor"):
        take_worker_lock(shop.settings.journal.url)
    monkeypatch.undo()
    assert crew.stop()
    os.close(take_worker_lock(shop.settings.journal.url))
    shop.close()


def test_g6_who_takes_up_what_was_left_leaves_alone_what_another_of_them_has_in_hand(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    shop = Workshop(dovecot, tmp_path)
    two_logins(shop, dovecot.port)
    left, in_hand = shop.approved(shop.deliver()), shop.approved(shop.deliver(OTHER), OTHER, of_queue=1)
    with shop.journal.writing() as writing:
        for each in (left, in_hand):
            writing.advance(each, Event.CLAIM, EXECUTOR)
    shop.apply.recover(lambda queue: queue == shop.settings.queues[0].id)
    assert [("approved", None, None), ("applying", None, None)] == [shop.told(left), shop.told(in_hand)]
    shop.close()


def test_a_proposal_of_a_queue_that_is_configured_no_more_is_taken_up_by_one_of_them(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    shop = Workshop(dovecot, tmp_path)
    two_logins(shop, dovecot.port)
    left = shop.approved(shop.deliver(), of_queue=1)
    more = shop.settings.queues[1].model_copy(update={"id": "more"})
    shop.settings = shop.settings.model_copy(update={"queues": (shop.settings.queues[0], more)})
    crew = crew_of(shop)
    crew.start()
    # Another policy: a person decides again, and is told why it waits.
    until(shop, lambda: shop.told(left) == ("pending", "policy_changed", "queue_not_configured"))
    assert crew.stop()
    shop.close()


def test_a_session_that_has_no_patience_left_is_no_session(dovecot: Dovecot, tmp_path: Path) -> None:
    shop = Workshop(dovecot, tmp_path)
    impatient = Looker(Connections(patience_seconds=0.0))
    with pytest.raises(ImapFailure), impatient.session(shop.settings.credentials[0]):
        pass
    shop.close()
