"""Reader, executor and agent as three OS users: what each can reach of the others, with a positive control for each."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.conftest import mail_server
from tests.end_to_end.houses import House, Houses, Person, eventually, furnish, write_executor, write_reader
from tests.end_to_end.letters import letter
from tests.end_to_end.os_users import Program, User, common_ground, make_user, program_in
from tests.servers.dovecot import Dovecot
from tests.servers.ports import free_port

LINK_GROUP = "mw-test-link"

# Tries each thing named on its standard input, and says what came of it: "yes", or the name of the refusal.
ATTEMPTS = """
import json, os, socket, sys, urllib.error, urllib.request
def attempt(kind, what):
    if kind == "read":
        with open(what, "rb") as file: file.read(1)
    elif kind == "list":
        os.listdir(what)
    elif kind == "write":
        os.close(os.open(what, os.O_WRONLY | os.O_APPEND))
    elif kind == "connect":
        with socket.socket(socket.AF_UNIX) as client: client.connect(what)
    elif kind == "signal":
        os.kill(int(what), 0)
    elif kind == "get":
        try:
            with urllib.request.urlopen(what, timeout=20) as answer: answer.read()
        except urllib.error.HTTPError as error:
            with error: return str(error.code)
    return "yes"
def told(kind, what):
    try: return attempt(kind, what)
    except OSError as error: return type(error).__name__
