"""The extension `urn:x-mailwarrant:agent` at this door: its limits in the session, and Email/get with it.

docs/jmap-extension.md is its text; agent_reader/query/agent_email_get.py does the work.
"""

from collections.abc import Mapping
from typing import Any, Final

from agent_reader.jmap.asking import Asking
from agent_reader.jmap.capabilities import AGENT
from agent_reader.jmap.errors import ErrorType, MethodError
from agent_reader.query import BlobUnavailable, find_blob
from agent_reader.query.agent_email_get import (
    LEAST_TOTAL_OCTETS,
    MAX_MESSAGES_FETCHED,
    AgentEmailGetArguments,
    AgentGetResult,
    agent_email_get,
)
from agent_reader.query.agent_properties import AGENT_PROPERTIES, MAX_HIDDEN_CHARACTERS, MAX_HIDDEN_TEXTS, UNAVAILABLE
from agent_reader.query.email_get import Put
from agent_reader.query.windows import LEAST_WINDOW_OCTETS
from agent_reader.store.snapshot import StoredEmail
from shared.message import Message, parse
from shared.message.attachments import MAX_ATTACHMENT_CHARACTERS

_ARGUMENTS: Final = ("maxTotalBytes", "windowStart")

# What accountCapabilities says of it.
ACCOUNT_LIMITS: Final[Mapping[str, Any]] = {
    "emailProperties": list(AGENT_PROPERTIES),
    "emailGetArguments": list(_ARGUMENTS),
    "emailParseArguments": list(_ARGUMENTS),
    "minTotalBytes": LEAST_TOTAL_OCTETS,
    "minWindowBytes": LEAST_WINDOW_OCTETS,
    "maxAttachmentCharacters": MAX_ATTACHMENT_CHARACTERS,
    "maxMessagesFetched": MAX_MESSAGES_FETCHED,
    "maxHiddenTexts": MAX_HIDDEN_TEXTS,
    "maxHiddenCharacters": MAX_HIDDEN_CHARACTERS,
}


def check_not_used(arguments: Mapping[str, Any]) -> None:
    """Refuse what only the extension has, where a request does not name it: the words say how to."""
    properties = arguments.get("properties")
    asked = [*arguments, *(properties if isinstance(properties, list) else ())]
    found = next((name for name in asked if name in AGENT_PROPERTIES or name in _ARGUMENTS), None)
    if found is not None:
        argument = found if found in _ARGUMENTS else "properties"
        raise MethodError(
            ErrorType.INVALID_ARGUMENTS, f"`{found}` needs {AGENT} in `using` (docs/jmap-extension.md).", (argument,)
        )


def get_with_extension(asking: Asking, asked: AgentEmailGetArguments, put: Put) -> AgentGetResult:
    """Answer Email/get with the extension; each Email goes to `put`."""
    return agent_email_get(
        asking.snapshot, asked, lambda email: _fetched(asking, email), put, asking.patience.go_on, asking.readings
    )


def _fetched(asking: Asking, email: StoredEmail) -> Message | str:
    try:
        # The mail server may take its time: meanwhile others may read.
        with asking.snapshot.room.stepped_out(email.size, asking.patience.go_on):
            found = find_blob(asking.snapshot, str(email.summary["blobId"]))
            blob = None if found is None else asking.blobs.open(asking.snapshot.account_id, found)
    except BlobUnavailable:
        return UNAVAILABLE
    if blob is None:
        return UNAVAILABLE
    with blob:
        return parse(blob.whole())
