"""What can be wrong with a message that is read all the same."""

from enum import StrEnum
from typing import NamedTuple


class DefectCode(StrEnum):
    """The kinds of defect; the values are stable, since reports of bugs quote them."""

    TOO_DEEP = "tooDeep"
    TOO_MANY_PARTS = "tooManyParts"
    TOO_MANY_HEADER_FIELDS = "tooManyHeaderFields"
    HEADER_TOO_LARGE = "headerTooLarge"
    TOO_MANY_ENCODED_WORDS = "tooManyEncodedWords"
    MBOX_FROM_LINE = "mboxFromLine"
    LEADING_CONTINUATION = "leadingContinuation"
    MISSING_SEPARATOR = "missingSeparator"
    NO_HEADER = "noHeader"
    BARE_LF = "bareLf"
    BARE_CR = "bareCr"
    NUL = "nul"
    BAD_CONTENT_TYPE = "badContentType"
    MISSING_BOUNDARY = "missingBoundary"
    CLASHING_BOUNDARY = "clashingBoundary"
    MISSING_CLOSING_BOUNDARY = "missingClosingBoundary"
    MULTIPART_WITHOUT_PARTS = "multipartWithoutParts"
    UNKNOWN_TRANSFER_ENCODING = "unknownTransferEncoding"


class Defect(NamedTuple):
    """One thing that was wrong: a code for programs, and for people where. Never content of the message."""

    code: DefectCode
    detail: str
