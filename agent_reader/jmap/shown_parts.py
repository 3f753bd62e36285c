"""What an answer shows of each message, in words for the read log."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_reader.query.shown_email import ShownEmail, parts_of


class FoundEmails(dict[str, Any]):
    """The rest of an answer whose Emails were written already, each as soon as it was had; `shown` is what of them."""

    def __init__(self, rest: Mapping[str, Any], shown: Sequence[ShownEmail]) -> None:
        super().__init__(rest)
        self.shown = shown


def parts_shown(found: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return (Email id, parts) of each Email that an answer shows: header, structure, text/1, part B..., ..."""
    if isinstance(found, FoundEmails):
        return tuple((each.id, each.parts) for each in found.shown if each.parts)
    emails = found.get("list")
    if not isinstance(emails, list | tuple):
        return ()
    shown = ((email.get("id", email.get("emailId")), parts_of(email)) for email in emails if isinstance(email, Mapping))
    return tuple((str(email_id), parts) for email_id, parts in shown if parts and str(email_id)[:1] in {"M", "X", "E"})
