"""What a token would see: how many messages in which mailbox, and the newest of them by subject."""

from collections.abc import Collection, Iterator
from typing import Final

from agent_reader.commands.showing import moment, shown
from agent_reader.config import ReaderSettings
from agent_reader.scope import ORDINARY, Scope
from agent_reader.store.database import account_file
from agent_reader.store.selection import All
from agent_reader.store.snapshot import Snapshot
from agent_reader.store.status import covers_all
from agent_reader.store.store import Store
from shared.time_and_chance import utc_now

# As many as fit on a screen beside the counts.
_NEWEST: Final = 10


def preview(settings: ReaderSettings, scope: Scope) -> Iterator[str]:
    """Yield the lines of the preview, from the index as it is now."""
    folder = settings.store.folder
    store = Store(folder, utc_now)
    try:
        for account in settings.accounts:
            if not scope.allows_account(account.id):
                yield f"{account.id}: not seen"
            # Looking must not make a file.
            elif not account_file(folder, account.id).exists():
                yield f"{account.id}: never synced"
            else:
                with store.snapshot(account.id, scope) as snapshot:
                    yield from _of_account(snapshot)
    finally:
        store.close()


def unknown_mailboxes(settings: ReaderSettings, scope: Scope) -> tuple[str, ...]:
    """Return the mailboxes that a scope names and no account of it has now; none while an account was never synced."""
    folder = settings.store.folder
    accounts = [account.id for account in settings.accounts if scope.allows_account(account.id)]
    if not all(account_file(folder, account).exists() for account in accounts):
        return ()
    store = Store(folder, utc_now)
    try:
        known: set[str] = set()
        for account in accounts:
            with store.snapshot(account, ORDINARY) as snapshot:
                known |= {mailbox.name for mailbox in snapshot.mailboxes()}
    finally:
        store.close()
    return _missing(scope, known)


def _missing(scope: Scope, names: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in scope.mailboxes or () if name not in names and name.upper() != "INBOX")


def _of_account(snapshot: Snapshot) -> Iterator[str]:
    hidden = snapshot.hidden()
    yield (
        f"{snapshot.account_id}: {snapshot.count(All(()))} messages; hidden: {hidden.outside} outside the scope, "
        f"{hidden.withheld} withheld as sign-in mail"
    )
    if not covers_all(snapshot.connection):
        yield "  this is not all yet: the account was not read to its end (`agent-reader status`)"
    names = {mailbox.name for mailbox in snapshot.mailboxes()}
    for name in _missing(snapshot.scope, names):
        yield f"  there is no mailbox {shown(name)} now"
    counts = snapshot.counts(None)
    for mailbox in snapshot.mailboxes():
        count = counts.get(mailbox.key)
        yield f"  {0 if count is None else count.total_emails:>8} {shown(mailbox.name)}"
    ids = list(snapshot.ids(All(()), (), limit=_NEWEST))
    for email in snapshot.emails(ids).values():
        yield f"  {moment(email.received_at)} {shown(str(email.summary.get('subject') or '(no subject)'))}"
