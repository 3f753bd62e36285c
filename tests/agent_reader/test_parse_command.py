"""`agent-reader parse`: a message as JSON, or as an agent would get it, on a terminal that nothing takes over."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent_reader.__main__ import app
from agent_reader.agent_text import Wanted
from agent_reader.commands import parse as parse_command
from agent_reader.commands.parse import message_json, message_text, read_octets
from shared.fence import clean
from shared.identity import MAX_MESSAGE_OCTETS
from shared.message import BODY_PROPERTIES, CONTENT_PROPERTIES
from shared.settings import ConfigurationError
from tests.shared.message.mail import entity, multipart

GOLDEN = Path(__file__).parents[1] / "golden"
OUTPUTS = GOLDEN / "parse"

CASES = [
    ("012-nested-rfc822", "text-nested.txt", ["--text", "--nested"]),
    ("040-calendar-invite", "text-attachments.txt", ["--text", "--attachments"]),
    ("046-html-only-hidden-text", "text-defang.txt", ["--text", "--defang"]),
    ("047-invisible-unicode", "text.txt", ["--text"]),
    ("048-fence-spoof", "text.txt", ["--text"]),
    ("050-thread-reply-broken-references", "text-whole.txt", ["--text", "--whole"]),
    ("058-auto-submitted", "all.json", []),
    ("060-delivery-status", "text-attachments.txt", ["--text", "--attachments"]),
    ("065-stub-plain-rich-html", "text.txt", ["--text"]),
]


def said(*arguments: str, given: bytes | None = None) -> str:
    done = CliRunner().invoke(app, ["parse", *arguments], input=given)
    assert done.exit_code == 0, done.output
    return done.stdout_bytes.decode("utf-8")


def everything(*arguments: str, given: bytes | None = None) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(said(*arguments, given=given))
    return loaded


def without_nonce(text: str) -> str:
    """Each answer has a mark of its own; in the files it is written NONCE."""
    for nonce in dict.fromkeys(re.findall(r"^([0-9a-f]{32})<", text, re.MULTILINE)):
        text = text.replace(nonce, "NONCE")
    return text


@pytest.mark.parametrize(("name", "output", "options"), CASES)
def test_the_output_is_the_one_that_was_looked_at(name: str, output: str, options: list[str]) -> None:
    expected = (OUTPUTS / f"{name}.{output}").read_text("utf-8")
    assert expected == without_nonce(said(str(GOLDEN / f"{name}.eml"), *options))


def test_json_has_every_property_and_every_body_value() -> None:
    octets = multipart(
        "mixed",
        entity("text/plain", "one"),
        entity("text/html", "<p>two"),
        entity("text/csv", "a,b", "Content-Disposition: attachment"),
    )
    answer = everything("-", given=octets)
    email = answer["email"]
    assert CONTENT_PROPERTIES | {"id"} == set(email)
    assert BODY_PROPERTIES == set(email["bodyStructure"])
    assert ["one", "<p>two", "a,b"] == [value["value"] for value in email["bodyValues"].values()]
    assert [] == answer["defects"]
    assert "nested" not in answer


def test_defects_flags_links_and_authentication_come_with_it() -> None:
    octets = (
        b"Authentication-Results: mx.example.org; dmarc=fail\r\nAuto-Submitted: auto-replied\r\n"
        b"Content-Type: text/html\r\n\r\n"
        b'<a href="https://evil.example">https://bank.example</a>\0'
    )
    answer = everything("-", "--authserv-id", "mx.example.org", given=octets)
    assert ["nul"] == [defect["code"] for defect in answer["defects"]]
    assert [{"fact": "automaticMail", "where": "Auto-Submitted"}] == answer["flags"]
    assert [{"concern": "namesAnotherHost", "host": "evil.example", "shown": "bank.example"}] == answer["links"]
    assert ("failed", "mx.example.org") == (answer["authentication"]["verdict"], answer["authentication"]["source"])
    assert "unknown" == everything("-", given=octets)["authentication"]["verdict"]


def nested_message(levels: int) -> bytes:
    octets = entity("text/plain", "innermost", "Subject: level 0")
    for level in range(1, levels + 1):
        octets = entity("message/rfc822", octets, f"Subject: level {level}")
    return octets


def test_nested_messages_are_read_down_to_ten_levels() -> None:
    answer = everything("-", "--nested", given=nested_message(12))
    subjects = []
    while True:
        subjects.append(answer["email"]["subject"])
        if not answer.get("nested"):
            break
        answer = answer["nested"]["1"]
    assert [f"level {level}" for level in range(12, 1, -1)] == subjects
    text = said("-", "--text", "--nested", given=nested_message(12))
    assert 11 == text.count("Subject: level")


# What a terminal obeys, what reorders, what hides: raw, in an encoded-word, in a file name, in HTML, in a boundary.
EVIL = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202eb\u2066c\u200bd\U000e0041e\x08\x7f\u2028f\ufeff\u3164"
HOSTILE = f"Subject: {EVIL}\r\nFrom: {EVIL} <a{EVIL}@b.example>\r\nX-{1}: {EVIL}\r\n".encode() + multipart(
    "mixed",
    entity("text/html; charset=utf-8", f'<p>{EVIL}<a href="https://{EVIL}.example/{EVIL}">{EVIL}</a>'),
    entity(f'text/csv; name="{EVIL}"', EVIL, "Content-Disposition: attachment"),
    entity("message/rfc822", entity("text/plain; charset=utf-8", EVIL, f"Subject: {EVIL}")),
    entity(f"text/plain; x{EVIL}=y; charset={EVIL}", EVIL),
)


def harmless(output: str) -> bool:
    return clean(output).removed == 0 and not any(
        unicodedata.category(character) in {"Cc", "Zl", "Zp", "Cs"} for character in output if character not in "\n\t"
    )


@pytest.mark.parametrize(
    "options",
    [[], ["--nested"], ["--text"], ["--text", "--whole", "--attachments", "--nested"], ["--text", "--defang"]],
)
def test_nothing_that_a_terminal_obeys_reaches_it(options: list[str]) -> None:
    output = said("-", *options, given=HOSTILE)
    assert harmless(output)
    assert "owned" in output


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_any_octets_give_an_output_that_is_harmless_and_json(octets: bytes) -> None:
    written = message_json(octets, authserv_id=None, nested=True)
    assert harmless(written)
    assert "email" in json.loads(written)
    wanted = Wanted(whole=True, attachments=True, defanged=True)
    assert harmless(message_text(octets, wanted, nested=True, random_octets=lambda count: bytes(range(count))))


def test_each_untrusted_line_stands_in_the_fence_and_what_stands_outside_is_ours() -> None:
    octets = entity("text/plain", "secret words", "Subject: secret words", "From: secret@words.example")
    outside = [
        line for line in said("-", "--text", given=octets).split("\n") if not re.match(r"[0-9a-f]{32}[<|>] ", line)
    ]
    assert "secret" not in "\n".join(outside)
    assert "words" not in "\n".join(outside)


def test_a_link_is_defanged_on_request_only() -> None:
    octets = entity("text/plain", "see https://a.example/x")
    assert "see https://a.example/x" in said("-", "--text", given=octets)
    assert "see hxxps://a[.]example/x" in said("-", "--text", "--defang", given=octets)


def test_quotes_are_left_out_and_counted_unless_the_whole_is_wanted() -> None:
    octets = entity("text/plain", "Yes.\r\n\r\nOn Tue, 3 Mar 2026, Ann wrote:\r\n> Tuesday?\r\n")
    new = said("-", "--text", given=octets)
    assert "Tuesday?" not in new
    assert re.search(r"^Left out: \d+ characters quoted", new, re.MULTILINE)
    assert "> Tuesday?" in said("-", "--text", "--whole", given=octets)


def command(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-B", "-m", "agent_reader", "parse", *arguments],
        input=given,
        capture_output=True,
        check=False,
        timeout=60,
        env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        cwd=Path(__file__).parents[2],
    )


def test_the_command_reads_standard_input_and_writes_utf_8_in_any_locale() -> None:
    done = command("-", "--text", given=entity("text/plain; charset=utf-8", "Grüße, 日本"))
    assert (0, b"") == (done.returncode, done.stderr)
    assert "Grüße, 日本" in done.stdout.decode("utf-8")


def test_a_missing_file_ends_with_status_2_and_says_what_to_do() -> None:
    done = command("/nowhere\x1b[2J.eml")
    assert (2, b"") == (done.returncode, done.stdout)
    assert (
        b"agent-reader: /nowhere[2J.eml: there is no such file.\n"
        b"  Name a file with one message, or - for standard input.\n" == done.stderr
    )


def test_what_is_no_file_or_may_not_be_read_is_the_operators_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        read_octets(str(tmp_path), sys.stdin.buffer)
    with pytest.raises(ConfigurationError, match="no file's name"):
        read_octets("a\0b", sys.stdin.buffer)


def test_what_is_larger_than_any_message_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "large.eml"
    with large.open("wb") as file:
        file.truncate(MAX_MESSAGE_OCTETS + 1)
    with pytest.raises(ConfigurationError, match="is larger than"):
        parse_command.read_octets(str(large), sys.stdin.buffer)
