"""The set of mailboxes: kept equal to LIST, ids kept through renames, rounds counted.

A rename is seen where the server lets it be seen without MAILBOXID: a mailbox is no longer listed, another is new and
has the same UIDVALIDITY, and the first messages that come in under it have the same UIDs and the same content. (An
empty one: both are empty and have the same UIDNEXT.) Until that is decided the new one is not shown and the old one
is. UIDVALIDITY alone is no evidence: many servers give all mailboxes the same.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import apsw

from agent_reader.imap.values import canonical_name
from agent_reader.store import emails, threads
from agent_reader.store.changes import ChangeKind
from agent_reader.store.mailbox_names import net_unicode
from agent_reader.store.writing import Writing
from agent_reader.sync.mirror import KnownMailbox, ListedMailbox, MailboxStatus

MakeId = Callable[[], str]

# What a mailbox has from where it lies now, as opposed to its identity.
_PLACE: Final = (
    "handle, name, delimiter, attributes, subscribed, selectable, uidvalidity, uidnext, highestmodseq, looked_tick, "
    "passed_over"
)

_PARAMETERS: Final = ", ".join("?" * _PLACE.count(","))

# What LIST says of a mailbox's children and news, which JMAP does not show of it, or says elsewhere.
_UNTOLD: Final = frozenset(
    {
        "\\haschildren",
        "\\hasnochildren",
        "\\marked",
        "\\unmarked",
        "\\noinferiors",
        "\\subscribed",
        "\\noselect",
        "\\nonexistent",
        "\\remote",
    }
)

# Where one mailbox cannot be looked at, nobody knows whether what vanished elsewhere was moved into it. A lock that was
# left behind or a restart is over within an hour; whoever deleted a message should not find it here the next day. The
# price: what was moved there comes in as created when the mailbox can be read again.
_HELD_AT_MOST_SECONDS: Final = 3600

# A key names one mailbox for as long as changes may speak of it: where Emails were before they left it, at the latest.
_FREE_KEY: Final = (
    "SELECT max(coalesce((SELECT max(key) FROM mailboxes), 0), "
    "coalesce((SELECT max(b.value) FROM email_changes c, json_each(c.mailboxes_before) b), 0)) + 1"
)

_TRASH: Final = "\\trash"

_UNSELECTABLE: Final = frozenset({"\\noselect", "\\nonexistent"})


class UnknownMailbox(LookupError):  # noqa: N818 - the name is the finding
    """Sync named a mailbox that is not listed: a bug, or a LIST that came in between."""


def key_of(writing: Writing, handle: str) -> int:
    """Return the key of a mailbox by what sync calls it. Raises `UnknownMailbox`."""
    key = writing.connection.execute("SELECT key FROM mailboxes WHERE handle = ? AND standing <> 'gone'", (handle,)).get
    if key is None:
        raise UnknownMailbox(handle)
    return int(key)


def known(connection: apsw.Connection) -> list[KnownMailbox]:
    """Return mailboxes as sync sees them, INBOX first."""
    rows = connection.execute(
        "SELECT handle, name, selectable, uidvalidity, uidnext, highestmodseq, expected FROM mailboxes "
        "WHERE standing <> 'gone'"
    )
    found = [
        KnownMailbox(
            handle,
            name,
            bool(selectable),
            uidvalidity,
            uidnext,
            highestmodseq,
            # Without the others it was never whole, or is not any more.
            MailboxStatus(uidvalidity, uidnext, expected, highestmodseq)
            if uidvalidity and uidnext and highestmodseq and expected is not None
            else None,
        )
        for handle, name, selectable, uidvalidity, uidnext, highestmodseq, expected in rows
    ]
    return sorted(found, key=lambda mailbox: (mailbox.name != "INBOX", mailbox.name))


def put_listing(writing: Writing, listing: Iterable[ListedMailbox], make_id: MakeId) -> None:
    """Make the set of mailboxes equal to a full LIST."""
    listed = {canonical_name(mailbox.name): mailbox for mailbox in listing}
    rows = list(writing.connection.execute("SELECT key, name, selectable, standing FROM mailboxes"))
    present = {canonical_name(name): (int(key), bool(selectable), standing) for key, name, selectable, standing in rows}
    for name, (key, selectable, standing) in present.items():
        if name not in listed and standing != "gone":
            _lose(writing, key, selectable=selectable, standing=standing)
    may_be_renamed = (
        writing.connection.execute("SELECT 1 FROM mailboxes WHERE standing = 'gone' LIMIT 1").get is not None
    )
    new = [mailbox for name, mailbox in listed.items() if name not in present]
    # Asked once: it goes through all that changed in a month.
    free = int(writing.connection.execute(_FREE_KEY).get) if new else 0
    for name, mailbox in listed.items():
        if name in present:
            _update(writing, present[name][0], mailbox)
    for key, mailbox in enumerate(new, free):
        pending = may_be_renamed and is_selectable(mailbox.attributes)
        _insert(writing, key, mailbox, make_id(), pending=pending)


def is_selectable(attributes: Iterable[str]) -> bool:
    """Whether a mailbox with these attributes can hold messages (RFC 9051 §7.3.1)."""
    return _UNSELECTABLE.isdisjoint(attribute.lower() for attribute in attributes)


def restart(writing: Writing, key: int, uidvalidity: int) -> None:
    """Begin a mailbox anew under another UIDVALIDITY."""
    emails.forget_copies(writing, key)
    writing.connection.execute(
        "UPDATE mailboxes SET uidvalidity = ?, uidnext = 1, highestmodseq = NULL, looked_tick = NULL, passed_over = 0 "
        "WHERE key = ?",
        (uidvalidity, key),
    )


def looked(writing: Writing, key: int, uidnext: int, highestmodseq: int | None) -> None:
    """Record that a mailbox is up to date."""
    if writing.connection.execute(
        "SELECT 1 FROM mailboxes WHERE key = ? AND looked_tick IS NULL AND passed_over", (key,)
    ).get:
        writing.note_mailbox(key, ChangeKind.UPDATED)
    writing.connection.execute(
        "UPDATE mailboxes SET uidnext = ?, highestmodseq = ?, looked_tick = ?, passed_over = 0, looked_at = ?, "
        "failed_at = NULL, failure_code = NULL, failure_detail = NULL, failure_fix = NULL WHERE key = ?",
        (uidnext, highestmodseq, writing.tick(), writing.now, key),
    )
    if _is_pending(writing, key):
        twin = writing.connection.execute(
            "SELECT g.key FROM mailboxes g JOIN mailboxes n ON n.uidvalidity = g.uidvalidity AND n.uidnext = g.uidnext "
            "WHERE n.key = ? AND g.standing = 'gone' "
            "AND NOT EXISTS (SELECT 1 FROM copies c WHERE c.mailbox_key = n.key) "
            "AND NOT EXISTS (SELECT 1 FROM former_copies f WHERE f.mailbox_key = g.key)",
            (key,),
        ).get
        _decide(writing, key, twin)


def found_unchanged(writing: Writing, handles: Iterable[str]) -> None:
    """Record that mailboxes which are whole are so still."""
    handles = list(handles)
    if handles:
        tick = writing.tick()
        writing.connection.executemany(
            "UPDATE mailboxes SET looked_tick = ?, looked_at = ?, failed_at = NULL, failure_code = NULL, "
            "failure_detail = NULL, failure_fix = NULL WHERE handle = ? AND standing <> 'gone'",
            [(tick, writing.now, handle) for handle in handles],
        )


def recognise(writing: Writing, key: int, email_ids: Mapping[int, str]) -> None:
    """Decide whether a new mailbox is a renamed one, by the first messages that come in under it."""
    if not email_ids or not _is_pending(writing, key):
        return
    twins = list(
        writing.connection.execute(
            "SELECT g.key FROM mailboxes g JOIN mailboxes n ON n.uidvalidity = g.uidvalidity "
            "WHERE n.key = ? AND g.standing = 'gone'",
            (key,),
        )
    )
    for (twin,) in twins:
        held = writing.connection.execute(
            "SELECT f.uid, e.id FROM former_copies f JOIN emails e ON e.key = f.email_key WHERE f.mailbox_key = ?",
            (twin,),
        )
        former: dict[int, str] = dict(held)
        if all(former.get(uid) == email_id for uid, email_id in email_ids.items()):
            _decide(writing, key, int(twin))
            return
    _decide(writing, key, None)


def settle(writing: Writing) -> None:
    """End a whole round: destroy what no mailbox has any more, and mailboxes that are gone."""
    connection = writing.connection
    waiting = list(connection.execute("SELECT key FROM mailboxes WHERE standing = 'pending'"))
    for (key,) in waiting:
        _decide(writing, int(key), None)
    # A mailbox that whole rounds pass over (a server's own, an unreadable one) does not hold back the others.
    looked_since = connection.execute(
        "SELECT min(coalesce(looked_tick, 0)) FROM mailboxes "
        "WHERE standing = 'listed' AND selectable AND NOT (looked_tick IS NULL AND passed_over)"
    ).get
    _destroy_held(writing, before_tick=writing.tick() if looked_since is None else int(looked_since))
    threads.forget_what_never_came(writing)
    passed_over = connection.execute(
        "UPDATE mailboxes SET passed_over = 1 WHERE looked_tick IS NULL AND NOT passed_over RETURNING key, selectable"
    )
    for key, selectable in list(passed_over):
        # Known now as one that this login may not read: its myRights say so (RFC 8621 §2).
        if selectable:
            writing.note_mailbox(int(key), ChangeKind.UPDATED)
    connection.execute(
        "UPDATE account SET settled_at = ?, failed_at = NULL, failure_code = NULL, failure_detail = NULL, "
        "failure_fix = NULL",
        (writing.now,),
    )


def release_overdue(writing: Writing) -> None:
    """Destroy what no mailbox has had for too long, as far as could be seen."""
    _destroy_held(writing, before_tick=0)


def note_moved_places(writing: Writing) -> None:
    """Note what stands elsewhere since others came, went or were renamed, or bears another role (RFC 8621 §2).

    The tree follows from names and each role is one Mailbox's, so one may change another: here sooner one too many is
    updated than one too few.
    """
    if not writing.moved and not writing.attributes:
        return
    # Siblings whose names are shown alike are told apart by a number.
    alike = {net_unicode(name) for name in writing.moved}
    rows = list(
        writing.connection.execute("SELECT id, name, delimiter, attributes FROM mailboxes WHERE standing <> 'pending'")
    )
    for mailbox_id, name, delimiter, attributes in rows:
        # Which Threads count as unread depends on which Mailbox is the trash.
        bears_other_role = _TRASH in writing.attributes or (writing.attributes and _telling(json.loads(attributes)))
        above = {name[:end] for end in range(len(name)) if delimiter and name.startswith(delimiter, end)}
        if bears_other_role or net_unicode(name) in alike or not writing.moved.isdisjoint(above):
            writing.changes.note_by_others(str(mailbox_id))


def _destroy_held(writing: Writing, *, before_tick: int) -> None:
    emails.destroy_held(writing, before_tick=before_tick, before=writing.now - _HELD_AT_MOST_SECONDS)
    gone = list(
        writing.connection.execute(
            "SELECT key FROM mailboxes m WHERE standing = 'gone' "
            "AND NOT EXISTS (SELECT 1 FROM email_mailboxes e WHERE e.mailbox_key = m.key)"
        )
    )
    for (key,) in gone:
        _drop(writing, int(key))


def _note_place(writing: Writing, name: str, attributes: Iterable[str]) -> None:
    """A Mailbox appears or disappears at this name."""
    writing.moved.add(name)
    writing.attributes |= _telling(attributes)


def _telling(attributes: Iterable[str]) -> frozenset[str]:
    """The attributes that JMAP shows anything of."""
    return frozenset(attribute.lower() for attribute in attributes) - _UNTOLD


def _attributes(mailbox: ListedMailbox) -> str:
    return json.dumps(sorted(mailbox.attributes))


def _insert(writing: Writing, key: int, mailbox: ListedMailbox, mailbox_id: str, *, pending: bool) -> None:
    standing = "pending" if pending else "listed"
    writing.connection.execute(
        "INSERT INTO mailboxes (key, handle, id, name, delimiter, attributes, subscribed, selectable, uidvalidity, "
        "uidnext, highestmodseq, looked_tick, passed_over, standing) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, 1, NULL, NULL, 0, ?)",
        (
            key,
            mailbox_id,
            mailbox_id,
            canonical_name(mailbox.name),
            mailbox.delimiter,
            _attributes(mailbox),
            int(mailbox.subscribed),
            int(is_selectable(mailbox.attributes)),
            standing,
        ),
    )
    if not pending:
        _show(writing, key)


def _show(writing: Writing, key: int) -> None:
    name, attributes = writing.connection.execute(
        "SELECT name, attributes FROM mailboxes WHERE key = ?", (key,)
    ).fetchone() or ("", "[]")
    _note_place(writing, str(name), json.loads(attributes))
    writing.note_mailbox(key, ChangeKind.CREATED)


def _update(writing: Writing, key: int, mailbox: ListedMailbox) -> None:
    connection = writing.connection
    before = connection.execute(
        "SELECT delimiter, attributes, subscribed, selectable, standing FROM mailboxes WHERE key = ?", (key,)
    ).fetchone()
    assert before is not None
    selectable = is_selectable(mailbox.attributes)
    after = (mailbox.delimiter, _attributes(mailbox), int(mailbox.subscribed), int(selectable))
    if before[4] == "gone":
        connection.execute("DELETE FROM former_copies WHERE mailbox_key = ?", (key,))
        connection.execute("UPDATE mailboxes SET standing = 'listed' WHERE key = ?", (key,))
        _forget_place(writing, key)
    if before[:4] == after:
        return
    connection.execute(
        "UPDATE mailboxes SET delimiter = ?, attributes = ?, subscribed = ?, selectable = ? WHERE key = ?",
        (*after, key),
    )
    if before[3] and not selectable:
        _forget_place(writing, key)
    if emails.is_view(json.loads(before[1])) != emails.is_view(mailbox.attributes):
        rows = list(connection.execute("SELECT email_key FROM copies WHERE mailbox_key = ?", (key,)))
        writing.touched.update(int(email_key) for (email_key,) in rows)
    told = _telling(json.loads(before[1])) ^ _telling(mailbox.attributes)
    writing.attributes |= told
    if told or before[0] != mailbox.delimiter or before[2:4] != after[2:4]:
        writing.note_mailbox(key, ChangeKind.UPDATED)


def _lose(writing: Writing, key: int, *, selectable: bool, standing: str) -> None:
    """A mailbox is not listed any more. It stays, as gone, until its Emails are settled or it is known again."""
    if standing == "pending" or not (selectable or _shows_emails(writing, key)):
        _drop(writing, key)  # Nothing was taken in yet, or nothing can be.
        return
    writing.connection.execute(
        "INSERT INTO former_copies (mailbox_key, uid, email_key) SELECT mailbox_key, uid, email_key FROM copies "
        "WHERE mailbox_key = ?",
        (key,),
    )
    writing.connection.execute("UPDATE mailboxes SET standing = 'gone' WHERE key = ?", (key,))
    emails.forget_copies(writing, key)


def _shows_emails(writing: Writing, key: int) -> bool:
    return (
        writing.connection.execute("SELECT 1 FROM email_mailboxes WHERE mailbox_key = ? LIMIT 1", (key,)).get
        is not None
    )


def _forget_place(writing: Writing, key: int) -> None:
    emails.forget_copies(writing, key)
    writing.connection.execute(
        "UPDATE mailboxes SET uidvalidity = NULL, uidnext = 1, highestmodseq = NULL, looked_tick = NULL WHERE key = ?",
        (key,),
    )


def _is_pending(writing: Writing, key: int) -> bool:
    return bool(writing.connection.execute("SELECT standing = 'pending' FROM mailboxes WHERE key = ?", (key,)).get)


def _decide(writing: Writing, key: int, twin: int | None) -> None:
    """Show a pending mailbox: as the gone one renamed (`twin`), or as a new one."""
    connection = writing.connection
    if twin is None:
        connection.execute("UPDATE mailboxes SET standing = 'listed' WHERE key = ?", (key,))
        _show(writing, key)
        return
    # The old row goes on under the new name, so that for the Emails that it holds nothing changes.
    old = connection.execute("SELECT name, attributes FROM mailboxes WHERE key = ?", (twin,)).fetchone()
    row = connection.execute(f"DELETE FROM mailboxes WHERE key = ? RETURNING {_PLACE}", (key,)).fetchone()  # noqa: S608 - constants only
    assert old is not None
    assert row is not None
    place = dict(zip(_PLACE.split(", "), row, strict=True))
    _note_place(writing, str(old[0]), json.loads(old[1]))
    _note_place(writing, place["name"], json.loads(place["attributes"]))
    connection.execute(
        f"UPDATE mailboxes SET ({_PLACE}) = ({_PARAMETERS}, 0), standing = 'listed' WHERE key = ?",  # noqa: S608 - constants only
        (*row[:-1], twin),
    )
    connection.execute("UPDATE OR REPLACE set_aside SET mailbox_key = ? WHERE mailbox_key = ?", (twin, key))
    connection.execute("DELETE FROM former_copies WHERE mailbox_key = ?", (twin,))
    writing.note_mailbox(twin, ChangeKind.UPDATED)


def _drop(writing: Writing, key: int) -> None:
    row = writing.connection.execute(
        "SELECT name, attributes, standing FROM mailboxes WHERE key = ?", (key,)
    ).fetchone()
    if row is not None and row[2] != "pending":
        _note_place(writing, str(row[0]), json.loads(row[1]))
    writing.note_mailbox(key, ChangeKind.DESTROYED)
    for table in ("former_copies", "set_aside"):
        writing.connection.execute(f"DELETE FROM {table} WHERE mailbox_key = ?", (key,))  # noqa: S608 - constants only
    writing.connection.execute("DELETE FROM mailboxes WHERE key = ?", (key,))
