"""What changed since a state: the answers of Email/changes, Mailbox/changes and Thread/changes (RFC 8620 §5.2).

A state is `<epoch>-<number>`: the number counts the transactions that changed what is shown. One transaction can change
more than an answer may hold, so there are states inside it too: `<epoch>-<number>.<type>.<id>` is every transaction
before that number, and of this one the changes to objects of that type up to this id. How many those are is no place: a
view of a scope may have fewer the next time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import apsw

from agent_reader.store.changes import ChangeKind, DataType, together

# No number has another spelling: a state that was never given out is none.
_STATE: Final = re.compile(
    r"([0-9a-f]{1,32})-(0|[1-9]\d{0,17})(?:\.(Email|Mailbox|Thread)\.([A-Z][0-9a-z]{1,64}))?", re.ASCII
)


class CannotCalculateChanges(Exception):  # noqa: N818 - RFC 8620 §5.2 calls it so
    """The state is no state of this mirror, or older than what is remembered."""


@dataclass(frozen=True, slots=True)
class ChangeList:
    """What is different between two states, each id in one list, in the order in which it changed first.

    `has_more`: `new_state` lies between; ask again from there. `counts_only`: something was updated, and nothing but
    counts of Mailboxes (RFC 8621 §2.2 updatedProperties).
    """

    old_state: str
    new_state: str
    has_more: bool
    created: tuple[str, ...]
    updated: tuple[str, ...]
    destroyed: tuple[str, ...]
    counts_only: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """After every change with a smaller number, and of those with this one after that to `object_id`, if any."""

    number: int
    object_id: str = ""


def changes_since(
    connection: apsw.Connection, data_type: DataType, untrusted_state: str, current: str, limit: int
) -> ChangeList:
    """Return what changed, at most `limit` ids. Raises `CannotCalculateChanges`.

    `current` is the state of the snapshot that `connection` reads. An object that came and went between the two states
    is in no list; one that went and came back is updated.
    """
    assert limit > 0
    begin = _place(connection, data_type, untrusted_state, current)
    epoch = current.partition("-")[0]
    kinds: dict[str, ChangeKind] = {}
    new_state, has_more, reached = current, False, begin
    for number, object_id, kind in _rows(connection, data_type, begin):
        if object_id not in kinds and len(kinds) >= limit:
            # Where another transaction begins, the one before was given whole.
            inside = f".{data_type.value}.{reached.object_id}" if number == reached.number else ""
            new_state, has_more = f"{epoch}-{reached.number}{inside}", True
            break
        reached = _Place(number, object_id)
        after = together(kinds.get(object_id), kind)
        if after is None:
            del kinds[object_id]
        else:
            kinds[object_id] = after
    updated = [each for each, kind in kinds.items() if kind in {ChangeKind.UPDATED, ChangeKind.COUNTED}]
    return ChangeList(
        old_state=untrusted_state,
        new_state=new_state,
        has_more=has_more,
        created=tuple(each for each, kind in kinds.items() if kind is ChangeKind.CREATED),
        updated=tuple(updated),
        destroyed=tuple(each for each, kind in kinds.items() if kind is ChangeKind.DESTROYED),
        counts_only=bool(updated) and all(kinds[each] is ChangeKind.COUNTED for each in updated),
    )


def _place(connection: apsw.Connection, data_type: DataType, untrusted_state: str, current: str) -> _Place:
    found = _STATE.fullmatch(untrusted_state)
    epoch, _, last = current.partition("-")
    if found is None or found[1] != epoch or found[3] not in {None, data_type.value}:
        raise CannotCalculateChanges
    number = int(found[2])
    if number == int(last) and found[3] is None:
        return _Place(number + 1)
    changes_from = int(connection.execute("SELECT changes_from FROM account").get)
    # A number without changes was never given out, or was lost with the machine's power: see `database.py`.
    if number < changes_from or (number > changes_from and not _has_changes(connection, number)):
        raise CannotCalculateChanges
    return _Place(number + 1) if found[3] is None else _Place(number, found[4])


def _has_changes(connection: apsw.Connection, number: int) -> bool:
    return any(
        connection.execute("SELECT 1 FROM changes WHERE type = ? AND state = ? LIMIT 1", (each.value, number)).get
        for each in DataType
    )


def _rows(connection: apsw.Connection, data_type: DataType, begin: _Place) -> Iterator[tuple[int, str, ChangeKind]]:
    """Each change from there on, in order: its number, the object's id and what became of it."""
    created = _mailboxes_created(connection, begin) if data_type is DataType.MAILBOX else {}
    rows = connection.execute(
        "SELECT state, id, kind FROM changes "
        "WHERE type = ? AND state >= ? AND (state > ? OR id > ?) ORDER BY state, id",
        (data_type.value, begin.number, begin.number, begin.object_id),
    )
    for state, object_id, kind in rows:
        if state >= created.get(object_id, 0):
            yield int(state), str(object_id), ChangeKind(kind)


def _mailboxes_created(connection: apsw.Connection, begin: _Place) -> dict[str, int]:
    """The number of the state in which each new Mailbox came.

    A view of a scope says that counts changed wherever a Thread of the Email is now, also of what came later; RFC 8620
    §5.2 has nothing updated before it is created.
    """
    rows = connection.execute(
        "SELECT id, state FROM changes WHERE type = 'Mailbox' AND kind = 'created' AND state >= ?", (begin.number,)
    )
    created: dict[str, int] = {}
    for mailbox_id, state in rows:
        created[mailbox_id] = max(state, created.get(mailbox_id, 0))
    return created
