"""Who is who, and who runs what: each mistake alone, told without a user being made and without a process of theirs."""

from __future__ import annotations

import grp
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.doctor import processes
from shared.doctor.finding import Fault, Looking
from shared.doctor.installation import House, Installation
from shared.doctor.separation import look_at_separation, too_wide
from shared.doctor.units import look_at_states
from shared.doctor.users import User


def user_with(name: str, uid: int, *groups: int, shell: str = "/usr/sbin/nologin") -> User:
    return User(name, uid, uid, frozenset({uid, *groups}), Path("/nonexistent"), shell)


READER, EXECUTOR, AGENT, ADA = (user_with(f"mw-{uid}", uid) for uid in range(64_901, 64_905))
SUDO, ADM = (grp.getgrnam(name).gr_gid for name in ("sudo", "adm"))


@pytest.fixture
def right(tmp_path: Path) -> Installation:
    """The reader's, with nothing wrong; the socket's folder belongs to nobody of them."""
    return Installation(
        own=House("agent-reader", READER, tmp_path / "reader.toml", (), None),
        other=House("change-executor", EXECUTOR, tmp_path / "executor.toml", (), None),
        is_reader=True,
        prefix=Path("/opt/reader"),
        interpreter=Path("/opt/reader/bin/python"),
        packages=(),
        foreign=(),
        agents=(AGENT,),
        agents_are_named=True,
        reviewers=(ADA,),
        peer_uid=EXECUTOR.uid,
        socket=tmp_path / "reader.sock",
        logins=(),
        units=tmp_path,
        sockets=(),
        units_beside=(),
    )


def found(installation: Installation) -> list[Fault]:
    looking = Looking()
    look_at_separation(installation, looking)
    return [each.fault for each in looking.report().findings]


def own(installation: Installation, user: User | None) -> dict[str, Any]:
    return {"own": replace(installation.own, user=user)}


def test_nothing_is_found_where_all_are_apart(right: Installation) -> None:
    assert [] == found(right)
    assert [] == found(replace(right, is_reader=False))


def test_each_mistake_has_its_name_and_no_other(right: Installation) -> None:
    root = user_with("root", 0)
    for changed, faults in (
        ({"agents_are_named": False, "agents": ()}, [Fault.AGENT_UNKNOWN]),
        (own(right, None), [Fault.HOUSES_TOGETHER]),
        (own(right, root), [Fault.HOUSE_IS_ROOT, Fault.HOUSE_GROUP]),
        (own(right, EXECUTOR), [Fault.HOUSES_TOGETHER]),
        (own(right, replace(READER, shell="/bin/bash")), [Fault.HOUSE_SIGNS_IN]),
        # In the other's group, which is not its own; and in one that is as good as root.
        (own(right, user_with("r", READER.uid, EXECUTOR.gid)), [Fault.HOUSE_GROUP]),
        (own(right, user_with("r", READER.uid, SUDO)), [Fault.HOUSE_GROUP]),
        ({"peer_uid": None}, [Fault.PEER_UID]),
        ({"peer_uid": ADA.uid}, [Fault.PEER_UID]),
        ({"other": replace(right.other, user=root), "peer_uid": 0}, [Fault.PEER_UID]),
        ({"other": replace(right.other, user=None)}, [Fault.PEER_UID]),
        ({"agents": (root,)}, [Fault.AGENT_IS_ROOT]),
        ({"agents": (READER,)}, [Fault.AGENT_IS_HOUSE]),
        ({"agents": (EXECUTOR,)}, [Fault.AGENT_IS_HOUSE]),
        ({"agents": (ADA,)}, [Fault.AGENT_NOT_SEPARATED]),
        ({"agents": (user_with("a", AGENT.uid, EXECUTOR.gid),)}, [Fault.AGENT_GROUP]),
        ({"agents": (user_with("a", AGENT.uid, READER.gid),)}, [Fault.AGENT_GROUP]),
        ({"agents": (user_with("a", AGENT.uid, ADM),)}, [Fault.AGENT_GROUP]),
        ({"reviewers": (EXECUTOR,)}, [Fault.AGENT_NOT_SEPARATED]),
        ({"reviewers": (READER,)}, [Fault.AGENT_NOT_SEPARATED]),
    ):
        assert faults == found(replace(right, **changed)), changed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to a group")
def test_the_agent_in_the_group_that_opens_the_private_socket_is_found(right: Installation, tmp_path: Path) -> None:
    os.chown(tmp_path, 0, 64_950)
    assert [Fault.LINK_GROUP] == found(replace(right, agents=(user_with("a", AGENT.uid, 64_950),)))


def test_a_rule_of_sudo_that_only_begins_like_ours_or_goes_on_in_the_next_line_is_too_wide() -> None:
    head = "User agent may run the following commands on host:\n"
    ours = "    (mailwarrant-agent) NOPASSWD: /usr/local/bin/mailwarrant-agent digest"
    assert [] == too_wide(f"{head}{ours}\n")
    assert [f"{ours.strip()} --peek --token-file=/x"] == too_wide(f"{head}{ours} --peek --token-file=/x\n")
    assert [f"{ours.strip()}, /bin/sh"] == too_wide(f"{head}{ours},\n        /bin/sh\n")


