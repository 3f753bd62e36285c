import sys
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field, SecretStr

from shared.imap_login import ImapLogin
from shared.settings import ConfigurationError, Section, load_settings, read_secret, settings_from


class _Inner(Section):
    port: int


class _Example(Section):
    name: str
    inner: _Inner
    password: SecretStr = SecretStr("")


def _load(tmp_path: Path, text: str) -> _Example:
    path = tmp_path / "example.toml"
    path.write_text(text)
    return load_settings(path, _Example)


def test_a_right_file_is_read_and_frozen(tmp_path: Path) -> None:
    settings = _load(tmp_path, 'name = "x"\ninner = { port = 1 }\n')
    assert 1 == settings.inner.port
    with pytest.raises(ValueError, match="frozen"):
        settings.name = "y"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('name = "x"\n', "`inner`"),
        ('name = "x"\nnmae = "y"\ninner = { port = 1 }\n', "`nmae`"),
        ('name = "x"\ninner = { port = "secret-value" }\n', "`inner.port`"),
        ('name = "x"\ninner = { port = 1, prot = 2 }\n', "`inner.prot`"),
        ("name = \n", "TOML"),
    ],
)
def test_a_mistake_is_named_by_file_and_key_and_its_value_is_not_repeated(
    tmp_path: Path, text: str, named: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _load(tmp_path, text)
    assert named in str(caught.value)
    assert "example.toml" in str(caught.value)
    assert "secret-value" not in str(caught.value)
    assert caught.value.fix


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no such file"):
        load_settings(tmp_path / "none.toml", _Example)


def test_a_secret_comes_from_a_file_or_a_command_without_its_line_end(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("pass word\n")
    path.chmod(0o640)
    assert "pass word" == read_secret(path, None, "login").get_secret_value()
    command = (sys.executable, "-c", "print('from command')")
    assert "from command" == read_secret(None, command, "login").get_secret_value()


@pytest.mark.parametrize("octets", [b"", b"\n", b"a\nb\n", b"\xff", b"a\0b", b"x" * 20_000])
def test_a_secret_that_is_no_line_of_text_is_refused_without_being_repeated(tmp_path: Path, octets: bytes) -> None:
    path = tmp_path / "secret"
    path.write_bytes(octets)
    path.chmod(0o400)
    with pytest.raises(ConfigurationError) as caught:
        read_secret(path, None, "the login `shop`")
    assert "the login `shop`" in str(caught.value)
    assert "chmod" not in str(caught.value)


def test_a_secret_file_that_everybody_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("pass word\n")
    path.chmod(0o644)
    with pytest.raises(ConfigurationError, match=f"chmod 400 {path}"):
        read_secret(path, None, "login")


@pytest.mark.parametrize("command", [(sys.executable, "-c", "raise SystemExit(3)"), ("/nonexistent/command",)])
def test_a_secret_command_that_fails_is_named_and_its_output_is_not(command: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError, match="secret command"):
        read_secret(None, command, "login")


def test_a_login_without_tls_is_for_this_machine_only() -> None:
    raw = {"id": "shop", "host": "127.0.0.1", "tls": "none", "user": "shop", "secret_file": "/x"}
    assert "127.0.0.1" == settings_from(raw, ImapLogin, "reader.toml").host
    with pytest.raises(ConfigurationError, match="loopback"):
        settings_from(raw | {"host": "mail.shop.example"}, ImapLogin, "reader.toml")


@pytest.mark.parametrize("key", ["secret_file", "ca_file"])
@pytest.mark.parametrize("path", ["~/secret", "secret", "./secret"])
def test_a_path_is_whole_since_each_command_starts_somewhere_else(key: str, path: str) -> None:
    raw = {"id": "shop", "host": "127.0.0.1", "user": "shop", "secret_file": "/x"}
    with pytest.raises(ConfigurationError, match="not expanded"):
        settings_from(raw | {key: path}, ImapLogin, "reader.toml")


def test_a_wrong_entry_is_one_mistake_and_not_a_short_list_too() -> None:
    class _Listed(Section):
        entries: Annotated[tuple[_Inner, ...], Field(min_length=1)]

    with pytest.raises(ConfigurationError) as caught:
        settings_from({"entries": [{"port": "x"}]}, _Listed, "example.toml")
    assert "more after this" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="1 more after this"):
        settings_from({"entries": [{"port": "x", "prot": 1}]}, _Listed, "example.toml")


def test_a_login_has_one_source_of_its_secret() -> None:
    raw = {"id": "shop", "host": "127.0.0.1", "user": "shop"}
    for both in ({}, {"secret_file": "/x", "secret_command": ["x"]}):
        with pytest.raises(ConfigurationError, match="secret_file"):
            settings_from(raw | both, ImapLogin, "reader.toml")


class _Typed(Section):
    most: int = 1
    dangerous: bool = False
    share: float = 0.5
    folders: tuple[Path, ...] = ()


@pytest.mark.parametrize(
    "text", ["most = true", 'most = "1"', "most = 1.0", 'dangerous = "on"', "dangerous = 1", "share = true"]
)
def test_a_value_of_another_kind_than_its_keys_is_no_value_of_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "example.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=f"`{text.split(maxsplit=1)[0]}`: must be"):
        load_settings(path, _Typed)


def test_a_value_of_its_keys_kind_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "example.toml"
    path.write_text('most = 2\ndangerous = true\nshare = 1\nfolders = ["/a"]\n')
    assert _Typed(most=2, dangerous=True, share=1.0, folders=(Path("/a"),)) == load_settings(path, _Typed)
    path.write_text("folders = [1979-05-27]\n")
    with pytest.raises(ConfigurationError, match=r"`folders\.0`: must be"):
        load_settings(path, _Typed)


@pytest.mark.parametrize(
    ("text", "named", "meant"),
    [
        ('name = "x"\ninner = { prt = 1 }\n', "unknown key `inner.prt` (1 more", "`port`"),
        ('nam = "x"\ninner = { port = 1 }\n', "unknown key `nam` (1 more", "`name`"),
        ('name = "x"\ninner = { port = 1 }\npasword = "y"\n', "unknown key `pasword`.", "`password`"),
    ],
)
def test_a_misspelled_key_is_the_one_that_is_named_with_what_was_meant(
    tmp_path: Path, text: str, named: str, meant: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _load(tmp_path, text)
    assert named in caught.value.what
    assert f"Did you mean {meant}? " in caught.value.fix
    with pytest.raises(ConfigurationError) as caught:
        _load(tmp_path, 'name = "x"\ninner = { port = 1 }\nzzz = "y"\n')
    assert "Did you mean" not in caught.value.fix


def test_one_table_where_there_may_be_several_is_told_with_its_brackets(tmp_path: Path) -> None:
    class _Several(Section):
        entries: tuple[_Inner, ...]

    path = tmp_path / "example.toml"
    path.write_text("[entries]\nport = 1\n")
    with pytest.raises(ConfigurationError) as caught:
        load_settings(path, _Several)
    assert "[[entries]]" in caught.value.fix
