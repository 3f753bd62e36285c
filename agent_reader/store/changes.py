"""What one transaction makes different, each object once."""

from enum import StrEnum
from typing import Final


class DataType(StrEnum):
    """The JMAP types that have states here."""

    EMAIL = "Email"
    MAILBOX = "Mailbox"
    THREAD = "Thread"


# Beside a Mailbox's own row: what became of other Mailboxes, and nothing of its own, is why it was updated. Who sees it
# and none of those is told nothing; no type that anybody asks for.
BY_OTHERS: Final = "MailboxByOthers"


class ChangeKind(StrEnum):
    """`COUNTED`: nothing of a Mailbox changed but its counts (RFC 8621 §2.2 updatedProperties)."""

    CREATED = "created"
    UPDATED = "updated"
    COUNTED = "counted"
    DESTROYED = "destroyed"


class Changes:
    """The changes of one transaction; several to one object come to one (RFC 8620 §5.2)."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[DataType, str], ChangeKind] = {}
        self._by_others: set[str] = set()

    def note(self, data_type: DataType, object_id: str, kind: ChangeKind) -> None:
        """Note a change; what was created and destroyed within one transaction was never there."""
        place = (data_type, object_id)
        after = together(self._kinds.get(place), kind)
        if after is None:
            del self._kinds[place]
        else:
            self._kinds[place] = after

    def note_by_others(self, mailbox_id: str) -> None:
        """Note that a Mailbox is another by what became of others; the last of all that is noted."""
        if self._kinds.get((DataType.MAILBOX, mailbox_id), ChangeKind.COUNTED) is ChangeKind.COUNTED:
            self._by_others.add(mailbox_id)
        self.note(DataType.MAILBOX, mailbox_id, ChangeKind.UPDATED)

    def rows(self) -> list[tuple[str, str, str]]:
        """Return (type, id, kind) of each."""
        own = [(data_type.value, object_id, kind.value) for (data_type, object_id), kind in self._kinds.items()]
        return [*own, *((BY_OTHERS, mailbox_id, ChangeKind.UPDATED.value) for mailbox_id in self._by_others)]


def together(before: ChangeKind | None, after: ChangeKind) -> ChangeKind | None:
    """Return what two changes to one object come to; None where it came and went."""
    match before, after:
        case None, _:
            return after
        case ChangeKind.CREATED, ChangeKind.DESTROYED:
            return None
        case ChangeKind.DESTROYED, ChangeKind.CREATED:
            return ChangeKind.UPDATED
        case ChangeKind.COUNTED, _:
            return after
        case _, ChangeKind.DESTROYED:
            return after
        case _:
            return before
