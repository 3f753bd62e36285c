"""Signing in without a password, with a pinned certificate, and what a server's refusal means."""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any, Self

import pytest
from pydantic import ValidationError

from shared.imap_login import ImapFailure, ImapLogin, connect
from shared.login_refusals import login_refusal
from shared.oauth import TokenFile
from shared.reader_verbs import READER_TABLE
from shared.settings import ConfigurationError
from tests.fakes.imap_server import ScriptedImapServer
from tests.fakes.oauth_provider import OAuthProvider
from tests.servers.dovecot import Dovecot

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000.0


def signed_in(login: ImapLogin) -> bool:
    client = connect(login, READER_TABLE, now=lambda: NOW)
    try:
        return bool(client.has_capability("IMAP4REV1"))
    finally:
        client.close_connection()


def by_consent(dovecot: Dovecot, provider: OAuthProvider, folder: Path, mechanism: str, ends: float) -> ImapLogin:
    made = provider.new_tokens()
    file = folder / "oauth.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps(made | {"expires_at": int(ends)}))
    oauth = {
        "provider": "other", "client_id": "c", "token_file": file, "scope": "mail", "mechanism": mechanism,
        "token_url": f"{provider.url}/token", "device_url": f"{provider.url}/device",
    }  # fmt: skip
    return login(dovecot, ca_file=dovecot.ca_file, oauth=oauth, secret_file=None)


def login(dovecot: Dovecot, **changes: Any) -> ImapLogin:
    secret = dovecot.layout.base / "reader.secret"
    secret.write_text(dovecot.passwords["reader"])
    secret.chmod(0o400)
    given = {"id": "shop", "host": "localhost", "port": dovecot.tls_port, "user": "reader", "secret_file": secret}
    return ImapLogin.model_validate(given | changes)


@pytest.mark.parametrize("mechanism", ["xoauth2", "oauthbearer"])
def test_a_real_server_takes_a_token_and_a_renewed_one_and_names_a_dead_one(tmp_path: Path, mechanism: str) -> None:
    with OAuthProvider() as provider, Dovecot(introspection_url=f"{provider.url}/introspect") as dovecot:
        account = by_consent(dovecot, provider, tmp_path, mechanism, NOW + 3600)
        assert signed_in(account), dovecot.log()
        account = by_consent(dovecot, provider, tmp_path, mechanism, NOW - 1)
        before = TokenFile(tmp_path / "oauth.json").read()
        assert signed_in(account), dovecot.log()
        assert before != TokenFile(tmp_path / "oauth.json").read()
        provider.live.clear()
        with pytest.raises(ImapFailure) as failure:
            signed_in(account)
        assert "login_refused" == failure.value.code
        assert "the access token is not accepted" in failure.value.detail
        provider.refresh_tokens.clear()
        with pytest.raises(ImapFailure, match="oauth login") as failure:
            signed_in(by_consent_ended(account, tmp_path))
        assert ("login_refused", False) == (failure.value.code, failure.value.retryable)


def by_consent_ended(account: ImapLogin, folder: Path) -> ImapLogin:
    file = folder / "oauth.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"expires_at": 0}))
    return account


@pytest.mark.parametrize(("tls", "port"), [("tls", "tls_port"), ("starttls", "port")])
def test_a_pinned_certificate_is_trusted_alone_and_compared_before_anything_secret_is_said(
    dovecot: Dovecot, tls: str, port: str
) -> None:
    der = ssl.PEM_cert_to_DER_cert((dovecot.layout.tls / "server.crt").read_text())
    right = hashlib.sha256(der).hexdigest()
    colons = ":".join(right[at : at + 2] for at in range(0, 64, 2)).upper()
    for pin in (right, colons):
        assert signed_in(login(dovecot, tls=tls, port=getattr(dovecot, port), certificate_sha256=pin))
    wrong = ("0" if right[0] != "0" else "1") + right[1:]
    before = sum(line.count(b"AUTHENTICATE") for line in dovecot.commands("reader"))
    with pytest.raises(ImapFailure, match=right) as failure:
        signed_in(login(dovecot, tls=tls, port=getattr(dovecot, port), certificate_sha256=wrong))
    assert ("certificate", False) == (failure.value.code, failure.value.retryable)
    assert before == sum(line.count(b"AUTHENTICATE") for line in dovecot.commands("reader"))