print(json.dumps([told(kind, what) for kind, what in json.load(sys.stdin)]))
"""

# The whole of an agent: plain HTTP, two tokens.
AGENT = """
import json, sys, urllib.request
tokens = json.load(sys.stdin)
def post(url, token, body):
    request = urllib.request.Request(url, json.dumps(body).encode(),
        {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer: return json.load(answer)
using = ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"]
calls = [["Email/query", {"accountId": "shop", "filter": {"text": "separated"}}, "q"]]
answer = post(tokens["jmap"], tokens["reader"], {"using": using, "methodCalls": calls})
email_id = answer["methodResponses"][0][1]["ids"][0]
proposal = {"emailId": email_id, "from": "incoming", "to": "escalate", "reason": "A person should look"}
print(post(tokens["intake"], tokens["proposer"], proposal)["id"])
"""


@dataclass
class Street:
    """Both houses, each under its own user, and the agent's user beside them."""

    houses: Houses
    program: Program
    reader: User
    executor: User
    agent: User

    def attempts(self, user: User, *attempts: tuple[str, str]) -> list[str]:
        done = subprocess.run(
            user.command(self.program, "-c", ATTEMPTS),
            input=json.dumps(attempts),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert isinstance(said, list)
        return said


def _owned(path: Path, user: User, mode: int, group: int | None = None) -> Path:
    if not path.exists():
        path.mkdir()
    os.chown(path, user.uid, user.gid if group is None else group)
    path.chmod(mode)
    return path


@pytest.fixture(scope="module")
def street(mail: Dovecot) -> Iterator[Street]:
    """One street for all attempts: none of them may change anything of it."""
    if os.geteuid() != 0:
        pytest.fail("this test makes OS users: run it as root (sudo make test)")
    reader, executor = make_user("mw-test-reader"), make_user("mw-test-executor", LINK_GROUP)
    agent = make_user("mw-test-agent")
    link_group = next(gid for gid in os.getgrouplist(executor.name, executor.gid) if gid != executor.gid)
    with common_ground() as ground:
        program = program_in(ground)
        run_dir = _owned(ground / "run", reader, 0o2750, link_group)
        made = {}
        for module, user in (("agent_reader", reader), ("change_executor", executor)):
            folder = _owned(ground / module, user, 0o700)
            made[module] = House(
                module, folder, free_port(), user.run_as(), (*program.entry, "-m", module), working_folder=Path("/")
            )
        houses = Houses(made["agent_reader"], made["change_executor"], free_port())
        write_reader(houses.reader, mail_server(mail), run_dir / "reader.sock", executor_uid=executor.uid)
        _owned(houses.reader.folder / "index", reader, 0o700)
        # The person's browser runs as root here; the agent's user is not among the permitted.
        write_executor(houses.executor, houses.review_port, mail_server(mail), run_dir / "reader.sock", [0])
        for house, user in ((houses.reader, reader), (houses.executor, executor)):
            for name, mode in (("secret", 0o400), ("house.toml", 0o400)):
                _owned(house.folder / name, user, mode)
        try:
            furnish(houses)
            houses.reader.start()
            houses.executor.start()
            yield Street(houses, program, reader, executor, agent)
        finally:
            houses.close()


def _secrets_of(house: House) -> list[tuple[str, str]]:
    assert house.process is not None
    files = [path for path in house.folder.rglob("*") if path.is_file() and path.name != "log"]
    assert {"secret", "house.toml"} < {path.name for path in files}
    assert any(path.suffix == ".db" for path in files)
    pid = house.process.pid
    return [
        ("list", str(house.folder)),
        *(("read", str(path)) for path in files),
        *(("write", str(path)) for path in files if path.suffix == ".db"),
        ("read", f"/proc/{pid}/environ"),
        ("read", f"/proc/{pid}/mem"),
        ("list", f"/proc/{pid}/fd"),
        ("signal", str(pid)),
    ]


def test_g2_no_user_reaches_into_the_other_house_and_the_agent_into_neither(street: Street) -> None:
    reader, executor = _secrets_of(street.houses.reader), _secrets_of(street.houses.executor)
    refused = {"PermissionError"}
    for stranger, house in (
        (street.agent, reader),
        (street.agent, executor),
        (street.executor, reader),
        (street.reader, executor),
    ):
        assert refused == set(street.attempts(stranger, *house)), (stranger, house)
    # Positive control: the same attempts by the owner succeed, so it is the separation that refuses.
    # (Reading /proc/PID/mem at address 0 is an I/O error; the open before it is what is permitted.)
    for owner, house in ((street.reader, reader), (street.executor, executor)):
        assert {"yes", "OSError"} >= set(street.attempts(owner, *house)), owner
        assert street.attempts(owner, house[0], house[1]) == ["yes", "yes"]


def test_only_the_executor_can_open_the_readers_private_socket(street: Street) -> None:
    path = street.houses.reader.folder.parent / "run" / "reader.sock"
    eventually(path.exists, "the private socket")
    assert ["PermissionError"] == street.attempts(street.agent, ("connect", str(path)))
    assert ["yes"] == street.attempts(street.executor, ("connect", str(path)))


def test_g5_the_agents_uid_is_refused_on_the_review_port_before_anything_is_read(street: Street) -> None:
    page = f"http://127.0.0.1:{street.houses.review_port}/sign-in"
    assert ["403"] == street.attempts(street.agent, ("get", page))
    assert ["403"] == street.attempts(street.reader, ("get", page))
    # Positive control: the permitted uid gets the page, and the agent's uid gets the intake.
    root = User("root", 0, 0)
    assert ["yes"] == street.attempts(root, ("get", page))
    intake = f"http://127.0.0.1:{street.houses.executor.port}/v1/health"
    assert "403" not in street.attempts(street.agent, ("get", intake))


def test_the_whole_path_under_three_users(mail: Dovecot, street: Street) -> None:
    octets = letter("Separated", "An agent under a separated user finds this.")
    mail.deliver("Incoming", octets)
    houses = street.houses
    houses.found("Separated")
    done = subprocess.run(
        street.agent.command(street.program, "-c", AGENT),
        input=json.dumps(
            {
                "jmap": f"http://127.0.0.1:{houses.reader.port}/jmap/api",
                "intake": f"http://127.0.0.1:{houses.executor.port}/v1/proposals",
                "reader": houses.reader_token,
                "proposer": houses.proposer_token,
            }
        ),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    proposal_id = done.stdout.strip()
    with Person(houses) as person:
        person.sign_in_first_time()
        person.decide(proposal_id, "approve")
    assert "moved" == houses.reaches(proposal_id, "applied")["outcome"]["code"]
    assert not mail.snapshot()["Incoming"].messages
    assert len(mail.snapshot()["Escalate"].messages) == 1
