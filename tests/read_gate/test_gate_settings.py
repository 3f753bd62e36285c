"""gate.toml: the example is whole, mistakes are named, and the gate is as small as it promises."""

from __future__ import annotations

import io
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

from read_gate.config import GateSettings
from shared.settings import ConfigurationError, load_settings, settings_from

CHECKOUT = Path(__file__).parents[2]
ACCOUNT = {
    "id": "mail",
    "host": "imap.example.org",
    "user": "owner",
    "secret_file": "/x/real",
    "local_secret_file": "/x/local",
}


def test_the_example_is_loaded_whole() -> None:
    settings = load_settings(CHECKOUT / "deploy/examples/gate.toml", GateSettings)
    assert ("127.0.0.1", 8623) == settings.gate.address
    assert ["mail"] == [account.id for account in settings.accounts]


@pytest.mark.parametrize(
    "changed",
    [
        {"gate": {"listen": "0.0.0.0:8623"}, "accounts": [ACCOUNT]},
        {"gate": {"listen": "localhost:8623"}, "accounts": [ACCOUNT]},
        {"accounts": []},
        {"accounts": [ACCOUNT, ACCOUNT]},
        {"accounts": [ACCOUNT | {"local_secret_credential": "x"}]},
        {"accounts": [{key: value for key, value in ACCOUNT.items() if key != "local_secret_file"}]},
        {"accounts": [ACCOUNT | {"tls": "none"}]},
        {"accounts": [ACCOUNT | {"mailboxes": ["INBOX"]}]},
    ],
)
def test_a_mistake_ends_the_start(changed: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        settings_from(changed, GateSettings, "gate.toml")


def test_a_local_secret_that_could_be_guessed_ends_the_start_with_status_2(tmp_path: Path) -> None:
    for name, text in (("real", "whatever it is"), ("local", "short")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o400)
    config = tmp_path / "gate.toml"
    config.write_text(
        f'[[accounts]]\nid = "mail"\nhost = "127.0.0.1"\ntls = "none"\nuser = "owner"\n'
        f'secret_file = "{tmp_path}/real"\nlocal_secret_file = "{tmp_path}/local"\n'
    )
    command = [sys.executable, "-m", "read_gate", "serve", "--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT, timeout=60)
    assert 2 == done.returncode
    assert "fewer than 32 characters" in done.stderr
    assert "whatever" not in done.stderr


def test_it_is_under_500_lines_of_code() -> None:
    """Lines that hold something besides comments, blank ones and docstrings."""
    assert 500 > sum(len(code_lines(path.read_text())) for path in (CHECKOUT / "read_gate").rglob("*.py"))


def code_lines(source: str) -> set[int]:
    found: set[int] = set()
    was_logical_end = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}:
            continue
        is_docstring = was_logical_end and token.type == tokenize.STRING
        was_logical_end = token.type == tokenize.NEWLINE or is_docstring
        if token.type != tokenize.NEWLINE and not is_docstring:
            found |= set(range(token.start[0], token.end[0] + 1))
    return found
