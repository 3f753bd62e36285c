"""Signing in to a mail server, alike for both houses: one password or token, and the guard on the socket.

Each house gives its own closed table of verbs; a client that is not guarded cannot be made here.
"""

import imaplib
import ipaddress
import math
import socket
import ssl
import time
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, Self

import imapclient
from imapclient import imap4, tls
from imapclient.exceptions import IMAPClientError, LoginError
from pydantic import Field, SecretStr, StringConstraints, model_validator

from shared.imap_failure import FailureCode, ImapFailure, printable, protocol_failure
from shared.imap_guard import Guard, GuardRefusal, VerbTable
from shared.imap_stream import MOST_ANSWER_OCTETS, AnswerLimits, AnswerReader
from shared.imap_tls import check_pinned, tls_context, tls_failure
from shared.login_refusals import login_refusal
from shared.oauth import OAuth, OAuthFailure, access_token
from shared.settings import AbsolutePath, Section, read_secret

__all__ = [
    "LOGIN_ID_PATTERN",
    "READ_SECONDS",
    "GuardedClient",
    "ImapFailure",
    "ImapLogin",
    "connect",
    "protocol_failure",
]

LOGIN_ID_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,39}$"

CONNECT_SECONDS: Final = 15.0
# A dead server must not hold a sync for ever; a live one that builds an index answers within a minute.
READ_SECONDS: Final = 90.0

_LOOPBACK_NAMES: Final = frozenset({"localhost", "ip6-localhost"})


class ImapLogin(Section):
    """Where and as whom to sign in; the secret is read when it is needed, and never shown.

    One of `secret_file`, `secret_command`, `secret_credential` (a systemd credential's name) and `oauth` is given.
    `certificate_sha256` pins the server's certificate by the digest of its DER form, where no authority vouches for it.
    """

    id: Annotated[str, Field(pattern=LOGIN_ID_PATTERN)]
    host: Annotated[str, Field(min_length=1, max_length=255)]
    port: Annotated[int, Field(ge=1, le=65535)] = 993
    tls: Literal["tls", "starttls", "none"] = "tls"
    user: Annotated[str, Field(min_length=1, max_length=255)]
    secret_file: AbsolutePath | None = None
    secret_command: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    secret_credential: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,100}$")] | None = None
    oauth: OAuth | None = None
    ca_file: AbsolutePath | None = None
    certificate_sha256: Annotated[str, StringConstraints(pattern=r"^([0-9a-fA-F]{2}:?){32}$")] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        ways = (self.secret_file, self.secret_command, self.secret_credential, self.oauth)
        if sum(way is not None for way in ways) != 1:
            raise ValueError("give one of `secret_file`, `secret_command`, `secret_credential` and `oauth`")
        if self.certificate_sha256 is not None and (self.tls == "none" or self.ca_file is not None):
            raise ValueError("`certificate_sha256` goes with TLS, and instead of `ca_file`")
        if self.tls == "none" and not _is_loopback(self.host):
            raise ValueError('`tls = "none"` is allowed for a server on this machine (loopback) only')
        if any(ord(character) < 0x20 for character in self.user):  # noqa: PLR2004 - C0 controls
            raise ValueError("`user` has control characters")
        return self


class _Guarded:
    # Mixed in before one of the library's connections: the guard sits where bytes leave, with TLS and without, and what
    # comes is read within limits.
    # The library's.
    sock: socket.socket
    error: type[Exception]
    _tls_established: bool
    untagged_responses: dict[str, list[bytes]]
    capability: Callable[[], tuple[str, list[bytes | None]]]

    def __init__(self, guard: Guard, limits: AnswerLimits, *args: Any) -> None:  # noqa: ANN401 - the library's own
        self.guard = guard
        self.octets_passed = 0
        self._limits = limits
        self._ends = time.monotonic() + limits.session_seconds
        self._reader: AnswerReader | None = None
        super().__init__(*args)

    @property
    def answers(self) -> AnswerReader:
        # STARTTLS puts another socket in the place of the first; what came before it, unencrypted, is dropped.
        if self._reader is None or self._reader.sock is not self.sock:
            self._reader = AnswerReader(self.sock, self._limits, time.monotonic, self._ends)
        return self._reader

    def send(self, data: bytes) -> None:
        permitted = self.guard.pass_on(data)
        if permitted:
            self.answers.begin()
            self.sock.settimeout(self.answers.seconds_left())
            self.octets_passed += len(permitted)
            super().send(permitted)  # type: ignore[misc]  # the library's, which the two below mix in

    def read(self, size: int) -> bytes:
        return self.answers.read(size)

    def readline(self) -> bytes:
        return self.answers.readline()

    def _get_capabilities(self) -> None:
        # RFC 9051 §7.1: most greetings tell them, and then asking is an exchange for nothing. After STARTTLS it never
        # is (§6.2.1): what lies here then came before it, from whoever sits on the line.
        told: list[bytes] | list[bytes | None] | None = self.untagged_responses.pop("CAPABILITY", None)
        if told is None or self._tls_established:
            told = self.capability()[1]
        if told[-1] is None:
            raise self.error("no CAPABILITY response")
        self.capabilities = tuple(told[-1].decode("ascii", "replace").upper().split())


