"""Every route of both street programs, with every kind of token and none: no agent's token reaches a decision."""

import itertools
import re

import httpx
import pytest

from agent_reader.jmap.http import ROUTES as READER_ROUTES
from change_executor.review.app import ROUTES as REVIEW_ROUTES
from tests.architecture.test_intake_routes import ROUTES as INTAKE_ROUTES
from tests.end_to_end.houses import Houses, Person
from tests.end_to_end.letters import letter
from tests.servers.dovecot import Dovecot

READER = [(route.http_method, route.path) for route in READER_ROUTES]
INTAKE = list(INTAKE_ROUTES)
REVIEW = [(method, path) for method, path, _, _ in REVIEW_ROUTES]


def _filled(path: str, proposal_id: str) -> str:
    known = {"proposal_id": proposal_id, "account_id": "shop", "blob_id": "B" + "0" * 32}
    return re.sub(r"\{([a-z_]+)(?::path)?\}", lambda place: known.get(place[1], "x"), path)


def _answers(
    base: str, routes: list[tuple[str, str]], proposal_id: str, token: str | None
) -> dict[str, httpx.Response]:
    headers = {"Accept": "*/*"} | ({"Authorization": f"Bearer {token}"} if token else {})
    answers = {}
    with httpx.Client(base_url=base, headers=headers, timeout=30) as client:
        for method, path in routes:
            answers[f"{method} {path}"] = client.request(
                method,
                _filled(path, proposal_id),
                content=b"{}" if method == "POST" else None,
                headers={"Content-Type": "application/json"},
            )
    return answers


def _codes(answers: dict[str, httpx.Response]) -> set[str]:
    return {answer.json()["code"] for answer in answers.values()}


@pytest.fixture(scope="module")
def proposal_id(mail: Dovecot, street: Houses) -> str:
    mail.deliver("Incoming", letter("Decide about me"))
    proposal_id = street.propose(street.found("Decide about me"))
    street.looked_at(proposal_id)
    return proposal_id


def test_g5_no_token_opens_the_other_house_or_a_decision(mail: Dovecot, street: Houses, proposal_id: str) -> None:
    before = mail.snapshot()
    reader = f"http://127.0.0.1:{street.reader.port}"
    intake = f"http://127.0.0.1:{street.executor.port}"
    review = street.review_url
    closed_intake = [route for route in INTAKE if route != ("GET", "/v1/health")]

    # The other house's token, no token, and a mistyped one.
    assert {"wrong_token_kind"} == _codes(_answers(reader, READER, proposal_id, street.proposer_token))
    assert {"wrong_token_kind"} == _codes(_answers(intake, closed_intake, proposal_id, street.reader_token))
    for base, routes in ((reader, READER), (intake, closed_intake)):
        for token in (None, street.reader_token[:-1] + "g"):
            answers = _answers(base, routes, proposal_id, token)
            assert {401} == {answer.status_code for answer in answers.values()}, answers

    # On the review listener a token is nothing: the same answers with each as with none, and none is a decision.
    without = _answers(review, REVIEW, proposal_id, None)
    for token in (street.reader_token, street.proposer_token):
        answers = _answers(review, REVIEW, proposal_id, token)
        assert {route: a.status_code for route, a in without.items()} == {r: a.status_code for r, a in answers.items()}
    for route, answer in without.items():
        if route.startswith("POST"):
            assert answer.status_code in {303, 400, 403, 415, 422}, (route, answer.text)
            assert "session" not in answer.headers.get("set-cookie", "")

    # A decision's path exists on no other listener, and intake's on no other than its own.
    for base, routes in ((reader, REVIEW), (intake, REVIEW), (reader, INTAKE)):
        for token in (street.reader_token, street.proposer_token):
            answers = _answers(base, routes, proposal_id, token)
            assert {answer.status_code for answer in answers.values()} <= {401, 404}, (base, answers)

    assert "pending" == street.proposal(proposal_id)["state"]
    assert before == mail.snapshot()

    # Positive control: a person's session decides on the very same route.
    with Person(street) as person:
        person.come_in()
        person.decide(proposal_id, "approve")
    assert "applied" == street.reaches(proposal_id, "applied")["state"]


def test_a_session_cookie_opens_neither_door_of_the_agent(street: Houses, proposal_id: str) -> None:
    with Person(street) as person:
        person.come_in()
        cookies = dict(person.browser.cookies)
        assert cookies
    for base, routes in (
        (f"http://127.0.0.1:{street.reader.port}", READER),
        (f"http://127.0.0.1:{street.executor.port}", [route for route in INTAKE if route != ("GET", "/v1/health")]),
    ):
        for (method, path), name in itertools.product(routes, cookies):
            answer = httpx.request(
                method,
                base + _filled(path, proposal_id),
                headers={"Cookie": f"{name}={cookies[name]}"},
                timeout=30,
            )
            assert 401 == answer.status_code, (path, answer.text)
