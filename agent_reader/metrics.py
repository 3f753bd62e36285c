"""What a monitor learns of the reader: how fresh and whole each account's index is, and how much agents ask."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

from agent_reader.access import Access
from agent_reader.config import Account
from agent_reader.store.store import Store
from agent_reader.sync.reading_notice import IN_READER
from shared.metrics import PROCESS_HELPS, Health, Measure, exposition, of_the_process
from shared.time_and_chance import Clock

HELPS: Final = PROCESS_HELPS | {
    "mailwarrant_sync_lag_seconds": "Since the last time that every mailbox of the account was looked at.",
    "mailwarrant_index_fresh": "1 where the index is as fresh as it should be.",
    "mailwarrant_index_messages": "Copies of messages in the index.",
    "mailwarrant_index_coverage_ratio": "Messages in the index, of those that the mail server counts.",
    "mailwarrant_messages_set_aside": "Messages that could not be fetched or read.",
    "mailwarrant_sync_failing": "1 where the last look at the account failed.",
    "mailwarrant_reading_in_reader": "1 while a long backlog is read in the reader, since no process can be started.",
    "mailwarrant_fetched_today_octets": "Mail fetched in the last 24 hours.",
    "mailwarrant_queries_total": "Answers to agents that are in the read log.",
}


def metrics(accounts: Sequence[Account], store: Store, access: Access, clock: Clock) -> bytes:
    """Return all numbers as text. Raises what a store or a read log raises that cannot be used."""
    found = [measure for account in accounts for measure in _of_account(account, store, clock())]
    found.append(Measure("mailwarrant_queries_total", float(access.recorded())))
    return exposition([*found, *of_the_process()], HELPS)


def health(accounts: Sequence[Account], store: Store, access: Access, are_alive: Callable[[], bool]) -> Health:
    """Return whether every account's worker lives, the read log can be read, and no account is stale."""
    access.recorded()
    stale = [account.id for account in accounts if not store.is_fresh(account.id)]
    alive = are_alive()
    return Health(alive and not stale, {"workers": alive, "stale": len(stale), "accounts": len(accounts)})


def _of_account(account: Account, store: Store, now: datetime) -> Iterator[Measure]:
    labels = (("account", account.id),)
    status, progress = store.status(account.id), store.progress(account.id)
    if status.settled_at is not None:
        lag = max(0.0, (now - status.settled_at).total_seconds())
        yield Measure("mailwarrant_sync_lag_seconds", lag, labels)
    yield Measure("mailwarrant_index_fresh", float(store.is_fresh(account.id)), labels)
    yield Measure("mailwarrant_index_messages", float(progress.messages), labels)
    if progress.expected is not None:
        coverage = min(1.0, progress.messages / progress.expected) if progress.expected else 1.0
        yield Measure("mailwarrant_index_coverage_ratio", coverage, labels)
    yield Measure("mailwarrant_messages_set_aside", float(len(status.set_aside)), labels)
    yield Measure("mailwarrant_sync_failing", float(status.failure is not None), labels)
    in_reader = status.failure is not None and status.failure.code == IN_READER
    yield Measure("mailwarrant_reading_in_reader", float(in_reader), labels)
    yield Measure("mailwarrant_fetched_today_octets", float(progress.octets_today), labels)
