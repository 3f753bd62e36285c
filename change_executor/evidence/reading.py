"""What the child says of a message, as the parent accepts it: bounded, typed, and kept as canonical JSON.

The parent trusts none of it beyond its shape. All texts are cleaned of control, bidi and invisible characters by the
child (`shared.fence`); the page escapes them all the same.
"""

import hashlib
from enum import StrEnum
from typing import Annotated, Final

import rfc8785
from pydantic import BaseModel, ConfigDict, Field

# Changes whenever the same octets would be shown otherwise: an approval covers what was shown.
READING_VERSION: Final = "6"

# A page that a person reads; the rest of a longer message is said to be there.
MAX_TEXT_CHARACTERS: Final = 200_000
MAX_LINE_CHARACTERS: Final = 1_000
MAX_LISTED: Final = 200
# A long correspondence names some dozens of earlier messages; the nearest ones tell the thread.
MAX_THREAD_MARKS: Final = 50

Line = Annotated[str, Field(max_length=MAX_LINE_CHARACTERS)]


class _Paper(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Readable(StrEnum):
    """`CANNOT_BE_SHOWN`: the child died or gave up; the person decides by the facts around the message, or rejects."""

    READABLE = "readable"
    CANNOT_BE_SHOWN = "cannot_be_shown"


class TextSource(StrEnum):
    """Which part of the message the text was made from."""

    PLAIN = "plain"
    HTML = "html"
    NONE = "none"


class Attachment(_Paper):
    """A part that is listed and never rendered; `size` in octets."""

    name: Line
    type: Line
    size: Annotated[int, Field(ge=0)]


class Verdict(StrEnum):
    """What the owner's mail server says of the sender; `UNKNOWN`: nothing, or nothing that can be read."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Authentication(_Paper):
    """A verdict with its source: the authserv-id that is believed, and the results it rests on (RFC 8601)."""

    verdict: Verdict
    source: Line
    results: Line = ""


class Warning(_Paper):  # noqa: A001 - the page's word for it
    """Something that a person should know before deciding; `code` chooses the page's own sentence."""

    code: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")]
    detail: Line = ""


class Reading(_Paper):
    """The executor's own reading of one message."""

    reading_version: str = READING_VERSION
    readable: Readable
    cause: Line = ""
    subject: Line = ""
    sender: Annotated[list[Line], Field(max_length=MAX_LISTED)] = []
    recipients: Annotated[list[Line], Field(max_length=MAX_LISTED)] = []
    date: Line = ""
    authentication: Authentication | None = None
    text: Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)] = ""
    text_source: TextSource = TextSource.NONE
    text_cut: bool = False
    hidden_text: Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)] = ""
    # The hosts that links lead to, each once; with the name that a browser asks for where that is spelled otherwise.
    hosts: Annotated[list[Line], Field(max_length=MAX_LISTED)] = []
    attachments: Annotated[list[Attachment], Field(max_length=MAX_LISTED)] = []
    attachments_left_out: Annotated[int, Field(ge=0)] = 0
    warnings: Annotated[list[Warning], Field(max_length=MAX_LISTED)] = []
    has_html: bool = False
    # Digests of the Message-IDs of this message and of those it answers: two messages that share one are a thread.
    thread: Annotated[list[Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]], Field(max_length=MAX_THREAD_MARKS)] = []

    def canonical(self) -> bytes:
        """Return the RFC 8785 canonical JSON that is stored and hashed."""
        return rfc8785.dumps(self.model_dump(mode="json"))

    def sha256(self) -> str:
        """Return the digest of `canonical()`, lower-case hexadecimal."""
        return hashlib.sha256(self.canonical()).hexdigest()


def unreadable(cause: str) -> Reading:
    """Return the reading of a message whose child died: evidence all the same."""
    return Reading(readable=Readable.CANNOT_BE_SHOWN, cause=cause[:MAX_LINE_CHARACTERS])
