"""What one transaction makes different, each object once."""

from enum import StrEnum


class DataType(StrEnum):
    """The JMAP types that have states here."""

    EMAIL = "Email"
    MAILBOX = "Mailbox"
    THREAD = "Thread"


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

    def note(self, data_type: DataType, object_id: str, kind: ChangeKind) -> None:
        """Note a change; what was created and destroyed within one transaction was never there."""
        place = (data_type, object_id)
        after = together(self._kinds.get(place), kind)
        if after is None:
            del self._kinds[place]
        else:
            self._kinds[place] = after

    def rows(self) -> list[tuple[str, str, str]]:
        """Return (type, id, kind) of each."""
        return [(data_type.value, object_id, kind.value) for (data_type, object_id), kind in self._kinds.items()]


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
