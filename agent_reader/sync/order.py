"""In what order missing messages come in: the newest week of every mailbox before older mail of any. Pure decisions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Final

from agent_reader.imap.values import Stated
from agent_reader.sync.plan import Batch, batches

# The first look into a mailbox is short, so that every mailbox has its turn soon; later ones gain by being long.
_FIRST_SURVEY: Final = 200
_LONGEST_SURVEY: Final = 2_000


class Age(IntEnum):
    """How old a message is, coarsely: each step between mailboxes costs an EXAMINE, so there are few of them."""

    WEEK = 0
    MONTH = 1
    QUARTER = 2
    YEAR = 3
    OLDER = 4


_UP_TO: Final = {
    Age.WEEK: timedelta(days=7),
    Age.MONTH: timedelta(days=30),
    Age.QUARTER: timedelta(days=90),
    Age.YEAR: timedelta(days=365),
}


def age_of(internaldate: datetime, now: datetime) -> Age:
    """Return how old a message is; one from the future is new."""
    return next((age for age, most in _UP_TO.items() if now - internaldate <= most), Age.OLDER)


@dataclass(slots=True)
class Backlog:
    """The messages of one mailbox that are missing: `unseen` by ascending UID, `seen` with what the server states.

    UIDs grow with each message that comes in (RFC 9051 §2.3.1.1), so what is not seen yet is taken to be no newer than
    `reached`, the age of the last that was.
    """

    unseen: list[int] = field(default_factory=list)
    seen: dict[Age, dict[int, Stated]] = field(default_factory=dict)
    reached: Age = Age.WEEK
    _survey: int = _FIRST_SURVEY

    def __len__(self) -> int:
        return len(self.unseen) + sum(map(len, self.seen.values()))

    @property
    def age(self) -> Age:
        """The age of what comes next."""
        ages = list(self.seen)
        return min([*ages, self.reached] if self.unseen else ages, default=Age.OLDER)

    @property
    def is_to_be_surveyed(self) -> bool:
        """Whether the server has to be asked before the next batch can be chosen."""
        # What is not seen may be as new as what is, and no newer: that is in no hurry, and each that is seen takes
        # memory.
        return bool(self.unseen) and (not self.seen or self.reached < min(self.seen))

    def to_survey(self) -> list[int]:
        """Take the newest UIDs that nothing is known of."""
        uids = self.unseen[-self._survey :][::-1]
        del self.unseen[-self._survey :]
        self._survey = min(_LONGEST_SURVEY, 2 * self._survey)
        return uids

    def surveyed(self, uids: Sequence[int], stated: Mapping[int, Stated], now: datetime) -> None:
        """Take note of what the server states of these; one that it states nothing of is gone, or comes last."""
        for uid in uids:
            each = stated.get(uid, Stated(None, None, None))
            age = Age.OLDER if each.internaldate is None else age_of(each.internaldate, now)
            self.seen.setdefault(age, {})[uid] = each
        known = [stated[uid].internaldate for uid in uids if uid in stated]
        dates = [date for date in known if date is not None]
        # The oldest of them, but by UID: one old message that was moved here says nothing of the others.
        if dates:
            self.reached = max(self.reached, age_of(dates[-1], now))

    def drop(self, uids: Iterable[int]) -> None:
        """These are no longer missing."""
        for uid in uids:
            for age in [age for age, of_age in self.seen.items() if of_age.pop(uid, None) is not None]:
                if not self.seen[age]:
                    del self.seen[age]

    def next_batch(self, tried: Mapping[int, int], most_messages: int) -> tuple[Batch, dict[int, Stated]]:
        """Take the next batch, of one age, and what is stated of its messages; those tried before go alone, last."""
        age = min(self.seen)
        of_age = self.seen[age]
        fresh = [uid for uid in of_age if not tried.get(uid)]
        sizes = {uid: each.size for uid, each in of_age.items() if each.size is not None}
        batch = next(batches(fresh or of_age, sizes, most_messages if fresh else 1))
        taken = {uid: of_age[uid] for uid in batch.uids}
        self.drop(taken)
        return batch, taken


def choose(backlogs: Mapping[str, Backlog], current: str | None) -> str | None:
    """Return the mailbox whose next messages are the newest, the open one rather than another; None when all is in."""
    waiting = [mailbox_id for mailbox_id, backlog in backlogs.items() if len(backlog)]
    return min(waiting, key=lambda mailbox_id: (backlogs[mailbox_id].age, mailbox_id != current), default=None)
