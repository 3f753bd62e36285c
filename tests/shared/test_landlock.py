"""What a process that shut itself in cannot do, each act done before, to show that it would have worked."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from shared.landlock import folders_of_code, landlock_version

# Tried twice: before, and shut in. Seeing memory needs ptrace's rights (process_vm_readv(2)): an address that is no
# address is EFAULT to whoever may.
PROGRAM: Final = """
import ctypes, json, os, socket, sys
from pathlib import Path
from shared import landlock

ARGUMENTS = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)

def reads(): open(ARGUMENTS["secret"]).read()
def writes(): open(ARGUMENTS["folder"] + "/scratch", "w").write("x")
def lists(): os.listdir(ARGUMENTS["folder"])
def removes(): os.unlink(ARGUMENTS["folder"] + "/scratch")
def runs(): os.waitpid(os.posix_spawn("/bin/true", ["/bin/true"], {}), 0)
def connects(): socket.create_connection(("127.0.0.1", ARGUMENTS["port"])).close()
def listens(): socket.create_server(("127.0.0.1", 0)).close()
def connects_abstractly():
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("\\0" + ARGUMENTS["abstract"])
def signals(): os.kill(os.getppid(), 0)
def sees_memory():
    span = (ctypes.c_size_t * 2)(4096, 8)
    libc.process_vm_readv(os.getppid(), span, 1, span, 1, 0)
    if ctypes.get_errno() == 1:
        raise PermissionError
def reads_what_is_allowed(): open(ARGUMENTS["allowed"] + "/text").read()
def writes_what_may_be_read(): open(ARGUMENTS["allowed"] + "/scratch", "w").write("x")

ACTS = [reads, writes, lists, removes, runs, connects, listens, connects_abstractly, signals, sees_memory,
        reads_what_is_allowed, writes_what_may_be_read]

def tried():
    done = []
    for act in ACTS:
        try:
            act()
            done.append(act.__name__)
        except OSError:
            pass
    return done

before = tried()
Path(ARGUMENTS["folder"], "scratch").touch()
held = landlock.shut([Path(ARGUMENTS["allowed"])])
print(json.dumps([held, before, tried()]))
"""

ALWAYS: Final = {"reads_what_is_allowed"}
# What a kernel that has Landlock takes, by the version that brought it.
SINCE: Final = {
    1: {"reads", "writes", "lists", "removes", "runs", "sees_memory", "writes_what_may_be_read"},
    4: {"connects", "listens"},
    6: {"connects_abstractly", "signals"},
}


@pytest.mark.parametrize("hidden", [False, True], ids=["as the kernel is", "as a kernel without it"])
def test_what_worked_before_is_refused_after_as_far_as_the_kernel_goes(tmp_path: Path, *, hidden: bool) -> None:
    for name in ("folder", "allowed"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder/secret").write_text("secret")
    (tmp_path / "allowed/text").write_text("text")
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{tmp_path}")
        abstract.listen()
        arguments = {
            "folder": str(tmp_path / "folder"),
            "secret": str(tmp_path / "folder/secret"),
            "allowed": str(tmp_path / "allowed"),
            "port": listener.getsockname()[1],
            "abstract": str(tmp_path),
        }
        program = PROGRAM.replace("before =", "landlock.landlock_version = lambda: 0\nbefore =") if hidden else PROGRAM
        done = subprocess.run(
            [sys.executable, "-I", "-c", program, json.dumps(arguments)], capture_output=True, check=False, timeout=60
        )
    assert done.returncode == 0, done.stderr
    version = 0 if hidden else landlock_version()
    held, before, after = json.loads(done.stdout)
    everything = ALWAYS.union(*SINCE.values())
    # Where Yama keeps ordinary users from their own processes' memory, that was refused before.
    assert everything - set(before) <= {"sees_memory"}
    taken = {act for since, acts in SINCE.items() if since <= version for act in acts}
    assert (version, set(before) - taken) == (held, set(after))


def test_what_may_be_read_is_code_and_never_the_whole_machine() -> None:
    program = "from shared.landlock import folders_of_code; print(*folders_of_code(), sep='\\n')"
    # With -c the first place of the path is wherever the process stands.
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True, cwd="/")
    folders = [Path(line) for line in said.stdout.splitlines()]
    assert set(folders_of_code()) >= set(folders) - {Path(sys.argv[0]).parent}
    assert Path("/") not in folders
    assert all(each.is_absolute() and each.is_dir() for each in folders)
    assert any(Path(json.__file__).is_relative_to(each) for each in folders)
