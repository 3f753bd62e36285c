"""A small scripted agent: plain JMAP to read, plain HTTP to propose, and two tokens. No model.

`python -m deploy.demo.agent` reads one JSON object from standard input ({"reader", "intake": addresses, "readerToken",
"proposerToken"}), tells what it does, and ends its output with one JSON line: its proposals by slug.
"""

import json
import sys
from dataclasses import dataclass
from typing import Any, Final

import httpx

ACCOUNT: Final = "shop"
QUEUE: Final = "support"
_USING: Final = ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"]


@dataclass(frozen=True, slots=True)
class Errand:
    """What to look for, and what to propose for it; `told` where a mail gave the order."""

    slug: str
    search: dict[str, Any]
    to: str
    reason: str
    told: bool = False


ERRANDS: Final = (
    Errand("receipt", {"subject": '"Receipt for order 4466"'}, "processed", "A receipt: paid, nothing is left to do."),
    Errand(
        "delivered-4466",
        {"subject": "Delivered", "text": "4466"},
        "processed",
        "The parcel of order 4466 was delivered.",
    ),
    Errand("angry-customer", {"from": "hartwell", "text": "authority"}, "escalate", "He wants to be called today."),
    Errand("allergy", {"text": "allergic almonds"}, "escalate", "A question about an allergy needs a person."),
    Errand("hostile-plain", {"subject": '"settled, please file"'}, "processed", "The mail says to file it.", told=True),
)


class Agent:
    """Reads with one token and proposes with the other."""

    def __init__(self, addresses: dict[str, str]) -> None:
        self._reader = _client(addresses["reader"], addresses["readerToken"])
        self._intake = _client(addresses["intake"], addresses["proposerToken"])

    def find_and_read(self, search: dict[str, Any]) -> dict[str, Any]:
        """Return the newest Email that matches: one request, a query and a get that refers to it (RFC 8620 §3.7)."""
        calls = [
            ["Email/query", {"accountId": ACCOUNT, "filter": search, "limit": 1}, "query"],
            [
                "Email/get",
                {
                    "accountId": ACCOUNT,
                    "#ids": {"resultOf": "query", "name": "Email/query", "path": "/ids"},
                    "properties": ["id", "subject", "from", "preview", "textBody", "bodyValues"],
                    "fetchTextBodyValues": True,
                },
                "get",
            ],
        ]
        answer = self._reader.post("/jmap/api", json={"using": _USING, "methodCalls": calls}).raise_for_status()
        name, got, _ = answer.json()["methodResponses"][1]
        if name != "Email/get" or not got["list"]:
            raise SystemExit(f"the agent found nothing for {search}: {answer.text}")
        email = got["list"][0]
        assert isinstance(email, dict)
        return email

    def propose(self, email_id: str, to: str, reason: str) -> str:
        """Propose the one thing there is, and return the proposal's id."""
        body = {"emailId": email_id, "from": "incoming", "to": to, "reason": reason, "queue": QUEUE}
        answer = self._intake.post("/v1/proposals", json=body).raise_for_status()
        return str(answer.json()["id"])

    def close(self) -> None:
        """Close both connections."""
        self._reader.close()
        self._intake.close()


def _client(address: str, token: str) -> httpx.Client:
    # Everything is on this machine: no proxy of it is asked.
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=address, headers=headers, timeout=30, trust_env=False)


def main() -> None:
    """Go through the errands once."""
    agent = Agent(json.load(sys.stdin))
    proposals = {}
    for errand in ERRANDS:
        email = agent.find_and_read(errand.search)
        why = "because the mail itself says so" if errand.told else errand.reason
        print(f"  agent   read   {email['subject']!a}", flush=True)
        proposals[errand.slug] = {
            "id": agent.propose(email["id"], errand.to, errand.reason),
            "emailId": email["id"],
            "subject": email["subject"],
        }
        print(f"  agent   asks   move it to {errand.to}: {why}", flush=True)
    agent.close()
    print(json.dumps(proposals), flush=True)


if __name__ == "__main__":
    main()
