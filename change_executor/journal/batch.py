"""Many acts in one transaction, one after the other; what one of them did wrong is taken back alone.

A savepoint around each keeps every page as it was before the act, a fifth of what an act costs; and hardly one fails
after it has written anything. So they go without at first; where one does fail so, all is taken back and done again,
each in a savepoint of its own.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from change_executor.journal.engine import machine_errors, still_in_transaction
from change_executor.journal.group import Group, alone

_Act = TypeVar("_Act")
_Found = TypeVar("_Found")


def each_of(group: Group, acts: Sequence[_Act], perform: Callable[[_Act], _Found]) -> list[_Found | Exception]:
    """Perform acts in a group's transaction, some of them twice; return what each came to, or what it raised.

    Raises `JournalUnavailable` where the transaction is gone, and with it what others of the group wrote.
    """
    # What others wrote in this transaction cannot be taken back with what went wrong here.
    if not group.members:
        ended = _without_savepoints(group, acts, perform)
        if ended is not None:
            return ended
        group.begin_again()
    return [_alone(group, act, perform) for act in acts]


def _without_savepoints(
    group: Group, acts: Sequence[_Act], perform: Callable[[_Act], _Found]
) -> list[_Found | Exception] | None:
    """What each came to, or None where one of them failed and left something behind."""
    ended: list[_Found | Exception] = []
    for act in acts:
        changes = group.driver.total_changes
        try:
            with machine_errors():
                ended.append(perform(act))
        except Exception as error:  # noqa: BLE001 - it is for whoever handed in the act
            ended.append(error)
            if group.driver.in_transaction and group.driver.total_changes != changes:
                return None
        except BaseException:
            # It ends the thread, so that nobody is left who could do it again.
            group.transaction.rollback()
            raise
        still_in_transaction(group.driver)
    return ended


def _alone(group: Group, act: _Act, perform: Callable[[_Act], _Found]) -> _Found | Exception:
    try:
        with machine_errors(), alone(group.driver):
            return perform(act)
    except Exception as error:  # noqa: BLE001 - it is for whoever handed in the act
        # A savepoint outside of the transaction would begin one, and commit it.
        still_in_transaction(group.driver)
        return error
