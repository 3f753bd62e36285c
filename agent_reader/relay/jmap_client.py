"""The few questions that a watch asks of the reader's JMAP door (RFC 8620, RFC 8621)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from agent_reader.relay.endpoint import Endpoint, Refused, Unreachable
from shared.settings import ConfigurationError

_AGENT: Final = "urn:x-mailwarrant:agent"
_USING: Final = ("urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail", _AGENT)

EVENTS_PATH: Final = "/jmap/eventsource?types=Email&closeafter=no&ping=30"
# Three of those pings.
SILENT_SECONDS: Final = 90.0

_OK: Final = 200
_PAGE: Final = 200
_PROPERTIES: Final = (
    *("id", "mailboxIds", "keywords", "receivedAt", "from", "to", "cc", "subject", "hasAttachment", "preview"),
    "flags",
)


class PlaceLost(Exception):  # noqa: N818 - names what happened
    """What changed since a state is not known any more (RFC 8620 §5.2, cannotCalculateChanges)."""


@dataclass(frozen=True, slots=True)
class WatchedEmail:
    """An Email as a watch needs it; texts are the sender's. `sender` is None where From has not one address alone."""

    id: str
    received_at: datetime
    mailbox_ids: frozenset[str]
    unread: bool
    has_attachment: bool
    facts: frozenset[str]
    sender: str | None = field(repr=False)
    sender_name: str = field(repr=False)
    recipients: frozenset[str] = field(repr=False)
    subject: str = field(repr=False)
    preview: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Changes:
    """What was created or updated up to a state."""

    touched: tuple[str, ...]
    new_state: str
    has_more: bool


@dataclass(frozen=True, slots=True)
class JmapClient:
    """One account of the reader. Every method raises `Unreachable` and `Refused`."""

    reader: Endpoint
    account: str

    def state(self) -> tuple[str, bool]:
        """Return the Email state, and whether every mailbox was read to its end."""
        found = self._call("Email/query", {"limit": 1})
        coverage = found.get("coverage")
        is_complete = isinstance(coverage, dict) and coverage.get("isComplete") is True
        return str(self._call("Email/get", {"ids": []}).get("state")), is_complete

    def changes(self, since: str, *, updated: bool) -> Changes:
        """Return what was created since a state, and if wanted what was updated. Raises `PlaceLost`."""
        found = self._call("Email/changes", {"sinceState": since, "maxChanges": _PAGE})
        touched = [*_strings(found.get("created")), *(_strings(found.get("updated")) if updated else ())]
        return Changes(tuple(touched), str(found.get("newState")), found.get("hasMoreChanges") is True)

    def received_since(self, moment: datetime) -> Iterator[str]:
        """Yield the ids of the Emails received at or after a time, newest first."""
        position = 0
        while True:
            condition = {"after": f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"}
            found = self._call("Email/query", {"filter": condition, "position": position, "limit": _PAGE})
            ids = _strings(found.get("ids"))
            yield from ids
            if len(ids) < _PAGE:
                return
            position += len(ids)

    def emails(self, ids: Sequence[str]) -> dict[str, WatchedEmail]:
        """Return those of the Emails that there are."""
        found: dict[str, WatchedEmail] = {}
        for start in range(0, len(ids), _PAGE):
            wanted = list(ids[start : start + _PAGE])
            answer = self._call("Email/get", {"ids": wanted, "properties": list(_PROPERTIES)})
            for each in answer.get("list") or ():
                if isinstance(each, dict):
                    email = _email(each)
                    found[email.id] = email
        return found

    def mailbox_id(self, spelled: str) -> str:
        """Return the id of the mailbox with this id, role or name. Raises `ConfigurationError`."""
        listed = [each for each in self._call("Mailbox/get", {"ids": None}).get("list") or () if isinstance(each, dict)]
        paths = {str(each.get("id")): _path(each, listed) for each in listed}
        for each in listed:
            if spelled == each.get("id") or spelled.lower() in {each.get("role"), paths[str(each.get("id"))].lower()}:
                return str(each.get("id"))
        raise ConfigurationError(
            "--queue", "names no mailbox that the token shows.", "Give the id, the role or the whole name of one."
        )

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        asked = {"using": list(_USING), "methodCalls": [[name, {"accountId": self.account} | arguments, "0"]]}
        reply = self.reader.request("POST", "/jmap/api", asked)
        if reply.status != _OK:
            raise Refused(reply)
        match reply.content:
            case {"methodResponses": [["error", {"type": "cannotCalculateChanges"}, _]]}:
                raise PlaceLost
            case {"methodResponses": [[answered, dict(found), _]]} if answered == name:
                return found
            case _:
                raise Unreachable("reader", "another form of answer")


def accounts(reader: Endpoint) -> tuple[str, ...]:
    """Return the ids of the accounts that the token opens. Raises `Unreachable` and `Refused`."""
    reply = reader.request("GET", "/jmap/session")
    if reply.status != _OK:
        raise Refused(reply)
    match reply.content:
        case {"accounts": dict(found)}:
            return tuple(str(each) for each in found)
        case _:
            raise Unreachable("reader", "another form of session")


def _path(mailbox: dict[str, Any], listed: Iterable[dict[str, Any]]) -> str:
    by_id = {each.get("id"): each for each in listed}
    names = [str(mailbox.get("name"))]
    parent, steps = by_id.get(mailbox.get("parentId")), 0
    while parent is not None and steps < len(by_id):
        names.append(str(parent.get("name")))
        parent, steps = by_id.get(parent.get("parentId")), steps + 1
    return "/".join(reversed(names))


def _email(content: dict[str, Any]) -> WatchedEmail:
    senders = _addresses(content.get("from"))
    keywords = content.get("keywords")
    mailbox_ids = content.get("mailboxIds")
    facts = content.get("flags")
    return WatchedEmail(
        id=str(content.get("id")),
        received_at=_moment(content.get("receivedAt")),
        mailbox_ids=frozenset(mailbox_ids) if isinstance(mailbox_ids, dict) else frozenset(),
        unread="$seen" not in keywords if isinstance(keywords, dict) else True,
        has_attachment=content.get("hasAttachment") is True,
        facts=frozenset(str(each.get("fact")) for each in facts if isinstance(each, dict))
        if isinstance(facts, list)
        else frozenset(),
        sender=senders[0][1].lower() if len(senders) == 1 else None,
        sender_name=senders[0][0] if senders else "",
        recipients=frozenset(
            email.lower() for name in ("to", "cc") for _, email in _addresses(content.get(name)) if email
        ),
        subject=str(content.get("subject") or ""),
        preview=str(content.get("preview") or ""),
    )


def _addresses(value: object) -> list[tuple[str, str]]:
    listed = value if isinstance(value, list) else []
    return [(str(each.get("name") or ""), str(each.get("email") or "")) for each in listed if isinstance(each, dict)]


def _moment(value: object) -> datetime:
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    except ValueError:
        raise Unreachable("reader", "an Email without receivedAt") from None


def _strings(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
