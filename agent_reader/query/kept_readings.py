"""Messages as they are kept and as they read, made once in a request however many of its calls ask for them.

HTML that nests a thousand times costs a second to read; sixteen calls of one request would pay it sixteen times.
"""

from collections.abc import Sequence
from typing import Final

from agent_reader.store.snapshot import Snapshot, StoredEmail
from shared.message import Flag, Message, ReadableText, SegmentedText, flags, readable_text, segmented_text

# What a request may hold besides its answer: a page of ordinary messages.
_MOST_MESSAGES: Final = 64
_PART_OCTETS: Final = 1024
_FIELD_OCTETS: Final = 256
_MOST_OCTETS: Final = 2 * 1024 * 1024


class KeptReading:
    """A message of a snapshot; each way of reading it is made where something first asks for it."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._text: ReadableText | None = None
        self._segmented: SegmentedText | None = None
        self._flags: Sequence[Flag] | None = None

    @property
    def octets(self) -> int:
        """How much memory the message takes, roughly: its parts and header fields are objects of their own."""
        return sum(
            _PART_OCTETS
            + len(part.content())
            + sum(_FIELD_OCTETS + len(field.name) + len(field.value) for field in part.fields)
            for part in self.message.root.walk()
        )

    def text(self) -> ReadableText:
        """Return the body's text."""
        if self._text is None:
            self._text = readable_text(self.message)
        return self._text

    def segmented(self) -> SegmentedText:
        """Return the body's text by what is new and what is quoted."""
        if self._segmented is None:
            self._segmented = segmented_text(self.message, self.text())
        return self._segmented

    def flags(self) -> Sequence[Flag]:
        """Return the facts about the message."""
        if self._flags is None:
            self._flags = flags(self.message)
        return self._flags


class KeptReadings:
    """The readings of one request in one account, up to a bound; for one thread.

    Those that came first stay: a page that does not fit would otherwise push out each message before its turn comes.
    """

    def __init__(self) -> None:
        self._kept: dict[int, KeptReading] = {}
        self._octets = 0

    def of(self, snapshot: Snapshot, email: StoredEmail) -> KeptReading:
        """Return the reading of an Email; always the same snapshot's."""
        key = email.key
        found = self._kept.get(key)
        if found is not None:
            return found
        reading = KeptReading(snapshot.message_of(email))
        octets = reading.octets
        if len(self._kept) < _MOST_MESSAGES and self._octets + octets <= _MOST_OCTETS:
            self._kept[key] = reading
            self._octets += octets
        return reading
