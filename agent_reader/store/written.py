"""What was once written of Emails, to be given again without reading the messages anew: JSON, and what it shows.

What an Email holds never changes, its mailboxes and keywords aside (RFC 8621 §4). Each piece lies here beside the very
octets of the file that it was made from, and is given again only for the same octets, the same depth and the same
question; and the whole of an Email for the same mailboxes and keywords, as the view that asks has them. So nothing here
decides whether a message is seen, or how much of it is still kept: the database says that in each request, and whatever
it says otherwise than before is written anew.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from agent_reader.scope import Depth

# Some hundred pages of ordinary messages with their texts, for all accounts and agents together.
MOST_OCTETS: Final = 32 * 1024 * 1024
# A message that is larger than an ordinary one by a hundred times must not push a hundred of those out.
MOST_OF_ONE: Final = 256 * 1024

# What a piece costs besides its octets: a dozen small objects and its place in the table.
_LEAST_OCTETS: Final = 1_024
_PART_OCTETS: Final = 96

# What a piece was made from, as the file has it: the packed summary, and the packed document where that was read.
Source = tuple[bytes, bytes | None]
_Place = tuple[str, str, Depth, bytes]


_Made = TypeVar("_Made")

# What may change of an Email, as its row has it.
Row = tuple[Hashable, ...]


@dataclass(slots=True)
class Written:
    """What an answer says of an Email's content, which never changes.

    `members` is JSON: members of an object, without its braces. `parts` names what is shown of the message, for the
    read log; `has_text` whether text of its body is. `cut` is JSON too, one value for each text that goes on.
    """

    members: bytes = field(repr=False)
    parts: tuple[str, ...] = ()
    has_text: bool = False
    cut: tuple[bytes, ...] = ()
    # What was made last of it and a row.
    _last: tuple[Row, Any] | None = field(default=None, init=False, repr=False, compare=False)

    def with_row(self, row: Row, make: Callable[[], _Made]) -> _Made:
        """Return what `make` makes of this and a row, or what it made before where the row is the same."""
        last = self._last
        if last is not None and last[0] == row:
            made: _Made = last[1]
            return made
        made = make()
        self._last = row, made
        return made


@dataclass(frozen=True, slots=True)
class _Kept:
    source: Source
    written: Written
    octets: int


class WrittenEmails:
    """What was written of Emails, up to a bound; what was not asked for longest goes first. Any thread may call."""

    def __init__(self, most_octets: int = MOST_OCTETS) -> None:
        self._most = most_octets
        self._octets = 0
        self._kept: OrderedDict[_Place, _Kept] = OrderedDict()
        self._times_forgotten: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def octets(self) -> int:
        """How much is held, roughly."""
        return self._octets

    def seen_by(self, account_id: str, depth: Depth) -> "WrittenOfAccount":
        """Return what a view has of this, before the view begins: what it sees may be forgotten while it lasts."""
        return WrittenOfAccount(self, account_id, depth, self._times_forgotten.get(account_id, 0))

    def forget(self, account_id: str, email_ids: Iterable[str]) -> None:
        """Let go of all that was written of Emails which are kept no more, or less of them."""
        gone = frozenset(email_ids)
        with self._lock:
            self._times_forgotten[account_id] = self._times_forgotten.get(account_id, 0) + 1
            for place in [each for each in self._kept if each[0] == account_id and each[1] in gone]:
                self._octets -= self._kept.pop(place).octets

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._kept.clear()
            self._octets = 0

    def find(self, place: _Place, source: Source) -> Written | None:
        """Return what was written at a place, where it was made from the same."""
        with self._lock:
            kept = self._kept.get(place)
            if kept is None or kept.source != source:
                return None
            self._kept.move_to_end(place)
            return kept.written

    def keep(self, place: _Place, source: Source, written: Written, times_forgotten: int) -> None:
        """Keep what was written, unless it is large, or some was forgotten since the view of whoever wrote began."""
        octets = _octets(source, written)
        if octets > min(MOST_OF_ONE, self._most):
            return
        with self._lock:
            if self._times_forgotten.get(place[0], 0) != times_forgotten:
                return
            earlier = self._kept.pop(place, None)
            self._octets += octets - (0 if earlier is None else earlier.octets)
            self._kept[place] = _Kept(source, written, octets)
            while self._octets > self._most:
                self._octets -= self._kept.popitem(last=False)[1].octets


@dataclass(frozen=True, slots=True)
class WrittenOfAccount:
    """What one view of one account has of what was written: as deep as the view goes, and no deeper."""

    _whole: WrittenEmails = field(repr=False)
    _account_id: str
    _depth: Depth
    _times_forgotten: int

    def find(self, email_id: str, question: bytes, source: Source) -> Written | None:
        """Return what was written of an Email for a question, where it was made from the same."""
        return self._whole.find((self._account_id, email_id, self._depth, question), source)

    def keep(self, email_id: str, question: bytes, source: Source, written: Written) -> None:
        """Keep what was written of an Email for a question; `question` is a digest, or as short as one."""
        place = (self._account_id, email_id, self._depth, question)
        self._whole.keep(place, source, written, self._times_forgotten)


def _octets(source: Source, written: Written) -> int:
    summary, packed = source
    names = _PART_OCTETS * (len(written.parts) + len(written.cut)) + sum(map(len, written.parts + written.cut))
    # Once by themselves, and once in the whole Email.
    return _LEAST_OCTETS + len(summary) + len(packed or b"") + 2 * len(written.members) + names
