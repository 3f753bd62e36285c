"""What names the messages of a file: its ids tell, and what the settings want otherwise is read anew."""

from typing import Final

from agent_reader.identity import Identity
from agent_reader.store import mailboxes
from agent_reader.store.writing import Writing

# Ids from the first on and before the second.
_NAMED_OTHERWISE: Final = {Identity.OCTETS: ("E", "F"), Identity.HEADERS: ("M", "N")}


def restart_named_otherwise(writing: Writing, identity: Identity) -> None:
    """Begin anew each mailbox with copies whose names are of the other kind."""
    first, last = _NAMED_OTHERWISE[identity]
    # By the index of ids: where the settings did not change, it is one look into it.
    rows = writing.connection.execute(
        "SELECT DISTINCT m.key, m.uidvalidity FROM emails e CROSS JOIN copies c ON c.email_key = e.key "
        "JOIN mailboxes m ON m.key = c.mailbox_key WHERE e.id >= ? AND e.id < ? AND m.uidvalidity IS NOT NULL",
        (first, last),
    )
    for key, uidvalidity in list(rows):
        mailboxes.restart(writing, int(key), int(uidvalidity))
