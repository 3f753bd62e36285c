"""What sync does to a mirror, said in one line: for tests that are of what the mirror makes of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from agent_reader.store import AccountMirror
from agent_reader.sync.mirror import Examined, FetchedMessage, MessageState, ThreadHeader


def add(mirror: AccountMirror, mailbox_id: str, messages: Iterable[FetchedMessage]) -> None:
    mirror.begin_add(mailbox_id, messages)()


def put_headers(mirror: AccountMirror, mailbox_id: str, uidvalidity: int, headers: Iterable[ThreadHeader]) -> None:
    mirror.begin_headers(mailbox_id, uidvalidity, headers)()


def change(mirror: AccountMirror, mailbox_id: str, changed: Mapping[int, MessageState]) -> None:
    _catch_up(mirror, mailbox_id, changed, ())


def vanish(mirror: AccountMirror, mailbox_id: str, gone: Collection[int]) -> None:
    _catch_up(mirror, mailbox_id, {}, gone)


def _catch_up(
    mirror: AccountMirror, mailbox_id: str, changed: Mapping[int, MessageState], gone: Collection[int]
) -> None:
    known = next(each for each in mirror.mailboxes() if each.id == mailbox_id)
    held = mirror.states(mailbox_id).keys() | mirror.set_aside(mailbox_id).keys()
    examined = Examined(
        known.uidvalidity or 1, known.uidnext, len(held - set(gone)), known.highestmodseq, mailbox_id=None
    )
    mirror.caught_up(mailbox_id, changed, gone, examined, whole=False)
