"""A mail server in memory behind the scripted one: several mailboxes that an owner changes while a reader looks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from imapclient import imap_utf7

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLAIN: Final = b"IMAP4rev1 AUTH=PLAIN UNSELECT"
CONDSTORE: Final = PLAIN + b" ENABLE CONDSTORE ESEARCH"
LISTING_STATUS: Final = CONDSTORE + b" LIST-EXTENDED LIST-STATUS"

_OK: Final = b"OK done"
_NAME: Final = re.compile(rb'EXAMINE "?([^"]*?)"?(?: \(.*\))?')
_FETCH: Final = re.compile(rb"UID FETCH ([0-9:,*]+) \((.*?)\)(?: \(CHANGEDSINCE (\d+)\))?")
_PARTIAL: Final = re.compile(rb"BODY\.PEEK\[\]<(\d+)\.(\d+)>")
_FIELDS: Final = b"BODY.PEEK[HEADER.FIELDS (MESSAGE-ID IN-REPLY-TO REFERENCES SUBJECT)]"


@dataclass
class Message:
    octets: bytes
    flags: frozenset[str]
    modseq: int


@dataclass
class Box:
    """One mailbox; UIDs only grow, also of messages that are gone."""

    uidvalidity: int
    uidnext: int = 1
    highestmodseq: int = 1
    messages: dict[int, Message] = field(default_factory=dict)


class ImapWorld:
    """`answer` for `ScriptedImapServer`, for one connection at a time; the other methods are the owner's.

    `rewrite` makes of a message's octets those that are given this time.
    """

    def __init__(self, rewrite: Callable[[bytes], bytes] = lambda octets: octets) -> None:
        self._rewrite = rewrite
        self.boxes: dict[str, Box] = {"INBOX": Box(1)}
        self._uidvalidity = 1
        self._modseq = 1
        self._selected: str | None = None

    # The owner.

    def create(self, name: str) -> None:
        self.boxes[name] = Box(self._next_uidvalidity())

    def delete(self, name: str) -> None:
        del self.boxes[name]

    def rename(self, name: str, new_name: str) -> None:
        self.boxes[new_name] = self.boxes.pop(name)

    def deliver(self, name: str, octets: bytes, flags: frozenset[str]) -> None:
        box = self.boxes[name]
        box.messages[box.uidnext] = Message(octets, flags, self._next_modseq(box))
        box.uidnext += 1

    def move(self, name: str, uid: int, target: str) -> None:
        message = self.boxes[name].messages.pop(uid)
        self._next_modseq(self.boxes[name])
        self.deliver(target, message.octets, message.flags)

    def flag(self, name: str, uid: int, flags: frozenset[str]) -> None:
        message = self.boxes[name].messages[uid]
        message.flags, message.modseq = flags, self._next_modseq(self.boxes[name])

    def expunge(self, name: str, uid: int) -> None:
        del self.boxes[name].messages[uid]
        self._next_modseq(self.boxes[name])

    def reset(self, name: str) -> None:
        """The same messages, in another order, under another UIDVALIDITY."""
        before = self.boxes[name].messages
        self.create(name)
        for uid in sorted(before, reverse=True):
            self.deliver(name, before[uid].octets, before[uid].flags)

    def content(self) -> dict[str, dict[int, tuple[bytes, frozenset[str]]]]:
        return {
            name: {uid: (message.octets, message.flags) for uid, message in box.messages.items()}
            for name, box in self.boxes.items()
        }

    # The server.

    def answer(self, command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"LIST"):
            return [line for name in self.boxes for line in self._listed(name, command)], _OK
        if command.startswith(b"ENABLE"):
            return [b"ENABLED " + command.partition(b" ")[2]], _OK
        if command.startswith(b"EXAMINE"):
            return self._examine(command)
        box = self.boxes.get(self._selected or "")
        if command.startswith(b"UID") and box is None:
            return [], b"NO [NONEXISTENT] the mailbox is gone"
        if box is not None and command.startswith(b"UID SEARCH RETURN"):
            found = b",".join(b"%d" % uid for uid in sorted(box.messages))
            return [b'ESEARCH (TAG "x") UID' + (b" ALL " + found if found else b"")], _OK
        if box is not None and command.startswith(b"UID SEARCH"):
            return [b" ".join([b"SEARCH", *(b"%d" % uid for uid in sorted(box.messages))])], _OK
        if box is not None and (fetch := _FETCH.fullmatch(command)):
            return self._fetch(box, fetch[1], fetch[2], int(fetch[3] or 0))
        return [], b""

    def _listed(self, name: str, command: bytes) -> Iterator[bytes]:
        yield b'LIST () "/" "%s"' % imap_utf7.encode(name)
        if b"STATUS (" in command:
            told = self.told_by_status(self.boxes[name])
            items = b" ".join(b"%s %d" % (item.encode(), number) for item, number in told.items())
            yield b'STATUS "%s" (%s)' % (imap_utf7.encode(name), items)

    def told_by_status(self, box: Box) -> dict[str, int]:
        """What STATUS tells; a test may have it lie."""
        return {
            "MESSAGES": len(box.messages),
            "UIDNEXT": box.uidnext,
            "UIDVALIDITY": box.uidvalidity,
            "HIGHESTMODSEQ": box.highestmodseq,
        }

    def _examine(self, command: bytes) -> tuple[list[bytes], bytes]:
        found = _NAME.fullmatch(command)
        name = imap_utf7.decode(found[1]) if found else ""
        box = self.boxes.get(name)
        self._selected = name if box is not None else None
        if box is None:
            return [], b"NO [NONEXISTENT] no such mailbox"
        said = [
            b"%d EXISTS" % len(box.messages),
            b"OK [UIDVALIDITY %d] here" % box.uidvalidity,
            b"OK [UIDNEXT %d] here" % box.uidnext,
            b"OK [HIGHESTMODSEQ %d] here" % box.highestmodseq,
        ]
        return said, b"OK [READ-ONLY] done"

    def _fetch(self, box: Box, uid_set: bytes, items: bytes, since: int) -> tuple[list[bytes], bytes]:
        wanted: set[int] = set()
        last = max(box.messages, default=0)
        for part in uid_set.split(b","):
            low, _, high = part.partition(b":")
            top = last if high == b"*" else int(high or low)
            wanted |= {uid for uid in box.messages if int(low) <= uid <= top}
        changed = [uid for uid in sorted(wanted) if box.messages[uid].modseq > since]
        return [self._response(box, uid, items) for uid in changed], _OK

    def _response(self, box: Box, uid: int, items: bytes) -> bytes:
        message = box.messages[uid]
        octets = self._rewrite(message.octets)
        said = [b"UID %d" % uid, b"FLAGS (%s)" % " ".join(sorted(message.flags)).encode()]
        if b"MODSEQ" in items:
            said.append(b"MODSEQ (%d)" % message.modseq)
        if b"RFC822.SIZE" in items:
            said.append(b"RFC822.SIZE %d" % len(octets))
        if b"INTERNALDATE" in items:
            # By content, as a move keeps it.
            said.append(b'INTERNALDATE "01-Jan-2026 10:%02d:00 +0000"' % (len(message.octets) % 60))
        header = octets.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        if partial := _PARTIAL.search(items):
            piece = octets[int(partial[1]) :][: int(partial[2])]
            said.append(b"BODY[]<%s> {%d}\r\n" % (partial[1], len(piece)) + piece)
            items = _PARTIAL.sub(b"", items)
        for item, given in ((_FIELDS, header), (b"BODY.PEEK[HEADER]", header), (b"BODY.PEEK[]", octets)):
            if item in items:
                said.append(item.replace(b".PEEK", b"") + b" {%d}\r\n" % len(given) + given)
        return b"%d FETCH (" % (sorted(box.messages).index(uid) + 1) + b" ".join(said) + b")"

    def _next_uidvalidity(self) -> int:
        self._uidvalidity += 1
        return self._uidvalidity

    def _next_modseq(self, box: Box) -> int:
        self._modseq += 1
        box.highestmodseq = self._modseq
        return self._modseq
