"""A Debian tree with systemd, a mail server and our programs in it; made once, copied for each run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CHECKOUT: Final = Path(__file__).parents[2]
# Some 600 MB for each release of Debian: Dovecot 2.3 or 2.4, Python 3.11 or 3.13 come with it.
BASE: Final = Path(os.environ.get("MAILWARRANT_SYSTEM_TREE", "/var/tmp/mailwarrant-system"))
PACKAGES: Final = (
    *("systemd", "systemd-sysv", "dbus", "python3", "python3-venv", "dovecot-imapd", "sudo", "util-linux"),
    *("ca-certificates", "iproute2", "curl", "procps", "passwd", "e2fsprogs"),
)
MIRROR: Final = os.environ.get("MAILWARRANT_SYSTEM_MIRROR", "http://deb.debian.org/debian")
# How this machine reaches its package index, so that the tree does too.
_KEPT: Final = ("PIP_", "SSL_CERT_FILE", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "no_proxy")


def release() -> str:
    """The code name of the Debian that is asked for: this machine's, unless another one is named."""
    if named := os.environ.get("MAILWARRANT_SYSTEM_RELEASE"):
        return named
    said = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return said["VERSION_CODENAME"].strip('"')


def fresh_tree(folder: Path) -> Path:
    """Copy the base tree, with this checkout's programs installed and nothing set up; returns where it lies."""
    base, packages = BASE / release(), ",".join(PACKAGES)
    ready = base / "ready"
    if not ready.exists() or ready.read_text() != packages:
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir(parents=True)
        # In a mount namespace of its own: a /proc that it left there would be copied, all the memory in it.
        _run(
            "unshare",
            "--mount",
            "debootstrap",
            "--variant=minbase",
            f"--include={packages}",
            release(),
            str(base / "tree"),
            MIRROR,
        )
        for file in ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
            if Path(file).exists():
                shutil.copy(file, f"{base}/tree{file}")
        ready.write_text(packages)
    tree = folder / "tree"
    _run("cp", "-a", "--one-file-system", "--reflink=auto", str(base / "tree"), str(tree))
    install_code(tree)
    return tree


def install_code(tree: Path, also: Mapping[str, str] | None = None) -> None:
    """Put this checkout into the tree and install its programs, with the network of this machine.

    `also`: more files of the checkout, by path.
    """
    source = tree / "root" / "mailwarrant"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    for name in ("agent_reader", "change_executor", "read_gate", "shared", "deploy", "docs", "requirements"):
        shutil.copytree(CHECKOUT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in (also or {}).items():
        (source / name).write_text(text)
    places = [place for place in os.environ.get("PIP_FIND_LINKS", "").split() if place.startswith("/")]
    places += [place for place in _places_of_pip() if place not in places]
    for place in places:
        (tree / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
    kept = [f"{name}={value}" for name, value in os.environ.items() if name.startswith(_KEPT)]
    install = f"exec chroot {tree} /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin {' '.join(kept)}"
    steps = [
        "cd /",
        f"mount -t proc proc {tree}/proc",
        *(f"mount --bind {place} {tree}{place}" for place in places),
        f"{install} /root/mailwarrant/deploy/install --no-setup",
    ]
    # A mount namespace of its own: the binds are gone with it.
    _run("unshare", "--mount", "bash", "-c", " && ".join(steps))


def _places_of_pip() -> list[str]:
    said = subprocess.run(
        ["python3", "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    words = said.replace("'", " ").replace("\\n", " ").split()
    paths = [word.removeprefix("file://") for word in words if word.startswith(("/", "file:///"))]
    return [str(Path(path).parent) if path.endswith("/simple") else path for path in paths if Path(path).is_dir()]


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
