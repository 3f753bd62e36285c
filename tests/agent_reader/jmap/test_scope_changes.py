"""What each scope is told of a mailbox that changes: the changes of what it sees, and nothing of what is hidden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_reader.scope import Depth, Scope
from tests.agent_reader.jmap.scoped_asking import ask, got, seen
from tests.agent_reader.jmap.scoped_world import NOW, SCOPES, Letter, World, world

pytestmark = pytest.mark.anyio

KINDS = ("created", "updated", "destroyed")
TYPES = ("Email", "Thread", "Mailbox")


@dataclass(frozen=True)
class Sight:
    """What one scope sees at a moment: its states by type, its messages by number, its threads."""

    states: dict[str, str]
    messages: dict[int, tuple[tuple[str, ...], tuple[str, ...]]]
    threads: dict[str, set[int]]


async def _sight(here: World, scope: str) -> Sight:
    limits = SCOPES[scope]
    answers = await ask(here, scope, *((f"{each}/get", {"ids": []}) for each in TYPES))
    return Sight(
        {each: answer["state"] for each, (_, answer) in zip(TYPES, answers, strict=True)},
        {each.number: (each.seen_in(limits), each.flags) for each in seen(here, limits)},
        _threads_seen(here, limits),
    )


def _expected(before: dict[Any, Any], after: dict[Any, Any]) -> dict[str, set[Any]]:
    return {
        "created": after.keys() - before.keys(),
        "updated": {each for each in after.keys() & before.keys() if before[each] != after[each]},
        "destroyed": before.keys() - after.keys(),
    }


def _kinds(answer: dict[str, Any]) -> dict[str, set[Any]]:
    return {kind: set(answer[kind]) for kind in KINDS}


async def test_changes_are_those_of_what_is_seen_and_hidden_mail_makes_no_state(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        first = {scope: await _sight(here, scope) for scope in SCOPES}
        sights = dict(first)
        numbers = {each.id: each.number for each in here.mail}
        for change in CHANGES:
            change(here)
            here.settle()
            numbers |= {each.id: each.number for each in here.mail}
            for scope in SCOPES:
                before, after = sights[scope], await _sight(here, scope)
                await _check_changes(here, scope, before, after, numbers, change.__name__)
                await _check_query_changes(here, scope, before, after, numbers)
                sights[scope] = after
        for scope in SCOPES:
            await _check_steps(here, scope, first[scope], sights[scope], numbers)


async def _check_changes(
    here: World, scope: str, before: Sight, after: Sight, numbers: dict[str, int], what: str
) -> None:
    answers = await ask(here, scope, *((f"{each}/changes", {"sinceState": before.states[each]}) for each in TYPES))
    assert [f"{each}/changes" for each in TYPES] == [name for name, _ in answers], answers
    assert after.states == {each: answer["newState"] for each, (_, answer) in zip(TYPES, answers, strict=True)}
    emails, threads, boxes = (_kinds(answer) for _, answer in answers)
    expected = _expected(before.messages, after.messages)
    assert expected == {kind: {numbers[each] for each in emails[kind]} for kind in KINDS}, (scope, what)
    assert _expected(before.threads, after.threads) == threads, (scope, what)
    limits = SCOPES[scope].mailboxes
    shown = {each for name, each in here.mailbox_ids().items() if limits is None or name in limits}
    assert boxes["updated"] <= shown, (scope, what)
    assert not boxes["created"] | boxes["destroyed"]
    if any(expected.values()):
        assert before.states["Email"] != after.states["Email"], (scope, what)
    else:
        # What happens to hidden mail alone makes no state, and no change of anything.
        assert (set(), before.states) == (boxes["updated"], after.states), (scope, what)


async def _check_query_changes(here: World, scope: str, before: Sight, after: Sight, numbers: dict[str, int]) -> None:
    since = {"sinceQueryState": before.states["Email"], "calculateTotal": True}
    asked = [
        ("Email/queryChanges", since),
        ("Email/queryChanges", since | {"collapseThreads": True, "filter": {"text": "hello"}}),
        ("Mailbox/queryChanges", since),
    ]
    flat, by_thread, boxes = await ask(here, scope, *asked)
    for name, answer in (flat, by_thread, boxes):
        assert after.states["Email"] == answer.get("newQueryState"), (scope, name, answer)
    known = before.messages.keys() | after.messages.keys()
    for _, answer in (flat, by_thread):
        removed, added = ({numbers[each] for each in found} for found in (answer["removed"], _ids(answer["added"])))
        assert (True, True) == (removed <= known, added <= after.messages.keys()), scope
        if before == after:
            assert not removed | added, scope
    expected = _expected(before.messages, after.messages)
    assert expected["created"] <= {numbers[each] for each in _ids(flat[1]["added"])}
    assert expected["destroyed"] <= {numbers[each] for each in flat[1]["removed"]}
    has_words = SCOPES[scope].depth is not Depth.HEADERS
    assert (len(after.messages), len(after.threads) if has_words else 0) == (flat[1]["total"], by_thread[1]["total"])
    assert not {*boxes[1]["removed"], *_ids(boxes[1]["added"])}


def _ids(added: list[dict[str, Any]]) -> list[str]:
    return [each["id"] for each in added]


async def _check_steps(here: World, scope: str, first: Sight, last: Sight, numbers: dict[str, int]) -> None:
    """Step by step from the first state to the last: the same picture, and no step tells of what is hidden."""
    known, state = set(first.messages), first.states["Email"]
    for _ in range(100):
        answer = await got(here, scope, "Email/changes", sinceState=state, maxChanges=2)
        known = (known | {numbers[each] for each in answer["created"]}) - {
            numbers[each] for each in answer["destroyed"]
        }
        state = answer["newState"]
        if not answer["hasMoreChanges"]:
            break
    assert (set(last.messages), last.states["Email"]) == (known, state), scope


def _threads_seen(here: World, scope: Scope) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    threads = here.thread_ids()
    for letter in seen(here, scope):
        found.setdefault(threads[letter.number], set()).add(letter.number)
    return found


def _of(here: World, number: int) -> Letter:
    return next(letter for letter in here.mail if letter.number == number)


def _comes_to_secret(here: World) -> None:
    here.mail.append(Letter(20, ("Secret plans",), thread=77))
    here.put(here.mail[-1])


def _comes_to_inbox(here: World) -> None:
    here.mail.append(Letter(21, ("INBOX",), thread=77))
    here.put(here.mail[-1])


def _code_comes(here: World) -> None:
    here.mail.append(Letter(22, ("INBOX",), thread=79, is_sign_in=True))
    here.put(here.mail[-1])


def _answer_to_the_code_comes(here: World) -> None:
    here.mail.append(Letter(25, ("INBOX",), thread=79))
    here.put(here.mail[-1])


def _stranger_comes(here: World) -> None:
    here.mail.append(Letter(23, ("INBOX",), sender="mallory@other.net"))
    here.put(here.mail[-1])


def _old_comes(here: World) -> None:
    here.mail.append(Letter(24, ("Work",), at=NOW - timedelta(days=60)))
    here.put(here.mail[-1])


def _moves(number: int, source: str, target: str) -> Callable[[World], None]:
    def move(here: World) -> None:
        letter = _of(here, number)
        here.take(letter, source)
        here.put_copy(letter, target)
        letter.mailboxes = tuple(sorted({*letter.mailboxes, target} - {source}))

    return move


def _copy_leaves_secret(here: World) -> None:
    letter = _of(here, 6)
    here.take(letter, "Secret plans")
    letter.mailboxes = ("INBOX",)


def _flagged(number: int, mailbox: str, flag_name: str = "\\Flagged") -> Callable[[World], None]:
    def flag(here: World) -> None:
        letter = _of(here, number)
        letter.flags = (flag_name,)
        here.flag(letter, mailbox, flag_name)

    return flag


def _goes(number: int, *mailboxes: str) -> Callable[[World], None]:
    def go(here: World) -> None:
        letter = _of(here, number)
        for name in mailboxes:
            here.take(letter, name)
        here.mail.remove(letter)

    return go


CHANGES: tuple[Callable[[World], None], ...] = (
    _comes_to_secret,
    _comes_to_inbox,
    _code_comes,
    _answer_to_the_code_comes,
    _stranger_comes,
    _old_comes,
    _moves(1, "INBOX", "Secret plans"),
    _moves(2, "Secret plans", "INBOX"),
    _moves(10, "Work", "INBOX"),
    _copy_leaves_secret,
    _flagged(7, "Secret plans"),
    # Hidden where it lies, and of a Thread that is seen.
    _flagged(20, "Secret plans", "\\Seen"),
    _flagged(15, "INBOX"),
    _flagged(5, "INBOX"),
    _goes(25, "INBOX"),
    _goes(13, "Secret plans"),
    _goes(14, "INBOX"),
    _goes(8, "INBOX"),
    _goes(12, "INBOX", "Work"),
)
