"""What leaves is signed, short and inert; a header, an argument or an environment holds nothing of mail or of ours."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr, ValidationError

from change_executor.alarms import Alarm, AlarmCode
from change_executor.notify import channels as module
from change_executor.notify.channels import CommandChannel, NotDelivered, NtfyChannel, WebhookChannel
from change_executor.notify.message import Message, MessageKind, one_line
from change_executor.notify.settings import Notify, Ntfy, Webhook
from shared.settings import ConfigurationError
from tests.change_executor.journal.clock import MovableClock
from tests.change_executor.notify.receiver import Receiver
from tests.servers.throw_away_ca import make_certificates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DOCUMENT = Path(__file__).parents[3] / "docs" / "alarms.md"
AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
HOSTILE = "Invoice\r\nX-Injected: yes\r\n\r\n\x1b[31m\u202eevil\u2028\x00" + "long " * 100


def message(kind: MessageKind = MessageKind.WAITING, *subjects: str) -> Message:
    alarms = (Alarm(AlarmCode.NOT_APPLIED, 2, AT, ("mail_server_unreachable",)),)
    return Message(kind, AT, 1, 3, AT, alarms, tuple(one_line(each) for each in subjects), "http://localhost:8622")


def documented(language: str) -> str:
    """The one example in this language that the page has."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


@pytest.mark.parametrize("secret", ["whsec_" + base64.b64encode(b"0123456789abcdef").decode(), "0123456789abcdef"])
def test_what_a_webhook_signs_the_documented_receiver_knows_for_ours_at_each_try(tmp_path: Path, secret: str) -> None:
    (tmp_path / "secret").write_text(secret)
    (tmp_path / "secret").chmod(0o400)
    clock = MovableClock()
    with Receiver() as receiver:
        channel = WebhookChannel.opened(Webhook(url=receiver.url, secret_file=tmp_path / "secret"), clock)
        channel.send(message(), "msg_1")
        # Its receiver was away for half an hour: the same message, at another time.
        clock.advance(minutes=30)
        channel.send(message(), "msg_1")
        came = receiver.wait_for(2)
    is_ours = receiver_of_the_page()
    # The clock has moved on: what was sent first is a replay by now.
    for number, each in enumerate(came):
        headers = {name.lower(): value for name, value in each.headers.items()}
        told = (secret, headers, each.body, clock.now.timestamp())
        assert bool(number) == is_ours(*told)
        assert is_ours(*told[:3], int(headers["webhook-timestamp"]))
        for forged in (
            (f"{secret}1" if not secret.startswith("whsec_") else "whsec_AAAA", *told[1:]),
            (secret, headers | {"webhook-id": "msg_2"}, *told[2:]),
            (secret, headers | {"webhook-timestamp": str(int(clock.now.timestamp()) + 1)}, *told[2:]),
            (secret, headers, each.body + b" ", told[3]),
        ):
            assert not is_ours(*forged)
    assert came[0].body == came[1].body
    assert secret not in repr(channel)


def receiver_of_the_page() -> Callable[[str, Mapping[str, str], bytes, float], bool]:
    names: dict[str, Any] = {}
    exec(documented("python"), names)
    is_ours: Callable[[str, Mapping[str, str], bytes, float], bool] = names["is_ours"]
    return is_ours


def test_the_document_that_is_sent_is_the_one_that_the_page_shows() -> None:
    assert json.loads(documented("json")) == json.loads(message().octets())


def test_a_topic_gets_the_text_and_its_headers_hold_our_own_words_only() -> None:
    with Receiver() as receiver:
        NtfyChannel(receiver.url, SecretStr("tk_secret")).send(message(MessageKind.ALARM, HOSTILE), "msg_1")
        (came,) = receiver.wait_for(1)
    assert ("Bearer tk_secret", "high") == (came.headers["Authorization"], came.headers["Priority"])
    assert "Mailwarrant: something is wrong" == came.headers["Title"]
    assert not {"X-Injected", "x-injected"} & came.headers.keys()
    lines = came.body.decode().splitlines()
    assert "2 approved, and not moved within the time that it should take" in lines[0]
    (subject,) = [line for line in lines if line.startswith("- ")]
    assert subject.isprintable()
    assert len(subject) < 110


@pytest.mark.parametrize("status", [302, 400, 500])
def test_what_is_not_taken_is_not_delivered_and_no_redirect_is_followed(status: int) -> None:
    with Receiver(status) as receiver:
        with pytest.raises(NotDelivered, match=str(status)):
            WebhookChannel(receiver.url, b"key", MovableClock()).send(message(), "msg_1")
        assert 1 == len(receiver.came)


