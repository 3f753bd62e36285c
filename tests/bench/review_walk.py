"""Ten items for somebody who has never seen the page, against a clock: who decides them, how fast, and how rightly.

Run as `make review-walk`. It prints the address, the name and the password; the clock begins with the signing in and
ends with the tenth decision, and only then is said what was right. Nothing is moved: there is no mail server.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from change_executor.evidence.run_child import read_in_child
from change_executor.journal import schema
from change_executor.journal.journal import read_proposal
from change_executor.lifecycle import Event
from shared.proposal import State
from tests.bench.walk_letters import LETTERS, Letter
from tests.servers.desk import PASSWORD, PERSON, Clock, ReviewPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from change_executor.journal.journal import Proposal

# What the issue of a quick and right decision comes to: two minutes for ten.
SECONDS_ALLOWED: Final = 120
# The page that the last decision led to still fetches its style and its script, and somebody looks at it.
STAYS_SECONDS: Final = 10.0

_UNDECIDED: Final = frozenset({State.PENDING, State.APPROVED, State.APPLYING, State.UNDOING})
_APPROVED: Final = frozenset({State.APPROVED, State.APPLYING, State.APPLIED})

TASK: Final = """
You are at the desk of a small tea shop. An agent has sorted ten messages; each waits for your decision.

  processed   nothing has to be done about the message any more
  escalate    the owner of the shop has to see it herself

Approve what is right. Reject what is not, or what you would not trust. Your time begins when you sign in.
"""


class WallClock(Clock):
    """The time that it is, or was: what is written now may be older."""

    def __init__(self) -> None:
        super().__init__()
        self.behind = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) - self.behind


@dataclass
class Walk:
    """A running page with the ten letters, in an order of chance."""

    review: ReviewPage
    letters: dict[str, Letter]

    def do_what_was_decided(self) -> None:
        """Stands in for the executor's worker, so that the page tells what it tells where there is one."""
        for proposal in self._proposals():
            if proposal.state is State.APPROVED:
                self.review.rows.carry_out(proposal.id)
            elif proposal.state is State.UNDOING:
                self.review.rows.happen(
                    proposal.id, Event.MOVED, outcome_code="moved_back", outcome_at=self.review.clock()
                )

    def is_over(self) -> bool:
        return all(proposal.state not in _UNDECIDED for proposal in self._proposals())

    def report(self) -> tuple[str, bool]:
        """What was decided, how fast and how rightly; whether all of it was right and in time."""
        proposals = sorted(self._proposals(), key=lambda each: each.decided_at or datetime.max.replace(tzinfo=UTC))
        began = earlier = self._began()
        lines, right = [], 0
        for proposal in proposals:
            letter, approved = self.letters[proposal.id], proposal.state in _APPROVED
            right += approved is letter.is_right
            assert proposal.decided_at is not None, "all are decided"
            seconds = (proposal.decided_at - earlier).total_seconds()
            earlier = proposal.decided_at
            word = "approved" if approved else "rejected"
            verdict = "right" if approved is letter.is_right else "WRONG"
            lines.append(f"  {seconds:5.0f} s  {word}  {verdict}  {letter.to_role:9}  {letter.subject}")
        taken = (earlier - began).total_seconds()
        lines.append(f"\n{right} of {len(proposals)} decided rightly in {taken:.0f} s (allowed: {SECONDS_ALLOWED} s).")
        return "\n".join(lines), right == len(proposals) and taken <= SECONDS_ALLOWED

    def _proposals(self) -> list[Proposal]:
        with self.review.journal.reading() as connection:
            return [read_proposal(connection, each) for each in self.letters]

    def _began(self) -> datetime:
        columns = schema.events.c
        with self.review.journal.reading() as connection:
            first = select(columns.at).where(columns.kind == "session:began").order_by(columns.seq).limit(1)
            began: datetime = connection.execute(first).scalar_one()
        return began


def lay_out(folder: Path, order: random.Random, letters: Sequence[Letter] = LETTERS) -> Walk:
    """Start a page and put the letters before it, read as the executor reads them."""
    clock = WallClock()
    review = ReviewPage(folder, clock=clock)
    review.rows.person()
    review.rows.examined()
    letters = order.sample(letters, len(letters))
    names = [role for queue in review.settings.queues for role in queue.to]
    clock.behind = timedelta(hours=len(letters))
    laid = {}
    for letter in letters:
        clock.behind -= timedelta(minutes=50)
        octets = letter.octets(clock())
        seen = read_in_child(octets, cut=False, names=names)
        proposal = review.rows.proposal(seen, letter.reason, to_role=letter.to_role, source=octets)
        laid[proposal.id] = letter
    clock.behind = timedelta(0)
    return Walk(review, laid)


def main(minutes: float) -> int:
    """Return 0 where all ten were decided rightly and in time, 1 where not, 2 where time ran out before."""
    with tempfile.TemporaryDirectory() as folder:
        walk = lay_out(Path(folder), random.Random())
        try:
            sys.stdout.write(f"{TASK}\n{walk.review.url}\nname      {PERSON}\npassword  {PASSWORD}\n\n")
            sys.stdout.flush()
            return judge(walk, datetime.now(UTC) + timedelta(minutes=minutes), threading.Event())
        finally:
            walk.review.app.state.hub.close()
            walk.review.close()


def judge(walk: Walk, deadline: datetime, leave: threading.Event) -> int:
    """Wait for every decision, print the score, and return as `main` does.

    The page stays for some seconds after the last decision, or until `leave` is set.
    """
    changed = threading.Event()
    walk.review.journal.listen(changed.set)
    try:
        while not walk.is_over():
            if datetime.now(UTC) > deadline:
                sys.stdout.write("The time is over, and not all were decided.\n")
                return 2
            changed.wait(1.0)
            changed.clear()
            walk.do_what_was_decided()
    finally:
        walk.review.journal.unlisten(changed.set)
    report, passed = walk.report()
    sys.stdout.write(f"{report}\n\nThe page stays for {STAYS_SECONDS:.0f} s.\n")
    sys.stdout.flush()
    leave.wait(STAYS_SECONDS)
    return 0 if passed else 1


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--minutes", type=float, default=60.0, help="how long it waits for the ten decisions")
    sys.exit(main(asked.parse_args().minutes))
