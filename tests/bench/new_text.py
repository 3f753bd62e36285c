"""New text compared: ours, `email-reply-parser` and `mail-parser-reply`, on the labelled messages, in one run.

Run from the top: `python -m tests.bench.new_text --with PYTHON`, PYTHON being an interpreter of an environment of its
own that has the two libraries. They read plain text only: of HTML messages they get the text that our reader makes,
quotes marked. `mail-parser-reply` is told the message's language, and is asked both for its `latest_reply`, which
keeps signatures, and for the body without them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from shared.message.html import html_to_text
from shared.message.segments import html_segments, new_text
from shared.message.segments.marks import CLOSINGS
from tests.shared.segments.labelled import Labelled, labelled_messages, telling_lines

# The two need some seconds for the set.
SECONDS_FOR_ALL: Final = 600

# One line of a message, as anybody may send it; people wait this long at most.
HOSTILE_CHARACTERS: Final = 40_000
SECONDS_FOR_A_LINE: Final = 30
HOSTILE: Final = {
    "one word": "x" * HOSTILE_CHARACTERS,
    "`On ` again and again": "On " * (HOSTILE_CHARACTERS // 3),
    "blanks between two letters": "a" + " " * HOSTILE_CHARACTERS + "b",
}

READ: Final = "__import__('sys').stdin.read()"
THEIRS_ON_ONE: Final = {
    "email-reply-parser": f"from email_reply_parser import EmailReplyParser as P; P.parse_reply({READ})",
    "mail-parser-reply": f"from mailparser_reply import EmailReplyParser as P; P().parse_reply({READ})",
}

THEIRS: Final = r"""
import importlib.metadata, json, sys
from email_reply_parser import EmailReplyParser
from mailparser_reply import EmailReplyParser as Multilingual

out = []
for text, language in json.load(sys.stdin):
    first = Multilingual(languages=[language]).read(text).replies
    out.append([EmailReplyParser.parse_reply(text), first[0].content if first else "", first[0].body if first else ""])
versions = {name: importlib.metadata.version(name) for name in ("email-reply-parser", "mail-parser-reply")}
json.dump([versions, out], sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class Score:
    """How many messages agree exactly, how many up to the closing formula, and the mean F1 over their lines."""

    messages: int
    exact: int
    exact_to_closing: int
    f1: float


def score(found: Sequence[list[str]], wanted: Sequence[list[str]]) -> Score:
    pairs = list(zip(found, wanted, strict=True))
    return Score(
        len(pairs),
        sum(one == other for one, other in pairs),
        sum(to_closing(one) == to_closing(other) for one, other in pairs),
        sum(f1(one, other) for one, other in pairs) / len(pairs),
    )


def f1(found: list[str], wanted: list[str]) -> float:
    if not found and not wanted:
        return 1.0
    shared = (Counter(found) & Counter(wanted)).total()
    return 2 * shared / (len(found) + len(wanted))


def to_closing(lines: list[str]) -> list[str]:
    """Up to a closing formula: whether "Regards, Ann" is new text or signature people disagree on."""
    for at, line in enumerate(lines):
        if line.strip(" ,.!，").casefold() in CLOSINGS:
            return lines[:at]
    return lines


def text_of(message: Labelled) -> str:
    return message.text if message.text is not None else html_to_text(message.html or "").text


def ours(message: Labelled) -> str:
    return new_text(message.text) if message.text is not None else html_segments(message.html or "").new_text()


def theirs(python: str, messages: Sequence[Labelled]) -> tuple[dict[str, str], list[list[str]]]:
    languages = [message.file if len(message.file) == len("en") else "en" for message in messages]
    question = json.dumps(list(zip(map(text_of, messages), languages, strict=True)))
    answer = subprocess.run(
        [python, "-c", THEIRS], input=question, capture_output=True, text=True, check=True, timeout=SECONDS_FOR_ALL
    )
    versions, texts = json.loads(answer.stdout)
    return versions, texts


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--with", dest="python", required=True, help="an interpreter that has the two libraries")
    arguments.add_argument("--misses", action="store_true", help="name the messages that ours gets wrong")
    options = arguments.parse_args()
    messages = labelled_messages()
    versions, answers = theirs(options.python, messages)
    wanted = [telling_lines(message.new) for message in messages]
    columns: dict[str, list[list[str]]] = {
        "mailwarrant": [telling_lines(ours(m)) for m in messages],
        f"email-reply-parser {versions['email-reply-parser']}": [telling_lines(answer[0]) for answer in answers],
        f"mail-parser-reply {versions['mail-parser-reply']}, latest_reply": [telling_lines(a[1]) for a in answers],
        f"mail-parser-reply {versions['mail-parser-reply']}, body": [telling_lines(answer[2]) for answer in answers],
    }
    report("all", columns, wanted, lambda _: True, messages)
    report("plain text", columns, wanted, lambda message: message.text is not None, messages)
    report("plain text, English", columns, wanted, lambda message: message.file in {"en", "traps"}, messages)
    report("without forwards", columns, wanted, lambda message: "orward" not in message.name, messages)
    report("HTML", columns, wanted, lambda message: message.html is not None, messages)
    hostile(options.python)
    if options.misses:
        for message, found, right in zip(messages, next(iter(columns.values())), wanted, strict=True):
            if found != right:
                say(f"{message.file}: {message.name}\n  wanted {right}\n  found  {found}")


def hostile(python: str) -> None:
    """One line each; a process that is not done in time is ended."""
    say(f"One line of {HOSTILE_CHARACTERS} characters, seconds with the start of an interpreter:")
    for kind, line in HOSTILE.items():
        own = [
            sys.executable,
            "-c",
            "import sys; from shared.message.segments import new_text as n; n(sys.stdin.read())",
        ]
        seconds = {"mailwarrant": seconds_for(own, line)}
        for library, program in THEIRS_ON_ONE.items():
            seconds[library] = seconds_for([python, "-c", program], line)
        say(f"  {kind:<28} " + ", ".join(f"{name} {spent}" for name, spent in seconds.items()))


def seconds_for(command: list[str], line: str) -> str:
    began = time.monotonic()
    try:
        subprocess.run(command, input=line, text=True, check=True, timeout=SECONDS_FOR_A_LINE, capture_output=True)
    except subprocess.TimeoutExpired:
        return f"over {SECONDS_FOR_A_LINE}"
    return f"{time.monotonic() - began:.1f}"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def report(
    title: str,
    columns: dict[str, list[list[str]]],
    wanted: list[list[str]],
    belongs: Callable[[Labelled], bool],
    messages: Sequence[Labelled],
) -> None:
    chosen = [at for at, message in enumerate(messages) if belongs(message)]
    say(f"{title}: {len(chosen)} messages; exact, exact up to the closing formula, mean F1 of lines")
    for name, found in columns.items():
        got = score([found[at] for at in chosen], [wanted[at] for at in chosen])
        say(f"  {name:<45} {got.exact:4} {got.exact_to_closing:4} {got.f1:6.3f}")


if __name__ == "__main__":
    main()
