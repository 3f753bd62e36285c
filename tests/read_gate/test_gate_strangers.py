"""Any process of a machine reaches its loopback: who has no business at the gate is let go, and takes no place."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from read_gate.peers import allowed_uids, stranger
from tests.fakes.gate_process import ByHand, GateFolder

if TYPE_CHECKING:
    from pathlib import Path

OTHER_UID = 64_998
# Connects this often, keeps every connection, and prints what each heard first.
KNOCK = """
import os, socket, sys
port, uid = int(sys.argv[1]), int(sys.argv[2])
'localhost'.encode('idna')  # loads what another user could not read
os.setgroups([]); os.setgid(uid); os.setuid(uid)
held = [socket.create_connection(('127.0.0.1', port), 30) for _ in range(6)]
for each in held:
    print(each.makefile('rb').readline().decode().strip())
print('held', flush=True)
sys.stdin.read()
"""
BEHIND: dict[str, object] = {"host": "127.0.0.1", "port": 9, "tls": "none", "user": "owner"}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


def knocking(port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", KNOCK, str(port), str(OTHER_UID)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@needs_root
def test_a_stranger_is_let_go_and_takes_no_place_from_the_reader(tmp_path: Path) -> None:
    with GateFolder(tmp_path, BEHIND, "x", {"max_connections": 2}).serve() as gate:
        port = gate.port()
        with knocking(port) as other:
            assert other.stdout is not None
            heard = [other.stdout.readline().strip() for _ in range(6)]
            assert ["* BYE [UNAVAILABLE] your user may not connect: [gate] allow_uids"] * 6 == heard
            with ByHand(port) as first, ByHand(port) as second:
                assert [b"* OK IMAP4rev1 gate\r\n"] * 2 == [first.hear(), second.hear()]
            assert f"uid {OTHER_UID}" == gate.await_event("gate:stranger")["whose"]
            other.communicate("")
        assert 0 == gate.end(by_signal=signal.SIGTERM)
        # Six knocked; the log says so once.
        assert 1 == sum(line["event"] == "gate:stranger" for line in gate.log)


@needs_root
def test_who_is_named_is_let_in(tmp_path: Path) -> None:
    with GateFolder(tmp_path, BEHIND, "x", {"allow_uids": [OTHER_UID]}).serve() as gate:
        with knocking(gate.port()) as other:
            assert other.stdout is not None
            assert "* OK IMAP4rev1 gate" == other.stdout.readline().strip()
            other.communicate("")
        assert 0 == gate.end(by_signal=signal.SIGTERM)


def test_where_nobody_is_named_it_is_the_readers_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    always = {0, 4242}
    assert {5, 6} | always == allowed_uids(frozenset({5, 6}))
    reader = pwd.struct_passwd(("agent-reader", "x", 995, 995, "", "/", "/usr/sbin/nologin"))
    monkeypatch.setattr(pwd, "getpwnam", {"agent-reader": reader}.__getitem__)
    assert {995} | always == allowed_uids(frozenset())
    assert {5} | always == allowed_uids(frozenset({5}))
    monkeypatch.setattr(pwd, "getpwnam", {}.__getitem__)
    assert always == allowed_uids(frozenset())


def test_who_cannot_be_told_is_a_stranger_and_where_nobody_can_everybody_may(monkeypatch: pytest.MonkeyPatch) -> None:
    peer, ours = ("127.0.0.1", 1), ("127.0.0.1", 2)
    monkeypatch.setattr("read_gate.peers.can_tell_tcp_peers", lambda: True)
    assert "uid unknown" == stranger(peer, ours, frozenset({0}))
    monkeypatch.setattr("read_gate.peers.can_tell_tcp_peers", lambda: False)
    assert stranger(peer, ours, frozenset({0})) is None
