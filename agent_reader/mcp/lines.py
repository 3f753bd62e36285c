"""A message as one line of a list, and what of it may stand outside the fence."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent_reader.query.mailboxes import mailbox_places
from agent_reader.store.snapshot import Snapshot, StoredEmail
from agent_reader.tool_answers.cuts import one_line
from shared.message import JSON

# What of a message such a line holds, in the read log's words.
HEADER_PARTS: Final = ("header",)
LINE_PARTS: Final = (*HEADER_PARTS, "preview")
SNIPPET_PARTS: Final = (*HEADER_PARTS, "snippet of preview")

_MAX_NAME_CHARACTERS: Final = 40
_MAX_ADDRESS_CHARACTERS: Final = 60
_MAX_SUBJECT_CHARACTERS: Final = 90
_MAX_SNIPPET_CHARACTERS: Final = 100

# The keywords that have a meaning of their own; any other is a word that somebody chose.
_KEYWORDS: Final = {"$flagged": "flagged", "$answered": "answered", "$draft": "draft", "$forwarded": "forwarded"}


def email_line(email: StoredEmail, roles: Mapping[str, str], snippet: str | None = None) -> str:
    """Return `id date marks | sender | subject | snippet`: a line of mail, for inside the fence.

    Without a `snippet` it ends with the beginning of the text, and with an empty one at the subject.
    """
    marks = ",".join(email_marks(email, roles))
    subject = one_line(str(email.summary["subject"] or ""), _MAX_SUBJECT_CHARACTERS) or "(no subject)"
    text = one_line(str(email.summary["preview"] or ""), _MAX_SNIPPET_CHARACTERS) if snippet is None else snippet
    head = " ".join(filter(None, (email.id, received(email), marks)))
    return " | ".join(filter(None, (head, _sender(email.summary["from"]), subject, text)))


def email_marks(email: StoredEmail, roles: Mapping[str, str]) -> list[str]:
    """Return what is known of an Email in words of ours."""
    marks = [] if {"$seen", "$draft"} & set(email.keywords) else ["unread"]
    marks += [mark for keyword, mark in _KEYWORDS.items() if keyword in email.keywords]
    marks += ["attachment"] if email.summary["hasAttachment"] else []
    return marks + sorted({roles[each] for each in email.mailbox_ids if each in roles and roles[each] != "inbox"})


def received(email: StoredEmail) -> str:
    """Return when it was received, UTC, to the minute."""
    return f"{email.received_at:%Y-%m-%d %H:%M}"


def roles_of(snapshot: Snapshot) -> dict[str, str]:
    """Return the roles of mailboxes by id; those without one are missing."""
    mailboxes = snapshot.mailboxes()
    places = mailbox_places(mailboxes)
    found = {mailbox.id: places[mailbox.key].role for mailbox in mailboxes}
    return {mailbox_id: role for mailbox_id, role in found.items() if role}


def _sender(addresses: JSON) -> str:
    if not isinstance(addresses, Sequence) or not addresses or not isinstance(addresses[0], Mapping):
        return "(no sender)"
    name = one_line(str(addresses[0].get("name") or ""), _MAX_NAME_CHARACTERS)
    email = one_line(str(addresses[0].get("email") or ""), _MAX_ADDRESS_CHARACTERS)
    return f"{name} <{email}>" if name and name != email else email
