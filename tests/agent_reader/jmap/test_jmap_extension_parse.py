"""Email/parse with the extension for agents: an attached message is read like any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_reader.scope import Depth, Scope
from shared.identity import blob_id, message_digest
from shared.link import OpenedState
from tests.agent_reader.jmap.test_jmap_agent_extension import (
    ALL,
    ATTACHED,
    HIDDEN,
    LONG,
    LONG_HTML,
    REPLY,
    USING,
    id_of,
)
from tests.agent_reader.served import ACCOUNT, House, house

pytestmark = pytest.mark.anyio

PROPERTIES = ["subject", "newText", "flags", "cleaned", "textOfAttachment", "bodyValues"]


def holding(*messages: bytes) -> bytes:
    """A message with others attached, as they are."""
    head = b"From: Bob <bob@example.org>\r\nSubject: Fwd\r\nMIME-Version: 1.0\r\nMessage-ID: <99@example.org>\r\n"
    parts = b"".join(b"--out\r\nContent-Type: message/rfc822\r\n\r\n" + each + b"\r\n" for each in messages)
    return head + b"Content-Type: multipart/mixed; boundary=out\r\n\r\n" + parts + b"--out--\r\n"


OUTER = holding(*ALL, b"no message, though it says so")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The same messages, of their own and attached to another."""
    with house(tmp_path_factory.mktemp("parse"), (*ALL, OUTER)) as open_house:
        yield open_house


def blob_of(message: bytes) -> str:
    return blob_id(message_digest(message))


async def parsed(served: House, *messages: bytes, **arguments: Any) -> dict[str, Any]:
    asked = {"accountId": ACCOUNT, "blobIds": [blob_of(each) for each in messages]} | arguments
    ((name, body, _),) = await served.call(("Email/parse", asked), using=USING)
    assert "Email/parse" == name, body
    found: dict[str, Any] = body
    return found


async def got(served: House, *messages: bytes, **arguments: Any) -> dict[str, Any]:
    asked = {"accountId": ACCOUNT, "ids": [id_of(each) for each in messages]} | arguments
    ((name, body, _),) = await served.call(("Email/get", asked), using=USING)
    assert "Email/get" == name, body
    found: dict[str, Any] = body
    return found


@pytest.mark.parametrize("message", [REPLY, HIDDEN, ATTACHED, LONG, LONG_HTML])
@pytest.mark.parametrize("window", [{}, {"maxBodyValueBytes": 50}, {"maxBodyValueBytes": 50, "windowStart": 33}])
async def test_an_attached_message_has_what_it_has_as_an_email(
    served: House, message: bytes, window: dict[str, int]
) -> None:
    # Texts of the body: a long text that is attached is not kept, and here it is.
    asked = {"properties": PROPERTIES, "fetchTextBodyValues": True, "fetchHTMLBodyValues": True} | window
    there, here = await parsed(served, message, **asked), await got(served, message, **asked)
    (email,) = here["list"]
    # What goes on is named by what was asked for: there a blob, here an Email.
    assert {blob_of(message): {name: email[name] for name in PROPERTIES}} == there["parsed"]
    assert here["leftOut"] == {
        "ids": [],
        "texts": [text | {"id": id_of(message)} for text in there["leftOut"]["texts"]],
    }
    assert {blob_of(message)} >= {text["id"] for text in there["leftOut"]["texts"]}


async def test_a_budget_leaves_out_blobs_and_going_on_reads_them(served: House) -> None:
    asked = {"properties": ["newText", "bodyValues"], "fetchTextBodyValues": True, "maxTotalBytes": 2_000}
    left, read, rounds = [LONG, REPLY, LONG_HTML, HIDDEN], list[str](), 0
    by_blob = {blob_of(each): each for each in left}
    while left:
        body = await parsed(served, *left, **asked)
        assert body["parsed"], "each round gets on"
        read += body["parsed"]
        left = [by_blob[each] for each in body["leftOut"]["ids"]]
        rounds += 1
    assert (list(by_blob), True) == (read, rounds > 1)


async def test_what_is_no_message_or_not_there_is_said_as_without_the_extension(served: House) -> None:
    nothing = blob_id(message_digest(b"nothing"))
    no_message = b"no message, though it says so"
    asked = {"accountId": ACCOUNT, "blobIds": [nothing, blob_of(no_message), blob_of(REPLY)], "properties": ["flags"]}
    ((_, body, _),) = await served.call(("Email/parse", asked), using=USING)
    assert ([blob_of(no_message)], [nothing]) == (body["notParsable"], body["notFound"])
    assert {blob_of(REPLY): {"flags": [{"fact": "listMail", "where": "List-Id"}]}} == body["parsed"]
    ((_, body, _),) = await served.call(("Email/parse", asked | {"blobIds": []}), using=USING)
    assert (None, None, None) == (body["parsed"], body["notParsable"], body["notFound"])
    assert {"ids": [], "texts": []} == body["leftOut"]


async def test_who_may_not_read_octets_parses_nothing_and_what_is_read_is_on_record(tmp_path: Path) -> None:
    with house(tmp_path, (OUTER,)) as served:
        for depth in (Depth.HEADERS, Depth.TEXT):
            served.token = served.access.create_token(depth.value, scope=Scope(depth=depth)).text
            body = await parsed(served, REPLY, properties=["newText"])
            assert (None, [blob_of(REPLY)]) == (body["parsed"], body["notFound"])
        served.token = served.access.create_token("reader").text
        await parsed(served, REPLY, properties=["flags"])
        assert OpenedState.NOT_OPENED is served.access.opened("reader", ACCOUNT, id_of(OUTER)).state
        await parsed(served, REPLY, properties=["newText"])
        assert OpenedState.OPENED is served.access.opened("reader", ACCOUNT, id_of(OUTER)).state
        (line, _) = served.access.lines(agent="reader", since=None, email_id=id_of(OUTER), limit=10)
        assert [f"part {blob_of(REPLY)}"] == line.parts[id_of(OUTER)]
