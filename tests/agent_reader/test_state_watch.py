"""New states of an account wake who waits for them, whichever thread wrote."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent_reader.state_watch import StateWatch
from agent_reader.store.store import Store
from agent_reader.sync.mirror import ListedMailbox

if TYPE_CHECKING:
    from pathlib import Path

INBOX = ListedMailbox("INBOX", "/", frozenset(), subscribed=False)
DEADLINE = 20.0


def in_a_thread(watch: StateWatch, *account_ids: str) -> None:
    def announce() -> None:
        for account_id in account_ids:
            watch.announce(account_id)

    thread = threading.Thread(target=announce)
    thread.start()
    thread.join()


def test_many_states_of_one_account_are_heard_once_and_those_of_others_not_at_all() -> None:
    async def subscriber() -> frozenset[str]:
        watch = StateWatch()
        with watch.subscribe({"a", "b"}) as subscription:
            in_a_thread(watch, "a", "c", "a", "b", "a")
            return await asyncio.wait_for(subscription.changed(), DEADLINE)

    assert frozenset({"a", "b"}) == asyncio.run(subscriber())


def test_what_was_heard_is_not_heard_again_and_the_wait_goes_on() -> None:
    async def subscriber() -> bool:
        watch = StateWatch()
        with watch.subscribe({"a"}) as subscription:
            watch.announce("a")
            await subscription.changed()
            waiting = asyncio.create_task(subscription.changed())
            # Every callback that is scheduled by now runs before this one returns.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            still = not waiting.done()
            in_a_thread(watch, "a")
            return still and frozenset({"a"}) == await asyncio.wait_for(waiting, DEADLINE)

    assert asyncio.run(subscriber())


def test_a_subscriber_that_left_and_a_loop_that_ended_disturb_nobody() -> None:
    watch = StateWatch()
    with contextlib.ExitStack() as left_open:

        async def subscriber() -> None:
            left_open.enter_context(watch.subscribe({"a"}))

        asyncio.run(subscriber())
        watch.announce("a")
    watch.announce("a")


def test_the_store_announces_each_new_state_after_its_commit_and_nothing_else(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []

    def announce(account_id: str) -> None:
        with store.snapshot(account_id) as snapshot:
            heard.append((account_id, snapshot.state))

    with contextlib.closing(Store(tmp_path, lambda: datetime.now(UTC), announce=announce)) as store:
        mirror = store.account("shop")
        mirror.put_mailboxes([INBOX])
        mirror.put_mailboxes([INBOX])
        # Looked at, so that the end of the round has nothing to say of it: one that was passed over gets other rights.
        (inbox,) = mirror.mailboxes()
        mirror.looked(inbox.id, 1, None)
        mirror.settle()
        with store.snapshot("shop") as snapshot:
            expected = snapshot.state
    assert [("shop", expected)] == heard
