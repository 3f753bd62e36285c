"""Which warnings are a reason to hold back, and which only say what kind of message it is.

Where every newsletter is warned of, people stop reading warnings: what is told of most messages is told softly.
"""

from collections.abc import Iterable
from typing import Final

from change_executor.evidence.reading import Reading
from change_executor.evidence.reading import Warning as Caution

# Codes that honest mail earns every day. A code that is not here, and so each new one, is a warning.
_KINDS: Final = frozenset(
    {
        "automatic_mail",
        "list_mail",
        "delivery_report",
        "disposition_report",
        "calendar_invitation",
        "calendar_reply",
        "calendar_cancellation",
        "calendar_entry",
        "html_only",
        "text_from_html",
        "signed_not_verified",
    }
)


def warnings(reading: Reading) -> list[Caution]:
    """Return what a person must read before deciding."""
    return [each for each in reading.warnings if each.code not in _KINDS]


def kinds(reading: Reading) -> list[Caution]:
    """Return what says what kind of message it is."""
    return [each for each in reading.warnings if each.code in _KINDS]


def known_kinds() -> Iterable[str]:
    """Return the codes that are no warning."""
    return _KINDS
