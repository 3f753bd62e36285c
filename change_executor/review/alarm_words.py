"""What the status page says of each alarm: a closed table, like all of the page's own words."""

from dataclasses import dataclass
from typing import Final

from change_executor.alarms import AlarmCode


@dataclass(frozen=True, slots=True)
class AlarmWords:
    """Of one and of many, what to do about it, and the path of a page of ours that shows it."""

    one: str
    many: str
    fix: str
    path: str = "/"


ALARMS: Final = {
    AlarmCode.JOURNAL_UNAVAILABLE: AlarmWords("The journal cannot be used: nothing moves.", "", ""),
    AlarmCode.NOT_APPLIED: AlarmWords(
        "approval was not carried out in time.",
        "approvals were not carried out in time.",
        "As far as is known, nothing was moved.",
        "/?state=approved",
    ),
    AlarmCode.NOT_UNDONE: AlarmWords(
        "move was not taken back in time.", "moves were not taken back in time.", "", "/?state=undoing"
    ),
    AlarmCode.SETTLE: AlarmWords(
        "move has an outcome that looking does not tell.",
        "moves have an outcome that looking does not tell.",
        "Look into the mailboxes and settle it.",
        "/?state=doubtful",
    ),
    AlarmCode.PENDING_OLD: AlarmWords(
        "proposal waits for a decision for too long.",
        "proposals wait for a decision, the oldest for too long.",
        "Decide the oldest first.",
    ),
    AlarmCode.PENDING_MANY: AlarmWords(
        "proposal waits.", "proposals wait, more than anybody reads.", "Look whether an agent runs wild.", "/agents"
    ),
    AlarmCode.STOPPED: AlarmWords("Everything is stopped.", "", "Nothing is moved until somebody resumes."),
}
