"""Emails of an answer, each written down as soon as it is had and forgotten: one of them is in memory at a time."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_reader.jmap.asking import Asking
from agent_reader.jmap.shown_parts import FoundEmails
from agent_reader.query.errors import too_large
from agent_reader.query.shown_email import ShownEmail, shows_text


class EmailsWritten:
    """The member of an answer that holds the Emails, the first of its object: an array (`[]`) or an object (`{}`)."""

    def __init__(self, asking: Asking, name: str, brackets: str) -> None:
        self._sheet, self._most_octets = asking.sheet, asking.limits.max_answer_octets
        self._opening, self._closing = f'{{"{name}":{brackets[0]}'.encode(), brackets[1].encode()
        self._shown: list[ShownEmail] = []

    def put(self, email: bytes, shown: ShownEmail) -> None:
        """Write the JSON of an Email. Raises requestTooLarge where the answer has no room for it."""
        if self._sheet.octets + len(email) > self._most_octets:
            raise too_large()
        self._sheet.write((b"," if self._shown else self._opening) + email)
        self._shown.append(shown)

    def put_parsed(self, blob_id: str, email: Mapping[str, Any], email_id: str) -> None:
        """Write an Email of Email/parse, which lies in the message that has this id. Raises as `put` does."""
        encoded = msgspec.json.encode(blob_id) + b":" + msgspec.json.encode(email)
        self.put(encoded, ShownEmail(email_id, shows_text(email), (f"part {blob_id}",)))

    def found(self, rest: Mapping[str, Any]) -> FoundEmails:
        """Return the rest of the answer, to be written after the Emails."""
        if not self._shown:
            self._sheet.write(self._opening)
        self._sheet.write(self._closing)
        return FoundEmails(rest, self._shown)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written."""
        return not self._shown
