"""Whose process connects: the kernel's tables read right, and real processes of other users refused."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from change_executor.peers import PeerUidGate, uid_of_socket
from shared.sock_diag import tcp_socket
from shared.tcp_peer import can_tell_tcp_peers, uid_in_tables, uid_of_tcp_peer
from tests.change_executor.gated_server import Inner, Serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Message

OTHER_UID = 64_998
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
needs_proc = pytest.mark.skipif(not can_tell_tcp_peers(), reason="this system has no /proc/net/tcp")

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def line(local: str, remote: str, *, state: str = "01", uid: int = 1000, inode: int = 77) -> str:
    return f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 {uid:5d}        0 {inode} 1 0 20\n"


LOOPBACK_V4 = "0100007F" if sys.byteorder == "little" else "7F000001"
LOOPBACK_V6 = "0" * 24 + ("01000000" if sys.byteorder == "little" else "00000001")
MAPPED_V6 = "0" * 16 + ("FFFF0000" if sys.byteorder == "little" else "0000FFFF") + LOOPBACK_V4
CLIENT, SERVER = ":9C40", ":21AE"  # 40000, 8622


def test_the_line_of_the_peer_names_the_uid_and_our_own_line_does_not() -> None:
    table = (
        HEADER
        + line(LOOPBACK_V4 + SERVER, LOOPBACK_V4 + CLIENT, uid=1)
        + line(LOOPBACK_V4 + CLIENT, LOOPBACK_V4 + SERVER, uid=1001)
        + line(LOOPBACK_V4 + ":9C41", LOOPBACK_V4 + SERVER, uid=1002)
    )
    assert uid_in_tables([table], ("127.0.0.1", 40000), ("127.0.0.1", 8622)) == 1001


def test_ipv6_loopback_is_found_in_the_second_table() -> None:
    table = HEADER + line(LOOPBACK_V6 + CLIENT, LOOPBACK_V6 + SERVER)
    assert uid_in_tables([HEADER, table], ("::1", 40000), ("::1", 8622)) == 1000
    assert uid_in_tables([HEADER, table], ("127.0.0.1", 40000), ("127.0.0.1", 8622)) is None


def test_an_ipv4_peer_that_speaks_through_an_ipv6_socket_is_found() -> None:
    table = HEADER + line(MAPPED_V6 + CLIENT, MAPPED_V6 + SERVER)
    assert uid_in_tables([HEADER, table], ("127.0.0.1", 40000), ("127.0.0.1", 8622)) == 1000
    assert uid_in_tables([HEADER, table], ("::ffff:127.0.0.1", 40000), ("::ffff:127.0.0.1", 8622)) == 1000


@pytest.mark.parametrize("state", ["06", "04", "05", "01"])
def test_a_socket_without_an_owner_is_unknown_although_it_shows_uid_0(state: str) -> None:
    table = HEADER + line(LOOPBACK_V4 + CLIENT, LOOPBACK_V4 + SERVER, state=state, uid=0, inode=0)
    assert uid_in_tables([table], ("127.0.0.1", 40000), ("127.0.0.1", 8622)) is None


def test_two_sockets_of_different_users_are_unknown() -> None:
    table = HEADER + "".join(line(LOOPBACK_V4 + CLIENT, LOOPBACK_V4 + SERVER, uid=uid) for uid in (1, 2))
    assert uid_in_tables([table], ("127.0.0.1", 40000), ("127.0.0.1", 8622)) is None


def test_the_lines_of_everybody_else_are_not_even_parsed() -> None:
    others = line("nonsense", "nonsense") * 20_000
    table = HEADER + others + line(LOOPBACK_V4 + CLIENT, LOOPBACK_V4 + SERVER) + others
    assert uid_in_tables([table, table], ("127.0.0.1", 40000), ("127.0.0.1", 8622)) == 1000
    # The last line may be cut off.
    cut = HEADER + others + f"   0: {LOOPBACK_V4}{CLIENT} {LOOPBACK_V4}{SERVER} 01"
    assert uid_in_tables([cut], ("127.0.0.1", 40000), ("127.0.0.1", 8622)) is None


def test_a_port_that_only_begins_or_ends_alike_is_another() -> None:
    table = HEADER + line(LOOPBACK_V4 + CLIENT, LOOPBACK_V4 + SERVER)
    for peer, ours in ((40000, 0x21A), (0x9C4, 8622), (0xC40, 8622)):
        assert uid_in_tables([table], ("127.0.0.1", peer), ("127.0.0.1", ours)) is None


def test_short_lines_and_empty_tables_are_unknown() -> None:
    assert uid_in_tables(["", HEADER, HEADER + "  0: x\n\n"], ("127.0.0.1", 1), ("127.0.0.1", 2)) is None


@contextmanager
def connected(family: socket.AddressFamily, bind: tuple[str, int], to: str | None = None) -> Iterator[socket.socket]:
    """The accepted end of a connection that this process makes to itself."""
    with closing(socket.create_server(bind, family=family)) as server:
        client_family = socket.AF_INET6 if to and ":" in to else family
        with closing(socket.socket(client_family)) as client:
            client.connect((to or bind[0], server.getsockname()[1]))
            accepted, _ = server.accept()
            with closing(accepted):
                yield accepted


@needs_proc
@pytest.mark.parametrize(
    ("family", "address", "to"),
    [
        (socket.AF_INET, "127.0.0.1", None),
        (socket.AF_INET6, "::1", None),
        (socket.AF_INET, "127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_our_own_uid_is_told_on_each_family(family: socket.AddressFamily, address: str, to: str | None) -> None:
    with connected(family, (address, 0), to) as accepted:
        assert os.geteuid() == uid_of_socket(accepted)


@needs_proc
def test_a_peer_that_closed_its_socket_is_unknown() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        with closing(accepted):
            assert os.geteuid() == uid_of_socket(accepted)
            client.close()
            assert uid_of_socket(accepted) is None


@pytest.mark.skipif(sys.platform != "linux", reason="SO_PEERCRED is Linux's")
def test_a_unix_peer_is_told_by_its_credentials() -> None:
    left, right = socket.socketpair(socket.AF_UNIX)
    with closing(left), closing(right):
        assert os.geteuid() == uid_of_socket(left)


@needs_proc
def test_a_connection_that_does_not_exist_is_unknown() -> None:
    assert uid_of_tcp_peer(("127.0.0.1", 1), ("127.0.0.1", 2)) is None


@needs_proc
def test_a_listener_on_the_port_of_a_connection_that_is_gone_is_not_taken_for_it() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        assert tcp_socket(listener.getsockname(), ("127.0.0.1", 2)) is None
        assert uid_of_tcp_peer(listener.getsockname(), ("127.0.0.1", 2)) is None


@needs_proc
@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_where_the_kernel_cannot_be_asked_its_tables_tell(
    monkeypatch: pytest.MonkeyPatch, family: socket.AddressFamily, address: str
) -> None:
    def forbidden(peer: tuple[str, int], ours: tuple[str, int]) -> None:
        raise PermissionError

    with connected(family, (address, 0)) as accepted:
        found = tcp_socket(accepted.getpeername()[:2], accepted.getsockname()[:2])
        assert found is not None
        assert (os.geteuid(), True) == (found.uid, found.inode > 0)
        monkeypatch.setattr("shared.tcp_peer.tcp_socket", forbidden)
        assert os.geteuid() == uid_of_socket(accepted)


def ask(gate: PeerUidGate, **scope: object) -> list[Message]:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body was asked for")

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(gate({"type": "http", **scope}, receive, send))
    return sent


@pytest.mark.parametrize(
    ("scope", "status"),
    [
        ({"client": ("127.0.0.1", 1000), "server": ("127.0.0.1", 80)}, 204),
        ({"client": ("127.0.0.1", 1001), "server": ("127.0.0.1", 80)}, 403),
        ({"client": ("127.0.0.1", 9), "server": ("127.0.0.1", 80)}, 403),
        ({"client": ("not an address", 1000), "server": ("127.0.0.1", 80)}, 403),
        ({"client": None, "server": ("127.0.0.1", 80)}, 403),
        ({"client": ("127.0.0.1", 1000), "server": ("/socket", None)}, 403),
        ({}, 403),
        ({"extensions": {"mailwarrant.peer_uid": 1000}}, 204),
        ({"extensions": {"mailwarrant.peer_uid": None}, "client": ("127.0.0.1", 1000), "server": ("a", 1)}, 403),
        ({"extensions": {"mailwarrant.peer_uid": 1001}, "client": ("127.0.0.1", 1000), "server": ("a", 1)}, 403),
    ],
)
def test_the_gate_lets_through_only_a_uid_that_it_knows_and_lists(scope: dict[str, object], status: int) -> None:
    def uid_of(peer: tuple[str, int], _: tuple[str, int]) -> int | None:
        if not peer[0][0].isdigit():
            raise ValueError
        return {1000: 1000, 1001: 1001}.get(peer[1])

    inner = Inner()
    gate = PeerUidGate(inner, frozenset({1000}), uid_of)
    sent = ask(gate, **scope)
    assert status == sent[0]["status"]
    assert (1, 0) == (inner.requests, gate.refused) if status == 204 else (0, 1) == (inner.requests, gate.refused)


def refused(accept: bytes | None, uid: int | None) -> tuple[str, str]:
    """Content type and body of a refusal."""
    gate = PeerUidGate(Inner(), frozenset({1000}), key="[review] allow_uids")
    headers = [] if accept is None else [(b"accept", accept)]
    start, body = ask(gate, extensions={"mailwarrant.peer_uid": uid}, headers=headers)
    assert 403 == start["status"]
    fields = dict(start["headers"])
    assert str(len(body["body"])).encode() == fields[b"content-length"]
    return fields[b"content-type"].decode(), body["body"].decode()


def test_a_browser_is_shown_a_page_that_names_the_uid_and_the_key() -> None:
    kind, page = refused(b"text/html,application/xhtml+xml,*/*;q=0.8", 1001)
    assert kind.startswith("text/html")
    assert "uid 1001 is not in [review] allow_uids" in page
    assert "add 1001 to [review] allow_uids" in page
    assert "cannot be told" in refused(b"text/html", None)[1]


@pytest.mark.parametrize("accept", [None, b"*/*", b"application/json"])
def test_a_program_is_answered_with_a_problem_that_says_the_same(accept: bytes | None) -> None:
    kind, body = refused(accept, 1001)
    assert "application/problem+json" == kind
    assert "uid 1001 is not in [review] allow_uids of executor.toml." == json.loads(body)["detail"]


def test_refusals_are_logged_for_each_uid_and_not_each_time() -> None:
    gate = PeerUidGate(Inner(), frozenset({1000}), key="[intake] allow_uids")
    with capture_logs() as logged:
        for uid in (1001, 1001, None, 1002, None, 1001):
            ask(gate, extensions={"mailwarrant.peer_uid": uid})
    assert [("peer:refused", uid, "[intake] allow_uids") for uid in (1001, None, 1002)] == [
        (line["event"], line["uid"], line["key"]) for line in logged
    ]
    with capture_logs() as logged:
        for uid in range(2_000, 4_000):
            ask(gate, extensions={"mailwarrant.peer_uid": uid})
    assert 150 > len(logged)


CLIENT_PROGRAM = """
import socket, sys
family, address = sys.argv[1], sys.argv[2]
if family == "unix":
    client = socket.socket(socket.AF_UNIX)
    client.connect(address)
