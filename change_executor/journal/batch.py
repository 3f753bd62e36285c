"""Many acts in one transaction, one after the other; what one of them did wrong is taken back alone.

A savepoint around each keeps every page as it was before the act, a tenth of what an act costs; and hardly one fails
after it has written anything. So they go without at first; where one does fail so, all is taken back and done again,
each in a savepoint of its own.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from sqlalchemy import Connection

from change_executor.journal.engine import machine_errors, still_in_transaction
from change_executor.journal.group import Group, GroupCommit, alone

_Act = TypeVar("_Act")
_Found = TypeVar("_Found")
_Perform = Callable[[Connection, _Act], _Found]


def write_all(turns: GroupCommit, acts: Sequence[_Act], perform: _Perform[_Act, _Found]) -> list[_Found | Exception]:
    """Perform acts in a turn, some of them twice; return what each came to, or raised, once it is committed.

    Raises `JournalUnavailable` where nothing of it could be committed.
    """
    with turns.turn_of_many() as group, _all_or_none(group):
        ended = _at_first(group, acts, perform)
        return _anew(group, acts, perform) if ended is None else ended


def begin_all(
    turns: GroupCommit, acts: Sequence[_Act], perform: _Perform[_Act, _Found]
) -> Callable[[], list[_Found | Exception]] | None:
    """Perform acts as above, waiting for nobody; return what has to be called, by any thread, to commit them.

    None where one would have to wait: then nothing was performed.
    """
    ended: list[_Found | Exception] | None = []
    refused: BaseException | None = None
    with turns.turn_at_once() as group:
        if group is None:
            return None
        try:
            with machine_errors(), _all_or_none(group):
                ended = _at_first(group, acts, perform)
        except BaseException as error:  # noqa: BLE001 - it is raised by whoever commits
            refused = error

    def commit() -> list[_Found | Exception]:
        with turns.ending(group), _all_or_none(group):
            if refused is not None:
                raise refused
            # To begin again may be to wait for the lock.
            return _anew(group, acts, perform) if ended is None else ended

    return commit


@contextmanager
def _all_or_none(group: Group) -> Iterator[None]:
    try:
        yield
    except BaseException:
        # Nobody hears what any of them came to.
        with suppress(sqlite3.Error):
            group.driver.rollback()
        raise


def _at_first(group: Group, acts: Sequence[_Act], perform: _Perform[_Act, _Found]) -> list[_Found | Exception] | None:
    # What others wrote in this transaction could not be taken back with what went wrong here.
    if group.members:
        return [_alone(group, act, perform) for act in acts]
    return _without_savepoints(group, acts, perform)


def _anew(group: Group, acts: Sequence[_Act], perform: _Perform[_Act, _Found]) -> list[_Found | Exception]:
    group.begin_again()
    return [_alone(group, act, perform) for act in acts]


def _without_savepoints(
    group: Group, acts: Sequence[_Act], perform: _Perform[_Act, _Found]
) -> list[_Found | Exception] | None:
    """What each came to, or None where one of them failed and left something behind."""
    ended: list[_Found | Exception] = []
    for act in acts:
        changes = group.driver.total_changes
        try:
            with machine_errors():
                ended.append(perform(group.connection, act))
        except Exception as error:  # noqa: BLE001 - it is for whoever handed in the act
            ended.append(error)
            if group.driver.in_transaction and group.driver.total_changes != changes:
                return None
        still_in_transaction(group.driver)
    return ended


def _alone(group: Group, act: _Act, perform: _Perform[_Act, _Found]) -> _Found | Exception:
    try:
        with machine_errors(), alone(group.driver):
            return perform(group.connection, act)
    except Exception as error:  # noqa: BLE001 - it is for whoever handed in the act
        # A savepoint outside of the transaction would begin one, and commit it.
        still_in_transaction(group.driver)
        return error
