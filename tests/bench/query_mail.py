"""Synthetic mail for the search bench: the same at every run, and by number, so that no engine holds it all.

Words go by Zipf's law; a body is a stretch of one long text, so that phrases come back as they do in mail that quotes
and repeats itself. Besides, every message has a word that few others have.
"""

import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate, product
from typing import Final

_SEED: Final = 20260101
_SYLLABLES: Final = tuple(map("".join, product("bdfghklmnprstvz", "aeiou")))
VOCABULARY: Final = 50_000

# What bodies are cut from. A phrase in it comes back in as many messages as cover its place: two in 10,000.
_TEXT_WORDS: Final = 400_000
_SHORTEST, _LONGEST = 20, 160

_SENDERS: Final = 2_000
_DOMAINS: Final = 150
_IN_A_THREAD: Final = 4
MAILBOXES: Final = ("INBOX", "Archive", "Lists", "Receipts", "Small")
# Of all mail: 45, 35, 14, 5.5 and 0.5 in a hundred.
_SHARED_BELOW: Final = (0.45, 0.8, 0.94, 0.995)
_LISTS: Final = 400
_WITH_A_RARE_WORD: Final = 5

# A message each nine minutes: a million of them go back 17 years.
_APART_SECONDS: Final = 540
LAST: Final = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Letter:
    """One message; `received_at` is seconds since 1970, `references` are the Message-IDs of its thread so far."""

    number: int
    received_at: int
    mailbox: str
    flags: frozenset[str]
    sender_name: str
    sender_address: str
    message_id: str
    references: tuple[str, ...]
    list_id: str | None
    subject: str
    body: str

    def octets(self) -> bytes:
        """Return the message as a mail server has it."""
        date = datetime.fromtimestamp(self.received_at, UTC)
        lines = [
            f"From: {self.sender_name} <{self.sender_address}>",
            "To: The Desk <desk@example.com>",
            f"Date: {date:%a, %d %b %Y %H:%M:%S} +0000",
            f"Subject: {self.subject}",
            f"Message-ID: <{self.message_id}>",
        ]
        if self.references:
            lines.append(f"In-Reply-To: <{self.references[-1]}>")
            lines.append("References: " + " ".join(f"<{each}>" for each in self.references))
        if self.list_id is not None:
            lines.append(f"List-Id: <{self.list_id}>")
        lines += ["MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "", self.body, ""]
        return "\r\n".join(lines).encode()


def word(rank: int) -> str:
    """Return the word of a rank, 0 the most common."""
    syllables = [rank % len(_SYLLABLES)]
    while rank := rank // len(_SYLLABLES):
        syllables.append(rank % len(_SYLLABLES))
    return "".join(_SYLLABLES[each] for each in syllables) + "q"


def rare_word(number: int) -> str:
    """Return the word that a message shares with four others at most."""
    return f"x{number // _WITH_A_RARE_WORD}j"


class Mail:
    """So many messages, the last of them the newest."""

    def __init__(self, messages: int) -> None:
        self.messages = messages

    @cached_property
    def text(self) -> list[str]:
        """The long text that bodies are cut from."""
        chance = random.Random(_SEED)
        weights = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))
        words = [word(rank) for rank in range(VOCABULARY)]
        return [words[bisect(weights, chance.random() * weights[-1])] for _ in range(_TEXT_WORDS)]

    def letters(self) -> Iterator[Letter]:
        """Yield every message, the oldest first."""
        return map(self.letter, range(self.messages))

    def letter(self, number: int) -> Letter:
        """Return one message."""
        chance = random.Random(_SEED * 1_000_003 + number)
        length = chance.randint(_SHORTEST, _LONGEST)
        start = chance.randrange(_TEXT_WORDS - length)
        words = self.text[start : start + length]
        words.insert(length // 2, rare_word(chance.randrange(self.messages)))
        in_thread = number % _IN_A_THREAD
        begun = number - in_thread
        titled = begun * 7 % (_TEXT_WORDS - 4)
        title = " ".join(self.text[titled : titled + 4])
        sender = int(_SENDERS * chance.random() ** 2)
        mailbox = MAILBOXES[bisect(_SHARED_BELOW, chance.random())]
        flags = {"\\Seen"} if chance.random() < 0.8 else set[str]()
        if chance.random() < 0.05:
            flags.add("\\Flagged")
        return Letter(
            number=number,
            received_at=int(LAST.timestamp()) - (self.messages - number) * _APART_SECONDS,
            mailbox=mailbox,
            flags=frozenset(flags),
            sender_name=f"{word(sender + 500).title()} {word(sender % 90 + 3000).title()}",
            sender_address=f"{word(sender + 500)}{sender}@{word(sender % _DOMAINS + 700)}.example",
            message_id=message_id(number),
            references=tuple(map(message_id, range(begun, number))),
            list_id=f"l{number % _LISTS}.lists.example" if mailbox == "Lists" else None,
            subject=f"Re: {title}" if in_thread else title,
            body="\r\n".join(" ".join(words[at : at + 12]) for at in range(0, len(words), 12)),
        )


def message_id(number: int) -> str:
    """Return the Message-ID of a message, without angle brackets."""
    return f"{number:x}.{number * 7919 % 1_000_003}@{word(number % _DOMAINS + 700)}.example"
