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


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider by the domains of its servers; `note` is said before a login is asked for.

    `refusal` is what a refusal of a password means that gives no reason: most give none for the account's own.
    """

    domains: tuple[str, ...]
    note: str
    refusal: LoginRefusal


_MAKE_ONE: Final = "Make one in the account's security settings, and put it into the secret. If it is one: mend `user`."

_PROVIDERS: Final = (
    Provider(
        ("gmail.com", "googlemail.com"),
        "Google: an application password (with two-step verification), or `oauth` with a client of your own.",
        LoginRefusal(
            "Google takes application passwords alone, or `oauth`",
            "Make one (two-step verification comes first) and put it into the secret. If it is one: mend `user`, the "
            "whole address; a company's administrator can have switched such passwords off.",
        ),
    ),
    Provider(
        ("office365.com", "outlook.com", "office365.us", "partner.outlook.cn"),
        "Microsoft: no passwords any more; `oauth` with a registration of your own.",
        LoginRefusal("Microsoft takes no passwords any more", "Use `oauth` instead of a password: docs/providers.md."),
    ),
    Provider(
        ("yahoo.com", "aol.com"),
        "Yahoo: an application password; only the newest 10,000 messages of a folder show.",
        LoginRefusal("Yahoo and AOL take application passwords alone", _MAKE_ONE),
    ),
    Provider(
        ("mail.me.com", "icloud.com"),
        "iCloud: an app-specific password.",
        LoginRefusal(
            "iCloud takes app-specific passwords alone",
            "Make one at account.apple.com and put it into the secret. If it is one: `user` is the name before "
            "@icloud.com, or the whole address.",
        ),
    ),
    Provider(
        ("fastmail.com",),
        "Fastmail: an app password for IMAP.",
        LoginRefusal("Fastmail takes app passwords alone, made for IMAP", _MAKE_ONE),
    ),
    Provider(
        ("infomaniak.com",),
        "Infomaniak: a device password of its own for each of the two logins.",
        LoginRefusal("Infomaniak takes device passwords", _MAKE_ONE),
    ),
)

# Microsoft says OK to the login, and this to the next command: of what is wrong here, and some days of what is not.
_NOT_CONNECTED: Final = r"authenticated but not connected"
_NO_MAILBOX: Final = LoginRefusal(
    "the login is good, but there is no mailbox for it",
    "If it stays: mend `user` (a shared mailbox's exact name), the licence, or the consent's scope.",
    retryable=True,
)

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
    (_NOT_CONNECTED, _NO_MAILBOX),
    (
        r"license|licence|mailbox .{0,30}(not found|does not exist|disabled)",
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


def login_refusal(server_text: str, password_host: str = "") -> LoginRefusal:
    """Return what a server's refusal of a login means; any text gives a value.

    `password_host`: where it was a password that was refused, by a server that may say no more than that.
    """
    provider = provider_of(password_host)
    otherwise = _UNKNOWN if provider is None else provider.refusal
    return next((refusal for pattern, refusal in _PATTERNS if pattern.search(server_text[:1000])), otherwise)


def late_refusal(server_text: str) -> LoginRefusal | None:
    """Return what a server has against a login that it said OK to, None where these words say nothing of it."""
    return _NO_MAILBOX if re.search(_NOT_CONNECTED, server_text[:1000], re.IGNORECASE) else None


def provider_of(host: str) -> Provider | None:
    """Return whose server this is, None where it is nobody's that is known."""
    dotted = f".{host.lower().rstrip('.')}"
    return next((each for each in _PROVIDERS if any(dotted.endswith(f".{name}") for name in each.domains)), None)