@pytest.mark.parametrize(
    ("greeting", "asked"), [(b"* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] ready", 1), (b"* OK ready", 2)]
)
def test_what_a_greeting_tells_is_not_asked_before_login_and_always_after_it(
    tmp_path: Path, greeting: bytes, asked: int
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("words")
    secret.chmod(0o400)
    with ScriptedImapServer(greeting=greeting) as server:
        given = {"id": "shop", "host": "127.0.0.1", "port": server.port, "tls": "none", "user": "reader"}
        assert signed_in(ImapLogin.model_validate(given | {"secret_file": secret}))
        assert ([b"CAPABILITY"] * (asked - 1)) + [b"AUTHENTICATE PLAIN", b"CAPABILITY"] == server.commands


class LineWithSomebodyOnIt:
    """A server behind STARTTLS, and somebody in between who adds an answer just before the encryption begins."""

    def __init__(self, dovecot: Dovecot) -> None:
        self.said: list[bytes] = []
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(dovecot.layout.tls / "server.crt", dovecot.layout.tls / "server.key")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(20)
        self._listener.close()

    def _serve(self) -> None:
        plain, _ = self._listener.accept()
        with plain:
            plain.settimeout(20)
            plain.sendall(b"* OK [CAPABILITY IMAP4rev1 STARTTLS LOGINDISABLED] ready\r\n")
            tag = plain.recv(1000).split()[0]
            plain.sendall(b"* CAPABILITY IMAP4rev1 AUTH=PLAIN INJECTED\r\n" + tag + b" OK begin TLS\r\n")
            with self._context.wrap_socket(plain, server_side=True) as encrypted, encrypted.makefile("rb") as lines:
                for line in lines:
                    tag, _, command = line.rstrip().partition(b" ")
                    self.said.append(command)
                    encrypted.sendall(b"* CAPABILITY IMAP4rev1 LOGINDISABLED\r\n" + tag + b" OK done\r\n")


def test_what_somebody_on_the_line_said_before_starttls_is_believed_by_nobody_after_it(dovecot: Dovecot) -> None:
    with LineWithSomebodyOnIt(dovecot) as line, pytest.raises(ImapFailure) as failure:
        signed_in(login(dovecot, tls="starttls", port=line.port, ca_file=dovecot.ca_file))
    # No password was said, since the server itself says that it takes none.
    assert ("login_refused", {b"CAPABILITY"}) == (failure.value.code, set(line.said))
    # At once when the encryption has begun, and for each question after that.
    assert 3 == len(line.said)


def test_a_credential_of_the_service_manager_is_read_from_its_folder(
    dovecot: Dovecot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = tmp_path / "mail"
    handed.write_text(dovecot.passwords["reader"])
    handed.chmod(0o400)
    account = login(dovecot, ca_file=dovecot.ca_file, secret_file=None, secret_credential="mail")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert signed_in(account)
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    with pytest.raises(ConfigurationError, match="LoadCredential=mail"):
        signed_in(account)


@pytest.mark.parametrize(
    "changes",
    [
        {"secret_file": None},
        {"secret_command": ["/bin/cat"]},
        {"secret_credential": "../shadow", "secret_file": None},
        {"certificate_sha256": "00"},
        {"certificate_sha256": "0" * 64, "tls": "none"},
        {"certificate_sha256": "0" * 64, "ca_file": "/etc/ca.pem"},
    ],
)
def test_a_login_has_one_way_in_and_one_way_of_trust(dovecot: Dovecot, changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        login(dovecot, **changes)


@pytest.mark.parametrize(
    ("said", "words", "retryable"),
    [
        (
            "[ALERT] Application-specific password required: https://support.google.com/...",
            "application password",
            False,
        ),
        ("[ALERT] Your account is not enabled for IMAP use. Please visit your settings page", "switched off", False),
        ("LOGIN failed. Basic authentication is disabled.", "basic authentication", False),
        ("LOGINDISABLED", "basic authentication", False),
        ("[ALERT] Please log in via your web browser: https://...", "confirm", False),
        ("[ALERT] Too many simultaneous connections. (Failure)", "wait", True),
        ("[UNAVAILABLE] Temporary authentication failure.", "wait", True),
        ("User is authenticated but not connected.", "no mailbox", True),
        ("AUTHENTICATE command error: BAD [b'[UNAVAILABLE] Service temporarily unavailable']", "wait", True),
        ("[LIMIT] LOGIN Rate limit hit.", "wait", True),
        (
            "[ALERT] IMAP access is disabled for your domain. Please contact your domain administrator",
            "switched",
            False,
        ),
        ("[EXPIRED] password has expired", "run out", False),
        ("[AUTHENTICATIONFAILED] Authentication failed.", "no reason", False),
        ("", "no reason", False),
        ("\x1b[31m" * 100_000, "no reason", False),
    ],
)
def test_a_providers_words_say_what_to_do(said: str, words: str, retryable: bool) -> None:
    refusal = login_refusal(said)
    assert words in refusal.meaning
    assert retryable == refusal.retryable
    assert refusal.fix


@pytest.mark.parametrize(
    ("host", "said", "words", "fix"),
    [
        ("imap.gmail.com", "[AUTHENTICATIONFAILED] Invalid credentials (Failure)", "Google takes", "two-step"),
        ("outlook.office365.com", "LOGIN failed.", "no passwords", "`oauth`"),
        ("imap-mail.outlook.com", "AUTHENTICATE failed.", "no passwords", "`oauth`"),
        (
            "imap.mail.yahoo.com.",
            "[AUTHENTICATIONFAILED] LOGIN Invalid credentials",
            "Yahoo and AOL",
            "security settings",
        ),
        ("IMAP.mail.me.com", "[AUTHENTICATIONFAILED] Authentication failed", "app-specific", "before @icloud.com"),
        # What the server says itself goes before what is known of it.
        ("imap.gmail.com", "[ALERT] Your account is not enabled for IMAP use.", "switched off", "Switch it on"),
        ("outlook.office365.com", "Basic authentication is disabled.", "basic authentication", "`oauth`"),
        # Another's name is not its own.
        ("mail.notgmail.com", "LOGIN failed.", "no reason", "`user`"),
        ("gmail.com.example.org", "LOGIN failed.", "no reason", "`user`"),
    ],
)
def test_of_a_provider_that_gives_no_reason_its_rule_is_named(host: str, said: str, words: str, fix: str) -> None:
    refusal = login_refusal(said, host)
    assert words in refusal.meaning
    assert fix in refusal.fix
