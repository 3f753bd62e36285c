"""What stands around a hit: the sentence and what follows it in its paragraph, so that the answer is often in view.

Pure but for the view of the message. A snippet that does not end with the text says so by a mark.
"""

import re
from collections.abc import Sequence
from typing import Final

from agent_reader.mcp.call import Call
from agent_reader.mcp.views import Part
from agent_reader.store.snapshot import StoredEmail
from agent_reader.tool_answers.cuts import one_line

# Enough for a number and what it counts, a third of it before the hit.
_SNIPPET_CHARACTERS: Final = 120
_BEFORE_HIT: Final = 3
# A shorter paragraph is a heading, a label or a greeting: what it is about comes after it.
_HEADING_CHARACTERS: Final = 40
# Where the hit is in what a message quotes or in its signature, this much of a snippet tells what it says itself.
_OWN_CHARACTERS: Final = 60

# A text is looked through up to here, as for SearchSnippet/get: what is made of it is made without room in the reading
# room. Who needs what stands later reads the message.
_MOST_CHARACTERS: Final = 200_000

_PHRASE_OR_WORD: Final = re.compile(r"\"([^\"]+)\"|([^\s\"']+)")
_QUOTE_MARKS: Final = re.compile(r"^(?:> ?)+", re.MULTILINE)
_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE_END: Final = re.compile(r"[.!?…][\"')\]]*\s|[。！？]")


def wanted_words(question: str) -> list[str]:
    """Return what to look for in a text: phrases whole, then single words."""
    found = _PHRASE_OR_WORD.findall(question)
    return [phrase for phrase, _ in found if phrase] + [each for both in found for each in " ".join(both).split()]


def snippet(call: Call, email: StoredEmail, words: Sequence[str]) -> str | None:
    """Return what stands around the first word found in the message's own text.

    Where it is elsewhere, its beginning and what stands around the word in the rest of it; None where none is found.
    """
    found, start = _in_own_text(call, email, words)
    if found is not None:
        return found
    found = around(_text(call, email, Part.WHOLE), words, _SNIPPET_CHARACTERS - _OWN_CHARACTERS)
    if found is None or start is None:
        return found
    return f"{start.removesuffix('…').rstrip()} … {found.removeprefix('…')}"


def _in_own_text(call: Call, email: StoredEmail, words: Sequence[str]) -> tuple[str | None, str | None]:
    """What stands around a hit in what a message says itself, or else its beginning; the text is not held."""
    own = _text(call, email, Part.NEW)
    found = around(own, words, _SNIPPET_CHARACTERS)
    return found, beginning(_paragraph_lines(own), _OWN_CHARACTERS) if found is None and own else None


def _text(call: Call, email: StoredEmail, part: Part) -> str:
    return _QUOTE_MARKS.sub("", call.view(email, part).text[:_MOST_CHARACTERS])


def around(text: str, words: Sequence[str], most: int) -> str | None:
    """Return what stands around the first of these that a text holds, on a line; None where it holds none."""
    text = _paragraph_lines(text)
    lowered = text.lower()
    if len(lowered) != len(text):
        # A letter whose lower case is two: places do not hold.
        lowered = text
    for word in words:
        hit = lowered.find(word.lower())
        if hit >= 0:
            start = _start(text, hit, most)
            return ("…" if text[:start].strip() else "") + beginning(text[start:], most, hit - start)
    return None


def _paragraph_lines(text: str) -> str:
    """A text with each paragraph on a line."""
    lines = [" ".join(paragraph.split()) for paragraph in _PARAGRAPHS.split(text)]
    return "\n".join(line for line in lines if line)


def _start(text: str, hit: int, most: int) -> int:
    """Where the hit's sentence begins, or else a word near before it."""
    paragraph = text.rfind("\n", 0, hit) + 1
    ends = [found.end() for found in _SENTENCE_END.finditer(text, paragraph, hit)]
    sentence = ends[-1] if ends else paragraph
    if hit - paragraph <= most // _BEFORE_HIT:
        return paragraph
    if hit - sentence <= most // _BEFORE_HIT:
        return sentence
    near = hit - most // _BEFORE_HIT
    return text.find(" ", near, hit) + 1 or near


def beginning(text: str, most: int, kept: int = 0) -> str:
    """Return the first paragraph of a text with one on each line, and of a long one whole sentences.

    `kept` characters stay in any case.

    After a heading the next paragraph goes on. A mark stands at the end where the text goes on.
    """
    end = text.find("\n", max(_HEADING_CHARACTERS, kept))
    end = len(text) if end < 0 else end
    line = text[:end]
    if len(line) > most:
        ends = [found.end() for found in _SENTENCE_END.finditer(line, 0, most)]
        if not ends or ends[-1] < max(most // 2, kept + 1):
            return one_line(line, most)
        line = line[: ends[-1]]
    line = " ".join(line.split())
    return line + (" …" if text[end:].strip() or len(line) < end else "")
