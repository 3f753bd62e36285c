"""What the search bench asks: a dozen kinds of question, each many times with other words."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from tests.bench.query_mail import LAST, Mail, rare_word, word

_OF_A_KIND: Final = 20

# The ranks of words that 10 to 50 in a hundred of all messages have; further down, one to five in a hundred.
_COMMON: Final = (10, 80)
_MIDDLING: Final = (300, 2_000)
_DAY_SECONDS: Final = 24 * 3600


@dataclass(frozen=True, slots=True)
class Question:
    """What all of it asks for; `phrase` is words in a row, `since` and `before` seconds since 1970."""

    kind: str
    words: tuple[str, ...] = ()
    phrase: tuple[str, ...] = ()
    sender: str | None = None
    without: str | None = None
    mailbox: str | None = None
    unread: bool = False
    since: int | None = None
    before: int | None = None
    by_thread: bool = False


def questions(mail: Mail) -> list[Question]:
    """Return the questions to this mail, kind by kind."""
    return [each for number in range(_OF_A_KIND) for each in _one_of_each(mail, random.Random(number))]


def _one_of_each(mail: Mail, chance: random.Random) -> Iterator[Question]:
    def common() -> str:
        return word(chance.randrange(*_COMMON))

    middling = word(chance.randrange(*_MIDDLING))
    one = mail.letter(chance.randrange(mail.messages))
    newest, span = int(LAST.timestamp()), mail.messages * 540
    since = newest - chance.randrange(span)
    yield Question("rare word", words=(rare_word(chance.randrange(mail.messages)),))
    yield Question("common word", words=(common(),))
    yield Question("phrase", phrase=_phrase(mail, chance))
    yield Question("two words", words=(common(), middling))
    yield Question("two common words", words=(common(), common()))
    yield Question("from + text", words=(common(),), sender=one.sender_name.split()[0].lower())
    yield Question("date range", words=(common(),), since=since, before=since + 90 * _DAY_SECONDS)
    yield Question("mailbox + text", words=(common(),), mailbox="Lists")
    yield Question("small mailbox + text", words=(common(),), mailbox="Small")
    yield Question("unread", words=(middling,), unread=True, mailbox="INBOX")
    yield Question("NOT", words=(common(),), without=common())
    collapsed = Question("collapseThreads", words=(common(),), by_thread=True)
    yield collapsed
    yield replace(collapsed, words=(middling,))


def _phrase(mail: Mail, chance: random.Random) -> tuple[str, ...]:
    at = chance.randrange(len(mail.text) - 3)
    return tuple(mail.text[at : at + 3])
