"""The index on disk: SQLite. Crosses from IMAP's vocabulary to JMAP's; one writer, many snapshot readers.

Text, structure and headers are kept compressed; attachments are not. The index is plain text on disk to whoever can
read its folder. `Store` opens; sync writes through `Store.account`; questions are answered from `Store.snapshot`.
Standards: RFC 8621 §2 to §4 for what is shown, RFC 6154 for roles and views. Never touches the network.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agent_reader.store.change_log import CannotCalculateChanges, ChangeList
    from agent_reader.store.changes import ChangeKind, DataType
    from agent_reader.store.mirror import AccountMirror
    from agent_reader.store.snapshot import MailboxCounts, Snapshot, StoredEmail, StoredMailbox
    from agent_reader.store.status import Failure, Location, MirrorStatus
    from agent_reader.store.store import Store

__all__ = [
    "AccountMirror",
    "CannotCalculateChanges",
    "ChangeKind",
    "ChangeList",
    "DataType",
    "Failure",
    "Location",
    "MailboxCounts",
    "MirrorStatus",
    "Snapshot",
    "Store",
    "StoredEmail",
    "StoredMailbox",
]

# Loaded when it is asked for: the process that reads messages loads what it reads with, and nothing that speaks IMAP.
_ROOMS: Final = {
    "AccountMirror": "mirror",
    "CannotCalculateChanges": "change_log",
    "ChangeKind": "changes",
    "ChangeList": "change_log",
    "DataType": "changes",
    "Failure": "status",
    "Location": "status",
    "MailboxCounts": "snapshot",
    "MirrorStatus": "status",
    "Snapshot": "snapshot",
    "Store": "store",
    "StoredEmail": "snapshot",
    "StoredMailbox": "snapshot",
}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(name)
    return getattr(import_module(f"agent_reader.store.{_ROOMS[name]}"), name)
