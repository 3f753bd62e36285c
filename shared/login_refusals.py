"""What providers mean when they refuse a login: their words, and what the operator does about each.

The words are matched without letter case. Sources: the providers' own help pages and the texts their servers send.
"""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LoginRefusal:
    """One kind of refusal: what it means, what mends it, and whether waiting may help."""

    meaning: str
    fix: str
    retryable: bool = False


_KNOWN: Final = (
    (
        # RFC 7628 §3.2.2, and what is said to XOAUTH2: a JSON object.
        r'"status" *: *"(4[0-9][0-9]|invalid_token|insufficient_scope|invalid_request)"',
        LoginRefusal(
            "the access token is not accepted",
            "Sign in anew as that user: `oauth login`; mend `scope` and the registration if it stays.",
        ),
    ),
    (
        r"basic ?auth(entication)?( is)? (disabled|blocked)|LOGINDISABLED|logondenied-basicauth",
        LoginRefusal("basic authentication is disabled here", "Use `oauth` instead of a password: docs/providers.md."),
    ),
    (
        (
            r"application[- ]specific password|app(lication)?[- ]?password (is )?required|use .{0,20}app password"
            r"|InvalidSecondFactor|generate .{0,20}password"
        ),
        LoginRefusal(
            "the provider wants an application password, not the account's own",
            "Make one in the account's security settings, and put it into the secret.",
        ),
    ),
    (
        (
            r"not enabled for IMAP|IMAP (access )?(is )?(disabled|not enabled|turned off|switched off)"
            r"|enable IMAP|IMAP4? .{0,30}(disabled|not allowed) for"
        ),
        LoginRefusal("IMAP is switched off for this account", "Switch it on in the account's or domain's settings."),
    ),
    (
        r"web ?login required|log in via your web browser|verify .{0,30}account|suspicious",
        LoginRefusal(
            "the provider wants the owner to confirm this sign-in",
            "Sign in once in a browser and confirm it, or use an application password.",
        ),
    ),
    (
        (
            r"too many (simultaneous|concurrent)? ?(connections|sessions|logins)|maximum number of connections"
            r"|try again later|temporar|throttl|\[LIMIT\]|\[UNAVAILABLE\]|\[INUSE\]|rate limit|overquota|bandwidth"
        ),
        LoginRefusal(
            "the provider asks to wait", "It is tried again by itself, more seldom each time.", retryable=True
        ),
    ),
    (
        r"\[EXPIRED\]|password .{0,20}expired",
        LoginRefusal("the password has run out", "Set a new one, and put it into the secret."),
    ),
    (
        r"not connected|license|licence|mailbox .{0,30}(not found|does not exist|disabled)",
        LoginRefusal(
            "the login is good, but there is no mailbox for it",
            "Mend `user` (a shared mailbox's exact name), the licence, or the consent's scope.",
        ),
    ),
)
_PATTERNS: Final = tuple((re.compile(words, re.IGNORECASE), refusal) for words, refusal in _KNOWN)

_UNKNOWN: Final = LoginRefusal(
    "the server gives no reason that is known",
    "Mend `user` or the secret; some providers want an application password or `oauth`.",
)


def login_refusal(server_text: str) -> LoginRefusal:
    """Return what a server's refusal of a login means; any text gives a value."""
    return next((refusal for pattern, refusal in _PATTERNS if pattern.search(server_text[:1000])), _UNKNOWN)
