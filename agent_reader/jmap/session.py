"""The Session object (RFC 8620 §2): what an agent may see, and where to ask."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from agent_reader.access import Agent
from agent_reader.door.limits import Limits
from agent_reader.jmap.agent_extension import ACCOUNT_LIMITS
from agent_reader.jmap.capabilities import AGENT, CORE, MAIL, MAX_MAILBOX_NAME_OCTETS, SUBMISSION
from agent_reader.query import COLLATIONS


@dataclass(frozen=True, slots=True)
class ServedAccount:
    """An account as the session lists it; `name` is for people."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class SessionMaker:
    """Makes Session objects; `sort_options` are what Email/query can sort by."""

    accounts: Sequence[ServedAccount]
    sort_options: Sequence[str]
    limits: Limits

    def session(self, agent: Agent, base_url: str) -> dict[str, Any]:
        """Return the session of an agent who came by this address (no slash at its end).

        Its state is a digest of all the rest, so it changes when, and only when, something else does.
        """
        accounts = [account for account in self.accounts if agent.scope.allows_account(account.id)]
        session = {
            "capabilities": {CORE: self._core(), MAIL: {}, SUBMISSION: {}, AGENT: {}},
            "accounts": {account.id: self._account(account) for account in accounts},
            "primaryAccounts": {MAIL: accounts[0].id} if accounts else {},
            "username": agent.name,
            "apiUrl": f"{base_url}/jmap/api",
            "downloadUrl": f"{base_url}/jmap/download/{{accountId}}/{{blobId}}/{{name}}?type={{type}}",
            "uploadUrl": f"{base_url}/jmap/upload/{{accountId}}/",
            "eventSourceUrl": f"{base_url}/jmap/eventsource?types={{types}}&closeafter={{closeafter}}&ping={{ping}}",
        }
        digest = hashlib.sha256(msgspec.json.encode(session, order="deterministic")).hexdigest()
        # 64 bits: nobody attacks it, and it stays short in a context.
        return session | {"state": digest[:16]}

    def _core(self) -> dict[str, Any]:
        # Nothing can be uploaded or set (the profile for AI agents).
        return {
            "maxSizeUpload": 0,
            "maxConcurrentUpload": 0,
            "maxSizeRequest": self.limits.max_size_request,
            "maxConcurrentRequests": self.limits.max_concurrent_requests,
            "maxCallsInRequest": self.limits.max_calls_in_request,
            "maxObjectsInGet": self.limits.max_objects_in_get,
            "maxObjectsInSet": 0,
            "collationAlgorithms": list(COLLATIONS),
        }

    def _account(self, account: ServedAccount) -> dict[str, Any]:
        mail = {
            "maxMailboxesPerEmail": None,
            "maxMailboxDepth": None,
            "maxSizeMailboxName": MAX_MAILBOX_NAME_OCTETS,
            "maxSizeAttachmentsPerEmail": 0,
            "emailQuerySortOptions": list(self.sort_options),
            "mayCreateTopLevelMailbox": False,
        }
        return {
            "name": account.name,
            "isPersonal": True,
            "isReadOnly": True,
            # Nothing of the others works for an account here (RFC 8620 §2).
            "accountCapabilities": {MAIL: mail, AGENT: dict(ACCOUNT_LIMITS)},
        }