else:
    client = socket.create_connection((address, int(sys.argv[3])), timeout=20)
client.sendall(b"GET / HTTP/1.1\\r\\nHost: a\\r\\nX-Forwarded-For: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n")
answer = b""
while piece := client.recv(4096):
    answer += piece
client.close()
print(answer.decode())
"""


def answer_to(uid: int, *arguments: str) -> str:
    """What a process of this uid is answered."""
    command = [sys.executable, "-c", CLIENT_PROGRAM, *arguments]
    if uid != os.geteuid():
        command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", *command]
    # `-c` puts the working directory on the path; the other user may not read this one.
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd="/")
    return done.stdout


@needs_proc
@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_process_of_an_allowed_user_is_let_in_over_tcp(family: socket.AddressFamily, address: str) -> None:
    listener = socket.create_server((address, 0), family=family)
    with Serving(listener, frozenset({os.geteuid()})) as serving:
        assert "204" in answer_to(os.geteuid(), "tcp", address, str(listener.getsockname()[1])).split("\n")[0]
        assert (1, 0) == (serving.inner.requests, serving.gate.refused)


@needs_proc
@needs_root
@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_process_of_another_user_is_refused_over_tcp_and_let_in_where_it_is_listed(
    family: socket.AddressFamily, address: str
) -> None:
    listener = socket.create_server((address, 0), family=family)
    with Serving(listener, frozenset({os.geteuid()})) as serving:
        answer = answer_to(OTHER_UID, "tcp", address, str(listener.getsockname()[1]))
        assert "403" in answer.split("\n")[0]
        assert '"code": "peer_not_allowed"' in answer
        assert (0, 1) == (serving.inner.requests, serving.gate.refused)
    listener = socket.create_server((address, 0), family=family)
    with Serving(listener, frozenset({OTHER_UID})) as serving:
        port = str(listener.getsockname()[1])
        assert "204" in answer_to(OTHER_UID, "tcp", address, port).split("\n")[0]
        assert "403" in answer_to(os.geteuid(), "tcp", address, port).split("\n")[0]


@needs_root
def test_a_process_of_another_user_is_refused_over_a_unix_socket() -> None:
    # A folder that another user can reach (pytest's own are closed): the refusal must be ours, not the folder's.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "s"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen()
        with Serving(listener, frozenset({os.geteuid()})) as serving:
            assert "204" in answer_to(os.geteuid(), "unix", str(path)).split("\n")[0]
            assert "403" in answer_to(OTHER_UID, "unix", str(path)).split("\n")[0]
            assert (1, 1) == (serving.inner.requests, serving.gate.refused)
