"""A scope as a token's row keeps it, and as a person reads it."""

import json
from datetime import datetime
from functools import lru_cache
from typing import Any

from agent_reader.scope import Depth, Scope


def pack(scope: Scope) -> str:
    """Return a scope as JSON; what limits nothing is left out."""
    since = scope.received_since
    members: dict[str, Any] = {
        "accounts": scope.accounts,
        "mailboxes": scope.mailboxes,
        "receivedSince": None if since is None else since.isoformat(),
        "senders": scope.senders,
        "depth": None if scope.depth is Depth.FULL else scope.depth.value,
        "signInMail": scope.sign_in_mail or None,
    }
    return json.dumps({name: value for name, value in members.items() if value is not None}, ensure_ascii=False)


# As many as there are tokens at work; each request of one asks again.
@lru_cache(maxsize=256)
def unpack(packed: str) -> Scope:
    """Return the scope that `pack` kept. A member of a newer version is a limit that would be lost: `ValueError`."""
    members: dict[str, Any] = json.loads(packed)
    since = members.pop("receivedSince", None)
    scope = Scope(
        accounts=_tuple(members.pop("accounts", None)),
        mailboxes=_tuple(members.pop("mailboxes", None)),
        received_since=None if since is None else datetime.fromisoformat(since),
        senders=_tuple(members.pop("senders", None)),
        depth=Depth(members.pop("depth", Depth.FULL.value)),
        sign_in_mail=bool(members.pop("signInMail", False)),
    )
    if members:
        raise ValueError(f"a scope has a limit that is not known here: {min(members)[:40]}")
    return scope


def described(scope: Scope) -> str:
    """Return a scope in a few words for a person; names are as the mail server has them, so clean them for a screen."""
    words = [
        _listed("accounts", scope.accounts),
        _listed("mailboxes", scope.mailboxes),
        "" if scope.received_since is None else f"received since {scope.received_since.isoformat()}",
        _listed("from", scope.senders),
        {Depth.HEADERS: "headers only", Depth.TEXT: "no attachments", Depth.FULL: ""}[scope.depth],
        "sign-in mail too" if scope.sign_in_mail else "",
    ]
    return "; ".join(word for word in words if word) or "all mail but sign-in mail"


def _tuple(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(str(value) for value in values)


def _listed(name: str, values: tuple[str, ...] | None) -> str:
    return "" if values is None else f"{name} {', '.join(values)}"
