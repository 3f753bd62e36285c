"""Thread/get (RFC 8621 §3.1)."""

from collections.abc import Iterable, Sequence
from typing import Final

from agent_reader.query.errors import invalid
from agent_reader.query.results import GetResult
from agent_reader.store.snapshot import Snapshot
from shared.message import JSON

PROPERTIES: Final = ("id", "emailIds")


def thread_get(snapshot: Snapshot, ids: Iterable[str], properties: Sequence[str] | None = None) -> GetResult:
    """Answer Thread/get: the Emails of each Thread, oldest received first. Raises `QueryRefused`."""
    wanted = PROPERTIES if properties is None else tuple(dict.fromkeys(("id", *properties)))
    if not set(wanted) <= set(PROPERTIES):
        raise invalid("properties", f"a Thread has {', '.join(PROPERTIES)}.")
    asked = tuple(dict.fromkeys(ids))
    found = snapshot.thread_emails(asked)
    answers: list[dict[str, JSON]] = []
    for thread_id, email_ids in found.items():
        thread: dict[str, JSON] = {"id": thread_id, "emailIds": email_ids}
        answers.append({name: thread[name] for name in wanted})
    return GetResult(tuple(answers), tuple(each for each in asked if each not in found), snapshot.state)
