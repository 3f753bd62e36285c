"""Where the reader listens: one reader a folder, a private socket in a folder of its own, nothing stolen."""

from __future__ import annotations

import os
import socket
import stat
from typing import TYPE_CHECKING

import pytest

from agent_reader.access.database import open_file
from agent_reader.config import Server
from agent_reader.listening import bind_tcp, bound_unix, check_owner, sole_use_of
from shared.settings import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_second_reader_on_the_same_folder_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with sole_use_of(folder):
        with pytest.raises(ConfigurationError) as error, sole_use_of(folder):
            pass
        assert "another agent-reader" in error.value.what
        assert str(folder) in error.value.what
    with sole_use_of(folder):
        assert 0o700 == stat.S_IMODE(folder.stat().st_mode)


def test_the_private_socket_has_mode_0660_and_goes_with_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "reader.sock"
    with bound_unix(path):
        assert 0o660 == stat.S_IMODE(path.stat().st_mode)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    assert not path.exists()


def test_a_stale_socket_is_replaced_and_a_live_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "reader.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with bound_unix(path):
        with pytest.raises(ConfigurationError) as error, bound_unix(path):
            pass
        assert "another program listens" in error.value.what
        assert path.exists()


def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "reader.sock"
    path.write_text("a file of somebody")
    with pytest.raises(ConfigurationError), bound_unix(path):
        pass
    assert "a file of somebody" == path.read_text()
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(ConfigurationError), bound_unix(tmp_path / "link"):
        pass


def test_a_socket_that_somebody_else_put_there_since_stays(tmp_path: Path) -> None:
    path = tmp_path / "reader.sock"
    with bound_unix(path):
        path.unlink()
        path.write_text("another's")
    assert path.exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_in_which_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(ConfigurationError) as error, bound_unix(folder / "reader.sock"):
        pass
    assert "chmod go-w" in error.value.fix


def test_a_folder_that_is_not_there_is_named_with_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as error, bound_unix(tmp_path / "none" / "reader.sock"):
        pass
    assert str(tmp_path / "none") in error.value.what
    assert "install -d" in error.value.fix


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    os.chown(folder, 12_345, -1)
    with pytest.raises(ConfigurationError), bound_unix(folder / "reader.sock"):
        pass
    with pytest.raises(ConfigurationError) as error:
        check_owner(folder)
    assert "12345" in error.value.what


def test_localhost_is_listened_on_whole_and_a_taken_port_is_named() -> None:
    listeners = bind_tcp(Server(listen="localhost:0"))
    try:
        ports = {listener.getsockname()[1] for listener in listeners}
        assert len(ports) == 1
        assert "127.0.0.1" in {listener.getsockname()[0] for listener in listeners}
        with pytest.raises(ConfigurationError) as error:
            bind_tcp(Server(listen=f"127.0.0.1:{ports.pop()}"))
        assert "listen" in error.value.where
    finally:
        for listener in listeners:
            listener.close()


def test_a_folder_is_made_and_a_mistyped_path_to_it_is_not(tmp_path: Path) -> None:
    with sole_use_of(tmp_path / "index"):
        assert 0o700 == (tmp_path / "index").stat().st_mode & 0o777
    with pytest.raises(ConfigurationError, match="mistyped"), sole_use_of(tmp_path / "mistyped" / "index"):
        pass
    with pytest.raises(ConfigurationError, match="mistyped"):
        open_file(tmp_path / "mistyped" / "index")
    assert not (tmp_path / "mistyped").exists()
