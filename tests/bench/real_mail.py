"""Real messages read by three readers, field by field: ours, Python's `email`, and GMime.

`python -m tests.bench.real_mail FOLDER [GMIME_PYTHON]`. FOLDER holds one message a file (`*.txt` or `*.eml`, at any
depth); GMIME_PYTHON is an interpreter that has PyGObject and GMime 3, such as Debian's /usr/bin/python3. Prints every
class of difference with its count and up to three files; `docs/real-mail.md` says who is right in each, and why.
"""

import email
import email.policy
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Final

from shared.message import CONTENT_PROPERTIES, Part, body_value, email_json, parse, readable_text
from tests.bench.real_mail_classes import Case, class_of

FIELDS: Final = ("subject", "from", "date", "text", "attachments")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader says of a message. A date is in seconds since 1970; an attached message has the size -1."""

    subject: str | None = None
    sender: tuple[tuple[str, str], ...] = ()
    date: int | None = None
    text: tuple[str, ...] = ()
    attachments: tuple[tuple[str, int], ...] = ()
    failure: str = ""

    def field(self, name: str) -> Any:
        """Return a field by the name that is printed."""
        return self.sender if name == "from" else getattr(self, name)


def ours(octets: bytes) -> Reading:
    """Read with this project's parser; a message that any part of it cannot read ends the run."""
    message = parse(octets)
    whole = email_json(message, properties=sorted(CONTENT_PROPERTIES), fetch_all=True)
    readable_text(message)
    senders: Any = whole["from"] or []
    sent_at, subject = whole["sentAt"], whole["subject"]
    leaves = [part for part in message.root.walk() if not part.is_multipart]
    return Reading(
        subject=subject if isinstance(subject, str) else None,
        sender=tuple((sender["name"] or "", sender["email"]) for sender in senders),
        date=int(datetime.fromisoformat(sent_at).timestamp()) if isinstance(sent_at, str) else None,
        text=tuple(body_value(part).value for part in leaves if _is_text(part)),
        attachments=tuple(
            (part.name or "", -1 if part.type == "message/rfc822" else part.size)
            for part in leaves
            if not _is_text(part)
        ),
    )


def _is_text(part: Part) -> bool:
    return part.type.startswith("text/") and part.disposition != "attachment" and not part.name


def by_library(octets: bytes) -> Reading:
    """Read with `email` and its default policy; what it raises is its answer."""
    message = email.message_from_bytes(octets, policy=email.policy.default)
    answers: dict[str, Any] = {}
    failures: list[str] = []
    for name, read in (
        ("subject", lambda: _last(message, "subject", str)),
        ("sender", lambda: _last(message, "from", _mailboxes) or ()),
        ("date", lambda: _last(message, "date", _seconds)),
        ("text", lambda: tuple(_text(part) for part in _library_leaves(message) if _is_library_text(part))),
        (
            "attachments",
            lambda: tuple(_attached(part) for part in _library_leaves(message) if not _is_library_text(part)),
        ),
    ):
        try:
            answers[name] = read()
        except Exception as error:  # noqa: BLE001 - which errors it raises on real mail is what is asked
            failures.append(f"{name}: {type(error).__name__}")
    return Reading(**answers, failure=", ".join(failures))


def _last(message: EmailMessage, name: str, read: Any) -> Any:
    values = message.get_all(name) or []
    return read(values[-1]) if values else None


def _mailboxes(value: Any) -> tuple[tuple[str, str], ...]:
    return tuple((address.display_name, address.addr_spec) for address in value.addresses)


def _seconds(value: Any) -> int | None:
    return int(value.datetime.timestamp()) if value.datetime else None


def _library_leaves(message: EmailMessage) -> Iterator[EmailMessage]:
    waiting: list[Any] = [message]
    while waiting:
        part = waiting.pop()
        if part.get_content_maintype() == "multipart" and part.is_multipart():
            waiting.extend(reversed(part.get_payload()))
        else:
            yield part


def _is_library_text(part: EmailMessage) -> bool:
    is_text = part.get_content_maintype() in {"text", "multipart"}  # a multipart without parts is shown as text
    return is_text and part.get_content_disposition() != "attachment" and not part.get_filename()


def _text(part: EmailMessage) -> str:
    if part.get_content_maintype() == "multipart":
        payload = part.get_payload(decode=False)
        return _with_line_feeds(payload if isinstance(payload, str) else "")
    return _with_line_feeds(part.get_content())


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _attached(part: EmailMessage) -> tuple[str, int]:
    if part.get_content_type() == "message/rfc822":
        return part.get_filename() or "", -1
    payload = part.get_payload(decode=True)
    return part.get_filename() or "", len(payload) if isinstance(payload, bytes) else -1


def by_gmime(paths: Sequence[Path], interpreter: str) -> list[Reading]:
    """Read all of them in one process of the interpreter that has GMime."""
    answered = subprocess.run(
        [interpreter, str(Path(__file__).with_name("gmime_reader.py"))],
        input="".join(f"{path}\n" for path in paths),
        capture_output=True,
        text=True,
        check=True,
    )
    return [_from_gmime(json.loads(line)) for line in answered.stdout.splitlines()]


def _from_gmime(answer: dict[str, Any]) -> Reading:
    if "failed" in answer:
        return Reading(failure=answer["failed"])
    return Reading(
        subject=answer["subject"],
        sender=tuple((name, address) for name, address in answer["from"]),
        date=answer["date"],
        text=tuple(_with_line_feeds(text) for text in answer["text"]),
        attachments=tuple((name or "", -1 if size is None else size) for name, size in answer["attachments"]),
    )


def compare(paths: Sequence[Path], other: str, readings: Sequence[Reading], own: Sequence[Reading]) -> None:
    """Print each class of difference of the two readers, the most frequent first."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    same = dict.fromkeys(FIELDS, 0)
    for path, mine, theirs in zip(paths, own, readings, strict=True):
        if theirs.failure:
            found["any", f"raises ({theirs.failure})"].append(path.name)
        for name in FIELDS:
            if theirs.failure and (f"{name}:" in theirs.failure or ":" not in theirs.failure):
                continue
            if mine.field(name) == theirs.field(name):
                same[name] += 1
            else:
                case = Case(name, path.read_bytes(), mine.field(name), theirs.field(name))
                found[name, class_of(case)].append(path.name)
    show(f"\n{other}, {len(paths)} messages; alike: " + ", ".join(f"{name} {count}" for name, count in same.items()))
    for (name, kind), files in sorted(
        found.items(), key=lambda item: (FIELDS.index(item[0][0]) if item[0][0] in FIELDS else -1, -len(item[1]))
    ):
        show(
            f"{name:12} {len(files):5}  {kind}  e.g. {', '.join(file.split('.')[0] + file[5:9] for file in files[:3])}"
        )


def show(line: str) -> None:
    """Put a line on standard output."""
    sys.stdout.write(line + "\n")


def main() -> None:
    """Read all messages with every reader that is there, and compare."""
    folder = Path(sys.argv[1])
    paths = sorted(path for path in folder.rglob("*") if path.suffix in {".txt", ".eml"})
    own = [ours(path.read_bytes()) for path in paths]
    show(f"ours read {len(own)} of {len(paths)}")
    compare(paths, "email (default policy)", [by_library(path.read_bytes()) for path in paths], own)
    if len(sys.argv) > 2:
        compare(paths, "GMime", by_gmime(paths, sys.argv[2]), own)


if __name__ == "__main__":
    main()
