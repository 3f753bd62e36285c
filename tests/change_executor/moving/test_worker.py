"""The worker on a real server, with a reader and a clock that the test moves: what is due is done, each by itself."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest
import structlog
from sqlalchemy import func, insert, select
from structlog.testing import capture_logs

from change_executor.apply import Apply
from change_executor.journal import schema
from change_executor.journal.file import journal_path
from change_executor.journal.idempotency import Key, keep
from change_executor.journal.journal import Proposal
from change_executor.journal.open import open_journal
from change_executor.lifecycle import Event
from change_executor.retrying import Retry
from change_executor.review.links import new_link
from change_executor.review.people import add_person
from change_executor.seeing import Seen
from change_executor.switch import press_stop, release_stop
from change_executor.watch import Watch, poke
from change_executor.worker import FALLBACK_SECONDS, MOST_AT_ONCE, take_worker_lock
from shared.proposal import State
from shared.settings import ConfigurationError
from tests.change_executor.journal.clock import new_proposal
from tests.change_executor.moving.office import PATIENCE, Office
from tests.change_executor.moving.workshop import PERSON, QUIET_SECONDS, Workshop
from tests.fakes.reader import FakeReader
from tests.servers.altering_proxy import AlteringProxy
from tests.servers.proxy import BreakingProxy, BreakPoint

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Table

    from change_executor.journal.journal import Journal
    from tests.servers.dovecot import Dovecot


def test_a_proposal_goes_its_whole_way_without_being_asked_for(office: Office) -> None:
    office.worker.start()
    office.deliver()
    proposal = office.propose()
    office.until(lambda: office.workshop.proposal(proposal).evidence is not None)
    office.approve(proposal)
    office.until(lambda: office.workshop.told(proposal) == ("applied", "moved", None))
    office.workshop.happen(proposal, Event.UNDO)
    office.until(lambda: office.workshop.told(proposal) == ("undone", "moved_back", None))
    assert {"Incoming": 1} == office.workshop.copies()
    assert [] == office.logged


def test_with_nothing_to_do_a_pass_writes_nothing_and_sleeps(office: Office) -> None:
    office.deliver()
    office.propose()
    office.worker.pass_once()
    commits: list[None] = []
    office.workshop.journal.listen(partial(commits.append, None))
    assert office.worker.pass_once() == FALLBACK_SECONDS
    assert [] == commits


def test_what_a_revoked_agent_has_open_again_is_taken_back_in_the_next_pass(office: Office) -> None:
    # As it is left by a proposal that was in flight at the revocation and came back unmoved.
    proposal = office.propose()
    with office.workshop.journal.writing() as writing:
        revoked = {"name": "mailbot", "since": writing.now, "by": PERSON}
        writing.connection.execute(insert(schema.revoked_agents).values(**revoked))
        writing.append("agent:revoke", "mailbot", PERSON)
    office.worker.pass_once()
    assert ("withdrawn", "agent_revoked", None) == office.workshop.told(proposal)
    assert [] == office.workshop.dovecot.commands("executor")


def test_what_was_not_decided_in_time_expires(office: Office) -> None:
    office.deliver()
    waiting = office.propose()
    office.worker.pass_once()
    office.approve(waiting)
    office.workshop.clock.advance(days=400)
    office.worker.pass_once()
    assert ("expired", "not_decided_in_time", None) == office.workshop.told(waiting)
    # A look may be older than what ended it.
    office.worker._expire([waiting])
    assert ("expired", "not_decided_in_time", None) == office.workshop.told(waiting)


def test_what_is_over_is_forgotten_once_an_hour(office: Office) -> None:
    journal, clock = office.workshop.journal, office.workshop.clock
    office.deliver()
    proposal = office.propose()
    office.worker.pass_once()
    office.workshop.happen(proposal, Event.REJECT)
    with journal.writing() as writing:
        keep(writing, "mailbot", Key("0" * 64, "1" * 64), proposal)
    add_person(journal, "ada")
    new_link(journal, "ada", secrets.token_bytes)
    tables = (schema.idempotency_keys, schema.links, schema.texts)
    assert all(rows(journal, table) for table in tables)
    clock.advance(days=400)
    office.worker.pass_once()
    assert [0, 0, 0] == [rows(journal, table) for table in tables]
    with journal.writing() as writing:
        keep(writing, "mailbot", Key("0" * 64, "1" * 64), proposal)
        writing.connection.execute(schema.idempotency_keys.update().values(at=writing.now - timedelta(days=2)))
    for minutes, left in ((59, 1), (1, 0)):
        clock.advance(minutes=minutes)
        office.worker.pass_once()
        assert left == rows(journal, schema.idempotency_keys)


def rows(journal: Journal, table: Table) -> int:
    with journal.reading() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def test_an_approval_does_not_wait_for_the_evidence_of_every_other_proposal(office: Office) -> None:
    others = [b"Subject: %d\r\n\r\nhello\r\n" % number for number in range(2)]
    for octets in others:
        office.deliver(octets)
    approved = office.workshop.approved(office.deliver())
    first, second = (office.propose(octets, 100 + number) for number, octets in enumerate(others))
    assert office.worker.pass_once() == 0.0
    assert "applied" == office.workshop.proposal(approved).state.value
    made = [office.workshop.proposal(each).evidence is not None for each in (first, second)]
    assert [True, False] == made
    assert office.worker.pass_once() > 0.0
    assert office.workshop.proposal(second).evidence is not None


def test_an_approval_does_not_wait_until_all_that_is_taken_back_is_back(office: Office) -> None:
    shop, done = office.workshop, list[str]()

    class _Recorded(Apply):
        def move(self, proposal_id: str) -> None:
            done.append("move")
            shop.happen(proposal_id, Event.REJECT)

        def undo(self, proposal_id: str) -> None:
            if not done:
                shop.approved(shop.deliver())
            done.append("undo")
            shop.happen(proposal_id, Event.REFUSED)

    for number in range(MOST_AT_ONCE + 2):
        asked_back = shop.approved(number + 1, b"%d" % number)
        for event in (Event.CLAIM, Event.MOVED, Event.UNDO):
            shop.happen(asked_back, event)
    office.worker._apply = _Recorded(shop.journal, shop.settings, shop.mover)
    assert office.worker.pass_once() == 0.0
    assert ["undo"] * MOST_AT_ONCE == done
    assert office.worker.pass_once() > 0.0
    assert ["move", "undo", "undo"] == done[MOST_AT_ONCE:]


def test_what_waits_for_a_person_is_not_read_by_the_worker_and_expires_all_the_same(office: Office) -> None:
    office.deliver()
    decidable, expiry = office.propose(), office.workshop.clock.now.replace(year=2027)
    office.worker.pass_once()
    seen = office.worker._look()
    assert ([], [], expiry) == (seen.proposals, seen.over, seen.next_expiry)
    office.workshop.clock.now = expiry
    seen = office.worker._look()
    assert ([], [decidable], None) == (seen.proposals, seen.over, seen.next_expiry)
    office.worker.pass_once()
    assert "expired" == office.workshop.proposal(decidable).state.value


def test_an_expiry_is_slept_towards(office: Office) -> None:
    office.deliver()
    proposal = office.propose()
    office.worker.pass_once()
    office.workshop.clock.now = office.workshop.proposal(proposal).expires_at
    office.workshop.clock.advance(seconds=-3)
    assert 3.0 == office.worker.pass_once()
    office.workshop.clock.advance(seconds=3)
    office.worker.pass_once()
    assert "expired" == office.workshop.proposal(proposal).state.value


def test_a_failing_proposal_is_tried_again_later_and_stops_no_other(office: Office) -> None:
    second = b"Subject: a second\r\n\r\nhello\r\n"
    bad, good = office.workshop.approved(office.deliver()), office.workshop.approved(office.deliver(second), second)
    tried: list[str] = []

    class _Clumsy(Apply):
        def move(self, proposal_id: str) -> None:
            tried.append(proposal_id)
            if proposal_id == bad:
                raise RuntimeError("a bug")
            super().move(proposal_id)

    shop = office.workshop
    office.worker._apply = _Clumsy(shop.journal, shop.settings, shop.mover)
    assert office.worker.pass_once() == 2.0
    assert "applied" == shop.proposal(good).state.value
    assert [{"event": "proposal:failed", "proposal": bad, "error": "RuntimeError", "level": "error"}] == office.logged
    # Not before its pause is over, and then with a longer one.
    office.worker.pass_once()
    shop.clock.advance(seconds=2)
    assert office.worker.pass_once() == 4.0
    assert [bad, good, bad] == tried


def test_a_clock_that_is_set_back_holds_nothing_up(office: Office) -> None:
    shop, proposal = office.workshop, office.workshop.approved(office.deliver())
    shop.dovecot.stop()
    office.worker.pass_once()
    assert ("approved", None, "mail_server_unreachable") == shop.told(proposal)
    shop.dovecot.start()
    shop.clock.advance(hours=-3)
    office.worker.pass_once()
    assert ("applied", "moved", None) == shop.told(proposal)


def test_thousands_that_wait_are_looked_through_once_in_a_pass(office: Office) -> None:
    counted = 0

    class _Counted(str):
        __slots__ = ()

        def __hash__(self) -> int:
            nonlocal counted
            counted += 1
            return super().__hash__()

    made = new_proposal(1)
    waiting = [
        Proposal(
            *(_Counted(f"P{number:020d}"), made.agent, made.queue, made.email_id, made.from_role, made.to_role),
            *(State.PENDING, 1, office.workshop.clock.now, made.expires_at),
        )
        for number in range(300)
    ]
    seen = Seen(waiting, [], None, [], settled=False, stopped=False)
    for each in waiting:
        office.worker._retry_later(each)
    counted = 0
    assert [] == office.worker._work(seen)
    assert counted <= 10 * len(waiting)


def test_a_server_that_is_down_is_waited_for_once_a_pass(office: Office) -> None:
    # More than a pass begins where it is not down: all of them are told the reason at once.
    letters = [b"Subject: %d\r\n\r\nhello\r\n" % number for number in range(MOST_AT_ONCE + 2)]
    proposals = [office.workshop.approved(office.deliver(each), each) for each in letters]
    tried: list[str] = []

    class _Counted(Apply):
        def move(self, proposal_id: str) -> None:
            tried.append(proposal_id)
            super().move(proposal_id)

    shop = office.workshop
    office.worker._apply = _Counted(shop.journal, shop.settings, shop.mover)
    office.workshop.dovecot.stop()
    office.worker.pass_once()
    assert proposals[:1] == tried
    assert {("approved", None, "mail_server_unreachable")} == {office.workshop.told(each) for each in proposals}
    office.workshop.dovecot.start()
    office.workshop.clock.advance(seconds=2)
    for _ in range(2):
        office.worker.pass_once()
    assert {("applied", "moved", None)} == {office.workshop.told(each) for each in proposals}


def test_g10_messages_that_the_server_cannot_tell_of_hold_up_no_other(
    dovecot: Dovecot, tmp_path: Path, reader: FakeReader
) -> None:
    def alter(line: bytes) -> bytes:
        # Two messages have a date that is none; whoever asks for them gets no answer that can be read.
        damaged = re.search(rb"UID [12] ", line) and b"INTERNALDATE" in line
        return re.sub(rb'INTERNALDATE "..', b'INTERNALDATE "99', line) if damaged else line

    letters = [b"Subject: %d\r\n\r\nhello\r\n" % number for number in range(5)]
    with AlteringProxy(dovecot.port, alter) as proxy:
        office = Office(dovecot, tmp_path, reader, port=proxy.port)
        for octets in letters[:2]:
            dovecot.deliver("Processed", octets)
        approved = [office.workshop.approved(office.deliver(each), each) for each in letters[:4]]
        uid, pending = office.deliver(letters[4]), office.propose(letters[4], 100)
        reader.locates((dovecot.snapshot()["Incoming"].uidvalidity, uid))
        for _ in range(3):
            _pass_all(office)
            office.workshop.clock.advance(minutes=6)
        bad, good = approved[:2], approved[2:]
        assert {("approved", None, "mail_server_unreachable")} == {office.workshop.told(each) for each in bad}
        assert {("applied", "moved", None)} == {office.workshop.told(each) for each in good}
        assert office.workshop.proposal(pending).evidence is not None
        office.close()


def _pass_all(office: Office) -> None:
    while office.worker.pass_once() == 0.0:
        pass


def test_a_refused_login_is_tried_ever_more_seldom_whatever_agents_and_people_do(office: Office) -> None:
    shop = office.workshop
    messages = [b"Subject: %d\r\n\r\nhello\r\n" % number for number in range(6)]
    approved = [shop.approved(office.deliver(octets), octets) for octets in messages[:3]]
    secret = shop.settings.credentials[0].secret_file
    assert secret is not None
    right = secret.read_text()
    secret.write_text("wrong")
    with capture_logs() as logged:
        for number, octets in enumerate(messages[3:]):
            office.deliver(octets)
            office.propose(octets, 100 + number)
            _pass_all(office)
        assert ["login_refused"] == office.sign_ins.failures
        assert {("approved", None, "login_refused")} == {shop.told(each) for each in approved}
        tried = []
        for minute in range(1, 5):
            shop.clock.advance(minutes=1)
            press_stop(shop.journal, PERSON)
            release_stop(shop.journal, PERSON)
            before = len(office.sign_ins.failures)
            _pass_all(office)
            if len(office.sign_ins.failures) > before:
                tried.append(minute)
        assert [1] == tried
        secret.write_text(right)
        shop.clock.advance(hours=1)
        _pass_all(office)
    assert {("applied", "moved", None)} == {shop.told(each) for each in approved}
    # One line when it begins and one when it works again, and one for each proposal that waits.
    assert [("mail_server:failed", "login_refused"), ("mail_server:works", None)] == [
        (line["event"], line.get("code")) for line in logged
    ]
    assert "refused the login" in logged[0]["detail"]
    assert logged[0]["fix"]
    waits = [line for line in office.logged if line["event"] == "proposal:wait"]
    assert 6 == len({line["proposal"] for line in waits}) == len(waits)
    assert {("login_refused", "warning")} == {(line["code"], line["level"]) for line in waits}


def test_a_secret_that_cannot_be_read_has_a_reason_of_its_own_and_no_login_is_tried(office: Office) -> None:
    shop = office.workshop
    proposal = shop.approved(office.deliver())
    secret = shop.settings.credentials[0].secret_file
    assert secret is not None
    kept = secret.rename(secret.with_name("elsewhere"))
    with capture_logs() as logged:
        office.worker.pass_once()
        assert ("approved", None, "secret_unreadable") == shop.told(proposal)
        kept.rename(secret)
        office.worker.pass_once()
        assert ("approved", None, "secret_unreadable") == shop.told(proposal)
        shop.clock.advance(minutes=1)
        office.worker.pass_once()
    assert ("applied", "moved", None) == shop.told(proposal)
    assert ["mail_server:failed", "mail_server:works"] == [line["event"] for line in logged]
    assert str(secret) in logged[0]["detail"]


def test_a_stop_holds_everything_and_a_release_lets_it_go_on(office: Office) -> None:
    proposal = office.workshop.approved(office.deliver())
    press_stop(office.workshop.journal, "operator")
    office.worker.start()
    office.until(lambda: office.workshop.told(proposal) == ("approved", None, "stopped"))
    assert [] == office.workshop.dovecot.commands("executor")
    release_stop(office.workshop.journal, "operator")
    office.until(lambda: office.workshop.told(proposal) == ("applied", "moved", None))


def test_what_waited_for_the_stop_button_is_taken_up_in_the_first_pass_after_it_is_released(office: Office) -> None:
    shop = office.workshop
    proposal = shop.approved(office.deliver())
    press_stop(shop.journal, "operator")
    office.worker.pass_once()
    for _ in range(3):
        shop.clock.advance(seconds=3)
        # Nothing is tried until a person releases it, which wakes the worker.
        assert FALLBACK_SECONDS == office.worker.pass_once()
    assert ("approved", None, "stopped") == shop.told(proposal)
    release_stop(shop.journal, "operator")
    office.worker.pass_once()
    assert ("applied", "moved", None) == shop.told(proposal)
    told = [(line["event"], line.get("code", line.get("waited_for")), line["level"]) for line in office.logged]
    assert [("proposal:wait", "stopped", "info"), ("proposal:goes_on", "stopped", "info")] == told


@pytest.mark.parametrize("at", [BreakPoint.BEFORE_COMMAND, BreakPoint.RESPONSE_DROPPED])
def test_a_doubt_is_looked_after_until_it_is_settled(
    dovecot: Dovecot, tmp_path: Path, reader: FakeReader, at: BreakPoint
) -> None:
    with BreakingProxy(dovecot.port, b"UID MOVE", at) as proxy:
        office = Office(dovecot, tmp_path, reader, port=proxy.port)
        proposal = office.workshop.approved(office.deliver())
        for _ in range(3):
            office.worker.pass_once()
        if at is BreakPoint.BEFORE_COMMAND:
            assert ("doubtful", None, "quiet_time") == office.workshop.told(proposal)
            # However long it has been looked at in vain: it is looked at again as soon as the quiet time is over.
            office.workshop.clock.advance(seconds=QUIET_SECONDS - 10)
            (key,) = office.worker._retries
            office.worker._retries[key] = Retry(9, office.workshop.clock.now, office.workshop.clock.now)
            assert 10.0 == office.worker.pass_once()
            office.workshop.clock.advance(seconds=10)
            for _ in range(2):
                office.worker.pass_once()
        assert ("applied", "moved", None) == office.workshop.told(proposal)
        assert {"Processed": 1} == office.workshop.copies()
        office.close()


def test_a_reader_that_comes_back_is_asked_again(office: Office) -> None:
    office.deliver()
    answer = office.reader.answers["/locate"]
    office.reader.answers["/locate"] = b""
    proposal = office.propose()
    office.worker.pass_once()
    assert ("pending", None, "reader_unreachable") == office.workshop.told(proposal)
    office.reader.answers["/locate"] = answer
    office.workshop.clock.advance(seconds=2)
    office.worker.pass_once()
    assert office.workshop.proposal(proposal).evidence is not None


def test_a_server_that_never_answers_does_not_hold_up_a_stop(
    dovecot: Dovecot, tmp_path: Path, reader: FakeReader
) -> None:
    with BreakingProxy(dovecot.port, b"SELECT", BreakPoint.BLACKHOLE) as proxy:
        office = Office(dovecot, tmp_path, reader, port=proxy.port)
        proposal = office.workshop.approved(office.deliver())
        office.worker._grace_seconds = 0.1
        office.worker.start()
        assert proxy.broken.wait(PATIENCE)
        office.close()
        again = Workshop(dovecot, tmp_path)
        assert ("approved", None, "mail_server_unreachable") == again.told(proposal)
        again.close()


def test_g6_a_second_worker_on_one_journal_does_not_start(office: Office, tmp_path: Path) -> None:
    office.worker.start()
    with pytest.raises(ConfigurationError, match="another change-executor"):
        office.hire().start()
    url = office.workshop.settings.journal.url
    # To SQLite a link is the file that it leads to.
    link = tmp_path / "link.db"
    link.symlink_to(journal_path(url))
    for address in (url, f"sqlite:///{link}"):
        with pytest.raises(ConfigurationError, match="another change-executor"):
            take_worker_lock(address)


def test_ended_proposals_lose_their_texts_in_time(office: Office) -> None:
    office.deliver()
    proposal = office.propose()
    office.worker.pass_once()
    office.workshop.happen(proposal, Event.REJECT)
    office.workshop.clock.advance(days=31)
    office.worker.pass_once()
    with office.workshop.journal.reading() as connection:
        assert 0 == connection.exec_driver_sql("SELECT count(*) FROM texts").scalar_one()


def test_another_process_that_resumes_is_heard_without_waiting_for_a_look(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no look of its own, only the octet that a command sends can wake the worker."""
    monkeypatch.setattr("change_executor.worker.FALLBACK_SECONDS", 3600.0)
    shop = office.workshop
    proposal = shop.approved(office.deliver())
    press_stop(shop.journal, PERSON)
    url = shop.settings.journal.url
    watch = Watch(shop.journal, journal_path(url), None, office.worker.wake, structlog.get_logger())
    watch.start()
    office.worker.start()
    office.until(lambda: shop.told(proposal)[2] == "stopped")
    command = open_journal(url, shop.clock)
    release_stop(command, "operator")
    command.close()
    poke(journal_path(url))
    office.until(lambda: shop.told(proposal)[0] == "applied")
    watch.stop()
