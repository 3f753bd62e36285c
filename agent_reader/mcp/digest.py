"""What a digest is made from, as JSON: new messages by thread, and conversations that wait for the owner's answer.

Every string in it but ids and codes is the sender's; who prints it frames it (`agent_reader.relay`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from agent_reader.mcp.call import Call
from agent_reader.mcp.cursors import Cursor
from agent_reader.mcp.lines import LINE_PARTS, email_marks, roles_of
from agent_reader.mcp.news import gather
from agent_reader.mcp.views import Part
from agent_reader.query import email_query, parse_email_query
from agent_reader.store.snapshot import StoredEmail
from agent_reader.tool_answers.cuts import one_line
from shared.message import JSON, Fact, flags

# What a person reads of a morning; the rest is told next time.
MAX_NEW: Final = 200

# Who has not answered for a month will not find it in a digest.
_WAITED: Final = timedelta(days=30)
_MAX_LOOKED_AT: Final = 500
_MAX_WAITING: Final = 30
_MAX_IN_THREAD: Final = 50
# The owner's addresses stand in mail that the owner wrote; a few dozen messages name them all.
_MAX_SENT_LOOKED_AT: Final = 50

_UNWANTED: Final = frozenset({"junk", "trash", "drafts"})
_NOT_BY_A_PERSON: Final = frozenset(
    {Fact.AUTOMATIC_MAIL, Fact.LIST_MAIL, Fact.DELIVERY_REPORT, Fact.DISPOSITION_REPORT}
)
_QUESTION_MARKS: Final = ("?", "？", "؟")

_MAX_NAME_CHARACTERS: Final = 80
_MAX_SUBJECT_CHARACTERS: Final = 120
_MAX_PREVIEW_CHARACTERS: Final = 120


def digest(call: Call, *, peek: bool) -> dict[str, Any]:
    """Return an account's digest; without `peek` the agent's place moves to its end, as by whats_new."""
    kept = call.cursors.read(call.agent.name, call.snapshot.account_id)
    news = gather(call, MAX_NEW)
    roles = roles_of(call.snapshot)
    call.shows((email.id for email in news.emails), *LINE_PARTS)
    if not peek:
        call.moves_to(Cursor(news.state, news.floor, call.now))
    owner = _Owner(call, roles)
    waiting = sorted(owner.waiting(), key=lambda each: str(each["since"]))
    call.shows((str(each["emailId"]) for each in waiting[:_MAX_WAITING]), "header")
    return {
        "account": call.snapshot.account_id,
        "look": news.look.value,
        "since": None if kept is None or kept.told_at is None else _utc(kept.told_at),
        "threads": _threads(news.emails, roles),
        "newMessages": len(news.emails),
        "leftOut": 0 if news.total is None else news.total - len(news.emails),
        "more": news.more,
        "passedOver": news.passed_over,
        "waiting": waiting[:_MAX_WAITING],
        "waitingLeftOut": max(0, len(waiting) - _MAX_WAITING),
        "sentMailIsShown": owner.is_known,
    }


def _threads(emails: list[StoredEmail], roles: Mapping[str, str]) -> list[dict[str, Any]]:
    """The new messages by thread and in it by sender, in the order in which each was first heard of."""
    threads: dict[str, dict[str, Any]] = {}
    for email in emails:
        thread = threads.setdefault(
            email.thread_id, {"threadId": email.thread_id, "subject": _subject(email), "senders": {}}
        )
        name, address = _from(email)
        sender = thread["senders"].setdefault(address, {"name": name, "address": address, "messages": []})
        sender["messages"].append(
            {
                "id": email.id,
                "receivedAt": _utc(email.received_at),
                "marks": email_marks(email, roles),
                "preview": one_line(str(email.summary["preview"] or ""), _MAX_PREVIEW_CHARACTERS),
            }
        )
    return [thread | {"senders": list(thread["senders"].values())} for thread in threads.values()]


@dataclass(slots=True)
class _Owner:
    """The owner of the mailbox, known by the mail in Sent: what is by their hand, and what waits for it."""

    call: Call
    roles: Mapping[str, str]
    _addresses: frozenset[str] | None = None

    @property
    def is_known(self) -> bool:
        """Whether the token shows mail that the owner wrote."""
        return bool(self.addresses)

    @property
    def addresses(self) -> frozenset[str]:
        if self._addresses is None:
            sent = [mailbox_id for mailbox_id, role in self.roles.items() if role == "sent"]
            found = [email for each in sent for email in self._found({"inMailbox": each}, _MAX_SENT_LOOKED_AT)]
            self._addresses = frozenset(_from(email)[1].lower() for email in found) - {""}
        return self._addresses

    def waiting(self) -> Iterator[dict[str, Any]]:
        """Yield each conversation whose last word is another person's, and that the owner is asked to answer."""
        unwanted: list[JSON] = [mailbox_id for mailbox_id, role in self.roles.items() if role in _UNWANTED]
        since = self.call.now - _WAITED
        recent = self._found({"after": _utc(since), "inMailboxOtherThan": unwanted}, _MAX_LOOKED_AT)
        for thread_id in dict.fromkeys(email.thread_id for email in recent):
            found = self._conversation(thread_id)
            if found and not self._is_own(found[-1]) and self._awaits_answer(found):
                yield self._described(thread_id, found)

    def _conversation(self, thread_id: str) -> list[StoredEmail]:
        ids = self.call.snapshot.thread_emails([thread_id]).get(thread_id, [])[-_MAX_IN_THREAD:]
        emails = self.call.snapshot.emails(ids).values()
        kept = [
            email
            for email in emails
            if not all(self.roles.get(each) in _UNWANTED for each in email.mailbox_ids)
            and "$draft" not in email.keywords
        ]
        return sorted(kept, key=lambda email: email.received_at)

    def _is_own(self, email: StoredEmail) -> bool:
        return any(self.roles.get(each) == "sent" for each in email.mailbox_ids) or (
            _from(email)[1].lower() in self.addresses
        )

    def _awaits_answer(self, conversation: list[StoredEmail]) -> bool:
        last = conversation[-1]
        if "$answered" in last.keywords:
            return False
        if self.is_known and not any(self._is_own(email) for email in conversation) and not self._is_to_owner(last):
            return False
        with self.call.message(last) as message:
            return not {flag.fact for flag in flags(message)} & _NOT_BY_A_PERSON

    def _is_to_owner(self, email: StoredEmail) -> bool:
        listed = email.summary["to"]
        addresses = listed if isinstance(listed, list) else []
        return any(
            isinstance(each, dict) and str(each.get("email") or "").lower() in self.addresses for each in addresses
        )

    def _described(self, thread_id: str, conversation: list[StoredEmail]) -> dict[str, Any]:
        last = conversation[-1]
        unanswered = last
        for email in reversed(conversation):
            if self._is_own(email) or "$answered" in email.keywords:
                break
            unanswered = email
        name, address = _from(last)
        return {
            "threadId": thread_id,
            "emailId": last.id,
            "since": _utc(unanswered.received_at),
            "asks": self._asks(last),
            "name": name,
            "address": address,
            "subject": _subject(last),
        }

    def _asks(self, email: StoredEmail) -> bool:
        text = self.call.view(email, Part.NEW).text
        return any(mark in text for mark in _QUESTION_MARKS)

    def _found(self, condition: dict[str, JSON], limit: int) -> list[StoredEmail]:
        asked: dict[str, JSON] = {"filter": condition, "limit": limit}
        found = email_query(
            self.call.snapshot, parse_email_query(asked), max_limit=limit, is_over=self.call.patience.is_over
        )
        return list(self.call.snapshot.emails(found.ids).values())


def _from(email: StoredEmail) -> tuple[str, str]:
    listed = email.summary["from"]
    first = listed[0] if isinstance(listed, list) and listed else None
    if not isinstance(first, dict):
        return "", ""
    name, address = (one_line(str(first.get(key) or ""), _MAX_NAME_CHARACTERS) for key in ("name", "email"))
    return name, address


def _subject(email: StoredEmail) -> str:
    return one_line(str(email.summary["subject"] or ""), _MAX_SUBJECT_CHARACTERS)


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z"
