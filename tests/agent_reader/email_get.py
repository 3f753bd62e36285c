"""Email/get asked in a line, for tests that are of what an Email looks like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from agent_reader.query import EmailGetArguments, GetResult, email_get_as_asked
from agent_reader.query.email_get_arguments import check_asked
from agent_reader.store.snapshot import Snapshot
from shared.message import JSON


def email_get(
    snapshot: Snapshot,
    ids: Iterable[str],
    *,
    properties: Sequence[str] | None = None,
    body_properties: Sequence[str] | None = None,
    fetch_text: bool = False,
    fetch_html: bool = False,
    fetch_all: bool = False,
    max_body_value_bytes: int = 0,
) -> GetResult:
    """Answer Email/get from a snapshot, however large the answer.

    `properties` None for the RFC's default; `max_body_value_bytes` octets of UTF-8, 0 for no limit. Raises
    `QueryRefused` for a property that does not exist.
    """
    asked = EmailGetArguments(
        ids=tuple(ids),
        properties=None if properties is None else tuple(properties),
        body_properties=None if body_properties is None else tuple(body_properties),
        fetch_text=fetch_text,
        fetch_html=fetch_html,
        fetch_all=fetch_all,
        max_body_value_bytes=max_body_value_bytes,
    )
    check_asked(asked.properties or (), asked.body_properties or ())
    answers: list[dict[str, JSON]] = []
    not_found = email_get_as_asked(snapshot, asked, lambda email, _: answers.append(msgspec.json.decode(email)))
    return GetResult(tuple(answers), not_found, snapshot.state)
