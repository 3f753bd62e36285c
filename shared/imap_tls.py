"""Which mail server is believed to be itself: authorities, a private one, or one pinned certificate."""

import hashlib
import hmac
import socket
import ssl
from functools import cache
from pathlib import Path

from shared.imap_failure import ImapFailure
from shared.settings import ConfigurationError


def tls_context(name: str, *, ca_file: Path | None, pinned: str | None, unused: bool) -> ssl.SSLContext:
    """Return what a login trusts: its own authority, its pinned certificate alone, or the machine's authorities.

    `name` is the login's in a message; `unused`: it goes without TLS. Raises `ConfigurationError` for an unusable file.
    """
    if unused and ca_file is None:
        # Loading the machine's authorities takes longer than signing in.
        return _trusts_nobody()
    try:
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            name,
            f"`ca_file` {ca_file} cannot be used: {error}.",
            "Name a PEM file of the CA.",
        ) from None
    if pinned is not None:
        # The pinned certificate is the trust: `check_pinned` compares it before anything secret is said.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@cache
def _trusts_nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def tls_failure(error: ssl.SSLError, where: str) -> ImapFailure:
    """Return the failure for a connection that could not be secured; `where` names login and server."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ImapFailure(
            "certificate",
            f"{where}: the certificate is not trusted ({error.verify_message}).",
            "Mend `host` so that it is the certificate's name, or name the CA with `ca_file`.",
            retryable=False,
        )
    return ImapFailure(
        "certificate",
        f"{where}: TLS failed ({error.reason or type(error).__name__}).",
        "Mend `port` and `tls`: 993 is `tls`, 143 is `starttls`.",
        retryable=False,
    )


def check_pinned(connection: socket.socket, pinned: str, where: str) -> None:
    """Compare the certificate that the server showed, before anything secret is said. Raises `ImapFailure`.

    `pinned`: SHA-256 of the DER form in hexadecimal, with colons or without. A connection without TLS shows none.
    """
    shown = connection.getpeercert(binary_form=True) if isinstance(connection, ssl.SSLSocket) else None
    digest = hashlib.sha256(shown or b"").hexdigest()
    if not hmac.compare_digest(digest, pinned.replace(":", "").lower()):
        raise ImapFailure(
            "certificate",
            f"{where}: the certificate is not the pinned one (its SHA-256 is {digest}).",
            "Find out why it changed before you put the new digest into `certificate_sha256`.",
            retryable=False,
        )
