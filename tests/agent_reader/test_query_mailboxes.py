"""Mailbox/get: the tree, the roles and the counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_reader.query import QueryRefused, mailbox_get
from agent_reader.sync.mirror import ListedMailbox
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, letter, listed, mirrored


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path / "store") as account:
        yield account


def _mail(name: str, thread: str) -> bytes:
    return letter(name, subject=thread, headers={"Message-ID": f"<{thread}@x>"})


@pytest.mark.statement("86", "95")
def test_all_eleven_properties_are_there_with_their_types(account: Mirrored) -> None:
    account.put_listing(listed("INBOX"), ListedMailbox("Work", "/", frozenset(), subscribed=False))
    work = account.mailbox("Work")
    assert work == {
        "id": work["id"],
        "name": "Work",
        "parentId": None,
        "role": None,
        "sortOrder": 10,
        "totalEmails": 0,
        "unreadEmails": 0,
        "totalThreads": 0,
        "unreadThreads": 0,
        "myRights": {
            "mayReadItems": True,
            "mayAddItems": False,
            "mayRemoveItems": False,
            "maySetSeen": False,
            "maySetKeywords": False,
            "mayCreateChild": False,
            "mayRename": False,
            "mayDelete": False,
            "maySubmit": False,
        },
        "isSubscribed": False,
    }
    assert str(work["id"]).startswith("F")
    assert account.mailbox("INBOX")["role"] == "inbox"


@pytest.mark.statement("87")
def test_roles_come_from_attributes_and_none_is_there_twice(account: Mirrored) -> None:
    account.put_listing(
        listed("INBOX", "\\Archive"),
        listed("Sent", "\\Sent", "\\HasNoChildren"),
        listed("Sent Messages", "\\Sent"),
        listed("Spam", "\\Junk"),
        listed("Trash", "\\Trash"),
        listed("Work/INBOX"),
    )
    with account.store.snapshot(ACCOUNT) as snapshot:
        roles = {each["name"]: each["role"] for each in mailbox_get(snapshot, None, ["name", "role"]).list}
    assert ["INBOX", "Sent", "Spam", "Trash", "Sent Messages", "Work/INBOX"] == list(roles)
    assert ["inbox", "sent", "junk", "trash", None, None] == list(roles.values())


@pytest.mark.statement("88")
def test_the_tree_follows_the_delimiter_and_makes_nothing_up(account: Mirrored) -> None:
    account.put_listing(
        listed("INBOX", delimiter="."),
        listed("INBOX.Child", delimiter="."),
        listed("INBOX.Child.Grandchild", delimiter="."),
        listed("Never.Listed.Leaf", delimiter="."),
        listed("Parent", "\\Noselect", delimiter="."),
        listed("Parent.Child", delimiter="."),
        listed("Gone", "\\NonExistent", "\\HasChildren", delimiter="."),
        listed("Gone.Child", delimiter="."),
        listed("INBOX.Never.Listed.Leaf", delimiter="."),
        listed(".odd.", delimiter="."),
        listed("Flat.Name", delimiter=None),
    )
    with account.store.snapshot(ACCOUNT) as snapshot:
        names = {each["id"]: each["name"] for each in mailbox_get(snapshot).list}
        tree = {(each["name"], names.get(each["parentId"])) for each in mailbox_get(snapshot).list}
    assert tree == {
        ("INBOX", None),
        ("Child", "INBOX"),
        ("Grandchild", "Child"),
        ("Never.Listed.Leaf", None),
        ("Parent", None),
        ("Child", "Parent"),
        ("Gone", None),
        ("Child", "Gone"),
        ("Never.Listed.Leaf", "INBOX"),
        (".odd.", None),
        ("Flat.Name", None),
    }
    for name in ("Parent", "Gone"):
        mailbox = account.mailbox(name)
        rights = mailbox["myRights"]
        assert isinstance(rights, dict)
        assert rights["mayReadItems"] is False
        counts = ("totalEmails", "unreadEmails", "totalThreads", "unreadThreads")
        assert (0, 0, 0, 0) == tuple(mailbox[each] for each in counts)


@pytest.mark.statement("95")
def test_a_mailbox_that_the_login_may_not_open_is_shown_without_the_right_to_read_until_it_may(
    account: Mirrored,
) -> None:
    account.begin("INBOX", "Closed")
    account.mirror.looked(account.handle("INBOX"), 1, None)
    account.mirror.settle()

    def may_read() -> tuple[bool, bool]:
        rights = [account.mailbox(name)["myRights"] for name in ("INBOX", "Closed")]
        inbox, closed = (isinstance(each, dict) and each["mayReadItems"] is True for each in rights)
        return inbox, closed

    assert may_read() == (True, False)
    state, closed = account.state(), account.mailbox_id("Closed")
    account.mirror.looked(account.handle("Closed"), 1, None)
    assert may_read() == (True, True)
    assert account.changes_since(state) == {("Mailbox", closed): ["updated"]}


@pytest.mark.statement("89")
def test_names_are_nfc_and_siblings_never_share_one(account: Mirrored) -> None:
    account.put_listing(listed("INBOX"), listed("Bu\u0308ro"), listed("B\u00fcro"), listed("A & B 🎉 日本"))
    with account.store.snapshot(ACCOUNT) as snapshot:
        names = [each["name"] for each in mailbox_get(snapshot, None, ["name"]).list]
    assert names == ["INBOX", "A & B 🎉 日本", "B\u00fcro", "B\u00fcro (2)"]
    account.put_listing(listed("INBOX"), *map(listed, ("A", "A/Bu\u0308ro", "A/B\u00fcro", "B", "B/B\u00fcro")))
    account.end_round()
    with account.store.snapshot(ACCOUNT) as snapshot:
        found = mailbox_get(snapshot, None, ["name", "parentId"]).list
    names_by_id = {each["id"]: each["name"] for each in found}
    below = {(names_by_id[each["parentId"]], each["name"]) for each in found if each["parentId"] is not None}
    assert below == {("A", "B\u00fcro"), ("A", "B\u00fcro (2)"), ("B", "B\u00fcro")}


@pytest.mark.statement("89")
def test_names_are_net_unicode_whatever_the_mail_server_says(account: Mirrored) -> None:
    """RFC 8621 §2 and RFC 5198 §2; modified UTF-7 has a spelling for every control character."""
    account.put_listing(listed("INBOX"), listed("A\nB"), listed("A\x00B"), listed("A\uffffB"), listed("\x85"))
    with account.store.snapshot(ACCOUNT) as snapshot:
        names = {each["name"] for each in mailbox_get(snapshot, None, ["name"]).list}
    assert names == {"INBOX", "\ufffd", "A\ufffdB", "A\ufffdB (2)", "A\ufffdB (3)"}


@pytest.mark.statement("91")
def test_counts_of_emails_and_threads(account: Mirrored) -> None:
    account.begin("INBOX", "Archive")
    account.add("INBOX", fetched(1, _mail("1", "a")), fetched(2, _mail("2", "a"), flags=["\\Seen"]))
    account.add("INBOX", fetched(3, _mail("3", "b"), flags=["\\Draft"]), fetched(4, _mail("4", "c")))
    inbox = account.mailbox("INBOX")
    assert (inbox["totalEmails"], inbox["unreadEmails"]) == (4, 2)
    assert (inbox["totalThreads"], inbox["unreadThreads"]) == (3, 2)


@pytest.mark.statement("92", "93")
def test_an_unread_email_elsewhere_makes_its_thread_unread_in_every_mailbox_that_holds_part_of_it(
    account: Mirrored,
) -> None:
    account.put_listing(listed("INBOX"), listed("Archive"), listed("Trash", "\\Trash"))
    for number, name in enumerate(("INBOX", "Archive", "Trash")):
        account.mirror.restart(account.handle(name), number + 1)
    account.add("INBOX", fetched(1, _mail("1", "a"), flags=["\\Seen"]))
    account.add("Archive", fetched(1, _mail("2", "a")))
    account.add("Trash", fetched(1, _mail("3", "a"), flags=["\\Seen"]))
    unread = {name: account.mailbox(name)["unreadThreads"] for name in ("INBOX", "Archive", "Trash")}
    assert unread == {"INBOX": 1, "Archive": 1, "Trash": 0}
    account.flag("Archive", 1, "\\Seen")
    account.flag("Trash", 1)
    unread = {name: account.mailbox(name)["unreadThreads"] for name in ("INBOX", "Archive", "Trash")}
    assert unread == {"INBOX": 0, "Archive": 0, "Trash": 1}


@pytest.mark.statement("70")
def test_a_change_that_touches_another_mailboxs_unread_threads_is_noted_for_it(account: Mirrored) -> None:
    account.begin("INBOX", "Archive")
    account.add("INBOX", fetched(1, _mail("1", "a"), flags=["\\Seen"]))
    account.add("Archive", fetched(1, _mail("2", "a")))
    before = account.state()
    account.flag("Archive", 1, "\\Seen")
    assert ("Mailbox", account.mailbox_id("INBOX")) in account.changes_since(before)


def test_ids_and_properties_that_are_asked_for(account: Mirrored) -> None:
    account.begin("INBOX", "Archive")
    inbox = account.mailbox_id("INBOX")
    with account.store.snapshot(ACCOUNT) as snapshot:
        result = mailbox_get(snapshot, [inbox, "Fnone", inbox, "?"], ["name"])
        assert result.list == ({"id": inbox, "name": "INBOX"},)
        assert result.not_found == ("Fnone", "?")
        assert result.state == snapshot.state
        assert mailbox_get(snapshot, []).list == ()
        assert len(mailbox_get(snapshot).list) == 2
        with pytest.raises(QueryRefused) as refused:
            mailbox_get(snapshot, None, ["shoeSize"])
    assert (refused.value.type, refused.value.arguments) == ("invalidArguments", ("properties",))
