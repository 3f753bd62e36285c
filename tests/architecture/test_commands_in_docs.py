"""Every command in a code block of the documents exists, with the options that it is given; what can run here, runs."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import typer
from typer.testing import CliRunner

import agent_reader.__main__
import change_executor.__main__
import read_gate.__main__
from agent_reader.relay.__main__ import app as relay
from agent_reader.relay.digest_command import app as digest
from agent_reader.relay.watch_command import app as watch
from tests.architecture.configuration_reference import reference
from tests.system.documents import DOCUMENTS, OTHERS, commands_of

CHECKOUT: Final = Path(__file__).parents[2]
DOCS: Final = [*sorted((CHECKOUT / "docs").rglob("*.md")), CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md"]
PROGRAMS: Final = {
    "agent-reader": agent_reader.__main__.app,
    "change-executor": change_executor.__main__.app,
    "read-gate": read_gate.__main__.app,
}
# Run in place of the program, as the agent's user: their options are in programs of their own.
RELAYED: Final = {"mcp": relay, "digest": digest, "watch": watch}
# Ours too, and no typer programs: the words that each takes.
SCRIPTS: Final = {
    "mailwarrant-doctor": {"--json", "--probe-rights"},
    "mailwarrant-agent": {"mcp", "digest", "--peek"},
    "install": {
        *("--dry-run", "--answers", "--gate", "--sudoers", "--no-start", "--no-setup", "--uninstall", "--purge"),
        *("--help", "agent", "DIR"),
    },
}
_JOINTS: Final = {"|", "&&", "||", ";", "&", ">", ">>", "<", "2>"}


def commands() -> list[tuple[str, tuple[str, ...]]]:
    """Each command line of ours, in a code block or a sentence: where it stands, and its words from the program on."""
    found = []
    for document in DOCS:
        text = document.read_text(encoding="utf-8")
        for block in re.findall(r"^```(?:sh|console|bash)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            for line in block.replace("\\\n", " ").splitlines():
                found += [(document.name, words) for words in _ours(line)]
        prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
        spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]
        found += [(document.name, words) for span in spans for words in _ours(span) if len(words) > 1]
    return found


def _ours(line: str) -> list[tuple[str, ...]]:
    lexer = shlex.shlex(re.sub(r"\$\(|\)$|\) *$", " ", line), posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        words = list(lexer)
    except ValueError:
        # The middle of a body that goes over several lines.
        return []
    parts: list[list[str]] = [[]]
    for word in words:
        if word in _JOINTS:
            parts.append([])
        else:
            parts[-1].append(word)
    return [ours for part in parts if (ours := _from_the_program_on(part))]


def _from_the_program_on(words: list[str]) -> tuple[str, ...]:
    while words and (words[0] in {"sudo", "-n", "exec"} or re.match(r"[A-Z_]+=", words[0])):
        words = words[1:]
    if words[:1] == ["-u"]:
        words = words[2:]
    if not words:
        return ()
    name = words[0].rsplit("/", 1)[-1]
    is_ours = name in PROGRAMS or (name in SCRIPTS and (name != "install" or words[0] == "deploy/install"))
    return (name, *words[1:]) if is_ours or name == "make" else ()


FOUND: Final = commands()


def test_there_are_commands_of_every_program() -> None:
    assert {*PROGRAMS, *SCRIPTS, "make"} - {words[0] for _, words in FOUND} <= {"mailwarrant-agent", "read-gate"}
    assert len(FOUND) > 40


@pytest.mark.parametrize(
    ("where", "words"),
    sorted(set(FOUND)),
    ids=[f"{where}:{'_'.join(words)}"[:90] for where, words in sorted(set(FOUND))],
)
def test_a_command_in_a_document_exists_with_its_options(where: str, words: tuple[str, ...]) -> None:
    name, *rest = words
    if name == "make":
        targets = set(re.findall(r"^([\w-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
        assert {word for word in rest if re.fullmatch(r"[a-z-]+", word)} <= targets, where
        return
    if name in SCRIPTS:
        assert set(rest) <= SCRIPTS[name], where
        return
    path, options = _parsed(name, rest)
    relayed = _relayed(name, path)
    done = CliRunner().invoke(relayed or PROGRAMS[name], ["--help"] if relayed else [*path, "--help"])
    assert 0 == done.exit_code, f"{where}: {done.output}"
    assert options is not None, where


def _parsed(name: str, words: list[str]) -> tuple[list[str], set[str]]:
    command: Any = typer.main.get_command(PROGRAMS[name])
    path: list[str] = []
    while words and hasattr(command, "commands") and words[0] in command.commands:
        command = command.commands[words[0]]
        path.append(words[0])
        words = words[1:]
    assert path or set(words) <= {"--help"}, f"there is no {name} {' '.join(words)}"
    assert not hasattr(command, "commands") or not words or words[0].startswith("-"), f"{name} {path} has no {words[0]}"
    relayed = _relayed(name, path)
    if relayed is not None:
        command = typer.main.get_command(relayed)
    if relayed is watch and "--run" in words:
        # What follows is another program's.
        words = words[: words.index("--run") + 1]
    given = {word.split("=", 1)[0] for word in words if word.startswith("--")}
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
    assert given <= known, f"{name} {' '.join(path)} has no {given - known}"
    return path, given


def _relayed(name: str, path: list[str]) -> typer.Typer | None:
    return RELAYED.get(path[0]) if name == "agent-reader" and path else None


@pytest.mark.parametrize(
    "words", sorted({words[1:] for _, words in FOUND if words[0] == "install" and "agent" not in words}), ids=" ".join
)
def test_the_installer_runs_as_the_documents_say(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["bash", str(CHECKOUT / "deploy" / "install"), *words, *([] if "--help" in words else ["--dry-run"])],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    assert done.stdout


def test_every_code_block_for_a_shell_is_run_where_everything_is_installed_or_by_a_test_that_is_named() -> None:
    shown = {
        str(document.relative_to(CHECKOUT))
        for document in DOCS
        if re.search(r"^```(?:sh|console|bash)\n", document.read_text(encoding="utf-8"), re.MULTILINE)
    }
    run = {document.name for document in DOCUMENTS}
    assert shown == run | OTHERS.keys()
    for document in DOCUMENTS:
        assert commands_of(document), document.name
    assert all((CHECKOUT / test).exists() for test in OTHERS.values())


def test_the_configuration_page_is_what_the_settings_say() -> None:
    assert reference() == (CHECKOUT / "docs/configuration.md").read_text(encoding="utf-8"), "run `make docs`"
