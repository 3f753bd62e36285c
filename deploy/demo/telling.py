"""Tells, live and line by line, what becomes of the agent's proposals: as the agent itself can see it."""

import httpx

_SAYS = {
    "pending": "waits for a person",
    "approved": "a person approved it; the executor moves it",
    "applying": "is being moved",
    "applied": "was moved",
    "rejected": "a person rejected it; nothing was moved",
    "undoing": "a person wants it back",
    "undone": "was moved back",
    "withdrawn": "was withdrawn",
    "expired": "nobody decided in time",
    "stale": "the message is not there any more, or not the same",
    "failed": "the mail server refused",
    "doubtful": "the answer got lost; the executor looks where the message lies",
    "undo_doubtful": "the answer got lost; the executor looks where the message lies",
}
# Between two steps of the worker; not worth a line each.
_PASSING = {"applying", "undoing"}


class Teller:
    """Follows the proposals of one agent through intake."""

    def __init__(self, intake_url: str, token: str, proposals: dict[str, dict[str, str]]) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=intake_url, headers=headers, timeout=30, trust_env=False)
        self._subjects = {proposal["id"]: proposal["subject"] for proposal in proposals.values()}
        self._states: dict[str, str] = {}

    def tell_changes(self) -> None:
        """Print a line for each proposal whose state changed since the last call."""
        page = self._client.get("/v1/proposals", params={"limit": 50}).raise_for_status().json()
        for view in reversed(page["proposals"]):
            state, before = view["state"], self._states.get(view["id"])
            if state == before:
                continue
            self._states[view["id"]] = state
            if state not in _PASSING and not (before is None and state == "pending"):
                reason = (view["decision"] or {}).get("reason")
                said = f' ("{reason}")' if reason and state == "rejected" else ""
                print(f"  {state:<9} {self._subjects.get(view['id'], view['id'])!a}: {_SAYS[state]}{said}", flush=True)

    def state_of(self, proposal_id: str) -> str | None:
        """Return the state that was told last."""
        return self._states.get(proposal_id)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
