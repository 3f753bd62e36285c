"""The methods that find mail and tell what changed: from untrusted arguments to one question, and back to JSON."""

from datetime import datetime
from typing import Any, Final

from agent_reader.jmap.asking import Asking
from agent_reader.jmap.capabilities import AGENT
from agent_reader.jmap.reads import Answerer, Arguments, Found, check_number
from agent_reader.query import (
    QueryResult,
    changes,
    email_query,
    email_query_changes,
    leaves_texts_out,
    mailbox_query,
    mailbox_query_changes,
    parse_changes,
    parse_email_query,
    parse_email_query_changes,
    parse_mailbox_query,
    parse_mailbox_query_changes,
    parse_snippets,
    search_snippets,
)
from agent_reader.query.changes import QueryChanges
from agent_reader.query.errors import TIME_LIMIT
from agent_reader.store.changes import DataType
from agent_reader.store.scoped import Hidden
from agent_reader.store.status import Coverage, covers_all, read_coverage

# RFC 8621 §2.2: what `updatedProperties` names where nothing but counts changed.
_COUNTS: Final = ("totalEmails", "unreadEmails", "totalThreads", "unreadThreads")


def answer_email_query(asking: Asking, arguments: Arguments) -> Found:
    """Answer Email/query (RFC 8621 §4.4); a page is never longer than what one /get gives."""
    asked = parse_email_query(arguments)
    found = email_query(
        asking.snapshot, asked, max_limit=asking.limits.max_objects_in_get, is_over=asking.patience.is_over
    )
    answer = _queried(asking, found)
    if found.total_not_computed:
        answer["totalNotComputed"] = {
            "type": TIME_LIMIT,
            "description": "Counting took too long and was ended; the ids are whole. Narrow the search for a total.",
        }
    return answer | _coverage(asking, texts_left_out=found.texts_left_out)


def answer_mailbox_query(asking: Asking, arguments: Arguments) -> Found:
    """Answer Mailbox/query (RFC 8621 §2.3)."""
    asked = parse_mailbox_query(arguments)
    found = mailbox_query(asking.snapshot, asked, max_limit=asking.limits.max_objects_in_get)
    return _queried(asking, found) | _coverage(asking)


def answer_email_query_changes(asking: Asking, arguments: Arguments) -> Found:
    """Answer Email/queryChanges (RFC 8621 §4.5)."""
    return _query_changes(
        asking, email_query_changes(asking.snapshot, parse_email_query_changes(arguments), asking.patience.is_over)
    )


def answer_mailbox_query_changes(asking: Asking, arguments: Arguments) -> Found:
    """Answer Mailbox/queryChanges (RFC 8621 §2.4)."""
    return _query_changes(asking, mailbox_query_changes(asking.snapshot, parse_mailbox_query_changes(arguments)))


def answer_changes(data_type: DataType) -> Answerer:
    """Return what answers /changes of a type (RFC 8620 §5.2)."""

    def answer(asking: Asking, arguments: Arguments) -> Found:
        found = changes(asking.snapshot, data_type, parse_changes(arguments))
        whole: Found = {
            "accountId": asking.snapshot.account_id,
            "oldState": found.old_state,
            "newState": found.new_state,
            "hasMoreChanges": found.has_more,
            "created": found.created,
            "updated": found.updated,
            "destroyed": found.destroyed,
        }
        if data_type is DataType.MAILBOX:
            whole["updatedProperties"] = _COUNTS if found.counts_only else None
        return whole

    return answer


def answer_snippets(asking: Asking, arguments: Arguments) -> Found:
    """Answer SearchSnippet/get (RFC 8621 §5.1)."""
    asked = parse_snippets(arguments)
    check_number("emailIds", asked.email_ids, asking.limits.max_objects_in_get)
    found = search_snippets(asking.snapshot, asked, asking.patience.is_over)
    return {
        "accountId": asking.snapshot.account_id,
        "list": found.list,
        "notFound": found.not_found or None,
    }


def _queried(asking: Asking, found: QueryResult) -> Found:
    answer: Found = {
        "accountId": asking.snapshot.account_id,
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


def _query_changes(asking: Asking, found: QueryChanges) -> Found:
    answer: Found = {
        "accountId": asking.snapshot.account_id,
        "oldQueryState": found.old_query_state,
        "newQueryState": found.new_query_state,
        "removed": found.removed,
        "added": [{"id": each, "index": index} for each, index in found.added],
    }
    if found.total is not None:
        answer["total"] = found.total
    return answer


def _coverage(asking: Asking, *, texts_left_out: bool = False) -> Found:
    """What the index covers: always where it is not whole, since an answer from it is not; else to who knows it."""
    snapshot = asking.snapshot
    if AGENT not in asking.using and not texts_left_out and covers_all(snapshot.connection):
        return {}
    texts_left_out = texts_left_out or leaves_texts_out(snapshot, asking.patience.is_over)
    covered = _coverage_json(read_coverage(snapshot.connection), snapshot.hidden())
    return {"coverage": covered | {"isTextComplete": not texts_left_out}}


def _coverage_json(covered: Coverage, hidden: Hidden) -> dict[str, Any]:
    return {
        # How many Emails the token does not see: all that is told of them.
        "hidden": {"outsideScope": hidden.outside, "signInMail": hidden.withheld},
        "isComplete": covered.is_complete,
        "unreadMailboxIds": covered.unread_mailbox_ids,
        "setAside": covered.set_aside,
        "asOf": _utc_date(covered.settled_at),
        "failure": covered.failure_code,
        "behind": [
            {"id": each.id, "asOf": _utc_date(each.looked_at), "failure": each.failure_code} for each in covered.behind
        ],
    }


def _utc_date(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%Y-%m-%dT%H:%M:%SZ}"
