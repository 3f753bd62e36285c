"""A message as one line of a list, and what of it may stand outside the fence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from agent_reader.mcp.call import Call
from agent_reader.mcp.short_ids import short
from agent_reader.query.mailboxes import mailbox_places
from agent_reader.store.snapshot import Snapshot, StoredEmail
from agent_reader.tool_answers.cuts import one_line
from shared.message import JSON

# What of a message such a line holds, in the read log's words.
HEADER_PARTS: Final = ("header",)
LINE_PARTS: Final = (*HEADER_PARTS, "preview")
SNIPPET_PARTS: Final = (*HEADER_PARTS, "snippet of preview")

# So few lines need nobody to count them.
COUNTED_AT_A_GLANCE: Final = 5

_MAX_NAME_CHARACTERS: Final = 40
_MAX_ADDRESS_CHARACTERS: Final = 60
_MAX_SUBJECT_CHARACTERS: Final = 90
_MAX_SNIPPET_CHARACTERS: Final = 100

# What a conversation is called stands whole on its first line; on the others this much of it, with a mark.
_REPEATED_SUBJECT_CHARACTERS: Final = 12
# Shorter ones are not worth the mark; and an answer's subject has so much before the first one's at most.
_REPEATED_FROM_CHARACTERS: Final = 20
_PREFIX_CHARACTERS: Final = 10

# Whoever asks about this week asks for the hour too; of older mail the day says enough, as in any mail program's list.
_RECENT: Final = timedelta(days=7)
# As there, a date has no year where no other year can be meant; with a month between, so that none is nearly meant.
_YEAR_UNDERSTOOD: Final = timedelta(days=335)
# In letters, since 11-10 is another day to one reader than to the next; not by strftime, whose names are the locale's.
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# The keywords that have a meaning of their own; any other is a word that somebody chose.
_KEYWORDS: Final = {"$flagged": "flagged", "$answered": "answered", "$draft": "draft", "$forwarded": "forwarded"}


@dataclass(slots=True)
class ListWriter:
    """The lines of one list: `id when marks` as ours, then `sender | subject | snippet` as mail.

    `takes_unread_for_granted`: a line says what is read instead of what is not. `brief`: a sender's name does for the
    address, and where there is a snippet it does for the subject.
    """

    call: Call
    takes_unread_for_granted: bool = False
    brief: bool = False
    _roles: dict[str, str] = field(init=False)
    _named: dict[str, set[str]] = field(default_factory=dict)
    _subjects: dict[str, str] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._roles = roles_of(self.call.snapshot)

    def write(self, email: StoredEmail, snippet: str | None = None) -> bool:
        """Write an Email's line if there is room for it.

        Without a `snippet` it ends with the beginning of the text, and with an empty one at the subject.
        """
        marks = email_marks(email, self._roles)
        if self.takes_unread_for_granted:
            marks = marks[1:] if "unread" in marks else ["read", *marks]
        if snippet is None:
            snippet = one_line(str(email.summary["preview"] or ""), _MAX_SNIPPET_CHARACTERS)
        subject = "" if self.brief and snippet else self._subject(email)
        shown_id = short(self.call.snapshot, email.id)
        head = " ".join(filter(None, (shown_id, day_or_minute(email.received_at, self.call.now), ",".join(marks))))
        line = " | ".join(filter(None, (self._sender(email), subject, snippet)))
        if not self.call.sheet.listed(head, line):
            return False
        self.written.append(email.id)
        return True

    def _sender(self, email: StoredEmail) -> str:
        """Who wrote: an address is shown with its name once, and again where the name is another.

        In brief the name alone, as long as nobody else in the list goes by it.
        """
        name, address = _sender(email.summary["from"])
        if not name or not address or name == address:
            return address or name or "(no sender)"
        addresses = self._named.setdefault(name, set())
        is_known, is_another = address in addresses, bool(addresses - {address})
        addresses.add(address)
        if self.brief:
            return f"{name} <{address}>" if is_another else name
        return address if is_known else f"{name} <{address}>"

    def _subject(self, email: StoredEmail) -> str:
        """What it is about; what stands on an earlier line of the same conversation is cut short."""
        subject = one_line(str(email.summary["subject"] or ""), _MAX_SUBJECT_CHARACTERS) or "(no subject)"
        said = self._subjects.get(email.thread_id)
        if said is None or len(subject) < _REPEATED_FROM_CHARACTERS:
            self._subjects.setdefault(email.thread_id, subject)
            return subject
        shorter, longer = sorted((said, subject), key=len)
        is_repeated = longer.endswith(shorter) and len(longer) - len(shorter) <= _PREFIX_CHARACTERS
        return one_line(subject, _REPEATED_SUBJECT_CHARACTERS) if is_repeated else subject


def email_marks(email: StoredEmail, roles: Mapping[str, str]) -> list[str]:
    """Return what is known of an Email in words of ours."""
    marks = [] if {"$seen", "$draft"} & set(email.keywords) else ["unread"]
    marks += [mark for keyword, mark in _KEYWORDS.items() if keyword in email.keywords]
    marks += ["attachment"] if email.summary["hasAttachment"] else []
    return marks + sorted({roles[each] for each in email.mailbox_ids if each in roles and roles[each] != "inbox"})


def received(email: StoredEmail) -> str:
    """Return when it was received, UTC, to the minute."""
    return f"{email.received_at:%Y-%m-%d %H:%M}"


def day_or_minute(at: datetime, now: datetime) -> str:
    """Return a time as lists show it, UTC: in the last week to the minute, before that the day; read_mail shows all."""
    age = now - at
    if not timedelta(0) <= age < _YEAR_UNDERSTOOD:
        return f"{at:%Y-%m-%d}"
    day = f"{_MONTHS[at.month - 1]} {at.day}"
    return f"{day} {at:%H:%M}" if age < _RECENT else day


def roles_of(snapshot: Snapshot) -> dict[str, str]:
    """Return the roles of mailboxes by id; those without one are missing."""
    mailboxes = snapshot.mailboxes()
    places = mailbox_places(mailboxes)
    found = {mailbox.id: places[mailbox.key].role for mailbox in mailboxes}
    return {mailbox_id: role for mailbox_id, role in found.items() if role}


def _sender(addresses: JSON) -> tuple[str, str]:
    if not isinstance(addresses, Sequence) or not addresses or not isinstance(addresses[0], Mapping):
        return "", ""
    name = one_line(str(addresses[0].get("name") or ""), _MAX_NAME_CHARACTERS)
    return name, one_line(str(addresses[0].get("email") or ""), _MAX_ADDRESS_CHARACTERS)
