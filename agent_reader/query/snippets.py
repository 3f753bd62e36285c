"""SearchSnippet/get: where an Email says what was searched for (RFC 8621 §5)."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from agent_reader.query import arguments
from agent_reader.query.errors import invalid, too_slow
from agent_reader.query.filters import Every, Filter, Some, parse_filter
from agent_reader.store.fold import fold
from agent_reader.store.reading import searched_texts
from agent_reader.store.search import Column
from agent_reader.store.selection import Words
from agent_reader.store.snapshot import Snapshot
from shared.message import JSON, Message, readable_text

# RFC 8621 §5: the preview is at most this long, in octets of UTF-8.
_PREVIEW_OCTETS: Final = 255

# What stands before the first match: enough to see what it is about, little enough to leave room for what follows.
# Signs and emoji take up to five octets each: of them there is room for fewer.
_CHARACTERS_BEFORE: Final = 60
_OCTETS_BEFORE: Final = 120

# A text is looked through up to here; who needs what stands later reads the message.
_MOST_CHARACTERS: Final = 200_000

_OPEN, _CLOSE = "<mark>", "</mark>"
_ESCAPED: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

_ARGUMENTS: Final = frozenset({"accountId", "filter", "emailIds"})

# Words of ASCII are found at once; a run with other characters is taken apart into what one letter is made of: a
# character and the marks upon it, or the letters that make one syllable of Hangul.
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+", re.ASCII | re.IGNORECASE)
_RUN: Final = re.compile(r"[^\s]+")
_CLUSTER: Final = re.compile(
    "[\u1100-\u115f]+[\u1160-\u11a7]*[\u11a8-\u11ff]*[\u0300-\u036f]*|.[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-"
    "\u1dff\u20d0-\u20ff\u3099\u309a\ufe00-\ufe2f\uff9e\uff9f\u200b-\u200f\u2060-\u2064\u00ad]*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SnippetArguments:
    """The arguments of SearchSnippet/get but accountId."""

    filter: Filter
    email_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Snippets:
    """RFC 8621 §5.1: a SearchSnippet for each Email that is there, in the order asked for."""

    list: tuple[dict[str, JSON], ...]
    not_found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Token:
    """A folded word, and where it stands in the text."""

    word: str
    start: int
    end: int


def parse_snippets(untrusted: Mapping[str, JSON]) -> SnippetArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    arguments.known_only(untrusted, _ARGUMENTS)
    if "emailIds" not in untrusted:
        raise invalid("emailIds", "is missing.")
    email_ids = arguments.list_value("emailIds", untrusted["emailIds"])
    return SnippetArguments(
        parse_filter(untrusted.get("filter")),
        tuple(dict.fromkeys(arguments.string_value("emailIds", each) for each in email_ids)),
    )


def search_snippets(
    snapshot: Snapshot, asked: SnippetArguments, is_over: Callable[[], bool] = lambda: False
) -> Snippets:
    """Answer SearchSnippet/get from a snapshot: what the filter looks for is marked, and nothing that it excludes.

    Raises `QueryRefused`, also once `is_over`.
    """
    words = list(_looked_for(asked.filter))
    of_subject = _phrases(words, Column.SUBJECT)
    of_body = _phrases(words, Column.BODY)
    found = snapshot.emails(asked.email_ids)
    snippets: list[dict[str, JSON]] = []

    def go_on() -> None:
        if is_over():
            raise too_slow()

    for email in found.values():
        go_on()
        subject, preview = None, None
        if of_subject:
            subject = marked_whole(str(email.summary["subject"] or ""), of_subject)
        if of_body:
            with snapshot.room.place(email.size, go_on):
                preview = _preview_of(snapshot.message(email.key), of_body)
        snippets.append({"emailId": email.id, "subject": subject, "preview": preview})
    return Snippets(tuple(snippets), tuple(each for each in asked.email_ids if each not in found))


def _preview_of(message: Message, phrases: Sequence[Sequence[str]]) -> str | None:
    # Nothing of the message is held any more while the next one waits for room.
    texts = searched_texts(message, readable_text(message))
    return next(filter(None, (marked_preview(text, phrases) for text in texts)), None)


def marked_whole(text: str, phrases: Sequence[Sequence[str]]) -> str | None:
    """Return the text, escaped, with each match marked; None without one."""
    spans = _spans(text, phrases)
    return _written(text, spans, 0, None) if spans else None


def marked_preview(text: str, phrases: Sequence[Sequence[str]]) -> str | None:
    """Return at most 255 octets around the first match, escaped and marked; None without one."""
    collapsed = " ".join(text[:_MOST_CHARACTERS].split())
    spans = _spans(collapsed, phrases, _PREVIEW_OCTETS)
    if not spans:
        return None
    begin, octets = spans[0][0], 0
    while begin > max(0, spans[0][0] - _CHARACTERS_BEFORE):
        octets += _octets(collapsed[begin - 1])
        if octets > _OCTETS_BEFORE:
            break
        begin -= 1
    if begin:
        # From the beginning of a word on, where one begins before the match.
        space = collapsed.find(" ", begin, spans[0][0])
        begin = space + 1 if space >= 0 else begin
    return _written(collapsed, spans, begin, _PREVIEW_OCTETS)


def _octets(character: str) -> int:
    return len(_ESCAPED.get(character, character).encode())


def _looked_for(asked: Filter) -> Iterator[Words]:
    """What must or may be there; what a NOT excludes is not looked for."""
    match asked:
        case Words():
            yield asked
        case Every(of) | Some(of):
            for each in of:
                yield from _looked_for(each)
        case _:
            return


def _phrases(words: Sequence[Words], column: Column) -> list[list[str]]:
    return [each.phrase.split() for each in words if column in each.columns]


def _spans(text: str, phrases: Sequence[Sequence[str]], most_apart: int | None = None) -> list[tuple[int, int]]:
    """Where the phrases stand, in order; those that touch or overlap are one, those too far from the first are left."""
    tokens = list(_tokens(text))
    places, length = list[int](), 0
    for token in tokens:
        places.append(length)
        length += len(token.word) + 1
    # Looked for in one string of folded words with a space before each and after the last: no worse than linear.
    folded = " " + "".join(f"{token.word} " for token in tokens)
    found: list[tuple[int, int]] = []
    for phrase in phrases:
        wanted = f" {' '.join(phrase)} "
        at = folded.find(wanted)
        first = at
        while at >= 0:
            index = bisect_left(places, at)
            found.append((tokens[index].start, tokens[index + len(phrase) - 1].end))
            if most_apart is not None and at > first + most_apart:
                break
            at = folded.find(wanted, at + 1)
    spans: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if spans and start <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
    return spans


def _tokens(text: str) -> Iterator[_Token]:
    """The words of a text as the index has them (`fold`), each with its place."""
    for run in _RUN.finditer(text):
        if run[0].isascii():
            for word in _ASCII_WORD.finditer(run[0]):
                yield _Token(word[0].lower(), run.start() + word.start(), run.start() + word.end())
        else:
            yield from _tokens_of_run(run[0], run.start())


def _tokens_of_run(run: str, offset: int) -> Iterator[_Token]:
    word, start, end = "", 0, 0
    for cluster in _CLUSTER.finditer(run):
        for number, piece in enumerate(_pieces(cluster[0])):
            if number and word:
                yield _Token(word, offset + start, offset + end)
                word = ""
            if piece:
                start, end = (start if word else cluster.start()), cluster.end()
                word += piece
    if word:
        yield _Token(word, offset + start, offset + end)


# Text repeats its letters.
@lru_cache(maxsize=8_192)
def _pieces(cluster: str) -> tuple[str, ...]:
    """The folded letter between two others: the first piece goes on with the word before, the last with the next."""
    return tuple(fold(f"a{cluster}a")[1:-1].split(" "))


def _written(text: str, spans: Sequence[tuple[int, int]], begin: int, most_octets: int | None) -> str:
    """The text from an offset on, up to so many octets, cut between characters and outside marks and entities."""
    pieces: list[str] = []
    octets, is_open, ends = 0, False, iter(spans)
    span = next(ends, None)
    for index in range(begin, len(text)):
        while span is not None and index >= span[1]:
            span = next(ends, None)
        is_marked = span is not None and index >= span[0]
        if is_open and not is_marked:
            pieces.append(_CLOSE)
            is_open = False
        character = _ESCAPED.get(text[index], text[index])
        opening = _OPEN if is_marked and not is_open else ""
        cost = len(character.encode()) + (len(_OPEN) + len(_CLOSE) if opening else 0)
        if most_octets is not None and octets + cost > most_octets:
            break
        octets += cost
        pieces.append(opening + character)
        is_open = is_marked
    return "".join(pieces) + (_CLOSE if is_open else "")
