"""Each import contract, kept by the tree as it is, and shown to break when a violation is planted."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]

# contract id -> (file to plant in, line to plant)
VIOLATIONS = {
    "houses": ("agent_reader/jmap/__init__.py", "import change_executor.lifecycle"),
    "paper": ("shared/proposal.py", "import sqlalchemy"),
    "gate": ("read_gate/front.py", "import shared.message"),
    "line": ("agent_reader/sync/__init__.py", "import agent_reader.store"),
    "relay": ("agent_reader/relay/endpoint.py", "import agent_reader.store"),
    "mover": ("change_executor/worker.py", "import change_executor.mover"),
    "desk": ("change_executor/review/decisions.py", "import change_executor.apply"),
    "imap": ("agent_reader/store/__init__.py", "import imapclient"),
    "smtp": ("change_executor/journal/journal.py", "import smtplib"),
    "child": ("change_executor/review/app.py", "import selectolax"),
    "pure": ("change_executor/policy.py", "import sqlalchemy"),
}


def _lint(tree: Path, contract: str | None = None) -> subprocess.CompletedProcess[str]:
    chosen = ["--contract", contract] if contract else []
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache", *chosen],
        cwd=tree,
        env={"PYTHONPATH": str(tree), "PATH": "/usr/bin:/bin", "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for package in ("agent_reader", "change_executor", "read_gate", "shared"):
        shutil.copytree(CHECKOUT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_tree_keeps_every_contract_and_each_has_its_planted_violation() -> None:
    done = _lint(CHECKOUT)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert f"Contracts: {len(VIOLATIONS)} kept, 0 broken." in done.stdout


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_a_planted_violation_breaks_its_contract(tree: Path, contract: str) -> None:
    name, line = VIOLATIONS[contract]
    planted = tree / name
    planted.write_text(planted.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    done = _lint(tree, contract)
    assert 1 == done.returncode, done.stdout + done.stderr
    assert "1 broken" in done.stdout
    assert name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") in done.stdout


def test_no_module_opens_a_socket_to_a_mail_server_but_through_the_guarded_login() -> None:
    """imaplib and imapclient are named in seven places; only one of them makes a connection."""
    naming = {
        path.relative_to(CHECKOUT).as_posix()
        for package in ("agent_reader", "change_executor", "read_gate", "shared")
        for path in (CHECKOUT / package).rglob("*.py")
        if any(
            line.split()[:1] in (["import"], ["from"]) and ("imapclient" in line or "imaplib" in line)
            for line in path.read_text(encoding="utf-8").splitlines()
        )
    }
    # imap_verbs only encodes mailbox names (modified UTF-7) for the patterns of its tables.
    allowed = {
        "agent_reader/imap/",
        # A process of its own, with a table of its own.
        "agent_reader/doctor/probe_rights.py",
        "change_executor/imap_verbs.py",
        "change_executor/looking.py",
        "change_executor/mover.py",
        "shared/imap_login.py",
        # What ends a connection is one of imaplib's own errors.
        "shared/imap_stream.py",
    }
    assert not {name for name in naming if not name.startswith(tuple(allowed))}
    making = {
        name
        for name in naming
        if "IMAPClient(" in (CHECKOUT / name).read_text(encoding="utf-8").replace("(imapclient.IMAPClient)", "")
    }
    assert {"shared/imap_login.py"} >= making


def test_the_power_of_the_system_reads_in_one_sitting() -> None:
    """What may happen, what is allowed, what does it, and the only code that can."""
    texts = [
        (CHECKOUT / f"change_executor/{name}.py").read_text() for name in ("lifecycle", "policy", "apply", "mover")
    ]
    assert sum(len(text.splitlines()) for text in texts) < 900
