"""The code blocks of the documents as scripts, to be run word for word where everything is installed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tests.system.tree import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Mapping

# What is not run there, by how the line begins, and why.
ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "sudo apt install ": "the container has no network; python3-venv came with its tree",
        "sudo useradd --create-home --shell /bin/bash agent": "the tree has its people, with uids of their own",
        "sudo deploy/install --uninstall": "the last of tests/system/check_installed.py",
        "cat > ": "waits for what is pasted; install.md does it by a pipe, and that is run",
        "make environment": "the container has no network; the installed programs take its place",
        "make demo": "tests/demo",
        "make test": "these tests",
    }
)


# Whole documents that other tests run, or go through step by step.
OTHERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "docs/jmap.md": "tests/agent_reader/jmap/test_jmap_document.py",
        # The same users, groups, folders and setpriv, without a service manager.
        "docs/separate-users.md": "tests/end_to_end/test_three_users.py",
        "docs/tokens.md": "tests/agent_reader/test_access_commands.py",
    }
)


@dataclass(frozen=True, slots=True)
class Document:
    """One that is run, from the line that begins with `begins` to the one before `ends`, by `user` where sudo is not.

    `words` are put in the place of the document's examples; `before` are scripts, by how the line begins that each is
    run before.
    """

    name: str
    begins: str = ""
    ends: str | None = None
    user: str = "root"
    words: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)


_PROGRAMS: Final = ("agent-reader", "change-executor")
# What a person does with an editor.
_EDIT: Final = (
    r"""sed -i 's/^host = .*/host = "127.0.0.1"\nport = 1143\ntls = "none"/; /^port = /d; /^tls = /d; """
    r"""s/^user = .*/user = "{0}"/' ~/mw/{0}.toml"""
)
_UNTIL_IT_ANSWERS: Final = (
    "for _ in $(seq 300); do curl -s -o /dev/null http://127.0.0.1:8622/ && break; sleep 0.2; done"
)

DOCUMENTS: Final = (
    Document(
        "docs/install.md",
        words={
            "user add ada": "user add ida",
            "user link ada": "user link ida",
            # Goes on until all is there, and then too.
            "sudo -u agent-reader agent-reader status": "timeout 3 sudo -u agent-reader agent-reader status",
            "status --follow": "status --follow || test $? = 124",
        },
        before={"sudo -u agent install": "rm -rf /home/agent/.config"},
    ),
    Document(
        "docs/agents/connect.md",
        begins="sudo -u agent install",
        ends="umask 077",
        before={"sudo -u agent install": "rm -rf /home/agent/.config"},
    ),
    # The clients are not there; what they are told is.
    Document(
        "docs/agents/connect.md",
        begins="FILE=",
        user="agent",
        words={'eval "$(': 'echo "$(', "; claude mcp list": "", "; codex mcp list": ""},
    ),
    Document(
        "docs/agents/digest-and-watch.md",
        user="agent",
        words={
            "agent-reader watch": "timeout 3 agent-reader watch",
            "my-agent --triage": "true --triage || test $? = 124",
        },
    ),
    Document(
        "README.md",
        begins="sudo deploy/install",
        ends="make environment",
        words={"user add ada": "user add eve", "user link ada": "user link eve"},
        before={"sudo deploy/install": "cd mailwarrant"},
    ),
    Document("docs/journal.md", before={"install -o root": "mkdir -p /var/log/mailwarrant"}),
    Document(
        "docs/backup.md",
        words={
            f"/var/lib/{program}/backups/2026-11-30T02-45-00Z": f"$(ls -d /var/lib/{program}/backups/2*Z | tail -1)"
            for program in _PROGRAMS
        },
        before={
            "sudo -u change-executor change-executor restore": "systemctl stop change-executor; mkdir -p /root/away; "
            "mv /var/lib/change-executor/journal.db* /root/away/",
            "sudo -u agent-reader agent-reader restore": "systemctl stop agent-reader; mkdir -p /root/away/reader; "
            "find /var/lib/agent-reader -mindepth 1 -maxdepth 1 ! -name backups -exec mv -t /root/away/reader {} +",
        },
    ),
    Document(
        "docs/operate.md",
        words={"/dev/stdin": "/root/answers/reader.secret"},
        before={
            "systemctl status": "systemctl start agent-reader change-executor; "
            "sudo -u change-executor change-executor resume || true",
            "cd mailwarrant-before": "cd /root; ln -sfn mailwarrant mailwarrant-before",
            "cd mailwarrant ": "cd /root",
            "sudo -u change-executor change-executor backup": "sleep 1  # a copy is named by its second",
        },
    ),
    Document(
        "README.md",
        begins="umask 077",
        user="ada",
        words={
            **{
                f".venv/bin/{program}": f"/opt/mailwarrant/{house}/bin/{program}"
                for program, house in zip(_PROGRAMS, ("reader", "executor"), strict=True)
            },
            "PASSWORD OF THE READ LOGIN": "password-of-reader",
            "PASSWORD OF THE MOVE LOGIN": "password-of-executor",
            "serve --config ~/mw/reader.toml": "serve --config ~/mw/reader.toml >~/mw/reader.log 2>&1 &",
            "serve --config ~/mw/executor.toml": "serve --config ~/mw/executor.toml >~/mw/executor.log 2>&1 &",
            '"M..."': f'"M{"a" * 32}"',
        },
        before={
            ".venv/bin/agent-reader serve": _EDIT.format("reader"),
            ".venv/bin/change-executor serve": _EDIT.format("executor"),
            "READER_TOKEN=": _UNTIL_IT_ANSWERS,
        },
    ),
)


def commands_of(document: Document) -> list[str]:
    """The commands to run, each with what it is run after, in their order; one that goes over lines is one."""
    blocks = re.findall(
        r"^```(?:sh|console|bash)\n(.*?)^```",
        (CHECKOUT / document.name).read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    text = "".join(blocks)
    end = len(text) if document.ends is None else text.index(document.ends)
    found = []
    for line in _whole(text[text.index(document.begins) : end]):
        if line.startswith(tuple(ELSEWHERE)):
            continue
        found += [script for begins, script in document.before.items() if line.startswith(begins)]
        found.append(_with(document.words, line))
    return found


def _with(words: Mapping[str, str], line: str) -> str:
    for example, ours in words.items():
        line = line.replace(example, ours)
    return line


def _whole(text: str) -> list[str]:
    """Lines, those within one pair of quotation marks together."""
    found: list[str] = []
    is_open = False
    for line in text.replace("\\\n", " ").splitlines():
        if is_open:
            found[-1] += f"\n{line}"
        elif line.strip():
            found.append(line)
        said = re.sub(r"\s#.*", "", line)
        is_open ^= bool((said.count("'") if "'" in said or is_open else 0) % 2) or bool(said.count('"') % 2)
    return found
