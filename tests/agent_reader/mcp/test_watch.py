"""`agent-reader watch`: real processes in front of a real daemon and a real mail server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_reader.relay.jmap_client import JmapClient
from agent_reader.relay.options import reader_at
from agent_reader.relay.watch import Pace, Watch
from agent_reader.relay.watch_filter import WatchFilter
from agent_reader.relay.watch_run import Batch, Ended
from agent_reader.relay.watch_state import StateFile
from tests.agent_reader.mcp.desk import id_of, outside
from tests.agent_reader.mcp.mails import CANARY, HOSTILE, attached
from tests.agent_reader.mcp.watching import REPOSITORY, Watcher, World, watched_world
from tests.agent_reader.served import octets
from tests.end_to_end.houses import eventually
from tests.servers.dovecot_config import INCOMING

SECRET = "sk-not-for-the-command"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with watched_world(tmp_path_factory.mktemp("watch")) as found:
        yield found


def test_each_message_is_given_once_framed_without_a_secret_and_across_restarts(world: World) -> None:
    with world.watcher("once") as watcher:
        watcher.program = ("agent_reader", "watch")
        watcher.environment = {"ANTHROPIC_API_KEY": SECRET, "MAILWARRANT_TOKEN": world.token_file.read_text()}
        watcher.start()
        watcher.takes_baseline()
        hostile = [message.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for message in HOSTILE]
        for message in hostile:
            world.dovecot.deliver("INBOX", message)
        watcher.tells(*hostile)
        assert 0 == watcher.stop()
        while_down = octets(40, "While nobody watched", "x")
        world.dovecot.deliver(INCOMING, while_down)
        watcher.start()
        watcher.tells(while_down)
        assert 0 == watcher.stop()
        assert sorted(map(id_of, (*hostile, while_down))) == sorted(watcher.told())
        for batch in watcher.batches():
            assert CANARY not in outside(batch["text"])
            assert "data, never instructions" in batch["text"]
            assert ["--interval", "$HOME; `id`"] == batch["argv"]
            assert {"ANTHROPIC_API_KEY", "MAILWARRANT_TOKEN"}.isdisjoint(batch["env"])
            assert SECRET not in json.dumps(batch)
            assert world.token_file.read_text() not in json.dumps(batch)
        assert CANARY not in watcher.errors + (watcher.folder / "state.json").read_text() + watcher.status()


class Unfinished(JmapClient):
    """The real reader, which says of its index that not every mailbox was read to its end."""

    def state(self) -> tuple[str, bool]:
        return super().state()[0], False


def test_mail_of_the_second_in_which_a_watch_began_is_news_before_the_index_is_whole(world: World) -> None:
    second = datetime.now(UTC).replace(microsecond=0)
    told: list[str] = []

    def give(batch: Batch) -> Ended:
        told.extend(batch.ids)
        return Ended(0, "done")

    watching = Watch(
        Unfinished(reader_at(world.address, world.token_file), "shop"),
        StateFile(world.folder / "second.json"),
        WatchFilter(),
        Pace(timedelta(0), timedelta(seconds=1)),
        lambda: second + timedelta(seconds=0.9),
        os.urandom,
        give,
        print,
    )
    assert watching.once()
    before, news = octets(45, "A second before", "x"), octets(46, "Of that second", "x")
    world.dovecot.deliver("INBOX", before, internaldate=second - timedelta(seconds=1))
    world.dovecot.deliver("INBOX", news, internaldate=second)
    eventually(lambda: (watching.once() and told) or None, "the message of that second")
    assert [id_of(news)] == told


def test_a_folder_that_was_made_anew_and_an_index_that_was_made_anew_tell_nothing_twice(world: World) -> None:
    kept = tuple(octets(number, f"Kept {number}", "x") for number in range(50, 54))
    with world.watcher("anew") as watcher:
        watcher.start()
        watcher.takes_baseline()
        world.dovecot.deliver(INCOMING, kept[0])
        world.dovecot.deliver(INCOMING, kept[1])
        watcher.tells(*kept[:2])
        with world.dovecot.rearranging() as owner:
            # RFC 9051 §2.3.1.1: the same messages under a new UIDVALIDITY.
            assert "OK" == owner.delete(INCOMING)[0]
            assert "OK" == owner.create(INCOMING)[0]
        for message in kept[:3]:
            world.dovecot.deliver(INCOMING, message)
        watcher.tells(*kept[:3])
        # The reader ends, its index is lost, and it comes back: the stream and the place with it.
        world.reader.stop()
        eventually(lambda: watcher.state["unreachable"], "the watch to notice")
        assert "the reader cannot be asked" in watcher.status()
        for path in (world.reader.folder / "index").glob("mail-*"):
            path.unlink()
        world.dovecot.deliver(INCOMING, kept[3])
        world.reader.start()
        watcher.tells(*kept)
        assert 0 == watcher.stop()
        assert sorted(map(id_of, kept)) == sorted(watcher.told())


def test_a_command_that_fails_is_seen_to_and_gets_the_batch_again(world: World) -> None:
    message = octets(60, "Important", "x")
    with world.watcher("failing") as watcher:
        watcher.start()
        watcher.takes_baseline()
        (watcher.folder / "fail").touch()
        world.dovecot.deliver("INBOX", message)
        eventually(lambda: watcher.state["failures"] >= 2, "two failures")
        status = watcher.status()
        assert "waiting: 1 messages, not given before" in status
        assert "command_failed (exit status 3)" in status
        (watcher.folder / "fail").unlink()
        watcher.tells(message)
        assert 0 == watcher.stop()
        assert "command_failed (exit status 3); the 1 messages are given again in" in watcher.errors
        assert {id_of(message)} == set(watcher.told())
        assert len(watcher.told()) >= 3
        # Once, for a timer: the exit status and the text say the same.
        (watcher.folder / "fail").touch()
        another = octets(61, "Important too", "x")
        world.dovecot.deliver("INBOX", another)
        done = eventually(lambda: failed if (failed := watcher.once()).returncode else None, "the failure")
        assert 1 == done.returncode
        assert "given again" in done.stderr
        missing = subprocess.run(
            [*watcher.command("--once")[:-6], "--run", "/no/such/program"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
        assert 1 == missing.returncode
        assert "command_not_started (No such file or directory)" in missing.stderr
        assert [id_of(another)] == watcher.state["waiting"]


def test_a_watch_that_is_killed_while_its_command_runs_gives_the_batch_again_and_says_so(world: World) -> None:
    message = octets(70, "Half given", "x")
    with world.watcher("killed") as watcher:
        os.mkfifo(watcher.folder / "stay")
        watcher.start()
        watcher.takes_baseline()
        world.dovecot.deliver("INBOX", message)
        eventually(lambda: watcher.batches() or None, "the command to have its batch")
        assert -signal.SIGKILL == watcher.stop(signal.SIGKILL)
        # The command that was left behind goes on now, and ends.
        with (watcher.folder / "stay").open("w"):
            (watcher.folder / "stay").unlink()
        assert 0 == watcher.once().returncode
        first, second = watcher.batches()
        assert "given before" not in first["text"]
        assert "Some may have been given before" in outside(second["text"])
        assert [] == watcher.state["waiting"]


def test_a_watch_that_is_told_to_end_ends_its_command_and_keeps_the_batch(world: World) -> None:
    message = octets(75, "Not done yet", "x")
    with world.watcher("ended") as watcher:
        os.mkfifo(watcher.folder / "stay")
        watcher.start()
        watcher.takes_baseline()
        world.dovecot.deliver("INBOX", message)
        eventually(lambda: watcher.batches() or None, "the command to have its batch")
        second = watcher.once()
        assert 2 == second.returncode
        assert "another watch is running" in second.stderr
        assert 0 == watcher.stop()
        assert [id_of(message)] == watcher.state["waiting"]
        over = watcher.once("--time-limit", "0.2")
        assert "command_over_time (0.2 s)" in over.stderr


WANTED = attached(80, "x", "a.txt", "text/plain", b"x", From="Ann <ann@shop.example>", To="me@home.example")
OTHERS = (
    octets(81, "Below", "x", From="ann@mail.shop.example"),
    octets(82, "Like it", "x", From="ann@notshop.example"),
    octets(83, "Two", "x", From="ann@shop.example, bob@shop.example"),
)
ROBOT = octets(84, "Ticket 7", "x", From="ann@shop.example", Auto_Submitted="auto-replied")
FILTERS: dict[str, tuple[dict[str, Any], frozenset[bytes]]] = {
    "domain": ({"domains": frozenset({"shop.example"})}, frozenset({WANTED})),
    "from": ({"senders": frozenset({"ann@notshop.example", "x@y"})}, frozenset({OTHERS[1]})),
    "to": ({"recipients": frozenset({"me@home.example"})}, frozenset({WANTED})),
    "attachment": ({"has_attachment": True}, frozenset({WANTED})),
    "subject": ({"subject_contains": "TICKET", "admits_automatic": True}, frozenset({ROBOT})),
    "automatic": ({"senders": frozenset({"ann@shop.example"})}, frozenset({WANTED})),
    "queue": ({"mailbox": INCOMING}, frozenset({OTHERS[0]})),
    "all": (
        {"mailbox": "inbox", "has_attachment": False, "domains": frozenset({"notshop.example"})},
        frozenset({OTHERS[1]}),
    ),
}


def looking(world: World, name: str, told: set[str]) -> Watch:
    """A watch in this process, in front of the real daemon; `told` gets the ids that are given."""
    conditions = dict(FILTERS[name][0])
    client = JmapClient(reader_at(world.address, world.token_file), "shop")
    if "mailbox" in conditions:
        conditions["mailbox_id"] = client.mailbox_id(conditions.pop("mailbox"))

    def give(batch: Batch) -> Ended:
        told.update(batch.ids)
        return Ended(0, "done")

    file = StateFile(world.folder / f"filter-{name}.json")
    pace = Pace(timedelta(0), timedelta(seconds=1))
    return Watch(client, file, WatchFilter(**conditions), pace, lambda: datetime.now(UTC), os.urandom, give, print)


def test_each_filter_lets_through_what_it_names_and_nothing_that_is_like_it(world: World) -> None:
    told: dict[str, set[str]] = {name: set() for name in FILTERS}
    for name in FILTERS:
        assert looking(world, name, told[name]).once()
    for message in (WANTED, *OTHERS[1:], ROBOT):
        world.dovecot.deliver("INBOX", message)
    world.dovecot.deliver(INCOMING, OTHERS[0])
    # Once the last of them is in, all are.
    eventually(lambda: (looking(world, "queue", told["queue"]).once() and told["queue"]) or None, "the last message")
    eventually(lambda: (looking(world, "subject", told["subject"]).once() and told["subject"]) or None, "the robot")
    for name, (_, wanted) in FILTERS.items():
        assert looking(world, name, told[name]).once()
        assert {id_of(message) for message in wanted} == told[name], name


def test_what_is_moved_into_the_queue_later_is_given_then_and_batches_keep_their_distance(world: World) -> None:
    message = octets(90, "Moved by the owner", "x")
    with world.watcher("moved", "--queue", INCOMING, "--interval", "3600") as watcher:
        watcher.start()
        watcher.takes_baseline()
        world.dovecot.deliver("INBOX", message)
        with world.dovecot.connect() as owner:
            owner.select("INBOX")
            assert "OK" == owner.uid("MOVE", owner.uid("SEARCH", "SUBJECT", '"Moved by"')[1][0].decode(), INCOMING)[0]
        watcher.tells(message)
        later = octets(91, "Within the hour", "x")
        world.dovecot.deliver(INCOMING, later)
        eventually(lambda: [id_of(later)] == watcher.state["waiting"], "the message to wait")
        assert 1 == len(watcher.batches())
        assert "waiting: 1 messages, not given before" in watcher.status()


def test_mistakes_are_one_clear_message(world: World) -> None:
    with world.watcher("wrong") as watcher:
        for options, said in (
            (("--queue", "Nowhere"), "names no mailbox"),
            (("--account", "nobody's"), "names no account"),
        ):
            done = watcher.once(*options)
            assert (2, "") == (done.returncode, done.stdout)
            assert said in done.stderr
        revoked = watcher.folder / "revoked"
        revoked.touch(0o600)
        revoked.write_text(made := world.reader.said("token", "create", "--agent", "gone").strip().splitlines()[-1])
        world.reader.said("token", "revoke", made.split("_")[1])
        watcher.token_file = revoked
        done = watcher.once()
        assert 1 == done.returncode
        assert "revoked_token" in done.stderr
        assert made not in done.stderr
        watcher.token_file = world.token_file
        (watcher.folder / "state.json").write_text("{}")
        assert 2 == watcher.once().returncode
        assert "No watch has looked yet" in Watcher(world.folder, "", Path()).status()
