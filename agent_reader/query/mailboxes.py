"""Mailbox/get: the tree of mailboxes, their roles and counts (RFC 8621 §2).

The tree follows the names that IMAP shows. Where a parent is not listed the mailbox hangs from the nearest ancestor
that is, and its name holds the rest of the path; nothing is made up, and a name can make no loop.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent_reader.query.errors import invalid
from agent_reader.query.results import GetResult
from agent_reader.store.fold import sort_order
from agent_reader.store.mailbox_names import net_unicode
from agent_reader.store.snapshot import MailboxCounts, Snapshot, StoredMailbox
from shared.message import JSON

PROPERTIES: Final = (
    "id",
    "name",
    "parentId",
    "role",
    "sortOrder",
    "totalEmails",
    "unreadEmails",
    "totalThreads",
    "unreadThreads",
    "myRights",
    "isSubscribed",
)

_COUNTS: Final = frozenset({"totalEmails", "unreadEmails", "totalThreads", "unreadThreads"})

# RFC 6154 §2, RFC 8457 §3 and the IANA registry of mailbox attributes: the attribute and the role that it stands for.
_ROLES: Final[Mapping[str, str]] = {
    "\\all": "all",
    "\\archive": "archive",
    "\\drafts": "drafts",
    "\\flagged": "flagged",
    "\\important": "important",
    "\\junk": "junk",
    "\\sent": "sent",
    "\\trash": "trash",
}

# Where mail programs put them; all others come after, by name.
_SORT_ORDER: Final[Mapping[str | None, int]] = {
    "inbox": 1,
    "drafts": 2,
    "sent": 3,
    "archive": 4,
    "junk": 5,
    "trash": 6,
}
_SORT_ORDER_OF_OTHERS: Final = 10

# RFC 8621 §2 myRights. There is no code that could use any other.
_NO_RIGHTS: Final = (
    "mayAddItems",
    "mayRemoveItems",
    "maySetSeen",
    "maySetKeywords",
    "mayCreateChild",
    "mayRename",
    "mayDelete",
    "maySubmit",
)


@dataclass(frozen=True, slots=True)
class MailboxPlace:
    """Where a mailbox stands: its name among its siblings, its parent's id, its role."""

    name: str
    parent_id: str | None
    role: str | None


def mailbox_get(
    snapshot: Snapshot, ids: Iterable[str] | None = None, properties: Sequence[str] | None = None
) -> GetResult:
    """Answer Mailbox/get; `ids` None for all in order, `properties` None for all. Raises `QueryRefused`."""
    wanted = PROPERTIES if properties is None else tuple(dict.fromkeys(("id", *properties)))
    if not set(wanted) <= set(PROPERTIES):
        raise invalid("properties", f"a Mailbox has {', '.join(PROPERTIES)}.")
    mailboxes = snapshot.mailboxes()
    by_id = {mailbox.id: mailbox for mailbox in mailboxes}
    places = mailbox_places(mailboxes)
    asked = dict.fromkeys((mailbox.id for mailbox in in_order(mailboxes, places)) if ids is None else ids)
    counts: Mapping[int, MailboxCounts] = {}
    if not _COUNTS.isdisjoint(wanted):
        trash = next((mailbox.key for mailbox in mailboxes if places[mailbox.key].role == "trash"), None)
        counts = snapshot.counts(trash)
    answers: list[dict[str, JSON]] = []
    for mailbox_id in asked:
        if mailbox_id in by_id:
            mailbox = by_id[mailbox_id]
            shown = _mailbox_json(mailbox, places[mailbox.key], counts.get(mailbox.key, MailboxCounts()))
            answers.append({name: shown[name] for name in wanted})
    return GetResult(tuple(answers), tuple(each for each in asked if each not in by_id), snapshot.state)


def mailbox_places(mailboxes: Sequence[StoredMailbox]) -> dict[int, MailboxPlace]:
    """Return where each mailbox stands, by key. Siblings never share a name, nor two mailboxes a role."""
    by_name = {mailbox.name: mailbox for mailbox in reversed(mailboxes)}
    roles_taken: set[str] = set()
    names_taken: set[tuple[str | None, str]] = set()
    places: dict[int, MailboxPlace] = {}
    for mailbox in mailboxes:
        parent, name = _parent(mailbox, by_name)
        parent_id = parent.id if parent else None
        name = _unlike_siblings(net_unicode(name), parent_id, names_taken)
        role = next((role for role in _roles(mailbox) if role not in roles_taken), None)
        if role:
            roles_taken.add(role)
        places[mailbox.key] = MailboxPlace(name, parent_id, role)
    return places


def in_order(mailboxes: Iterable[StoredMailbox], places: Mapping[int, MailboxPlace]) -> list[StoredMailbox]:
    """Return Mailboxes as they are listed where no sort is asked for: by sortOrder, then by name, ties by id."""

    def order(mailbox: StoredMailbox) -> tuple[int, str, str]:
        place = places[mailbox.key]
        return sort_order_of(place.role), sort_order(place.name), mailbox.id

    return sorted(mailboxes, key=order)


def sort_order_of(role: str | None) -> int:
    """Return the sortOrder of a Mailbox with this role."""
    return _SORT_ORDER.get(role, _SORT_ORDER_OF_OTHERS)


def _parent(mailbox: StoredMailbox, by_name: Mapping[str, StoredMailbox]) -> tuple[StoredMailbox | None, str]:
    delimiter = mailbox.delimiter
    if not delimiter:
        return None, mailbox.name
    end = mailbox.name.rfind(delimiter)
    while end > 0:
        rest = mailbox.name[end + len(delimiter) :]
        parent = by_name.get(mailbox.name[:end])
        if parent is not None and parent is not mailbox and rest:
            return parent, rest
        end = mailbox.name.rfind(delimiter, 0, end)
    return None, mailbox.name


def _unlike_siblings(name: str, parent_id: str | None, taken: set[tuple[str | None, str]]) -> str:
    """RFC 8621 §2: siblings have different names; IMAP's may differ in normalisation alone."""
    unlike, number = name, 2
    while (parent_id, unlike) in taken:
        unlike, number = f"{name} ({number})", number + 1
    taken.add((parent_id, unlike))
    return unlike


def _roles(mailbox: StoredMailbox) -> list[str]:
    if mailbox.name == "INBOX":
        return ["inbox"]
    attributes = sorted(attribute.lower() for attribute in mailbox.attributes)
    return [_ROLES[attribute] for attribute in attributes if attribute in _ROLES]


def _mailbox_json(mailbox: StoredMailbox, place: MailboxPlace, counts: MailboxCounts) -> dict[str, JSON]:
    return {
        "id": mailbox.id,
        "name": place.name,
        "parentId": place.parent_id,
        "role": place.role,
        "sortOrder": sort_order_of(place.role),
        "totalEmails": counts.total_emails,
        "unreadEmails": counts.unread_emails,
        "totalThreads": counts.total_threads,
        "unreadThreads": counts.unread_threads,
        "myRights": {"mayReadItems": mailbox.readable, **dict.fromkeys(_NO_RIGHTS, False)},
        "isSubscribed": mailbox.subscribed,
    }
