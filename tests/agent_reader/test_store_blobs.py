"""The index of blobs: of messages and of those attached to them, made anew where it is missing, gone with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from agent_reader.query import FoundBlob, find_blob
from agent_reader.store import blobs
from shared.identity import blob_id, message_digest
from shared.message import parse
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of, letter, mirrored, with_attachment

PDF = blob_id(message_digest(b"%PDF"))
ATTACHED = with_attachment("See attached.")


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Archive")
        yield account


def _find(account: Mirrored, blob: str) -> FoundBlob | None:
    with account.store.snapshot(ACCOUNT) as snapshot:
        return find_blob(snapshot, blob)


def _rows(account: Mirrored) -> int:
    with account.store.snapshot(ACCOUNT) as snapshot:
        return int(snapshot.connection.execute("SELECT count(*) FROM part_blobs").get)


def test_a_part_is_found_in_the_newest_message_that_has_it_with_all_places(account: Mirrored) -> None:
    newer = with_attachment("See attached again.")
    account.add("INBOX", fetched(1, ATTACHED), fetched(2, newer))
    account.add("Archive", fetched(7, newer))
    found = _find(account, PDF)
    assert found is not None
    assert (id_of(newer), True, False) == (found.email_id, found.is_part, found.is_body)
    assert [("INBOX", 2), ("Archive", 7)] == [(place.mailbox, place.uid) for place in found.places]


def test_the_index_goes_with_the_message_and_a_held_one_has_no_blob(account: Mirrored) -> None:
    account.add("INBOX", fetched(1, ATTACHED))
    assert 2 == _rows(account)
    account.vanish("INBOX", 1)
    assert _find(account, blob_id(message_digest(ATTACHED))) is None
    account.end_round()
    assert 0 == _rows(account)
    assert _find(account, PDF) is None


def test_a_file_without_the_index_is_given_one(account: Mirrored) -> None:
    account.add("INBOX", fetched(1, ATTACHED))
    (path,) = account.folder.glob("mail-*.db")
    account.store.close()
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE part_blobs")
    connection.close()
    account.reopen()
    found = _find(account, PDF)
    assert found is not None
    assert id_of(ATTACHED) == found.email_id


def test_messages_within_messages_are_looked_into_and_not_for_ever() -> None:
    message = letter("The innermost.")
    for depth in range(20):
        message = letter("", subject=f"Level {depth}", content_type="message/rfc822").replace(
            b"8bit\r\n\r\n\r\n", b"8bit\r\n\r\n" + message
        )
    leaves = list(blobs.nested_parts(parse(message)))
    assert 9 == len(leaves)
    assert all(part.type == "message/rfc822" for part in leaves)


def test_so_many_parts_and_no_more_are_indexed() -> None:
    parts = "".join(f"--b\r\n\r\n{number}\r\n" for number in range(990))
    many = letter(f"{parts}--b--", content_type="multipart/mixed; boundary=b")
    wrapped = b"".join(b"--c\r\nContent-Type: message/rfc822\r\n\r\n" + many + b"\r\n" for _ in range(4))
    whole = letter("", content_type="multipart/mixed; boundary=c").replace(
        b"8bit\r\n\r\n\r\n", b"8bit\r\n\r\n" + wrapped + b"--c--\r\n"
    )
    assert 2_000 == sum(1 for _ in blobs.nested_parts(parse(whole)))


@pytest.mark.parametrize(
    "untrusted", ["", "B", "B" + "w" * 32, "b" + "0" * 32, "B" + "0" * 31, "BX" + "0" * 31, "\u0660"]
)
def test_what_is_no_blob_id_is_found_nowhere(account: Mirrored, untrusted: str) -> None:
    assert _find(account, untrusted) is None