class _GuardedPlain(_Guarded, imap4.IMAP4WithTimeout):  # type: ignore[misc]  # imapclient publishes no types
    pass


class _GuardedTls(_Guarded, tls.IMAP4_TLS):  # type: ignore[misc]  # imapclient publishes no types
    pass


class GuardedClient(imapclient.IMAPClient):  # type: ignore[misc]  # imapclient publishes no types
    """An IMAPClient of which every octet to the server passes the guard. One thread uses it."""

    def __init__(
        self,
        table: VerbTable,
        login: ImapLogin,
        context: ssl.SSLContext,
        limits: AnswerLimits,
    ) -> None:
        self._table = table
        self._limits = limits
        super().__init__(
            login.host,
            port=login.port,
            use_uid=True,
            ssl=login.tls == "tls",
            ssl_context=context,
            timeout=imapclient.SocketTimeout(CONNECT_SECONDS, limits.seconds),
        )
        # imaplib's trace formatting costs half of a body fetch even when nobody reads it.
        self._imap.debug = 0

    def _create_IMAP4(self) -> imap4.IMAP4WithTimeout:  # noqa: N802 - the library's name
        guard = Guard(self._table)
        if self.ssl:
            return _GuardedTls(guard, self._limits, self.host, self.port, self.ssl_context, CONNECT_SECONDS)
        return _GuardedPlain(guard, self._limits, self.host, self.port, CONNECT_SECONDS)

    @property
    def octets_passed(self) -> int:
        """How many octets may have left so far: counted before they are given to the network, never after."""
        passed = self._imap.octets_passed
        assert isinstance(passed, int), "only guarded connections are made here"
        return passed

    @property
    def answers(self) -> AnswerReader:
        """What the server sent, as octets within limits."""
        answers = self._imap.answers
        assert isinstance(answers, AnswerReader), "only guarded connections are made here"
        return answers

    @property
    def octets_received(self) -> int:
        """How many octets came so far."""
        return self.answers.octets_received

    def wait(self, seconds: float) -> bool:
        """Wait until the server says something unasked; whether it did. Raises OSError at the connection's end."""
        return self.answers.wait(seconds)

    def say(self, line: bytes) -> None:
        """Send one whole line of somebody who reads the answers from `answers`. Raises `GuardRefusal`, OSError."""
        self._imap.send(line)

    def break_off(self) -> None:
        """Make whoever waits on this connection fail now; any thread may call it, and it never raises."""
        try:
            # Not SSLSocket.shutdown, which would take the encryption off under the other thread's hands.
            socket.socket.shutdown(self.socket(), socket.SHUT_RDWR)
        except OSError:
            return

    def close_connection(self) -> None:
        """Drop the connection without a word; safe in any state, and never raises."""
        try:
            self.shutdown()
        except (OSError, IMAPClientError, AttributeError):
            return


def connect(
    login: ImapLogin,
    table: VerbTable,
    read_seconds: float = READ_SECONDS,
    now: Callable[[], float] = time.time,
    session_seconds: float = math.inf,
    patience_seconds: float = math.inf,
    answer_octets: int = MOST_ANSWER_OCTETS,
) -> GuardedClient:
    """Connect, secure and sign in; the capabilities are asked again after login.

    So long after its beginning the connection is good for nothing any more, however it trickles (`session_seconds`);
    and so it is once it has taken `patience_seconds` more than its octets need.
    None of its answers may be larger than `answer_octets`.
    `now`: seconds since 1970, for tokens that run out. Raises `ImapFailure`, and `ConfigurationError` for a file that
    cannot be read.
    """
    where = f"{login.user} at {login.host}:{login.port}"
    context = tls_context(
        f"the login `{login.id}`", ca_file=login.ca_file, pinned=login.certificate_sha256, unused=login.tls == "none"
    )
    # The secret is read first: a missing file is the operator's mistake whatever the server does.
    secret = _secret(login, now, where)
    limits = AnswerLimits(
        read_seconds, session_seconds=session_seconds, patience_seconds=patience_seconds, octets=answer_octets
    )
    client = _open(login, table, context, where, limits)
    try:
        if login.tls == "starttls":
            _start_tls(client, context, where)
        if login.certificate_sha256 is not None:
            check_pinned(client.socket(), login.certificate_sha256, where)
        _sign_in(client, login, secret, where)
    except BaseException:
        client.close_connection()
        raise
    return client


