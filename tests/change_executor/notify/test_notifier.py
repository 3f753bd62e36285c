"""What happens in the journal reaches the log and the receivers: late if they are away, and never twice."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from structlog.testing import capture_logs

from change_executor.lifecycle import Event
from change_executor.notify.channels import WebhookChannel
from change_executor.notify.delivery import Delivery
from change_executor.notify.message import MessageKind
from change_executor.notify.notifier import Notifier
from change_executor.switch import press_stop
from shared.settings import settings_from
from tests.change_executor.notify.receiver import Receiver
from tests.change_executor.notify.test_channels import message
from tests.servers.desk import Clock, Rows, journal_for, reading, settings_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    clock, settings = Clock(), settings_for(tmp_path)
    journal = journal_for(settings, clock)
    yield Rows(journal, settings, clock)
    journal.close()


def notifier(rows: Rows, folder: Path, receiver: Receiver, **section: Any) -> Notifier:
    secret = folder / "hook.secret"
    if not secret.exists():
        secret.write_text("s")
        secret.chmod(0o400)
    raw = rows.settings.model_dump(mode="json", exclude_none=True)
    raw["credentials"][0].pop("oauth", None)
    raw["notify"] = {"webhook": {"url": receiver.url, "secret_file": str(secret)}, **section}
    settings = settings_from(raw, type(rows.settings), "test")
    return Notifier(rows.journal, settings, structlog.get_logger(), secrets.token_bytes, pause_seconds=0)


def by_hand(watching: Notifier) -> None:
    """Send what is posted, and look only when the test does."""
    for delivery in watching._deliveries:
        delivery.start()


def test_a_commit_wakes_it(rows: Rows, tmp_path: Path) -> None:
    rows.clock.pass_by(seconds=-61)
    with Receiver() as receiver:
        watching = notifier(rows, tmp_path, receiver)
        rows.clock.pass_by(seconds=61)
        watching.start()
        rows.proposal(reading())
        receiver.wait_for(1)
        watching.stop()


def test_a_clock_that_is_set_back_makes_the_quiet_no_longer(rows: Rows, tmp_path: Path) -> None:
    with Receiver() as receiver:
        watching = notifier(rows, tmp_path, receiver)
        by_hand(watching)
        rows.proposal(reading())
        rows.clock.pass_by(hours=-3)
        watching.look()
        receiver.wait_for(1)
        watching.stop()


def test_an_alarm_outlives_a_look_that_fails_after_it_was_decided_on(rows: Rows, tmp_path: Path) -> None:
    with Receiver() as receiver:
        watching = notifier(rows, tmp_path, receiver, tell="subjects")
        by_hand(watching)
        rows.clock.pass_by(seconds=61)
        strange, usual = rows.proposal(reading("A")), rows.proposal(reading("B"))
        with rows.journal.writing() as writing:
            writing.keep_text(strange.id, "reading", "[" * 100_000)
        press_stop(rows.journal, "operator")
        watching.look()
        (came,) = receiver.wait_for(1)
        assert ("alarm", ["B"]) == (json.loads(came.body)["kind"], json.loads(came.body)["subjects"])
        assert {strange.id, usual.id} == watching._memory.told
        watching.stop()


def test_the_first_minute_is_quiet_then_one_message_and_a_digest_after_it(rows: Rows, tmp_path: Path) -> None:
    with Receiver() as receiver:
        watching = notifier(rows, tmp_path, receiver)
        by_hand(watching)
        rows.proposal(reading("A secret subject"))
        assert 0 < watching.look() <= 30
        rows.clock.pass_by(seconds=61)
        watching.look()
        rows.proposal(reading("Another one"))
        rows.proposal()
        watching.look()
        rows.clock.pass_by(minutes=59)
        watching.look()
        receiver.wait_for(1)
        assert 1 == len(receiver.came)
        rows.clock.pass_by(minutes=1)
        watching.look()
        came = receiver.wait_for(2)
        watching.stop()
    told = [json.loads(each.body) for each in came]
    assert [("waiting", 1, 1), ("waiting", 1, 2)] == [(each["kind"], each["new"], each["pending"]) for each in told]
    assert b"subject" not in came[0].body.replace(b'"subjects": []', b"")


def test_subjects_leave_only_where_the_operator_says_so(rows: Rows, tmp_path: Path) -> None:
    with Receiver() as receiver:
        watching = notifier(rows, tmp_path, receiver, tell="subjects")
        by_hand(watching)
        for number in range(12):
            rows.proposal(reading(f"Order {number}\u202e"))
        rows.clock.pass_by(seconds=61)
        watching.look()
        (came,) = receiver.wait_for(1)
        watching.stop()
    assert [f"Order {number}" for number in range(10)] == json.loads(came.body)["subjects"]


def test_an_alarm_is_logged_and_told_when_it_is_raised_and_when_it_is_over(rows: Rows, tmp_path: Path) -> None:
    proposal = rows.proposal(reading())
    rows.approve(proposal.id)
    with Receiver() as receiver, capture_logs() as logs:
        watching = notifier(rows, tmp_path, receiver)
        by_hand(watching)
        rows.clock.pass_by(minutes=10)
        watching.look()
        watching.look()
        receiver.wait_for(1)
        rows.happen(proposal.id, Event.CLAIM, Event.MOVED)
        watching.look()
        came = receiver.wait_for(2)
        watching.stop()
    assert ["alarm", "cleared"] == [json.loads(each.body)["kind"] for each in came]
    told = [(each["event"], each["code"]) for each in logs if each["event"].startswith("alarm:")]
    assert [("alarm:raise", "not_applied"), ("alarm:clear", "not_applied")] == told


def test_alarms_are_logged_where_nobody_is_told(rows: Rows) -> None:
    rows.approve(rows.proposal(reading()).id)
    rows.clock.pass_by(minutes=10)
    with capture_logs() as logs:
        Notifier(rows.journal, rows.settings, structlog.get_logger(), secrets.token_bytes).look()
    assert ["alarm:raise"] == [each["event"] for each in logs]


def test_a_receiver_that_is_away_gets_the_newest_state_once_with_everything_that_is_new() -> None:
    made = iter(range(100))
    with Receiver(*[500] * 10_000) as receiver, capture_logs() as logs:
        delivery = Delivery(
            WebhookChannel(receiver.url, b"key", Clock()),
            structlog.get_logger(),
            lambda: f"msg_{next(made)}",
            first_retry_seconds=0.05,
        )
        delivery.start()
        delivery.post(message(MessageKind.ALARM))
        receiver.wait_for(1)
        delivery.post(message(MessageKind.WAITING))
        receiver.wait_for(len(receiver.came) + 2)
        receiver.recover()
        came = receiver.wait_for_taken()
        delivery.stop(10)
    last = json.loads(came[-1].body)
    assert ("alarm", 2) == (last["kind"], last["new"])
    assert len(came) - 1 == sum(each["event"] == "notify:not_delivered" for each in logs)
    assert {"msg_0", "msg_1"} == {each.headers["webhook-id"] for each in came}
    assert came == receiver.came


def test_a_notifier_ends_at_once_while_its_receiver_is_away(rows: Rows, tmp_path: Path) -> None:
    with Receiver(*[500] * 50) as receiver:
        watching = notifier(rows, tmp_path, receiver)
        by_hand(watching)
        rows.proposal(reading())
        rows.clock.pass_by(seconds=61)
        watching.look()
        receiver.wait_for(1)
        watching.stop()
    assert all(not delivery._thread.is_alive() for delivery in watching._deliveries)
