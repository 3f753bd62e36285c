"""The container that is besieged, shared by the files that do so: a plugin of pytest (`-p tests.system.machines`)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.system import installation as installed
from tests.system.machine import Machine
from tests.system.tree import fresh_tree

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def besieged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Installed with sudo for the agent, the path walked once, and a second agent's token to flood with."""
    tree = installed.tree_with_mail(fresh_tree(tmp_path_factory.mktemp("besieged")))
    with Machine(tree) as running:
        running.said("systemctl", "enable", "--now", "test-imap.service")
        running.said("/root/mailwarrant/deploy/install", "--answers", "/root/answers", "--sudoers", "agent")
        installed.walk_the_path(running)
        running.shell(
            "install -m 400 -o mailwarrant-agent -g mailwarrant-agent /home/agent/reader.token"
            " /var/lib/mailwarrant-agent/reader-token; usermod -aG mailwarrant-agents agent\n"
            # Who floods is another agent to the executor, or the first one would be told to wait.
            "sudo -u change-executor change-executor token create --agent flood --queue support"
            " | tail -1 > /home/agent/flooding.token\n"
            "chown agent:agent /home/agent/flooding.token; chmod 400 /home/agent/flooding.token"
        )
        yield running
        if request.session.testsfailed:
            said = running.run("journalctl", "-o", "cat", "-n", "100", "-u", "agent-reader", "-u", "change-executor")
            sys.stderr.write(said.stdout)
    # What may only be added to cannot be removed: the documents have the heads file made so.
    subprocess.run(["chattr", "-a", *map(str, (tree / "var/log/mailwarrant").glob("*"))], check=False)
    shutil.rmtree(tree, ignore_errors=True)
