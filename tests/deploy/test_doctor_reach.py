"""What is tried as each user: told by whom and of what, each by itself, where other looks find it as well."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from operator import methodcaller
from typing import TYPE_CHECKING

import pytest
import typer

from shared.doctor.finding import Fault, Finding, Looking, Report
from shared.doctor.reach import look_at_reach
from shared.doctor.telling import Part, look, tell
from tests.deploy.doctor_world import ADA, AGENT, EXECUTOR, READER, World, owned, user
from tests.deploy.planting import mode, owner

if TYPE_CHECKING:
    from shared.doctor.installation import Installation


def reached(installation: Installation) -> tuple[set[tuple[Fault, str]], list[str]]:
    looking = Looking()
    look_at_reach(installation, looking)
    report = looking.report()
    return {(each.fault, each.what) for each in report.findings}, list(report.unseen)


def test_everybody_is_tried_on_the_secret_and_the_state_of_each_program(world: World) -> None:
    with ExitStack() as stack:
        stack.enter_context(mode(lambda w: w.etc / "secrets", 0o755)(world))
        for house in ("reader", "executor"):
            stack.enter_context(mode(methodcaller("secret", house), 0o444)(world))
            stack.enter_context(mode(methodcaller("state", house), 0o755)(world))
        stack.enter_context(mode(lambda w: w.state("reader") / "access.db", 0o644)(world))
        found, _ = reached(world.installation("executor"))
    secrets = {what for fault, what in found if fault is Fault.SECRET_READABLE}
    assert {
        *(f"{name} can read {world.secret('reader')}" for name in (EXECUTOR, AGENT, ADA)),
        *(f"{name} can read {world.secret('executor')}" for name in (READER, AGENT, ADA)),
    } == secrets
    states = {what for fault, what in found if fault is Fault.STATE_READABLE}
    inside = (world.state("reader"), world.state("reader") / "access.db")
    assert {
        *(f"{name} can look into {path}" for name in (EXECUTOR, AGENT, ADA) for path in inside),
        *(f"{name} can look into {world.state('executor')}" for name in (READER, AGENT, ADA)),
    } == states


def test_everybody_is_tried_on_folders_links_settings_and_the_interpreter(world: World) -> None:
    folder, link = world.packages("reader") / "agent_reader", world.packages("reader") / "linked.py"
    outside, interpreter = (owned(world.ground / name, "root", 0o755) for name in ("outside", "python"))
    target, python = outside / "target.py", interpreter / "python3"
    for path in (target, python):
        path.write_text("#!/bin/sh\nexit 3\n")
        path.chmod(0o777)
    link.symlink_to(target)
    try:
        with mode(lambda _: folder, 0o777)(world), mode(lambda w: w.config("reader"), 0o666)(world):
            found, unseen = reached(replace(world.installation("reader"), interpreter=python))
    finally:
        link.unlink()
        for path in (target, python):
            path.unlink()
    assert {
        (Fault.CODE_WRITABLE, f"{name} can write {path}")
        for name in (READER, EXECUTOR, AGENT)
        for path in (folder, link, python, world.config("reader"))
        # Its settings may be the program's own; whoever else may write them is found.
        if (name, path) != (READER, world.config("reader"))
    } == found
    assert [f"{python} does not run: exit status 3"] == unseen
    with owner(lambda w: w.config("reader"), READER)(world):
        assert () == world.look("reader").findings


def test_whom_the_private_socket_lets_in_is_tried(world: World) -> None:
    with mode(lambda w: w.socket.parent, 0o2755)(world), mode(lambda w: w.socket, 0o666)(world):
        found, _ = reached(world.installation("executor"))
    assert {(Fault.SOCKET_OPEN, f"{name} can connect to {world.socket}") for name in (AGENT, ADA)} == found
    # Where nobody listens nobody is let in, which the socket's own look says.
    moved = world.socket.rename(world.socket.with_suffix(".away"))
    try:
        assert (set(), []) == reached(world.installation("executor"))
    finally:
        moved.rename(world.socket)


@pytest.mark.usefixtures("world")
def test_the_programs_part_is_looked_at_as_its_user_and_all_of_it_comes_back() -> None:
    said = Report((Finding(Fault.DISK, "full", "df"),), ("a place",), ("a note",))

    def program() -> Report:
        return replace(said, notes=(f"uid {os.geteuid()}",))

    whose = user(AGENT)
    assert replace(said, notes=(f"uid {whose.uid}",)) == look(Part.PROGRAM, whose, Report, program)
    assert Report() == look(Part.MACHINE, whose, Report, program)
    assert replace(said, notes=(f"uid {os.geteuid()}",)) == look(Part.ALL, None, Report, program)


@pytest.mark.parametrize(("report", "status"), [(Report(), 0), (Report(unseen=("x",)), 2)])
def test_what_a_file_or_a_server_is_called_moves_no_cursor(
    report: Report, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = replace(report, notes=("\x1b[2Ja mailbox\u202e",))
    with pytest.raises(typer.Exit) as ended:
        tell(hostile, "agent-reader", as_json=False)
    assert status == ended.value.exit_code
    said = capsys.readouterr().out
    assert "?[2Ja mailbox?" in said
    assert not any(ord(each) < 32 and each != "\n" for each in said)
