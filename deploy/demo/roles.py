"""What each of the demo's three logins may do: one mailbox set, and a session that refuses by default.

Stricter than any real server can be: IMAP rights know no "move only" (RFC 6851 §5: MOVE needs the rights to
insert, to delete and to expunge), so on a real server the executor's narrowness comes from its own code alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from pymap.backend.dict import Config, Session
from pymap.backend.dict.filter import FilterSet
from pymap.backend.dict.mailbox import MailboxSet, Message
from pymap.exceptions import MailboxReadOnly, NotAllowedError
from pymap.flags import FlagOp
from pymap.mailbox import MailboxSnapshot
from pymap.parsing.message import AppendMessage
from pymap.parsing.response.code import AppendUid, CopyUid
from pymap.parsing.specials import ObjectId, SequenceSet
from pymap.parsing.specials.flag import Flag
from pymap.selected import SelectedMailbox


class Role(StrEnum):
    """A login of the demo's server; the value is the user name."""

    OWNER = "owner"
    READER = "reader"
    EXECUTOR = "executor"


INCOMING: Final = "Incoming"
PROCESSED: Final = "Processed"
ESCALATE: Final = "Escalate"

# There and back: a person may undo a move. Between the two destinations nothing moves.
EXECUTOR_MOVES: Final = frozenset(
    {(INCOMING, PROCESSED), (INCOMING, ESCALATE), (PROCESSED, INCOMING), (ESCALATE, INCOMING)}
)
_EXECUTOR_SELECTS: Final = frozenset(source for source, _ in EXECUTOR_MOVES)

# RFC 6154 §2; shown in a plain LIST, so that a client can tell what is sent mail and what is rubbish.
SPECIAL_USE: Final = {"Archive": b"Archive", "Sent": b"Sent", "Trash": b"Trash"}


class RoleSession(Session):
    """A session of one login; everything that changes a mailbox asks the role first.

    Refusals are `NO [NOPERM]` (RFC 5530 §3) or `NO [READ-ONLY]`.
    """

    def __init__(self, role: Role, config: Config, mailbox_set: MailboxSet, filter_set: FilterSet) -> None:
        super().__init__(role.value, config, mailbox_set, filter_set)
        self.role: Final = role

    def _owner_only(self) -> None:
        if self.role is not Role.OWNER:
            raise NotAllowedError(f"The login {self.role} may not do this.")

    async def list_mailboxes(
        self, ref_name: str, filter_: str, subscribed: bool = False, selected: SelectedMailbox | None = None
    ) -> tuple[Iterable[tuple[str, str | None, Sequence[bytes]]], SelectedMailbox | None]:
        """List the mailboxes with their special use."""
        listed, selected = await super().list_mailboxes(ref_name, filter_, subscribed, selected)
        with_use = [
            (name, delimiter, [*attributes, *([SPECIAL_USE[name]] if name in SPECIAL_USE else [])])
            for name, delimiter, attributes in listed
        ]
        return with_use, selected

    async def select_mailbox(self, name: str, readonly: bool = False) -> tuple[MailboxSnapshot, SelectedMailbox]:
        """Open a mailbox; for the reader every SELECT is an EXAMINE, and so no message stops being recent."""
        match self.role:
            case Role.OWNER:
                forced = False
            case Role.READER:
                forced = True
            case Role.EXECUTOR:
                forced = name not in _EXECUTOR_SELECTS
        return await super().select_mailbox(name, readonly or forced)

    async def fetch_messages(
        self, selected: SelectedMailbox, sequence_set: SequenceSet, set_seen: bool
    ) -> tuple[Iterable[tuple[int, Message]], SelectedMailbox]:
        """Fetch; only the owner's BODY[] marks a message as seen."""
        return await super().fetch_messages(selected, sequence_set, set_seen and self.role is Role.OWNER)

    async def move_messages(
        self, selected: SelectedMailbox, sequence_set: SequenceSet, mailbox: str
    ) -> tuple[CopyUid | None, SelectedMailbox]:
        """Move; the executor along `EXECUTOR_MOVES` only. The library itself would move out of an EXAMINE."""
        if self.role is not Role.EXECUTOR or (selected.lookup, mailbox) not in EXECUTOR_MOVES:
            self._owner_only()
        if selected.readonly:
            raise MailboxReadOnly
        return await super().move_messages(selected, sequence_set, mailbox)

    async def create_mailbox(
        self, name: str, selected: SelectedMailbox | None = None
    ) -> tuple[ObjectId, SelectedMailbox | None]:
        """Owner only."""
        self._owner_only()
        return await super().create_mailbox(name, selected)

    async def delete_mailbox(self, name: str, selected: SelectedMailbox | None = None) -> SelectedMailbox | None:
        """Owner only."""
        self._owner_only()
        return await super().delete_mailbox(name, selected)

    async def rename_mailbox(
        self, before_name: str, after_name: str, selected: SelectedMailbox | None = None
    ) -> SelectedMailbox | None:
        """Owner only."""
        self._owner_only()
        return await super().rename_mailbox(before_name, after_name, selected)

    async def subscribe(self, name: str, selected: SelectedMailbox | None = None) -> SelectedMailbox | None:
        """Owner only: the list of subscriptions is shared."""
        self._owner_only()
        return await super().subscribe(name, selected)

    async def unsubscribe(self, name: str, selected: SelectedMailbox | None = None) -> SelectedMailbox | None:
        """Owner only: the list of subscriptions is shared."""
        self._owner_only()
        return await super().unsubscribe(name, selected)

    async def append_messages(
        self, name: str, messages: Sequence[AppendMessage], selected: SelectedMailbox | None = None
    ) -> tuple[AppendUid, SelectedMailbox | None]:
        """Owner only."""
        self._owner_only()
        return await super().append_messages(name, messages, selected)

    async def expunge_mailbox(self, selected: SelectedMailbox, uid_set: SequenceSet | None = None) -> SelectedMailbox:
        """Owner only."""
        self._owner_only()
        return await super().expunge_mailbox(selected, uid_set)

    async def copy_messages(
        self, selected: SelectedMailbox, sequence_set: SequenceSet, mailbox: str
    ) -> tuple[CopyUid | None, SelectedMailbox]:
        """Owner only."""
        self._owner_only()
        return await super().copy_messages(selected, sequence_set, mailbox)

    async def update_flags(
        self,
        selected: SelectedMailbox,
        sequence_set: SequenceSet,
        flag_set: frozenset[Flag],
        mode: FlagOp = FlagOp.REPLACE,
    ) -> tuple[Iterable[tuple[int, Message]], SelectedMailbox]:
        """Owner only."""
        self._owner_only()
        return await super().update_flags(selected, sequence_set, flag_set, mode)
