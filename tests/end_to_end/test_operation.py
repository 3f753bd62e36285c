"""Both programs in operation: what a monitor reads, what the logs hold, and a journal lost and put back."""

from __future__ import annotations

import contextlib
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from tests.end_to_end.houses import Houses, Person, eventually
from tests.end_to_end.letters import letter
from tests.servers.ports import free_port
from tests.shared.test_metrics import assert_grammar

if TYPE_CHECKING:
    from tests.end_to_end.houses import House
    from tests.servers.dovecot import Dovecot

CORPUS = sorted((Path(__file__).parents[1] / "golden").rglob("*.eml"))
REASON = "canary-reason of the agent"
REFUSAL = "canary-reason of the person"


def with_metrics(house: House) -> str:
    """Turn the metrics of a house on; gives their address."""
    port = free_port()
    house.config.write_text(house.config.read_text() + f'\n[metrics]\nlisten = "127.0.0.1:{port}"\n')
    return f"http://127.0.0.1:{port}"


def numbers(address: str) -> dict[str, float]:
    answer = httpx.get(f"{address}/metrics", timeout=30)
    assert 200 == answer.status_code, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return assert_grammar(answer.text)


def test_a_monitor_sees_the_whole_path_and_no_log_holds_a_word_of_it(dovecot: Dovecot, houses: Houses) -> None:
    reader, executor = with_metrics(houses.reader), with_metrics(houses.executor)
    for octets in CORPUS:
        with contextlib.suppress(AssertionError):
            # Dovecot takes no message with NUL octets.
            dovecot.deliver("INBOX", octets.read_bytes())
    for number in range(3):
        dovecot.deliver("Incoming", letter(f"canary-subject {number}", f"canary-body {number}"))
    houses.reader.start()
    houses.executor.start()
    ids = [houses.found(f"canary-subject {number}") for number in range(3)]
    houses.jmap(["Email/query", {"accountId": "shop", "filter": {"text": "canary-query"}}, "a"])
    moved, rejected, waiting = (houses.propose(email_id, reason=REASON) for email_id in ids)
    assert houses.intake("POST", "/v1/proposals", json={"emailId": "canary-id"}).status_code >= 400
    again = {"emailId": ids[2], "from": "incoming", "to": "escalate", "reason": REASON, "queue": "support"}
    assert 409 == houses.intake("POST", "/v1/proposals", json=again).status_code
    assert 401 == houses.intake("GET", "/v1/queues", token="mwp_canarytoken").status_code
    with socket.create_connection(("127.0.0.1", houses.executor.port), timeout=30) as stranger:
        stranger.sendall(b"canary is no request\r\n\r\n")
        assert stranger.recv(4_096).startswith(b"HTTP/1.1 400 ")
    with Person(houses) as person:
        person.come_in()
        person.decide(moved, "approve")
        person.decide(rejected, "reject", reason=REFUSAL)
        houses.reaches(moved, "applied")
        person.decide(moved, "undo")
        houses.reaches(moved, "undone")
    houses.looked_at(waiting)

    _is_told_of(reader, executor)
    assert 0 == houses.executor.stop()
    assert 0 == houses.reader.stop()
    found = houses.executor.said("audit", "verify")
    assert re.match(r"\d+ events, head [0-9a-f]{64}\n", found)

    logs = houses.reader.log + houses.executor.log
    assert "sync:round" in logs
    assert "executor:ready" in logs
    for text in ("canary", REASON, REFUSAL, houses.reader_token, houses.proposer_token, *dovecot.passwords.values()):
        assert text not in logs, text
    for words in of_corpus():
        assert words not in logs, words


