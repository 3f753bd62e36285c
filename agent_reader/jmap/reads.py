"""The methods that show mail: from untrusted arguments to one question, and from its answer to JMAP's JSON."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agent_reader.jmap.asking import Asking
from agent_reader.jmap.errors import ErrorType, MethodError
from agent_reader.query import (
    EmailQueryArguments,
    GetResult,
    email_get,
    email_query,
    mailbox_get,
    parse_email_get,
    parse_email_query,
    thread_get,
)
from agent_reader.store.snapshot import Snapshot

Arguments = Mapping[str, Any]
Found = dict[str, Any]

_GET_ARGUMENTS: Final = frozenset({"accountId", "ids", "properties"})


def answer_mailbox_get(asking: Asking, arguments: Arguments) -> Found:
    """Answer Mailbox/get (RFC 8621 §2.1); `ids` null for all of them."""
    snapshot = asking.snapshot
    ids, properties = _get_arguments(arguments, asking.limits.max_objects_in_get)
    return _got(snapshot, mailbox_get(snapshot, ids, properties))


def answer_thread_get(asking: Asking, arguments: Arguments) -> Found:
    """Answer Thread/get (RFC 8621 §3.1)."""
    snapshot = asking.snapshot
    ids, properties = _get_arguments(arguments, asking.limits.max_objects_in_get)
    if ids is None:
        firsts = _all_or_too_large(snapshot, asking.limits.max_objects_in_get, by_thread=True)
        emails = email_get(snapshot, firsts, properties=("threadId",))
        ids = [str(email["threadId"]) for email in emails.list]
    return _got(snapshot, thread_get(snapshot, ids, properties))


def answer_email_get(asking: Asking, arguments: Arguments) -> Found:
    """Answer Email/get (RFC 8621 §4.2)."""
    snapshot = asking.snapshot
    asked = parse_email_get(arguments)
    ids: Sequence[str] | None = asked.ids
    if ids is None:
        ids = _all_or_too_large(snapshot, asking.limits.max_objects_in_get, by_thread=False)
    _check_number(ids, asking.limits.max_objects_in_get)
    return _got(
        snapshot,
        email_get(
            snapshot,
            ids,
            properties=asked.properties,
            body_properties=asked.body_properties,
            fetch_text=asked.fetch_text,
            fetch_html=asked.fetch_html,
            fetch_all=asked.fetch_all,
            max_body_value_bytes=asked.max_body_value_bytes,
        ),
    )


def answer_email_query(asking: Asking, arguments: Arguments) -> Found:
    """Answer Email/query (RFC 8621 §4.4); a page is never longer than what one /get gives."""
    snapshot = asking.snapshot
    found = email_query(snapshot, parse_email_query(arguments), max_limit=asking.limits.max_objects_in_get)
    answer: Found = {
        "accountId": snapshot.account_id,
        "queryState": found.query_state,
        "canCalculateChanges": found.can_calculate_changes,
        "position": found.position,
        "ids": found.ids,
    }
    # RFC 8620 §5.5: each only where it was asked for, or set by the server.
    if found.total is not None:
        answer["total"] = found.total
    if found.limit is not None:
        answer["limit"] = found.limit
    return answer


def _get_arguments(arguments: Arguments, max_objects: int) -> tuple[list[str] | None, list[str] | None]:
    unknown = sorted(arguments.keys() - _GET_ARGUMENTS)
    if unknown:
        raise MethodError(
            ErrorType.INVALID_ARGUMENTS,
            f"This method has no such argument; it has {', '.join(sorted(_GET_ARGUMENTS))}.",
            (unknown[0],),
        )
    ids = _strings("ids", arguments.get("ids"))
    _check_number(ids or (), max_objects)
    return ids, _strings("properties", arguments.get("properties"))


def _strings(name: str, untrusted: object) -> list[str] | None:
    if untrusted is None:
        return None
    if not isinstance(untrusted, list) or not all(isinstance(each, str) for each in untrusted):
        raise MethodError(ErrorType.INVALID_ARGUMENTS, f"`{name}` is neither null nor an array of strings.", (name,))
    return untrusted


def _check_number(ids: Sequence[str], max_objects: int) -> None:
    if len(ids) > max_objects:
        raise MethodError(
            ErrorType.REQUEST_TOO_LARGE, f"`ids` has more than maxObjectsInGet ({max_objects}). Ask in parts."
        )


def _all_or_too_large(snapshot: Snapshot, max_objects: int, *, by_thread: bool) -> tuple[str, ...]:
    """RFC 8620 §5.1: null asks for all, where all are no more than one answer may hold."""
    one_more = EmailQueryArguments(limit=max_objects + 1, collapse_threads=by_thread)
    ids = email_query(snapshot, one_more, max_limit=max_objects + 1).ids
    if len(ids) > max_objects:
        raise MethodError(
            ErrorType.REQUEST_TOO_LARGE,
            f"There are more than maxObjectsInGet ({max_objects}). Give `ids`, e.g. from Email/query.",
        )
    return ids


def _got(snapshot: Snapshot, result: GetResult) -> Found:
    return {
        "accountId": snapshot.account_id,
        "state": result.state,
        "list": result.list,
        "notFound": result.not_found,
    }


Answerer = Callable[[Asking, Arguments], Found]