SECRET = b"correct-horse-battery"
TOKEN = b"mwr_abcdefgh_abcdefghijklmnopqrstuvwxyz234567_0123abcd"
SERVE = b"/opt/reader/bin/python\0-I\0/opt/reader/bin/agent-reader\0serve"
CONFINED = "NoNewPrivs:\t1\nSeccomp:\t2\nCapEff:\t0000000000000000\n"


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc of the test's own; every process in it is of the user that runs the tests."""
    folder = tmp_path / "proc"
    folder.mkdir()
    monkeypatch.setattr(processes, "_PROC", folder)
    return folder


def begin(proc: Path, arguments: bytes, environment: bytes = b"", status: str = CONFINED) -> None:
    at = proc / str(70_000 + len(list(proc.iterdir())))
    at.mkdir()
    (at / "cmdline").write_bytes(arguments)
    (at / "environ").write_bytes(environment)
    (at / "status").write_text(status)


def running(right: Installation, secret: bytes, **users: User) -> list[Fault]:
    """What is found of what runs, where `own`, `other` or `agent` is the user of every process."""
    (right.units / "secret").write_bytes(secret)
    looked = replace(
        right,
        own=replace(right.own, user=users.get("own", READER), secrets=(right.units / "secret",)),
        other=replace(right.other, user=users.get("other", EXECUTOR)),
        agents=(users.get("agent", AGENT),),
    )
    looking = Looking()
    processes.look_at_processes(looked, looking)
    return [each.fault for each in looking.report().findings]


def test_a_password_is_found_where_every_process_shows_it(right: Installation, proc: Path) -> None:
    begin(proc, b"curl\0--user\0ada:" + SECRET)
    assert [Fault.SECRET_IN_ARGUMENTS] == running(right, SECRET)
    begin(proc, b"python", b"HOME=/\0X=" + SECRET + b"\0")
    assert [Fault.SECRET_IN_ARGUMENTS, Fault.SECRET_IN_ENVIRONMENT] == running(right, SECRET + b"\n")
    # So short a one stands anywhere, and none at all does too.
    assert [] == running(right, b"python")
    assert [] == running(right, b"")


def test_a_token_in_arguments_is_found_of_agents_and_programs_and_nobody_else(right: Installation, proc: Path) -> None:
    begin(proc, b"curl\0Authorization: Bearer " + TOKEN)
    me = user_with("me", os.geteuid())
    for whose in ("own", "other", "agent"):
        assert [Fault.TOKEN_IN_ARGUMENTS] == running(right, SECRET, **{whose: me}), whose
    assert [] == running(right, SECRET)


def test_a_mail_password_in_an_agents_environment_is_a_second_way(right: Installation, proc: Path) -> None:
    begin(proc, b"model", b"IMAP_PASSWORD=x\0HOME=/\0")
    begin(proc, b"model", b"PASSWORD=x\0IMAP_HOST=x\0imap_password=x\0")
    me = user_with("me", os.geteuid())
    assert [Fault.SECOND_WAY] == running(right, SECRET, agent=me)
    assert [] == running(right, SECRET, own=me)


@pytest.mark.parametrize(
    "status",
    [
        CONFINED.replace("NoNewPrivs:\t1", "NoNewPrivs:\t0"),
        CONFINED.replace("Seccomp:\t2", "Seccomp:\t0"),
        CONFINED.replace("0000000000000000", "0000000000000020"),
    ],
)
def test_a_daemon_without_the_units_confinement_is_found(right: Installation, proc: Path, status: str) -> None:
    me = user_with("me", os.geteuid())
    begin(proc, SERVE, status=status)
    assert [Fault.PROCESS_UNCONFINED] == running(right, SECRET, own=me)


def test_a_daemon_of_another_user_is_found_and_another_command_is_none(right: Installation, proc: Path) -> None:
    me = user_with("me", os.geteuid())
    begin(proc, SERVE)
    begin(proc, SERVE.replace(b"serve", b"status"), status="NoNewPrivs:\t0\n")
    begin(proc, SERVE.replace(b"/opt/reader/", b"/home/ada/"), status="NoNewPrivs:\t0\n")
    assert [] == running(right, SECRET, own=me)
    assert [Fault.PROCESS_USER] == running(right, SECRET, own=user_with("other", os.geteuid() + 1))


def test_a_unit_that_failed_or_begins_again_and_again_is_found_and_one_that_was_stopped_is_not() -> None:
    states = {
        "a.service": {"ActiveState": "active", "SubState": "running"},
        "b.service": {"ActiveState": "failed", "SubState": "failed"},
        "c.service": {"ActiveState": "activating", "SubState": "auto-restart"},
        "d.service": {"ActiveState": "inactive", "SubState": "dead"},
        "e.service": {},
        "f@.service": {"ActiveState": "failed", "SubState": "failed"},
    }
    looking = Looking()
    look_at_states(states, looking, states.__getitem__)
    assert [(Fault.SERVICE_FAILED, f"{name}.service failed") for name in "bc"] == [
        (each.fault, each.what) for each in looking.report().findings
    ]
