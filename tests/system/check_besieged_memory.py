"""Memory runs out, for real: the kernel ends what may be ended, nothing is lost or done twice, and it is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.system import installation as installed
from tests.system.machine import eventually
from tests.system.memory import ROOMY, memory_of

if TYPE_CHECKING:
    from tests.system.machine import Machine

pytestmark = pytest.mark.timeout(1200)

MEBI: Final = 1024 * 1024
# Past what the reader reads by itself (`LONG_BACKLOG`).
CROWD: Final = 520
# A text of this length takes 450 MiB to be read; the reader and a process that reads a usual message take half of this
# room together.
HUGE: Final = 20 * MEBI
ROOM: Final = 320 * MEBI

OWNER: Final = f"""
import imaplib
client = imaplib.IMAP4('127.0.0.1', {installed.PORT})
client.login('owner', '{installed.PASSWORDS["owner"]}')
"""
BRING_A_CROWD: Final = f"""{OWNER}
def bring(name, text):
    head = 'Subject: crowd\\r\\nMessage-ID: <crowd-%s@x>\\r\\n\\r\\n' % name
    assert client.append('Archive', '', '', (head + text).encode())[0] == 'OK'
for number in range({CROWD}):
    bring(number, 'little')
    if number == {CROWD // 2}:
        bring('huge', 'much of it, and more\\r\\n' * ({HUGE} // 22))
"""
SIGN_IN: Final = (
    "exec curl -s -m 20 -o /dev/null -H 'Origin: http://localhost:8622' -d 'name=ada&password=x'"
    " http://localhost:8622/sign-in"
)
TAKE_THE_CROWD_AWAY: Final = f"""{OWNER}
client.select('Archive')
crowd = client.search(None, 'SUBJECT', 'crowd')[1][0].replace(b' ', b',').decode()
client.store(crowd, '+FLAGS.SILENT', r'(\\Deleted)')
client.expunge()
"""


def status(machine: Machine) -> str:
    return machine.run("sudo", "-u", "agent-reader", "agent-reader", "status").stdout


def status_saying(machine: Machine, word: str) -> str | None:
    said = status(machine)
    return said if word in said else None


def restarts(machine: Machine, service: str) -> int:
    return int(machine.said("systemctl", "show", "--property=NRestarts", "--value", service))


def test_the_kernel_ends_what_reads_one_huge_message_and_the_reader_takes_in_all_the_others(besieged: Machine) -> None:
    besieged.said("systemctl", "stop", "agent-reader")
    besieged.said("python3", "-c", BRING_A_CROWD)
    try:
        with memory_of(besieged, "agent-reader", ROOM) as memory:
            reader = installed.main_pid(besieged, "agent-reader")
            told = eventually(lambda: status_saying(besieged, "ReadingProcessDied"), "it to be set aside")
            assert 1 == told.count("set aside"), told
            assert "in Archive: message_unreadable: ReadingProcessDied" in told
            # Each of three processes died of it, and the reader of none.
            assert memory.ended() >= 3
            assert (reader, 0) == (installed.main_pid(besieged, "agent-reader"), restarts(besieged, "agent-reader"))
            eventually(lambda: in_archive(besieged) == CROWD, "all the others to be there")
    finally:
        besieged.said("python3", "-c", TAKE_THE_CROWD_AWAY)
    eventually(lambda: "set aside" not in (said := status(besieged)) and "messages" in said, "it to be gone")


def in_archive(machine: Machine) -> int:
    asked = {
        "using": ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"],
        "methodCalls": [
            ["Email/query", {"accountId": "shop", "filter": {"subject": "crowd"}, "calculateTotal": True}, "q"]
        ],
    }
    answer = installed.agent_says(machine, "http://127.0.0.1:8620/jmap/api", "reader.token", asked)
    return int(answer["methodResponses"][0][1]["total"])


def test_an_executor_that_the_kernel_ends_in_the_middle_of_a_move_comes_back_and_moves_once(besieged: Machine) -> None:
    subjects = [f"squeezed-{number}" for number in range(3)]
    for subject in subjects:
        installed.deliver(besieged, subject)
    with memory_of(besieged, "change-executor") as memory:
        proposals = [installed.propose(besieged, subject) for subject in subjects]
        installed.as_person(besieged, "decide", proposals[0], "approve")
        installed.await_state(besieged, proposals[0], "applied")
        # The mail server holds its breath: what is approved now is begun, and cannot end.
        besieged.said("systemctl", "kill", "--signal=STOP", "test-imap")
        try:
            for proposal in proposals[1:]:
                installed.as_person(besieged, "decide", proposal, "approve")
            before = installed.main_pid(besieged, "change-executor")
            # A sign-in takes 64 MiB (argon2id), whoever it is.
            memory.allow(memory.used() + 16 * MEBI)
            besieged.run("bash", "-c", SIGN_IN, user="ada")
            eventually(lambda: memory.ended() >= 1, "the kernel to end it")
            eventually(lambda: installed.main_pid(besieged, "change-executor") not in {0, before}, "another one")
            memory.allow(ROOMY)
        finally:
            besieged.said("systemctl", "kill", "--signal=CONT", "test-imap")
        for proposal in proposals:
            installed.await_state(besieged, proposal, "applied")
        assert restarts(besieged, "change-executor") >= 1
    moved = [each for each in installed.all_subjects_in(besieged, "Processed") if each in subjects]
    assert sorted(subjects) == sorted(moved)
    assert set(subjects).isdisjoint(installed.all_subjects_in(besieged, "Incoming"))
    besieged.said("sudo", "-u", "change-executor", "change-executor", "audit", "verify")
    status_, found, said = installed.doctor(besieged)
    assert (0, set()) == (status_, found), said
