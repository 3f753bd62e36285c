"""Three OS users of our own, and programs run as each of them; needs root.

The interpreter and the code must be where every user can run them; a checkout or a Python below a private home is
copied to the test's own folder.
"""

import compileall
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("agent_reader", "change_executor", "shared")
# Everything that a user could have kept from root is given up, and nothing can be gained again.
_CONFINED: Final = ("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--reset-env", "--init-groups")


@dataclass(frozen=True)
class User:
    """An OS user made for the tests."""

    name: str
    uid: int
    gid: int

    def command(self, program: "Program", *arguments: str) -> list[str]:
        return [*self.run_as(), *program.entry, *arguments]

    def run_as(self) -> list[str]:
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", *_CONFINED]


@dataclass(frozen=True)
class Program:
    """How any user runs the project's Python."""

    entry: tuple[str, ...]


def make_user(name: str, *groups: str) -> User:
    """Make a system user, or take the one of an earlier run."""
    for group in groups:
        subprocess.run(["groupadd", "--system", "--force", group], check=True, capture_output=True)
    subprocess.run(
        ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", name],
        check=False,
        capture_output=True,
    )
    if groups:
        subprocess.run(["usermod", "--append", "--groups", ",".join(groups), name], check=True, capture_output=True)
    entry = pwd.getpwnam(name)
    return User(name, entry.pw_uid, entry.pw_gid)


@contextmanager
def common_ground() -> Iterator[Path]:
    """A folder that every user can pass through; what lies in it has owners and modes of its own."""
    folder = Path(tempfile.mkdtemp(prefix="mw-users-", dir="/tmp"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def program_in(folder: Path) -> Program:
    """Make the code and the interpreter runnable by all, root-owned, and return how to run them."""
    code = folder / "code"
    code.mkdir(mode=0o755)
    for package in PACKAGES:
        shutil.copytree(CHECKOUT / package, code / package, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(code, quiet=2, workers=1)
    libraries = Path(sysconfig.get_path("purelib"))
    if not _passable(libraries):
        shutil.copytree(libraries, folder / "libraries", ignore=shutil.ignore_patterns("playwright*", "mypy*"))
        libraries = folder / "libraries"
    environment = [f"PYTHONPATH={code}:{libraries}", "PYTHONDONTWRITEBYTECODE=1"]
    interpreter = Path(sys.executable).resolve()
    if not _passable(interpreter):
        interpreter = _copied_interpreter(folder / "python")
        # It looks for its own library where it was built, which no other user can reach.
        environment.append(f"LD_LIBRARY_PATH={folder / 'python' / 'lib'}")
    return Program(("env", *environment, str(interpreter)))


def _copied_interpreter(folder: Path) -> Path:
    base = Path(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "bin").mkdir(parents=True)
    shutil.copy(base / "bin" / version, folder / "bin")
    left_out = shutil.ignore_patterns("site-packages", "test", "idlelib", "config-*", "*.a")
    shutil.copytree(base / "lib" / version, folder / "lib" / version, ignore=left_out)
    for library in (base / "lib").glob("libpython*.so*"):
        shutil.copy(library, folder / "lib")
    return folder / "bin" / version


def _passable(path: Path) -> bool:
    return all(step.stat().st_mode & 0o001 for step in (path, *path.parents) if step.is_dir() or step == path)