def _open(
    login: ImapLogin, table: VerbTable, context: ssl.SSLContext, where: str, limits: AnswerLimits
) -> GuardedClient:
    try:
        return GuardedClient(table, login, context, limits)
    except ssl.SSLError as error:
        raise tls_failure(error, where) from None
    except socket.gaierror:
        raise ImapFailure(
            "unreachable",
            f"{where}: the host name `{login.host}` does not resolve.",
            "Mend `host`.",
            retryable=True,
        ) from None
    except OSError as error:
        raise ImapFailure(
            "unreachable",
            f"{where}: no connection ({error.strerror or error}).",
            "Mend `host`, `port` and `tls`, or wait until the server is up.",
            retryable=True,
        ) from None
    except IMAPClientError as error:
        raise protocol_failure(where, error) from None


def _start_tls(client: GuardedClient, context: ssl.SSLContext, where: str) -> None:
    try:
        client.starttls(context)
    except ssl.SSLError as error:
        raise tls_failure(error, where) from None
    except (IMAPClientError, OSError):
        raise ImapFailure(
            "no_starttls",
            f"{where}: the server does not offer STARTTLS.",
            'Use `tls = "tls"` and its port.',
            retryable=False,
        ) from None


def _secret(login: ImapLogin, now: Callable[[], float], where: str) -> SecretStr:
    if login.oauth is None:
        return read_secret(
            login.secret_file, login.secret_command, f"the login `{login.id}`", credential=login.secret_credential
        )
    try:
        return access_token(login.oauth, now)
    except OAuthFailure as failure:
        code: FailureCode = "unreachable" if failure.retryable else "login_refused"
        raise ImapFailure(code, f"{where}: {failure.detail}", failure.fix, retryable=failure.retryable) from None


def _sign_in(client: GuardedClient, login: ImapLogin, secret: SecretStr, where: str) -> None:
    try:
        if login.oauth is not None:
            _show_token(client, login.user, secret, login.oauth.mechanism)
        else:
            _say_password(client, login.user, secret)
        client._cached_capabilities = None  # noqa: SLF001 - a server shows its full list only now
        client.capabilities()
    except LoginError as error:
        refusal = login_refusal(str(error), "" if login.oauth is not None else login.host)
        raise ImapFailure(
            "unreachable" if refusal.retryable else "login_refused",
            f"{where}: the server refused the login: {refusal.meaning} ({printable(str(error))}).",
            refusal.fix,
            retryable=refusal.retryable,
        ) from None
    except (GuardRefusal, UnicodeEncodeError):
        raise ImapFailure(
            "login_refused",
            f"{where}: the password has characters that LOGIN cannot carry.",
            "Use a password of printable ASCII characters.",
            retryable=False,
        ) from None
    except (IMAPClientError, OSError) as error:
        raise protocol_failure(where, error) from None


def _say_password(client: GuardedClient, user: str, password: SecretStr) -> None:
    # AUTHENTICATE PLAIN carries any UTF-8 password; LOGIN would need a literal, which never leaves.
    if client.has_capability("AUTH=PLAIN"):
        client.plain_login(user, password.get_secret_value())
    elif client.has_capability("LOGINDISABLED"):
        raise LoginError("LOGINDISABLED")
    else:
        client.login(user, password.get_secret_value())


def _show_token(client: GuardedClient, user: str, token: SecretStr, mechanism: str) -> None:
    """Say SASL XOAUTH2, or OAUTHBEARER (RFC 7628); the server's reason is kept, which the library loses."""
    reasons: list[bytes] = []
    by = token.get_secret_value()
    if mechanism == "oauthbearer":
        # RFC 5801 §4: `,` and `=` are escaped in the authorization identity. RFC 7628 §3.2.3: a kvsep ends a failure.
        identity = user.replace("=", "=3D").replace(",", "=2C")
        first, last = f"n,a={identity},\x01auth=Bearer {by}\x01\x01".encode(), b"\x01"
    else:
        first, last = f"user={user}\x01auth=Bearer {by}\x01\x01".encode(), b""

    def answer(challenge: bytes) -> bytes:
        if not challenge and not reasons:
            return first
        reasons.append(challenge)
        return last

    try:
        client._imap.authenticate(mechanism.upper(), answer)  # noqa: SLF001 - the library's own loses the reason
    except imaplib.IMAP4.abort:
        raise
    except imaplib.IMAP4.error as error:
        said = b" ".join(reasons).decode("utf-8", "replace")
        raise LoginError(f"{error} {said}".strip()) from None


def _is_loopback(host: str) -> bool:
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
