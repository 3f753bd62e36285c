"""The marks that stand above an earlier message that is not marked line by line: header blocks and separators."""

from collections.abc import Sequence
from typing import Final

from shared.message.segments.marks import FORWARDED_MESSAGE, HEADER_ROLES, ORIGINAL_MESSAGE, HeaderRole

# The longest label is `gönderme tarihi`; blanks and asterisks may stand around it.
_MAX_LABEL_CHARACTERS: Final = 24

# From, Sent, To, Cc, Subject, a few more, and long lists of recipients wrapped over some lines.
_MAX_BLOCK_LINES: Final = 20

# Recipients wrapped over more lines than this are cut off by the program that quotes them.
_MAX_WRAPPED_LINES: Final = 3

# A separator is a phrase between dashes, no paragraph.
_MAX_SEPARATOR_CHARACTERS: Final = 120

_TRIM: Final = " \t\r\xa0\u3000*_"
_RULES: Final = "-_—–=* \t\r\xa0"


def header_role(line: str) -> HeaderRole | None:
    """Return what a line like `From: ...` says, None for any other line."""
    head = line[: 2 * _MAX_LABEL_CHARACTERS].lstrip(_TRIM)
    cut = min((at for at in (head.find(":"), head.find("：")) if at > 0), default=-1)
    if cut < 0 or cut > _MAX_LABEL_CHARACTERS:
        return None
    return HEADER_ROLES.get(head[:cut].strip(_TRIM).casefold())


def header_block_end(lines: Sequence[str], first: int) -> int | None:
    """Return the line after the header block that begins at `first`, None if none begins there.

    It names a sender and a subject, and a date or a recipient; or sender, recipient, and a date by a word that only
    mail programs use. "From: Delft, To: Ghent, Date: 3 May" is a journey.
    """
    if header_role(lines[first]) is None:
        return None
    roles: set[HeaderRole] = set()
    wrapped = 0
    end = first
    for at in range(first, min(len(lines), first + _MAX_BLOCK_LINES)):
        role = header_role(lines[at])
        if role is not None:
            if role in roles and role is not HeaderRole.CC:
                break
            roles.add(role)
            wrapped = 0
            end = at + 1
        elif not lines[at].strip(_TRIM):
            if at + 1 >= len(lines) or header_role(lines[at + 1]) is None:
                break
        else:
            wrapped += 1
            if wrapped > _MAX_WRAPPED_LINES or lines[at].lstrip().startswith(">"):
                break
    return end if _is_block(roles) else None


def _is_block(roles: set[HeaderRole]) -> bool:
    if HeaderRole.FROM not in roles:
        return False
    if HeaderRole.SUBJECT in roles:
        return not roles.isdisjoint({HeaderRole.SENT, HeaderRole.DATE, HeaderRole.TO})
    return {HeaderRole.SENT, HeaderRole.TO} <= roles


def is_original_message(line: str) -> bool:
    """Return whether a line is `-----Original Message-----` in some language."""
    phrase = _between_dashes(line)
    return phrase is not None and phrase in ORIGINAL_MESSAGE


def is_forward_mark(line: str) -> bool:
    """Return whether a line is `---------- Forwarded message ---------` or `Begin forwarded message:`."""
    if len(line) > _MAX_SEPARATOR_CHARACTERS:
        return False
    phrase = _between_dashes(line)
    if phrase is not None:
        return phrase in FORWARDED_MESSAGE or phrase.startswith("forwarded by ")
    bare = line.strip(_TRIM)
    return bare.endswith((":", "：")) and bare[:-1].strip(_TRIM).casefold() in FORWARDED_MESSAGE


def is_rule(line: str) -> bool:
    """Return whether a line is drawn: five dashes or underscores and nothing else."""
    return len(line) <= _MAX_SEPARATOR_CHARACTERS and not line.strip(_RULES) and len(line.strip()) >= len("-----")


def _between_dashes(line: str) -> str | None:
    if len(line) > _MAX_SEPARATOR_CHARACTERS:
        return None
    bare = line.strip()
    if not bare.startswith(("--", "__", "==", "——", "–", "**--")):
        return None
    phrase = bare.strip(_RULES)
    return " ".join(phrase.rstrip(":：").casefold().split()) if phrase else None
