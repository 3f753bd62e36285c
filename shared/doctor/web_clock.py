"""What time a provider has: the Date of an HTTP answer (RFC 9110 §6.6.1), where a login asks a provider for tokens."""

import http.client
import ssl
from typing import Final
from urllib.parse import urlsplit

from shared.imap_login import ImapLogin

# Seconds; a provider that does not answer by then tells no time.
_SECONDS: Final = 10.0


def provider_date(login: ImapLogin) -> tuple[str, str] | None:
    """Return the provider's host and the Date of its answer to a HEAD; None for a password, or where it tells none.

    Nothing of the login is said, and no redirect followed.
    """
    if login.oauth is None:
        return None
    at = urlsplit(login.oauth.endpoints.token)
    host = at.hostname or ""
    connection: http.client.HTTPConnection = (
        http.client.HTTPSConnection(host, at.port, timeout=_SECONDS, context=ssl.create_default_context())
        if at.scheme == "https"
        else http.client.HTTPConnection(host, at.port, timeout=_SECONDS)
    )
    try:
        connection.request("HEAD", "/")
        date = connection.getresponse().headers.get("Date")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return None if date is None else (host, date)
