"""The optional sudoers file: visudo takes it, and it gives four commands and nothing beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

DEPLOY: Final = Path(__file__).parents[2] / "deploy"


def visudo(file: Path) -> int:
    path = f"{os.environ['PATH']}:/usr/sbin"
    return subprocess.run(
        ["visudo", "-cqf", file], env={"PATH": path}, capture_output=True, timeout=60, check=False
    ).returncode


def test_visudo_takes_the_file_once_the_agent_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mailwarrant"
    file.write_text((DEPLOY / "sudoers").read_text().replace("\nAGENT ", "\nagent "))
    file.chmod(0o440)
    assert 0 == visudo(file)
    # The control: it is really read.
    file.chmod(0o640)
    file.write_text(file.read_text() + "agent ALL=(root NOPASSWD: ALL\n")
    assert 0 != visudo(file)


def test_it_gives_exactly_four_commands_each_to_its_own_user() -> None:
    text = (DEPLOY / "sudoers").read_text().replace("\\\n", " ")
    rules = dict(line.split(" = ", 1) for line in text.splitlines() if line.startswith("Cmnd_Alias"))
    given = {name.split()[1]: [each.strip() for each in value.split(",")] for name, value in rules.items()}
    assert {
        "MAILWARRANT_ASK": [
            f"/usr/local/bin/mailwarrant-agent {words}" for words in ("mcp", "digest", "digest --peek")
        ],
        "MAILWARRANT_DOCTOR": ['/usr/local/bin/mailwarrant-doctor ""'],
    } == given
    assert [
        "AGENT ALL=(mailwarrant-agent) NOPASSWD: MAILWARRANT_ASK",
        "AGENT ALL=(root) NOPASSWD: MAILWARRANT_DOCTOR",
    ] == [line for line in text.splitlines() if line.startswith("AGENT")]
    assert "*" not in text
    assert "SETENV" not in text


@pytest.mark.parametrize(
    "words", [["mcp", "--token-file=/x"], ["serve"], [], ["digest", "--peek", "x"], ["mcp digest"]]
)
def test_the_agents_command_passes_on_nothing_else(words: list[str]) -> None:
    done = subprocess.run(
        ["sh", str(DEPLOY / "mailwarrant-agent"), *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert (2, True) == (done.returncode, "one of: mcp" in done.stderr)


def test_the_doctors_command_is_for_root_and_takes_two_options(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", str(DEPLOY / "mailwarrant-doctor"), "--user=root"], capture_output=True, timeout=60, check=False
    )
    assert 2 == done.returncode


def test_the_installer_tells_what_it_would_do_for_an_agent() -> None:
    done = subprocess.run(
        ["bash", str(DEPLOY / "install"), "--dry-run", "--sudoers", "root"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    assert "+ write /etc/sudoers.d/mailwarrant for root" in done.stdout
    assert "agent-reader-doctor@.service" in done.stdout


@pytest.mark.parametrize("command", ["mcp", "digest", "watch"])
def test_no_module_of_the_folder_that_an_agent_works_in_is_ever_run(tmp_path: Path, command: str) -> None:
    for name in ("typer", "mcp", "httpx", "agent_reader", "shared", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("import pathlib; pathlib.Path(__file__).with_name('owned').touch()\n")
    start = "import sys; sys.argv = ['agent-reader', *sys.argv[1:]]; from agent_reader.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-I", "-c", start, command, "--help"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    assert "token-file" in done.stdout
    assert not (tmp_path / "owned").exists()
