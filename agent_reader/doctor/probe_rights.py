r"""Does the server itself keep the read login from writing? Asked by SELECT, which the daemon's table does not hold.

SELECT changes no message, but ends \Recent for other clients: so it is asked only when the operator says so. What a
server answers to a trial STORE, MYRIGHTS or PERMANENTFLAGS proves nothing (some say OK and do nothing, some lie); the
READ-ONLY of SELECT was right on every server that was tried.
"""

import imaplib
import re
from collections.abc import Iterable
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from imapclient.exceptions import IMAPClientError

from agent_reader.doctor.rights import Enforcement, Finding
from shared.imap_guard import ATOM, MAILBOX, QUOTED, VerbTable
from shared.imap_login import GuardedClient, ImapLogin, connect, protocol_failure
from shared.time_and_chance import Clock

# CLOSE would expunge; UNSELECT is asked for where the server has it, and a SELECT ends the one before it.
_PROBE: Final = {
    b"CAPABILITY": b"",
    b"STARTTLS": b"",
    b"AUTHENTICATE": rb"(?:PLAIN|XOAUTH2|OAUTHBEARER)",
    b"LOGIN": rb"(?:" + QUOTED + rb"|" + ATOM + rb") (?:" + QUOTED + rb"|" + ATOM + rb")",
    b"LIST": rb'"" ' + MAILBOX,
    b"SELECT": MAILBOX,
    b"UNSELECT": b"",
    b"LOGOUT": b"",
}
PROBE_TABLE: Final = VerbTable(
    "reader's probe", MappingProxyType({verb: re.compile(pattern, re.DOTALL) for verb, pattern in _PROBE.items()})
)


def probe_rights(login: ImapLogin, mailboxes: Iterable[str] | None, clock: Clock) -> dict[str, Finding]:
    """Open each mailbox once, all that the login sees where none is named, and return what the server said.

    Raises `ImapFailure`, and `ConfigurationError` for a secret that cannot be read.
    """
    client = connect(login, PROBE_TABLE)
    try:
        names = list(mailboxes) if mailboxes is not None else _all(client)
        found = {name: Finding(_said(client, name), clock()) for name in names}
        # All is known by now; a server that ends without BYE took nothing back.
        with suppress(IMAPClientError):
            client.logout()
        return found
    except (OSError, imaplib.IMAP4.abort) as error:
        raise protocol_failure(f"{login.user} at {login.host}:{login.port}", error) from None
    finally:
        client.close_connection()


def _all(client: GuardedClient) -> list[str]:
    return [name for flags, _, name in client.list_folders() if not {flag.lower() for flag in flags} & {b"\\noselect"}]


def _said(client: GuardedClient, name: str) -> Enforcement:
    connection = client._imap  # noqa: SLF001 - imapclient makes an error of READ-ONLY
    try:
        client.select_folder(name)
    except imaplib.IMAP4.readonly:
        return Enforcement.SERVER
    except imaplib.IMAP4.abort:
        raise
    except (IMAPClientError, imaplib.IMAP4.error):
        return Enforcement.UNKNOWN
    finally:
        # Or the next command fails over what this one said.
        connection.is_readonly = True
    return Enforcement.PROGRAM
