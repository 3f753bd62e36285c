"""Every command in the documents that is for an installed machine does there what the document says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.system import installation as installed
from tests.system.documents import DOCUMENTS, Document, commands_of
from tests.system.machine import eventually

if TYPE_CHECKING:
    from tests.system.machine import Machine

pytestmark = pytest.mark.timeout(1200)

SOCKETS: Final = (
    "agent-reader.socket agent-reader-link.socket change-executor-intake.socket change-executor-review.socket"
)
PROGRAMS: Final = "agent-reader.service change-executor.service"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: f"{document.name}-{document.user}")
def test_the_commands_of_a_document_run(besieged: Machine, document: Document) -> None:
    commands = commands_of(document)
    assert commands
    if document.user == "root":
        script(besieged, "root", ["cd /root", *commands])
        return
    script(besieged, "root", [each for each in commands if each.startswith("sudo ")])
    own = [each for each in commands if not each.startswith("sudo ")]
    if document.user != "ada":
        script(besieged, document.user, own)
        return
    # Both programs run as one person: where the installed ones listen, and with the examples at hand.
    besieged.shell(
        f"systemctl stop {SOCKETS} {PROGRAMS}\n"
        "cp -r /root/mailwarrant/deploy /home/ada/; chown -R ada: /home/ada/deploy; chmod -R u+rwX /home/ada/deploy"
    )
    try:
        said = script(besieged, "ada", ["cd", *own])
        assert '"Email/query"' in said
        assert '"state":"pending"' in said.replace(" ", "")
    finally:
        besieged.run("bash", "-c", "kill -TERM -1", user="ada")
        # They hold the ports until they have ended.
        eventually(lambda: besieged.run("pgrep", "--euid", "ada").returncode == 1, "ada's programs to end")
        besieged.said("systemctl", "start", *SOCKETS.split(), *PROGRAMS.split())


def script(machine: Machine, user: str, commands: list[str]) -> str:
    """Run them in one shell that ends at the first that fails, and says which it was; what they said."""
    lines = [f"printf '%s\\n' {number} >&2\n{each}" for number, each in enumerate(commands)]
    commands_as_lines = "\n".join(lines) + "\n"
    # A document installs twice: on a machine that is busy with ten times its work, five minutes.
    done = machine.run("bash", "-euo", "pipefail", "-s", user=user, stdin=commands_as_lines, seconds=900)
    assert done.returncode == 0, f"{commands}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
    return done.stdout


def test_after_all_of_them_it_runs_and_nothing_is_wrong(besieged: Machine) -> None:
    for service in installed.SERVICES:
        assert "active" == besieged.said("systemctl", "is-active", service).strip()
    assert " events, head " in besieged.said("sudo", "-u", "change-executor", "change-executor", "audit", "verify")
