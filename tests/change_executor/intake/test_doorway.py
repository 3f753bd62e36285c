"""What is not exactly a proposal is refused by name, and leaves no row."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from change_executor.condition import HINDRANCE_OF
from change_executor.intake.doorway import parsed
from change_executor.journal import schema
from change_executor.outcomes import Waiting
from change_executor.steps import wait
from change_executor.switch import press_stop, release_stop
from shared.problem import Problem
from shared.proposal import ProposalRequest
from tests.change_executor.intake.desk import EMAIL_ID, PROPOSAL, Desk, code_of

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import Message

    from change_executor.journal.journal import Journal


def body(**change: Any) -> bytes:
    return json.dumps(PROPOSAL | change).encode()


@pytest.mark.parametrize(
    ("status", "code", "octets"),
    [
        (400, "not_json", b""),
        (400, "not_json", b"{"),
        (400, "not_json", b'{"emailId": "\xff"}'),
        (400, "not_json", b'{"to": "a", "to": "b"}'),
        (400, "not_json", b'{"reason": "\\ud800"}'),
        (400, "not_json", b"[" * 5_000),
        (400, "not_json", body() + b"{}"),
        (422, "not_an_object", b"[]"),
        (422, "not_an_object", b"null"),
        (422, "unknown_field", body(mailbox="INBOX")),
        (422, "unknown_field", body(email_id=EMAIL_ID)),
        (422, "unknown_field", body(to_role="processed")),
        (422, "missing_field", b'{"emailId": "' + EMAIL_ID.encode() + b'", "from": "incoming"}'),
        (422, "invalid_field", body(to="Processed")),
        (422, "invalid_field", body(to="../x")),
        (422, "invalid_field", body(to=["processed"])),
        (422, "invalid_field", body(to=None)),
        (422, "invalid_field", body(reason="x" * 501)),
        (422, "invalid_field", body(reason="a\u0000b")),
        (422, "invalid_field", body(reason=7)),
        (422, "invalid_field", body(queue="Support!")),
        (422, "malformed_email_id", body(emailId="")),
        (422, "malformed_email_id", body(emailId=EMAIL_ID.upper())),
        (422, "malformed_email_id", body(emailId=EMAIL_ID + "0")),
        (422, "malformed_email_id", body(emailId="M" + "w" * 32)),
        (422, "malformed_email_id", body(emailId=5)),
        (422, "malformed_email_id", body(emailId="E" + "0" * 31)),
        (422, "malformed_email_id", body(emailId="Xylophone")),
        (422, "identity_unstable", body(emailId="E" + "0" * 32)),
        (422, "identity_unknown", body(emailId="X" + "0" * 32)),
        (413, "body_too_large", body(reason="x" * 9_000)),
        (413, "body_too_large", b" " * 8_193),
    ],
)
def test_a_malformed_proposal_is_named_and_leaves_no_row(
    desk: Desk, journal: Journal, status: int, code: str, octets: bytes
) -> None:
    answer = desk.post(octets)
    assert (status, code) == (answer.status_code, code_of(answer))
    with journal.reading() as connection:
        assert connection.execute(select(schema.proposals.c.id)).first() is None


def test_a_body_of_exactly_the_limit_and_a_reason_of_exactly_its_own_are_taken(desk: Desk) -> None:
    octets = body(reason="\U0001f993" * 500)
    assert desk.post(octets + b" " * (8_192 - len(octets))).status_code == 201


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json-patch+json"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": ""},
        {"Content-Encoding": "gzip"},
    ],
)
def test_another_content_type_or_coding_is_refused(desk: Desk, headers: dict[str, str]) -> None:
    answer = desk.post(body(), **headers)
    assert (415, "unsupported_media_type") == (answer.status_code, code_of(answer))
    # Its body was not read: it must not be taken for the next request.
    assert "close" == answer.headers["connection"]


@pytest.mark.parametrize("another", ["text/plain", "application/json"])
def test_a_content_type_that_is_said_twice_is_refused(desk: Desk, another: str) -> None:
    headers = [("Content-Type", "application/json"), ("Content-Type", another)]
    answer = desk.ask("POST", "/v1/proposals", content=body(), headers=headers)
    assert (415, "unsupported_media_type") == (answer.status_code, code_of(answer))


@pytest.mark.parametrize(
    ("change", "mend"),
    [
        ({"reason": "x" * 1_500}, "at most 500 characters"),
        ({"from": "Incoming"}, "`incoming`"),
        ({"to": "Processed"}, "GET /v1/queues"),
        ({"queue": "Support!"}, "leave it out"),
        ({"emailId": "5"}, "as the reader gave it"),
    ],
)
def test_the_mend_fits_the_field(desk: Desk, change: dict[str, Any], mend: str) -> None:
    assert mend in desk.post(body(**change)).json()["fix"]


def test_health_says_that_the_journal_can_be_read_and_503_where_it_cannot(desk: Desk, tmp_path: Path) -> None:
    answer = desk.ask("GET", "/v1/health", None)
    assert (200, {"status": "ok", "codes": []}) == (answer.status_code, answer.json())
    desk.journal.close()
    for path in tmp_path.glob("journal.db*"):
        path.write_bytes(b"this is no database any more " * 200)
    answer = desk.ask("GET", "/v1/health", None)
    assert (503, "journal_unavailable", True) == (answer.status_code, code_of(answer), answer.json()["retryable"])


def test_health_tells_what_keeps_proposals_from_going_on_and_no_more(desk: Desk) -> None:
    proposal = desk.propose().json()["id"]

    def health() -> object:
        return desk.ask("GET", "/v1/health", None).json()

    for waiting, codes in (
        (Waiting.LOGIN_REFUSED, ["mail_server"]),
        (Waiting.MAIL_SERVER_UNREACHABLE, ["mail_server"]),
        (Waiting.READER_REFUSED, ["reader"]),
        (Waiting.NOT_FOUND_YET, []),
    ):
        with desk.journal.writing() as writing:
            wait(writing, writing.proposal(proposal), waiting)
        assert {"status": "degraded" if codes else "ok", "codes": codes} == health()
    press_stop(desk.journal, "operator")
    assert {"status": "degraded", "codes": ["stopped"]} == health()
    release_stop(desk.journal, "operator")
    with desk.journal.writing() as writing:
        wait(writing, writing.proposal(proposal), Waiting.LOGIN_REFUSED)
    desk.ask("POST", f"/v1/proposals/{proposal}/withdraw")
    assert {"status": "ok", "codes": []} == health()


def test_every_reason_to_wait_is_a_hindrance_or_known_to_be_none() -> None:
    others = {
        *(Waiting.STOPPED, Waiting.MOVES_PER_HOUR, Waiting.MOVES_PER_DAY, Waiting.NOT_FOUND_YET, Waiting.QUIET_TIME),
        *(Waiting.SETTLE, Waiting.MOVED_TWICE, Waiting.MAILBOX_CHANGED, Waiting.TOO_MANY_TO_LOOK_AT),
        *(Waiting.QUEUE_NOT_CONFIGURED, Waiting.BEING_MOVED),
    }
    assert set(Waiting) - others == set(HINDRANCE_OF)


def test_no_words_of_the_library_that_checks_a_body_reach_an_agent(desk: Desk) -> None:
    changes: tuple[dict[str, Any], ...] = (
        *({"to": "../x"}, {"to": 7}, {"from": None}, {"reason": "x" * 501}, {"reason": "\0"}, {"queue": "Support!"}),
    )
    details = [desk.post(body(**change)).json()["detail"] for change in changes]
    assert [
        *("`to` is not spelled as one can be.", "`to` is no string.", "`from` is no string.", "`reason` is too long."),
        *("`reason` has control characters.", "`queue` is not spelled as one can be."),
    ] == details


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON ; charset=UTF-8"])
def test_json_is_taken_however_it_is_spelled(desk: Desk, content_type: str) -> None:
    assert desk.post(body(), **{"Content-Type": content_type}).status_code == 201


def raw(desk: Desk, pieces: list[Message], headers: list[tuple[bytes, bytes]]) -> tuple[int, int]:
    """Feed a request piece by piece; the status, and how many pieces were read."""
    read, statuses = 0, []

    async def receive() -> Message:
        nonlocal read
        if read >= len(pieces):
            return {"type": "http.disconnect"}
        read += 1
        return pieces[read - 1]

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/proposals",
        "raw_path": b"/v1/proposals",
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [
            (b"authorization", f"Bearer {desk.token}".encode()),
            (b"content-type", b"application/json"),
            *headers,
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    asyncio.run(desk.app(scope, receive, send))
    return statuses[0], read


def test_a_body_without_an_end_is_read_no_further_than_its_limit(desk: Desk) -> None:
    endless: list[Message] = [{"type": "http.request", "body": b" " * 1_024, "more_body": True}] * 1_000
    assert (413, 9) == raw(desk, endless, [])


@pytest.mark.parametrize("length", [b"8193", b"99999999999999999999", b"-1", b"\xb2"])
def test_a_body_that_declares_too_much_is_not_read_at_all(desk: Desk, length: bytes) -> None:
    assert (413, 0) == raw(desk, [{"type": "http.request", "body": b"{}"}], [(b"content-length", length)])


def test_a_body_that_breaks_off_leaves_no_row(desk: Desk, journal: Journal) -> None:
    pieces: list[Message] = [{"type": "http.request", "body": body()[:20], "more_body": True}]
    assert (408, 1) == raw(desk, pieces, [])


def test_a_body_that_trickles_is_given_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("change_executor.intake.doorway.BODY_SECONDS", 0.05)
    statuses: list[int] = []

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        statuses.append(message.get("status", 0))

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/proposals",
        "root_path": "",
        "query_string": b"",
        "headers": [
            (b"authorization", f"Bearer {desk.token}".encode()),
            (b"content-type", b"application/json"),
        ],
    }
    asyncio.run(desk.app(scope, receive, send))
    assert statuses[0] == 408


@given(st.binary(max_size=300) | st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(),
    lambda inner: st.dictionaries(st.sampled_from(["emailId", "from", "to", "reason", "queue", "x"]), inner)
    | st.lists(inner),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_octets_are_a_proposal_or_one_problem(octets: bytes) -> None:
    try:
        found: ProposalRequest | Problem = parsed(octets)
    except Problem as problem:
        found = problem
    assert isinstance(found, ProposalRequest) or (found.code and found.fix)


@pytest.mark.parametrize(
    ("code", "query"),
    [
        ("unknown_parameter", "agent=other"),
        ("unknown_parameter", "state=pending&state=approved"),
        ("invalid_parameter", "state=Pending"),
        ("invalid_parameter", "state="),
        ("invalid_parameter", "limit=0"),
        ("invalid_parameter", "limit=101"),
        ("invalid_parameter", "limit=-1"),
        ("invalid_parameter", "limit=1e2"),
        ("invalid_parameter", "limit=%C2%B2"),
        ("invalid_parameter", "cursor="),
        ("invalid_parameter", "cursor=x.y"),
        ("invalid_parameter", f"cursor={'9' * 19}.P"),
    ],
)
def test_a_list_is_asked_for_by_its_own_parameters_only(desk: Desk, code: str, query: str) -> None:
    answer = desk.ask("GET", f"/v1/proposals?{query}")
    assert (422, code) == (answer.status_code, code_of(answer))


def test_a_cursor_from_beyond_time_is_an_empty_or_whole_page(desk: Desk) -> None:
    desk.propose()
    assert 1 == len(desk.ask("GET", f"/v1/proposals?cursor={'9' * 18}.P").json()["proposals"])
    assert [] == desk.ask("GET", "/v1/proposals?cursor=0.P").json()["proposals"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/docs", 404, "not_found"),
        ("GET", "/openapi.json", 404, "not_found"),
        ("GET", "/v1/proposals/", 404, "not_found"),
        ("GET", "/v1/proposals/x/approve", 404, "not_found"),
        ("POST", "/v1/proposals/x/approve", 404, "not_found"),
        ("DELETE", "/v1/proposals/x", 405, "method_not_allowed"),
        ("PUT", "/v1/proposals", 405, "method_not_allowed"),
        ("OPTIONS", "/v1/proposals", 405, "method_not_allowed"),
        ("GET", "/v1/proposals/x/withdraw", 405, "method_not_allowed"),
        ("POST", "/v1/health", 405, "method_not_allowed"),
    ],
)
def test_there_is_nothing_beside_the_routes(desk: Desk, method: str, path: str, status: int, code: str) -> None:
    answer = desk.ask(method, path)
    assert (status, code) == (answer.status_code, code_of(answer))


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/proposals", "GET, POST"),
        ("HEAD", "/v1/proposals", "GET, POST"),
        ("DELETE", "/v1/proposals/x", "GET"),
        ("GET", "/v1/proposals/x/withdraw", "POST"),
    ],
)
def test_a_refused_method_names_all_that_the_path_takes(desk: Desk, method: str, path: str, allowed: str) -> None:
    answer = desk.ask(method, path)
    assert (405, allowed) == (answer.status_code, answer.headers["allow"])
    assert method == "HEAD" or f"Use {allowed}." == answer.json()["fix"]


def test_our_own_mistake_is_a_problem_document_without_a_trace(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret cause")

    monkeypatch.setattr("change_executor.intake.proposing.view_of", broken)
    answer = desk.propose()
    assert (500, "internal") == (answer.status_code, code_of(answer))
    assert "secret cause" not in answer.text
