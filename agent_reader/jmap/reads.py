"""The methods that show mail: from untrusted arguments to one question, and from its answer to JMAP's JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from agent_reader.jmap.agent_extension import check_not_used, get_with_extension
from agent_reader.jmap.asking import Asking
from agent_reader.jmap.capabilities import AGENT
from agent_reader.jmap.emails_written import EmailsWritten
from agent_reader.jmap.errors import ErrorType, MethodError
from agent_reader.query import (
    EmailQueryArguments,
    GetResult,
    email_get_as_asked,
    email_query,
    mailbox_get,
    parse_agent_email_get,
    parse_email_get,
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
        ids = [email.thread_id for email in snapshot.each_email(firsts)]
    return _got(snapshot, thread_get(snapshot, ids, properties))


def answer_email_get(asking: Asking, arguments: Arguments) -> Found:
    """Answer Email/get (RFC 8621 §4.2), with the extension for agents where the request names it."""
    snapshot = asking.snapshot
    listed = EmailsWritten(asking, "list", "[]")
    rest: Found = {"accountId": snapshot.account_id, "state": snapshot.state}
    if AGENT in asking.using:
        extended = parse_agent_email_get(arguments)
        plain = replace(extended.plain, ids=_ids_of_emails(asking, extended.plain.ids))
        found = get_with_extension(asking, replace(extended, plain=plain), listed.put)
        rest |= {"notFound": found.not_found, "leftOut": found.left_out}
    else:
        check_not_used(arguments)
        asked = parse_email_get(arguments)
        asked = replace(asked, ids=_ids_of_emails(asking, asked.ids))
        rest["notFound"] = email_get_as_asked(snapshot, asked, listed.put, asking.patience.go_on)
    return listed.found(rest)


def _ids_of_emails(asking: Asking, ids: tuple[str, ...] | None) -> tuple[str, ...]:
    most = asking.limits.max_objects_in_get
    if ids is None:
        ids = _all_or_too_large(asking.snapshot, most, by_thread=False)
    check_number("ids", ids, most)
    return ids


def _get_arguments(arguments: Arguments, max_objects: int) -> tuple[list[str] | None, list[str] | None]:
    unknown = sorted(arguments.keys() - _GET_ARGUMENTS)
    if unknown:
        raise MethodError(
            ErrorType.INVALID_ARGUMENTS,
            f"This method has no such argument; it has {', '.join(sorted(_GET_ARGUMENTS))}.",
            (unknown[0],),
        )
    ids = _strings("ids", arguments.get("ids"))
    check_number("ids", ids or (), max_objects)
    return ids, _strings("properties", arguments.get("properties"))


def _strings(name: str, untrusted: object) -> list[str] | None:
    if untrusted is None:
        return None
    if not isinstance(untrusted, list) or not all(isinstance(each, str) for each in untrusted):
        raise MethodError(ErrorType.INVALID_ARGUMENTS, f"`{name}` is neither null nor an array of strings.", (name,))
    return untrusted


def check_number(name: str, ids: Sequence[str], max_objects: int) -> None:
    """Raise requestTooLarge for more ids than maxObjectsInGet."""
    if len(ids) > max_objects:
        raise MethodError(
            ErrorType.REQUEST_TOO_LARGE,
            f"`{name}` has more than maxObjectsInGet ({max_objects}). Ask in parts.",
            (name,),
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
