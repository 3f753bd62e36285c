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
        self._asking, self._name, self._brackets = asking, name, brackets
        self._shown: list[ShownEmail] = []

    def put(self, email: bytes, shown: ShownEmail) -> None:
        """Write the JSON of an Email of Email/get. Raises requestTooLarge where the answer has no room for it."""
        self._write(email, shown)

    def put_parsed(self, blob_id: str, email: Mapping[str, Any], email_id: str) -> None:
        """Write an Email of Email/parse, which lies in the message that has this id. Raises as `put` does."""
        encoded = msgspec.json.encode(blob_id) + b":" + msgspec.json.encode(email)
        self._write(encoded, ShownEmail(email_id, shows_text(email), (f"part {blob_id}",)))

    def found(self, rest: Mapping[str, Any]) -> FoundEmails:
        """Return the rest of the answer, to be written after the Emails."""
        if not self._shown:
            self._open()
        self._asking.sheet.write(self._brackets[1].encode())
        return FoundEmails(rest, self._shown)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written."""
        return not self._shown

    def _write(self, encoded: bytes, shown: ShownEmail) -> None:
        sheet = self._asking.sheet
        if sheet.octets + len(encoded) > self._asking.limits.max_answer_octets:
            raise too_large()
        if not self._shown:
            self._open()
            sheet.write(encoded)
        else:
            sheet.write(b"," + encoded)
        self._shown.append(shown)

    def _open(self) -> None:
        self._asking.sheet.write(f'{{"{self._name}":{self._brackets[0]}'.encode())
