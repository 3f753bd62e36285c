"""`reader.toml`: the example is whole, and every mistake is named with its mend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_reader.config import Account, BlobSettings, Jmap, ReaderSettings, ReadLogSettings, Server, StoreSettings
from shared.oauth import OAuth
from shared.settings import ConfigurationError, load_settings

EXAMPLE = Path(__file__).resolve().parents[2] / "deploy" / "examples" / "reader.toml"


def test_the_example_loads() -> None:
    settings = load_settings(EXAMPLE, ReaderSettings)
    assert ("127.0.0.1", 8620) == (settings.server.host, settings.server.port)
    assert Path("/var/lib/agent-reader") == settings.store.folder
    assert ["shop"] == [account.id for account in settings.accounts]


def test_the_example_shows_every_key_and_no_other() -> None:
    shown = {match[1] for line in EXAMPLE.read_text().splitlines() if (match := re.match(r"#? ?(\w+) = ", line))}
    known = {
        key
        for kind in (Server, Jmap, StoreSettings, BlobSettings, ReadLogSettings, Account, OAuth)
        for key in kind.model_fields
    }
    # The table of `oauth` is one of its own; three of its keys are for a provider that is not known by name.
    assert known - {"oauth", "token_url", "authorize_url", "device_url", "scope"} == shown


def test_the_example_loads_with_every_key_in_use(tmp_path: Path) -> None:
    # Comments that are settings become settings; of the secrets, and of the ways of trust, only one may be given.
    text = re.sub(r"^# (\w+ = |\[)", r"\1", EXAMPLE.read_text(), flags=re.MULTILINE)
    path = tmp_path / "reader.toml"
    path.write_text(re.sub(r"^(secret_\w+|certificate_sha256) = .*\n", "", text, flags=re.MULTILINE))
    settings = load_settings(path, ReaderSettings)
    oauth = settings.accounts[0].oauth
    assert oauth is not None
    assert "microsoft" == oauth.provider
    assert settings.server.executor_uid is not None
    assert settings.server.public_url is not None
    assert settings.accounts[0].mailboxes is not None


BASE = """
[store]
url = "sqlite:////tmp/x"
[[accounts]]
id = "shop"
host = "mail.example.org"
user = "reader"
secret_file = "/etc/secret"
"""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (BASE + "colour = 1", "accounts.0.colour"),
        (BASE + '[server]\nlisten = "0.0.0.0:8620"', "server.listen"),
        (BASE + '[server]\nlisten = "127.0.0.1:99999"', "listen"),
        (BASE + '[server]\nsocket = "reader.sock"', "socket"),
        (BASE + f'[server]\nsocket = "/{"x" * 120}"', "socket"),
        (BASE + '[server]\npublic_url = "http://x/path"', "server.public_url"),
        (BASE.replace("sqlite:////tmp/x", "/tmp/x"), "store.url"),
        (BASE.replace('host = "mail.example.org"', ""), "accounts.0.host"),
        (BASE.replace("secret_file", "password"), "accounts.0"),
        (BASE + "mailboxes = []", "accounts.0.mailboxes"),
        (BASE + 'mailboxes = ["a\\u0000b"]', "accounts.0.mailboxes"),
        (BASE + "sync_seconds = 0", "accounts.0.sync_seconds"),
        (BASE + 'tls = "none"', "tls"),
        (BASE.replace('id = "shop"', 'id = "Shop!"'), "accounts.0.id"),
        (BASE + BASE[BASE.index("[[") :], "accounts"),
        ("accounts = []\n[store]\nurl = 'sqlite:////x'", "accounts"),
        ("[store", "not TOML"),
    ],
)
def test_a_mistake_names_its_key_and_shows_no_value(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "reader.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as error:
        load_settings(path, ReaderSettings)
    assert named in str(error.value)
    assert str(path) in str(error.value)
    assert error.value.fix


def test_a_secret_is_not_in_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "reader.toml"
    path.write_text(BASE.replace("/etc/secret", str(tmp_path / "secret")))
    (tmp_path / "secret").write_text("hunter2")
    (tmp_path / "secret").chmod(0o600)
    assert "hunter2" not in repr(load_settings(path, ReaderSettings))
