"""One transaction of a mirror: its connection, its moment, and what it made different."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import apsw

from agent_reader.store.changes import BY_OTHERS, ChangeKind, Changes, DataType

# What became different of an Email besides its mailboxes, as bits.
KEYWORDS_CHANGED: Final = 1
UNREAD_CHANGED: Final = 2
WORDS_CHANGED: Final = 4


@dataclass(frozen=True, slots=True)
class _EmailChange:
    before: frozenset[int]
    after: frozenset[int]
    changed: int


@dataclass(slots=True)
class Writing:
    """What the writing functions of the store share within one transaction. `now` is seconds since 1970."""

    connection: apsw.Connection
    now: int
    changes: Changes = field(default_factory=Changes)
    # Emails whose copies changed; each is brought up to date once, in the order of keys, before the end.
    touched: set[int] = field(default_factory=set)
    # Words of Emails that are new in this transaction, to spare their way back from the file.
    words: dict[int, tuple[str, ...]] = field(default_factory=dict)
    # Ids of Emails that are kept no more, or less of them: what was written of them is to be forgotten too.
    forgotten: set[str] = field(default_factory=set)

    # Whether what is kept of some message was seen to be damaged.
    met_damage: bool = False

    # Names of Mailboxes that came, went or moved: those below them stand elsewhere now.
    moved: set[str] = field(default_factory=set)
    # Attributes that a Mailbox got or lost: others may have other roles now.
    attributes: set[str] = field(default_factory=set)

    email_changes: dict[int, _EmailChange] = field(default_factory=dict)

    _tick: int | None = None

    def tick(self) -> int:
        """Return the tick of this transaction: later ones have a larger one."""
        if self._tick is None:
            self._tick = int(self.connection.execute("UPDATE account SET tick = tick + 1 RETURNING tick").get)
        return self._tick

    def note_damage(self) -> None:
        """Note that what is kept of some message is damaged."""
        self.met_damage = True

    def note_mailbox(self, mailbox_key: int, kind: ChangeKind) -> None:
        """Note a change to a Mailbox; one that is not shown yet has none."""
        row = self.connection.execute("SELECT id, standing FROM mailboxes WHERE key = ?", (mailbox_key,)).fetchone()
        if row is not None and row[1] != "pending":
            self.changes.note(DataType.MAILBOX, str(row[0]), kind)

    def note_email(self, key: int, before: frozenset[int], after: frozenset[int], changed: int) -> None:
        """Note from which mailboxes to which an Email went; several changes of one come to one."""
        earlier = self.email_changes.get(key)
        if earlier is not None:
            before, changed = earlier.before, changed | earlier.changed
        self.email_changes[key] = _EmailChange(before, after, changed)

    def finish(self) -> bool:
        """Give what changed a state of its own; without a change the state stays. Whether there is a new one."""
        rows = self.changes.rows()
        if not rows:
            return False
        state = self.connection.execute("UPDATE account SET state = state + 1 + skip, skip = 0 RETURNING state").get
        self.connection.executemany(
            "INSERT INTO changes (state, type, id, kind, at) VALUES (?, ?, ?, ?, ?)",
            [(state, *row, self.now) for row in rows],
        )
        self.connection.executemany(
            "INSERT INTO email_changes (state, email_key, mailboxes_before, mailboxes_after, changed, at) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [
                (state, key, json.dumps(sorted(each.before)), json.dumps(sorted(each.after)), each.changed, self.now)
                for key, each in self.email_changes.items()
                if each.before or each.after
            ],
        )
        return True

    def forget_changes(self, before: int) -> None:
        """Forget the changes before a moment, and remember from which state on they are whole."""
        for data_type in (*(each.value for each in DataType), BY_OTHERS):
            # The oldest row tells whether there is anything to forget; a round need not read them all.
            oldest = self.connection.execute(
                "SELECT at FROM changes WHERE type = ? ORDER BY state LIMIT 1", (data_type,)
            ).get
            if oldest is None or int(oldest) >= before:
                continue
            forgotten = self.connection.execute(
                "DELETE FROM changes WHERE type = ? AND at < ? RETURNING state", (data_type, before)
            )
            self.connection.execute(
                "UPDATE account SET changes_from = max(changes_from, ?)", (max(state for (state,) in forgotten),)
            )
        self._forget_email_changes(before)

    def _forget_email_changes(self, before: int) -> None:
        connection = self.connection
        oldest = connection.execute("SELECT at FROM email_changes ORDER BY state LIMIT 1").get
        if oldest is None or int(oldest) >= before:
            return
        connection.execute("DELETE FROM email_changes WHERE at < ?", (before,))
        connection.execute("DELETE FROM gone_emails WHERE at < ?", (before,))
        connection.execute(
            "DELETE FROM sign_in_emails WHERE NOT EXISTS (SELECT 1 FROM emails e WHERE e.key = email_key) "
            "AND NOT EXISTS (SELECT 1 FROM gone_emails g WHERE g.key = email_key)"
        )


def seconds(moment: datetime) -> int:
    """Return seconds since 1970 of an aware datetime."""
    return int(moment.timestamp())