def _is_told_of(reader: str, executor: str) -> None:
    """A moved and undone, a rejected and a waiting proposal, by the numbers and the health of both programs."""
    whole = {'mailwarrant_index_fresh{account="shop"}': 1.0, 'mailwarrant_index_coverage_ratio{account="shop"}': 1.0}
    eventually(lambda: whole.items() <= numbers(reader).items(), "a whole round after the moves")
    read = numbers(reader)
    assert 0 <= read['mailwarrant_sync_lag_seconds{account="shop"}'] < 600
    assert read['mailwarrant_index_messages{account="shop"}'] >= 20
    assert read["mailwarrant_queries_total"] >= 4
    assert read["process_open_fds"] > 5
    done = numbers(executor)
    assert (1, 1, 1) == tuple(
        done[f'mailwarrant_proposals{{state="{each}"}}'] for each in ("undone", "rejected", "pending")
    )
    assert 1.0 == done["mailwarrant_undo_ratio"]
    assert 1.0 == done['mailwarrant_open_proposals{queue="support",state="pending"}']
    assert 0 <= done['mailwarrant_oldest_open_proposal_seconds{queue="support",state="pending"}'] < 600
    # The second proposal on one message: what is malformed, or comes with no token of ours, is on no record.
    assert 1 == done["mailwarrant_refused_requests_total"]
    codes = ("already_proposed", "malformed_email_id", "token_malformed", "malformed_http")
    assert (1, 1, 1, 1) == tuple(done[f'mailwarrant_intake_refusals_total{{code="{code}"}}'] for code in codes)
    assert not [name for name in read | done if name.startswith("mailwarrant_refused_lines")]
    assert 200 == httpx.get(f"{reader}/health", timeout=30).status_code
    for address in (reader, executor):
        for path in ("metrics", "health"):
            assert "canary" not in httpx.get(f"{address}/{path}", timeout=30).text
    told = httpx.get(f"{executor}/health", timeout=30).json()
    assert ("ok", True, False) == (told["status"], told["worker"], told["stopped"])
    assert told["events"] <= numbers(executor)["mailwarrant_journal_events_total"]


def of_corpus() -> set[str]:
    """Lines of header fields' values and bodies that are long enough to be nobody else's words."""
    found: set[str] = set()
    for path in CORPUS:
        for line in path.read_bytes().decode("utf-8", "replace").splitlines():
            value = line.partition(": ")[2] if re.match(r"(Subject|From|To|Message-ID): ", line) else line
            if len(value.strip()) >= 12:
                found.add(value.strip()[:60])
    assert len(found) > 100
    return found


def test_a_lost_journal_is_put_back_by_commands_and_nothing_moves_until_a_person_says_so(
    dovecot: Dovecot, houses: Houses
) -> None:
    heads = houses.executor.folder / "heads"
    heads.touch()
    text = houses.executor.config.read_text()
    houses.executor.config.write_text(
        text.replace("[journal]", f'[journal]\nheads_file = "{heads}"\nheads_every_seconds = 1')
    )
    for number in range(2):
        dovecot.deliver("Incoming", letter(f"number {number}", f"body {number}"))
    houses.reader.start()
    houses.executor.start()
    first, second = (houses.propose(houses.found(f"number {number}")) for number in range(2))
    with Person(houses) as person:
        person.come_in()
        person.decide(first, "approve")
        houses.reaches(first, "applied")
        # Approved and held: the copy is of this moment, and the move comes after it.
        houses.executor.said("stop")
        person.can_decide(second, "reject")
        copy = Path(houses.executor.said("backup").strip())
        houses.executor.said("resume")
        person.decide(second, "approve")
        houses.reaches(second, "applied")
    assert 0 == houses.executor.stop()
    refused = houses.executor.run("restore", str(copy))
    assert 2 == refused.returncode
    assert "is there already" in refused.stderr
    for end in ("", "-wal", "-shm"):
        (houses.executor.folder / f"journal.db{end}").unlink(missing_ok=True)
    # The owner puts the message back, so that an approval that came to life again could be carried out.
    with dovecot.connect() as owner:
        owner.select("Processed")
        owner.uid("MOVE", "1:*", "Incoming")
    said = houses.executor.said("restore", str(copy))
    assert "Everybody was signed out" in said
    assert "the stop button is pressed" in said
    houses.executor.start()
    assert "pending" == houses.proposal(second)["state"]
    assert "already" in houses.executor.said("stop")
    houses.looked_at(second)
    assert 0 == len(dovecot.snapshot()["Processed"].messages)
    verified = houses.executor.run("audit", "verify")
    assert 1 == verified.returncode
    assert {"head_missing", "head_differs"} >= {line.partition(":")[0] for line in verified.stdout.splitlines()[:-1]}
    assert 0 == houses.executor.stop()


def test_the_readers_lost_files_are_put_back_by_commands(dovecot: Dovecot, houses: Houses) -> None:
    dovecot.deliver("Incoming", letter("number 1", "body 1"))
    houses.reader.start()
    assert houses.found("number 1")
    made = Path(houses.reader.said("backup").strip())
    assert 0 == houses.reader.stop()
    index = houses.reader.folder / "index"
    for file in [*index.glob("*.db*"), *index.glob("*.json")]:
        file.unlink()
    assert "is back" in houses.reader.said("restore", str(made))
    houses.reader.start()
    assert houses.found("number 1")
