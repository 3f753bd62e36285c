"""A session's cookie in wrong hands: of another user of the machine, of the reader, of the agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from change_executor.peers import PeerUidGate
from change_executor.review.app import ROUTES, Access
from shared.proposal import State
from tests.change_executor.review.test_review_browser import state
from tests.servers.desk import ReviewPage, fields_of, reading
from tests.servers.page import Served

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

AGENT_UID, READER_UID = 64_990, 64_991

# Standard library alone: the other user may read nothing of ours. Each request is a method, a path and a form.
PROGRAM = """
import http.client, json, sys
asked = json.load(sys.stdin)
answers = []
for method, path, body in asked["requests"]:
    connection = http.client.HTTPConnection("127.0.0.1", asked["port"], timeout=20)
    connection.request(method, path, body, asked["headers"])
    answers.append(connection.getresponse().status)
    connection.close()
print(json.dumps(answers))
"""


def as_user(uid: int, asked: dict[str, object]) -> list[int]:
    command = [sys.executable, "-c", PROGRAM]
    if uid != os.geteuid():
        command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", *command]
    done = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, timeout=60, check=True, cwd="/"
    )
    return [int(each) for each in json.loads(done.stdout)]


@needs_root
def test_a_stolen_cookie_opens_nothing_for_a_uid_that_is_not_allowed(review_page: ReviewPage) -> None:
    proposal = review_page.rows.proposal(reading())
    client = review_page.signed_in()
    item = client.get(f"/p/{proposal.id}").text
    form = "&".join(f"{name}={value}" for name, value in fields_of(item, f"/p/{proposal.id}/approve").items())
    concrete = {"{proposal_id}": proposal.id, "{name}": "page.css", "{count}": "1", "{agent}": "a", "{token}": "x"}
    requests: list[tuple[str, str, str | None]] = []
    for method, path, _, _ in ROUTES:
        for name, value in concrete.items():
            path = path.replace(name, value)  # noqa: PLW2901 - each name in turn
        requests.append((method, path, None if method == "GET" else form))
    with Served() as gated:
        gate = PeerUidGate(review_page.app, frozenset({os.geteuid()}))
        gated.serve(gate)
        asked: dict[str, object] = {
            "port": gated.port,
            "headers": {
                "Host": f"localhost:{review_page.served.port}",
                "Origin": review_page.url,
                "Sec-Fetch-Site": "same-origin",
                "Content-Type": "application/x-www-form-urlencoded",
                "Cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items()),
            },
        }
        for uid in (AGENT_UID, READER_UID):
            assert {403} == set(as_user(uid, asked | {"requests": requests}))
        assert 2 * len(requests) == gate.refused
        assert State.PENDING is state(review_page, proposal.id)
        # The positive control: the very same request of the person's own uid decides.
        approve = [each for each in requests if each[1].endswith("/approve")]
        assert [303] == as_user(os.geteuid(), asked | {"requests": approve})
        assert State.APPROVED is state(review_page, proposal.id)


def test_each_route_that_anyone_may_ask_for_gives_nothing_of_a_message(review_page: ReviewPage) -> None:
    review_page.rows.proposal(reading("A secret subject", "A secret text"))
    client = review_page.client()
    for method, path, access, _ in ROUTES:
        if access is Access.ANYONE and method == "GET":
            answer = client.get(path.replace("{name}", "page.js").replace("{count}", "1"))
            assert 200 == answer.status_code
            assert "A secret" not in answer.text
