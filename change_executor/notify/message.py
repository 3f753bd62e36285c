"""What a notifier says: counts, times and codes; subjects, each one inert line, only where the operator tells them."""

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from change_executor.alarms import SENTENCES, Alarm

# A digest is a reason to open the page, not a copy of it.
MAX_SUBJECTS: Final = 10
# As much of a subject as a telephone shows.
_SUBJECT_CHARACTERS: Final = 100


class MessageKind(StrEnum):
    """Why a message is sent: something waits, an alarm was raised, all alarms are over."""

    WAITING = "waiting"
    ALARM = "alarm"
    CLEARED = "cleared"


@dataclass(frozen=True, slots=True)
class Message:
    """One message: `new` proposals wait since the one before, `pending` in all, the oldest since `oldest`.

    `subjects` are of new ones, already made inert by `one_line`; `page` is where a person decides.
    """

    kind: MessageKind
    at: datetime
    new: int
    pending: int
    oldest: datetime | None
    alarms: tuple[Alarm, ...]
    subjects: tuple[str, ...]
    page: str

    def title(self) -> str:
        """One line of our own words: no text of mail or of an agent is in it, so it may stand in a header."""
        match self.kind:
            case MessageKind.ALARM:
                return "Mailwarrant: something is wrong"
            case MessageKind.CLEARED:
                return "Mailwarrant: what was wrong is over"
            case MessageKind.WAITING:
                return "Mailwarrant: proposals wait for you"

    def text(self) -> str:
        """Return plain text, a fact on each line."""
        lines = [
            f"{alarm.count or ''} {SENTENCES[alarm.code]}, since {alarm.since:%Y-%m-%d %H:%M} UTC".strip()
            + (f" ({', '.join(alarm.reasons)})" if alarm.reasons else "")
            + (f". {alarm.fix}" if alarm.fix else "")
            for alarm in self.alarms
        ]
        since = "" if self.oldest is None else f", the oldest since {self.oldest:%Y-%m-%d %H:%M} UTC"
        lines.append(f"{self.pending} waiting for a decision{since}; {self.new} of them new")
        lines += [f"- {subject}" for subject in self.subjects]
        return "\n".join([*lines, self.page])

    def document(self) -> dict[str, Any]:
        """Return the JSON object that a webhook and a command get."""
        return {
            "kind": self.kind.value,
            "at": self.at.isoformat(),
            "title": self.title(),
            "new": self.new,
            "pending": self.pending,
            "oldest": None if self.oldest is None else self.oldest.isoformat(),
            "alarms": [
                {"code": alarm.code.value, "count": alarm.count, "since": alarm.since.isoformat(),
                 "reasons": list(alarm.reasons), **({"fix": alarm.fix} if alarm.fix else {})}
                for alarm in self.alarms
            ],
            "subjects": list(self.subjects),
            "page": self.page,
        }  # fmt: skip

    def octets(self) -> bytes:
        """Return the document as JSON, in ASCII."""
        return json.dumps(self.document()).encode("ascii")


def one_line(untrusted_text: str) -> str:
    """Return what a sender wrote as one short line without controls, marks of direction or line ends."""
    shown = "".join(each if each.isprintable() else " " for each in untrusted_text)
    line = " ".join(shown.split())
    return line if len(line) <= _SUBJECT_CHARACTERS else line[: _SUBJECT_CHARACTERS - 1] + "…"
