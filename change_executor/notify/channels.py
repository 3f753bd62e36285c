"""The three ways to tell: a signed webhook, a topic of ntfy, a command. Each sends one message, or says why not.

No header, argument or address is made of anything that mail or an agent holds: that stands in bodies only.
"""

import base64
import binascii
import hashlib
import hmac
import http.client
import os
import signal
import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol
from urllib.parse import urlsplit

from pydantic import SecretStr

from change_executor.notify.message import Message, MessageKind
from change_executor.notify.settings import Ntfy, Webhook
from shared.settings import ConfigurationError, read_secret
from shared.time_and_chance import Clock

# From the first octet to the last of the answer; whoever takes longer is tried again.
SEND_SECONDS: Final = 15.0
# What a receiver answers is not read further.
_ANSWER_OCTETS: Final = 4096
_OK: Final = range(200, 300)

# Nothing of ours: a command must find no secret and no path that a service manager handed to us.
_ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

# The mark of a secret that is written in base64, as Standard Webhooks has it.
_BASE64_MARK: Final = "whsec_"


class NotDelivered(Exception):  # noqa: N818 - names the state of things
    """A message was not taken; `reason` is ours, in a few words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Channel(Protocol):
    """One way to tell."""

    @property
    def name(self) -> str: ...  # noqa: D102 - for the log
    def send(self, message: Message, message_id: str) -> None: ...  # noqa: D102 - raises NotDelivered


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """Signs as Standard Webhooks 1.0.0 does: HMAC-SHA-256 over `id.timestamp.body`, in the header webhook-signature.

    The timestamp is that of the try, by `now`: receivers refuse one that is older than some minutes as a replay.
    """

    url: str
    key: bytes
    now: Clock
    name: str = "webhook"

    @classmethod
    def opened(cls, settings: Webhook, now: Clock) -> "WebhookChannel":
        """Read the secret. Raises `ConfigurationError`."""
        where = "[notify] webhook"
        secret = read_secret(settings.secret_file, None, where, credential=settings.secret_credential)
        return cls(settings.url, _key(secret, where), now)

    def __repr__(self) -> str:
        return "WebhookChannel(...)"

    def send(self, message: Message, message_id: str) -> None:
        """POST the message's document."""
        body = message.octets()
        headers = {"Content-Type": "application/json", **signed(self.key, message_id, self.now(), body)}
        _post(self.url, body, headers)


@dataclass(frozen=True, slots=True)
class NtfyChannel:
    """Publishes to a topic; the title is our own words, the text is the body."""

    url: str
    token: SecretStr | None
    name: str = "ntfy"

    @classmethod
    def opened(cls, settings: Ntfy) -> "NtfyChannel":
        """Read the token. Raises `ConfigurationError`."""
        if settings.token_file is None and settings.token_credential is None:
            return cls(settings.url, None)
        where = "[notify] ntfy"
        token = read_secret(settings.token_file, None, where, credential=settings.token_credential)
        if not token.get_secret_value().isascii() or not token.get_secret_value().isprintable():
            raise ConfigurationError(where, "the token is not printable ASCII.", "Copy it from the server anew.")
        return cls(settings.url, token)

    def send(self, message: Message, message_id: str) -> None:  # noqa: ARG002 - ntfy knows no id of ours
        """POST the message's text."""
        headers = {
            "Content-Type": "text/plain; charset=utf-8",
            "Title": message.title(),
            "Priority": "high" if message.kind is MessageKind.ALARM else "default",
        }
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token.get_secret_value()}"
        _post(self.url, message.text().encode("utf-8"), headers)


@dataclass(frozen=True, slots=True)
class CommandChannel:
    """Runs the operator's program: no shell, no argument of ours, nothing of ours in its environment.

    It gets the document on its standard input and has `seconds`; it runs as the executor's user, so it must be trusted.
    """

    argv: tuple[str, ...]
    seconds: float = SEND_SECONDS
    name: str = "command"

    def send(self, message: Message, message_id: str) -> None:  # noqa: ARG002 - it is told once, by us
        """Run it to its end, or end it and all that it began."""
        try:
            # S603: the operator's own command, an argument list without a shell.
            process = subprocess.Popen(  # noqa: S603
                self.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise NotDelivered(f"the command does not start: {error.strerror}") from None
        try:
            process.communicate(message.octets() + b"\n", timeout=self.seconds)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                # The group of its own that it leads; its pid is not free before we have waited for it.
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise NotDelivered(f"the command did not end within {self.seconds:.0f} s") from None
        if process.returncode != 0:
            raise NotDelivered(f"the command ended with status {process.returncode}")


def signed(key: bytes, message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Return the three headers by which a receiver knows that a body is ours and new."""
    timestamp = str(int(at.timestamp()))
    content = b".".join((message_id.encode("ascii"), timestamp.encode("ascii"), body))
    signature = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode("ascii")
    return {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}


def _key(secret: SecretStr, where: str) -> bytes:
    text = secret.get_secret_value()
    if not text.startswith(_BASE64_MARK):
        return text.encode("utf-8")
    try:
        key = base64.b64decode(text.removeprefix(_BASE64_MARK), validate=True)
    except binascii.Error:
        raise ConfigurationError(where, "what follows `whsec_` is not base64.", "Copy the secret anew.") from None
    if not key:
        # Anybody could sign with it.
        raise ConfigurationError(where, "nothing follows `whsec_`.", "Copy the secret anew.")
    return key


def _post(url: str, body: bytes, headers: dict[str, str]) -> None:
    at = urlsplit(url)
    host = at.hostname or ""
    connection: http.client.HTTPConnection = (
        http.client.HTTPSConnection(host, at.port, timeout=SEND_SECONDS, context=ssl.create_default_context())
        if at.scheme == "https"
        else http.client.HTTPConnection(host, at.port, timeout=SEND_SECONDS)
    )
    # A time-out of a socket is for each octet; this one is for all of them.
    cut = threading.Timer(SEND_SECONDS, _cut, (connection,))
    cut.daemon = True
    cut.start()
    try:
        connection.request("POST", (at.path or "/") + (f"?{at.query}" if at.query else ""), body, headers)
        response = connection.getresponse()
        response.read(_ANSWER_OCTETS)
    except (OSError, http.client.HTTPException) as error:
        raise NotDelivered(f"no answer: {type(error).__name__}") from None
    finally:
        cut.cancel()
        connection.close()
    # A redirect is not followed: it could name any place.
    if response.status not in _OK:
        raise NotDelivered(f"answered {response.status}")


def _cut(connection: http.client.HTTPConnection) -> None:
    if connection.sock is not None:
        with suppress(OSError):
            # Not SSLSocket.shutdown, which would take the encryption off under the other thread's hands.
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
