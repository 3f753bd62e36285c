"""One transaction of a mirror: its connection, its moment, and what it made different."""

from dataclasses import dataclass, field
from datetime import datetime

import apsw

from agent_reader.store.changes import ChangeKind, Changes, DataType


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

    # Names of Mailboxes that came, went or moved: those below them stand elsewhere now.
    moved: set[str] = field(default_factory=set)
    # Attributes that a Mailbox got or lost: others may have other roles now.
    attributes: set[str] = field(default_factory=set)

    _tick: int | None = None

    def tick(self) -> int:
        """Return the tick of this transaction: later ones have a larger one."""
        if self._tick is None:
            self._tick = int(self.connection.execute("UPDATE account SET tick = tick + 1 RETURNING tick").get)
        return self._tick

    def note_mailbox(self, mailbox_key: int, kind: ChangeKind) -> None:
        """Note a change to a Mailbox; one that is not shown yet has none."""
        row = self.connection.execute("SELECT id, standing FROM mailboxes WHERE key = ?", (mailbox_key,)).fetchone()
        if row is not None and row[1] != "pending":
            self.changes.note(DataType.MAILBOX, str(row[0]), kind)

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
        return True

    def forget_changes(self, before: int) -> None:
        """Forget the changes before a moment, and remember from which state on they are whole."""
        for data_type in DataType:
            # The oldest row tells whether there is anything to forget; a round need not read them all.
            oldest = self.connection.execute(
                "SELECT at FROM changes WHERE type = ? ORDER BY state LIMIT 1", (data_type.value,)
            ).get
            if oldest is None or int(oldest) >= before:
                continue
            forgotten = self.connection.execute(
                "DELETE FROM changes WHERE type = ? AND at < ? RETURNING state", (data_type.value, before)
            )
            self.connection.execute(
                "UPDATE account SET changes_from = max(changes_from, ?)", (max(state for (state,) in forgotten),)
            )


def seconds(moment: datetime) -> int:
    """Return seconds since 1970 of an aware datetime."""
    return int(moment.timestamp())
