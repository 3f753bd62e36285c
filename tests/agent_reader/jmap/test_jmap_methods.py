"""The table of methods, and method-level errors (RFC 8620 §3.6.2)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_reader.door.limits import Limits
from agent_reader.jmap.capabilities import CORE, KNOWN_CAPABILITIES, MAIL, SUBMISSION
from agent_reader.jmap.methods import METHODS, Absent, Change, NoAccount, Read
from agent_reader.scope import Scope
from tests.agent_reader import synced
from tests.agent_reader.served import ACCOUNT, OTHER_ACCOUNT, House, house

pytestmark = pytest.mark.anyio

CHANGES = [name for name, method in METHODS.items() if isinstance(method, Change)]
EVERYTHING = (CORE, MAIL, SUBMISSION)
ARGUMENTS: list[dict[str, Any]] = [
    {"accountId": ACCOUNT},
    {"accountId": ACCOUNT, "update": {"M1": {"keywords/$seen": True}}},
    {"accountId": ACCOUNT, "fromAccountId": OTHER_ACCOUNT, "create": {"k": {"id": "M1"}}, "ifInState": 5},
    {"accountId": ACCOUNT, "nonsense": [], "#ids": {"resultOf": "9"}},
    {"accountId": 7},
    {},
]


def test_every_method_that_changes_something_is_in_the_table() -> None:
    """RFC 8620 and RFC 8621 define these and no other; none of them has a function."""
    assert {
        "Blob/copy",
        "PushSubscription/set",
        "Mailbox/set",
        "Email/set",
        "Email/copy",
        "Email/import",
        "Identity/set",
        "EmailSubmission/set",
        "VacationResponse/set",
    } == set(CHANGES)
    assert {"capability", "has_account"} == set(Change.__dataclass_fields__)
    assert {
        "Mailbox/get",
        "Mailbox/changes",
        "Mailbox/query",
        "Mailbox/queryChanges",
        "Thread/get",
        "Thread/changes",
        "Email/get",
        "Email/changes",
        "Email/query",
        "Email/queryChanges",
        "Email/parse",
        "SearchSnippet/get",
    } == {name for name, method in METHODS.items() if isinstance(method, Read)}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.statement("40", "41")
async def test_every_change_is_refused_whatever_its_arguments(
    served: House, name: str, arguments: dict[str, Any]
) -> None:
    wanted = "forbidden" if name == "PushSubscription/set" else "accountReadOnly"
    is_known = METHODS[name].capability in KNOWN_CAPABILITIES
    # Nobody is sent for a capability that would be refused, or would change nothing about the refusal.
    for using, kind in ((EVERYTHING, wanted if is_known else "unknownMethod"), ((), "unknownMethod")):
        ((answered, body, _),) = await served.call((name, arguments), using=using)
        assert ("error", kind) == (answered, body["type"])
        assert "Do not retry" in body["description"]
        assert "do not look for other credentials" in body["description"]


@pytest.mark.parametrize("name", [name for name in CHANGES if METHODS[name].capability == MAIL])
@pytest.mark.statement("42")
async def test_an_unknown_account_comes_before_read_only(served: House, name: str) -> None:
    ((_, body, _),) = await served.call((name, {"accountId": "nobody"}))
    assert "accountNotFound" == body["type"]


@pytest.mark.parametrize(
    "name", ["No/such", "", "email/get", "Email/get ", *(n for n, m in METHODS.items() if isinstance(m, Absent))]
)
@pytest.mark.statement("31")
async def test_what_this_version_does_not_have_is_an_unknown_method(served: House, name: str) -> None:
    ((answered, body, _),) = await served.call((name, {"accountId": ACCOUNT}), using=EVERYTHING)
    assert ("error", "unknownMethod") == (answered, body["type"])


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if isinstance(method, NoAccount)])
@pytest.mark.statement("37")
async def test_an_account_that_cannot_send_says_so_and_an_unknown_one_comes_first(served: House, name: str) -> None:
    ((_, body, _),) = await served.call((name, {"accountId": ACCOUNT, "ids": None}), using=EVERYTHING)
    assert "accountNotSupportedByMethod" == body["type"]
    ((_, body, _),) = await served.call((name, {"accountId": "nobody"}), using=EVERYTHING)
    assert "accountNotFound" == body["type"]


async def test_the_account_comes_before_a_reference_that_leads_nowhere(served: House) -> None:
    reference = {"resultOf": "none", "name": "Email/query", "path": "/ids"}
    ((_, body, _),) = await served.call(("Email/get", {"accountId": "nobody", "#ids": reference}))
    assert "accountNotFound" == body["type"]
    ((_, body, _),) = await served.call(("Email/get", {"accountId": ACCOUNT, "#ids": reference}))
    assert "invalidResultReference" == body["type"]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.statement("32", "33")
async def test_a_method_whose_capability_is_not_in_using_is_unknown(served: House, name: str) -> None:
    others = tuple(capability for capability in KNOWN_CAPABILITIES if capability != METHODS[name].capability)
    for using in (others, ()):
        ((_, body, _),) = await served.call((name, {"accountId": ACCOUNT}), using=using)
        assert "unknownMethod" == body["type"]


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if isinstance(method, Read)])
@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({}, "invalidArguments"),
        ({"accountId": None}, "invalidArguments"),
        ({"accountId": 1}, "invalidArguments"),
        ({"accountId": ["shop"]}, "invalidArguments"),
        ({"accountId": "nobody"}, "accountNotFound"),
        ({"accountId": ""}, "accountNotFound"),
        ({"accountId": ACCOUNT, "nonsense": 1}, "invalidArguments"),
    ],
)
@pytest.mark.statement("35", "36", "38")
async def test_the_account_is_checked_and_no_argument_is_ignored(
    served: House, name: str, arguments: dict[str, Any], kind: str
) -> None:
    ((answered, body, _),) = await served.call((name, arguments))
    assert ("error", kind) == (answered, body["type"])


@pytest.mark.parametrize("name", ["Mailbox/get", "Thread/get", "Email/get"])
@pytest.mark.statement("53", "54", "104")
async def test_get_answers_in_the_form_of_the_rfc(served: House, name: str) -> None:
    _, body = await served.one(name, ids=[])
    assert {"accountId": ACCOUNT, "list": [], "notFound": [], "state": body["state"]} == body
    _, unknown = await served.one(name, ids=["Mnothing", "?!", "Mnothing", ""])
    assert ["Mnothing", "?!", ""] == unknown["notFound"]
    assert body["state"] == unknown["state"]
    wrong_ids: tuple[Any, ...] = ("text", [1], {}, 5)
    for wrong in wrong_ids:
        _, refused = await served.one(name, ids=wrong)
        assert "invalidArguments" == refused["type"]
    _, refused = await served.one(name, ids=[], properties=["nonsense"])
    assert "invalidArguments" == refused["type"]


@pytest.mark.parametrize("name", ["Mailbox/get", "Thread/get", "Email/get"])
@pytest.mark.statement("55")
async def test_get_takes_as_many_ids_as_the_limit_and_no_more(served: House, name: str) -> None:
    ids = [f"M{number}" for number in range(501)]
    _, body = await served.one(name, ids=ids[:500])
    assert 500 == len(body["notFound"])
    _, body = await served.one(name, ids=ids)
    assert "requestTooLarge" == body["type"]


@pytest.mark.parametrize("name", ["Thread/get", "Email/get"])
@pytest.mark.statement("52")
async def test_ids_null_means_all_where_all_are_few(tmp_path: Path, name: str) -> None:
    for name_of_house in ("few", "many"):
        (tmp_path / name_of_house).mkdir()
    with house(tmp_path / "few") as served:
        _, body = await served.one(name, ids=None)
        assert (3 if name == "Email/get" else 2) == len(body["list"])
    with house(tmp_path / "many", limits=Limits(max_objects_in_get=1)) as served:
        _, body = await served.one(name, ids=None)
        assert "requestTooLarge" == body["type"]
    # Three Emails are too many, and two Threads are not.
    (tmp_path / "two").mkdir()
    with house(tmp_path / "two", limits=Limits(max_objects_in_get=2)) as served:
        _, body = await served.one(name, ids=None)
        if name == "Email/get":
            assert "requestTooLarge" == body["type"]
        else:
            assert 2 == len(body["list"])


@pytest.mark.statement("52")
async def test_ids_null_means_all_mailboxes_however_many(tmp_path: Path) -> None:
    """RFC 8621 §2.1: they may be fetched all at once."""
    with house(tmp_path, limits=Limits(max_objects_in_get=1)) as served:
        _, body = await served.one("Mailbox/get", ids=None)
        assert 2 == len(body["list"])
        _, body = await served.one("Mailbox/get", ids=[each["id"] for each in body["list"]])
        assert "requestTooLarge" == body["type"]


@pytest.mark.statement("71", "76")
async def test_query_pages_never_hold_more_than_one_get_gives(tmp_path: Path) -> None:
    with house(tmp_path, limits=Limits(max_objects_in_get=2)) as served:
        _, body = await served.one("Email/query", calculateTotal=True)
        assert (2, 2, 3) == (len(body["ids"]), body["limit"], body["total"])
        _, body = await served.one("Email/query", limit=1)
        assert {"accountId", "queryState", "canCalculateChanges", "position", "ids"} == set(body)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if isinstance(method, Read)])
@pytest.mark.statement("36")
async def test_an_account_that_the_token_has_not_is_none_at_all(tmp_path: Path, name: str) -> None:
    with house(tmp_path) as served:
        served.token = served.access.create_token("shopper", scope=Scope(accounts=(ACCOUNT,))).text
        others = [OTHER_ACCOUNT, "nobody"]
        (another, nobody) = await served.call(*((name, {"accountId": each}) for each in others))
        assert ("error", "accountNotFound") == (nobody[0], nobody[1]["type"])
        assert nobody[:2] == another[:2]


@pytest.mark.statement("36")
async def test_accounts_are_kept_apart(served: House) -> None:
    ((_, shop, _), (_, archive, _)) = await served.call(
        ("Email/query", {"accountId": ACCOUNT}), ("Email/query", {"accountId": OTHER_ACCOUNT})
    )
    assert (3, 1) == (len(shop["ids"]), len(archive["ids"]))
    ((_, body, _),) = await served.call(("Email/get", {"accountId": OTHER_ACCOUNT, "ids": shop["ids"][:1]}))
    assert shop["ids"][:1] == body["notFound"]


def _failing(*_arguments: object) -> dict[str, Any]:
    raise KeyError("Subject: a secret of somebody")


@pytest.mark.statement("39")
async def test_a_fault_is_one_calls_own_and_its_log_line_holds_no_content(tmp_path: Path) -> None:
    read = METHODS["Thread/get"]
    assert isinstance(read, Read)
    with house(tmp_path, methods={**METHODS, "Thread/get": replace(read, function=_failing)}) as served:
        responses = await served.call(
            ("Core/echo", {"a": 1}),
            ("Thread/get", {"accountId": ACCOUNT, "ids": []}),
            ("Email/query", {"accountId": ACCOUNT}),
        )
        assert ["Core/echo", "error", "Email/query"] == [name for name, _, _ in responses]
        assert "serverFail" == responses[1][1]["type"]
        assert "secret" not in str(responses)
        (line,) = served.log.calls
        assert line.kwargs["fault"] in responses[1][1]["description"]
        assert "secret" not in str(line)
        assert ("Thread/get", "KeyError") == (line.kwargs["where"], line.kwargs["error"])


@pytest.mark.statement("184")
async def test_a_request_sees_one_state_of_an_account_whatever_sync_writes_meanwhile(tmp_path: Path) -> None:
    read = METHODS["Mailbox/get"]
    assert isinstance(read, Read)
    opened: list[House] = []

    def after_sync_wrote(*arguments: Any) -> dict[str, Any]:
        mirror = opened[0].store.account(ACCOUNT)
        for mailbox in mirror.mailboxes():
            synced.vanish(mirror, mailbox.id, mirror.states(mailbox.id))
            mirror.looked(mailbox.id, 10, None)
        mirror.settle()
        return read.function(*arguments)

    with house(tmp_path, methods={**METHODS, "Mailbox/get": replace(read, function=after_sync_wrote)}) as served:
        opened.append(served)
        query = ("Email/query", {"accountId": ACCOUNT, "calculateTotal": True})
        ((_, before, _), (_, mailboxes, _), (_, after, _)) = await served.call(
            query, ("Mailbox/get", {"accountId": ACCOUNT}), query
        )
        assert before == after
        assert before["total"] == sum(mailbox["totalEmails"] for mailbox in mailboxes["list"])
        assert before["queryState"] == mailboxes["state"]
        _, later = await served.one("Email/query", calculateTotal=True)
        assert 0 == later["total"]


async def test_an_answer_past_the_limit_is_refused_alone(tmp_path: Path) -> None:
    with house(tmp_path, limits=Limits(max_answer_octets=700)) as served:
        responses = await served.call(
            ("Core/echo", {"a": "x" * 500}), ("Core/echo", {"a": "x" * 500}), ("Core/echo", {"a": "x"})
        )
        assert ["Core/echo", "error", "Core/echo"] == [name for name, _, _ in responses]
        assert "requestTooLarge" == responses[1][1]["type"]
