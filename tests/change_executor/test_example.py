"""The example configuration loads, and shows every key that there is with its default."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from change_executor.config import Destination, ExecutorSettings, Intake, JournalSettings, Queue, Reader, Review
from change_executor.notify.settings import Notify
from shared.imap_login import ImapLogin
from shared.metrics import Metrics
from shared.settings import ConfigurationError, load_settings, settings_from

EXAMPLE = Path(__file__).parents[2] / "deploy" / "examples" / "executor.toml"

SECTIONS: dict[str, type[BaseModel]] = {
    "": ExecutorSettings,
    "[intake]": Intake,
    "[review]": Review,
    "[reader]": Reader,
    "[journal]": JournalSettings,
    "[metrics]": Metrics,
    "[notify]": Notify,
    "[[credentials]]": ImapLogin,
    "[[queues]]": Queue,
    "[queues.to.processed]": Destination,
    "[queues.to.escalate]": Destination,
}


def keys_by_section(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"": set()}
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.split("#")[0].strip()
            found[section] = set()
        elif match := re.match(r"#?([a-z0-9_]+) = ", line):
            found[section].add(match[1])
    return found


def test_the_example_loads() -> None:
    settings = load_settings(EXAMPLE, ExecutorSettings)
    assert ("support", "Incoming") == (settings.queues[0].id, settings.queues[0].incoming)


def test_the_example_shows_every_key_and_no_other() -> None:
    found = keys_by_section(EXAMPLE.read_text(encoding="utf-8"))
    assert SECTIONS.keys() == found.keys()
    tables = {"intake", "review", "reader", "journal", "notify", "metrics", "credentials", "queues", "to"}
    for section, model in SECTIONS.items():
        assert set(model.model_fields) - tables == found[section], section


def test_what_is_commented_out_shows_the_default_where_there_is_one() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    # Without it nobody can ask, and its key has no default.
    text = text.replace('#listen = "127.0.0.1:8625"\n', "")
    plain = load_settings(EXAMPLE, ExecutorSettings)
    # These have no default; the example shows how they look.
    without_default = (
        *("uid", "secret_command", "secret_credential", "oauth", "ca_file", "certificate_sha256"),
        *("authserv_id", "public_url", "stop_file", "heads_file", "agents"),
        *("webhook", "ntfy", "command"),
    )
    spelled_out = "\n".join(
        line[1:] if re.match(r"#[a-z0-9_]+ = ", line) and not line[1:].startswith(without_default) else line
        for line in text.splitlines()
    )
    assert text != spelled_out
    assert plain == settings_from(tomllib.loads(spelled_out), ExecutorSettings, "the example, spelled out")


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ('account = "shop"', 'account = ""', "`queues.0.account`: must be"),
        ('account = "shop"', 'account = "The shop"', "`queues.0.account`: must be"),
        ('credential = "move"', 'credential = "mvoe"', "credential `mvoe`, which is not configured; there is `move`"),
    ],
)
def test_what_a_queue_names_and_cannot_be_there_stops_the_start(right: str, wrong: str, named: str) -> None:
    raw = tomllib.loads(EXAMPLE.read_text(encoding="utf-8").replace(right, wrong))
    with pytest.raises(ConfigurationError) as caught:
        settings_from(raw, ExecutorSettings, "executor.toml")
    assert named in str(caught.value)
    assert "the file" not in str(caught.value)