def test_a_receiver_that_is_given_up_gets_nothing_more_without_encryption(tmp_path: Path) -> None:
    """`SSLSocket.shutdown` takes the encryption off first: what the other thread then sent left as it is written."""
    make_certificates(tmp_path)
    ours, theirs = socket.socketpair()
    at_receiver = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    at_receiver.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    with ThreadPoolExecutor(1) as other:
        shaking_hands = other.submit(at_receiver.wrap_socket, theirs, server_side=True)
        trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        connection = http.client.HTTPSConnection("localhost")
        connection.sock = trusting.wrap_socket(ours, server_hostname="localhost")
        with shaking_hands.result():
            module._cut(connection)
            assert "TLSv1.3" == connection.sock.version()
            with pytest.raises((BrokenPipeError, ssl.SSLError)):
                connection.sock.sendall(b"secret")
    connection.close()


def test_a_receiver_that_answers_an_octet_at_a_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[threading.Timer] = []

    class Timer(threading.Timer):
        def start(self) -> None:
            timers.append(self)

    monkeypatch.setattr(threading, "Timer", Timer)
    done = threading.Event()

    def drip(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client:
            while not done.wait(0.01):
                with contextlib.suppress(OSError):
                    client.sendall(b"H")
                # The time for all of it is over; over and over, since the sender may only just be connected.
                for timer in timers:
                    timer.function(*timer.args)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        with pytest.raises(NotDelivered, match="no answer"):
            WebhookChannel(f"http://127.0.0.1:{listener.getsockname()[1]}/", b"key", MovableClock()).send(
                message(), "msg_1"
            )
        done.set()
        thread.join()
    assert [module.SEND_SECONDS] == [timer.interval for timer in timers]


def test_a_receiver_that_is_not_there_is_told_as_such() -> None:
    # Held, so that no other program gets it meanwhile, and never listened to.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(NotDelivered, match="ConnectionRefusedError"):
            WebhookChannel(f"http://127.0.0.1:{held.getsockname()[1]}/", b"key", MovableClock()).send(
                message(), "msg_1"
            )


def test_a_command_gets_the_document_no_shell_and_no_environment_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials/x")
    monkeypatch.setenv("MAIL_PASSWORD", "secret")
    program = "import os, sys; open(sys.argv[1], 'w').write(repr((sys.argv[2:], dict(os.environ), sys.stdin.read())))"
    out = tmp_path / "out"
    CommandChannel((sys.executable, "-I", "-c", program, str(out), "$(id); `id`")).send(
        message(MessageKind.WAITING, HOSTILE), "msg_1"
    )
    arguments, environment, read = eval(out.read_text())
    assert ["$(id); `id`"] == arguments
    assert {"PATH", "LANG"} >= environment.keys() - {"LC_CTYPE"}
    assert 3 == json.loads(read)["pending"]


def test_a_command_that_fails_or_hangs_is_not_delivered_and_ends_with_all_it_began(tmp_path: Path) -> None:
    with pytest.raises(NotDelivered, match="status 3"):
        CommandChannel((sys.executable, "-c", "raise SystemExit(3)")).send(message(), "msg_1")
    with pytest.raises(NotDelivered, match="does not start"):
        CommandChannel((str(tmp_path / "nothing"),)).send(message(), "msg_1")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # The grandchild holds the pipe open for writing; when it is gone, reading ends.
    script = f"exec 9>{pipe}; sleep 600 & wait"
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(NotDelivered, match="did not end"):
        CommandChannel(("/bin/sh", "-c", script), seconds=0.5).send(message(), "msg_1")
    os.set_blocking(reading, True)
    assert b"" == os.read(reading, 1)
    os.close(reading)


@pytest.mark.parametrize(
    "section",
    [
        {"webhook": {"url": "http://example.org/x", "secret_file": "/s"}},
        {"webhook": {"url": "https://u:p@example.org/x", "secret_file": "/s"}},
        {"webhook": {"url": "https://example.org/\r\nX: y", "secret_file": "/s"}},
        {"webhook": {"url": "https://example.org/x"}},
        {"ntfy": {"url": "https://example.org/x", "token_file": "/s", "token_credential": "t"}},
        {"command": []},
        {"command": ["tell"]},
        {"tell": "bodies"},
        {"email": "ann@example.org"},
    ],
)
def test_a_mistake_in_the_section_stops_the_start(section: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Notify.model_validate(section)


def test_a_secret_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("whsec_not base64!")
    (tmp_path / "t").write_text("tokén")
    for name in "st":
        (tmp_path / name).chmod(0o400)
    with pytest.raises(ConfigurationError, match="base64"):
        WebhookChannel.opened(Webhook(url="https://example.org/", secret_file=tmp_path / "s"), MovableClock())
    (tmp_path / "s").chmod(0o600)
    (tmp_path / "s").write_text("whsec_")
    with pytest.raises(ConfigurationError, match="nothing follows"):
        WebhookChannel.opened(Webhook(url="https://example.org/", secret_file=tmp_path / "s"), MovableClock())
    with pytest.raises(ConfigurationError, match="ASCII"):
        NtfyChannel.opened(Ntfy(url="https://example.org/t", token_file=tmp_path / "t"))
