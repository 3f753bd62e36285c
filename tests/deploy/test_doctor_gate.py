"""What `doctor` finds of the gate: nothing on a right one, whose refusal it has tried, and each planted mistake."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

from shared.doctor.finding import Fault
from shared.doctor.gate import HARMLESS_WRITE
from tests.deploy import gate_world as gated
from tests.deploy.doctor_world import AGENT, GATE, READER, World
from tests.deploy.planting import (
    added,
    code,
    config,
    edited,
    gone,
    member,
    mode,
    owner,
    running,
    secret_of,
    unit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.deploy.planting import Do
    from tests.fakes.imap_server import ScriptedImapServer

SERVICE, SOCKET = "mailwarrant-gate.service", "mailwarrant-gate.socket"


def dropped_in(text: str) -> Do:
    return added(unit(f"{SERVICE}.d/a.conf"), f"[Service]\n{text}\n")


SERVING: Final = running(lambda w: [f"{w.prefix('gate')}/bin/read-gate", "serve"])
_IN_ENVIRONMENT: Final = running(lambda _: ["sh"], lambda w: {"X": f"{w.password}-gate"})
# What does not get in each other's way is planted together: a look takes a quarter of a second.
PLANTS: Final[dict[str, tuple[tuple[Fault, Do], ...]]] = {
    "the agent owns its settings, the reader its real secret; its code, its unit and its door are open": (
        (Fault.CONFIG_OWNER, owner(config("gate"), AGENT)),
        (Fault.SECRET_OWNER, owner(secret_of("gate"), READER)),
        (Fault.CODE_MODE, mode(code("gate", "read_gate/tables.py"), 0o666)),
        (Fault.UNIT_OWNER, mode(unit(SERVICE), 0o666)),
        (Fault.UNIT_ADDRESS, edited(unit(SOCKET), "ListenStream=127.0.0.1:", "ListenStream=")),
        (Fault.SECRET_IN_ENVIRONMENT, _IN_ENVIRONMENT),
    ),
    "everybody writes its settings, a group reads the local secret, and its unit lets it gain privileges": (
        (Fault.CONFIG_MODE, mode(config("gate"), 0o666)),
        (Fault.SECRET_MODE, mode(secret_of("gate-local"), 0o440)),
        (Fault.UNIT_WEAKENED, dropped_in("NoNewPrivileges=no")),
        (Fault.HOUSE_SIGNS_IN, gated.the_gates_user_signs_in),
        (Fault.HOUSE_GROUP, member(GATE, READER)),
        (Fault.CODE_WRITABLE, mode(code("gate", "read_gate/gate.py"), 0o666)),
    ),
    "everybody may read the real secret, and a process has it in its environment": (
        (Fault.SECRET_MODE, mode(secret_of("gate"), 0o444)),
        (Fault.UNIT_SECRET, dropped_in("Environment=IMAP_PASSWORD=x")),
        (Fault.HOUSE_GROUP, member(READER, GATE)),
    ),
    "and the reader really can; its socket is gone": (
        (Fault.SECRET_READABLE, gated.the_secrets_lie_open),
        (Fault.UNIT_MISSING, gone(unit(SOCKET))),
        (Fault.HOUSE_GROUP, member(AGENT, GATE)),
    ),
    "it serves as the agent, unconfined; the real secret is gone": (
        (Fault.PROCESS_USER, SERVING),
        (Fault.PROCESS_UNCONFINED, SERVING),
        (Fault.SECRET_MISSING, gone(secret_of("gate"))),
    ),
    "its unit is gone, and the reader has the password itself": (
        (Fault.UNIT_MISSING, gone(unit(SERVICE))),
        (Fault.GATE_BYPASSED, gated.the_reader_has_the_password),
    ),
    "it runs as the reader, who goes past it": (
        (Fault.HOUSES_TOGETHER, dropped_in(f"User={READER}")),
        (Fault.GATE_BYPASSED, gated.the_reader_goes_past),
    ),
    "it runs as the agent, and nobody listens": (
        (Fault.HOUSES_TOGETHER, dropped_in(f"User={AGENT}")),
        (Fault.GATE_CLOSED, gated.nobody_listens),
    ),
    "it runs as root, and the local secret is another": (
        (Fault.HOUSE_IS_ROOT, dropped_in("User=root")),
        (Fault.GATE_CLOSED, gated.another_local_secret),
    ),
    "its user is not there, and the agent listens in its place": (
        (Fault.HOUSES_TOGETHER, dropped_in("User=mw-nobody-at-all")),
        (Fault.GATE_STRANGER, gated.the_agent_listens),
    ),
    "nobody goes through it": ((Fault.GATE_BYPASSED, edited(config("reader"), "127.0.0.1", "127.0.0.2")),),
    "it passes on what writes": ((Fault.GATE_OPEN, gated.it_passes_everything),),
    "it listens to other machines": ((Fault.UNIT_ADDRESS, edited(config("gate"), "127.0.0.1:", "0.0.0.0:")),),
}


@pytest.fixture(scope="module")
def behind(world: World) -> Iterator[ScriptedImapServer]:
    with gated.gate_beside(world) as server:
        yield server


def test_nothing_is_found_of_a_right_gate_and_it_was_tried(world: World, behind: ScriptedImapServer) -> None:
    before = behind.connections
    report = world.look("reader")
    assert ((), ()) == (report.findings, report.unseen)
    # The login behind it was used, and what writes never came there.
    assert behind.connections == before + 1
    assert any(command.startswith((b"LOGIN", b"AUTHENTICATE")) for command in behind.commands)
    assert not [command for command in behind.commands if HARMLESS_WRITE.split()[0] in command]


@pytest.mark.parametrize("words", PLANTS)
@pytest.mark.usefixtures("behind")
def test_planted_mistakes_are_found(world: World, words: str) -> None:
    with ExitStack() as planted:
        for _, do in PLANTS[words]:
            planted.enter_context(do(world))
        report = world.look("reader")
    missed = {fault for fault, _ in PLANTS[words]} - {each.fault for each in report.findings}
    assert set() == missed, [each.what for each in report.findings]
    assert all(each.what and each.fix and each.why for each in report.findings)


@pytest.mark.usefixtures("behind")
def test_what_cannot_be_tried_and_what_answers_in_its_own_way_is_no_gate_that_was_seen_to_hold(world: World) -> None:
    with edited(secret_of("gate-local"), "0123", "01 3")(world):
        report = world.look("reader")
    assert [True] == ["not letters and digits alone" in each for each in report.unseen]
    with gated.another_local_secret(world):
        report = world.look("reader")
    assert [True] == ["does not let shop in" in each.what for each in report.findings]
    with gated.it_answers_nothing_that_a_gate_says(world):
        report = world.look("reader")
    assert [True] == ["to a command that writes" in each for each in report.unseen]
    assert () == report.findings


@pytest.mark.usefixtures("behind")
def test_each_was_taken_back_and_the_executors_doctor_tries_the_gates_secret_too(world: World) -> None:
    for house in ("reader", "executor"):
        assert () == world.look(house).findings
    with gated.the_secrets_lie_open(world):
        assert Fault.SECRET_READABLE in {each.fault for each in world.look("executor").findings}
