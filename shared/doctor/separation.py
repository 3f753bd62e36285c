"""Who is who: the users that must differ, the groups that must not overlap, and sudo."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from shared.doctor.finding import Fault, Looking
from shared.doctor.installation import Installation
from shared.doctor.users import User, group_name

# Groups that are as good as root, or that read what every program logs (Debian's names).
_STRONG: Final = frozenset(
    {"root", "sudo", "wheel", "admin", "adm", "shadow", "disk", "docker", "lxd", "libvirt", "kmem", "systemd-journal"}
)
_NO_SHELL: Final = frozenset({"", "/usr/sbin/nologin", "/sbin/nologin", "/bin/false", "/usr/bin/false"})
_SUDO_SECONDS: Final = 20.0
# What deploy/sudoers lets an agent do, and no more.
_ASK: Final = r"/usr/local/bin/mailwarrant-agent (mcp|digest|digest --peek)"
_OURS: Final = re.compile(
    rf"\(mailwarrant-agent\) NOPASSWD: {_ASK}(, {_ASK})*|\(root\) NOPASSWD: /usr/local/bin/mailwarrant-doctor \"\""
)


def look_at_separation(installation: Installation, looking: Looking) -> None:
    """Compare the users of programs, agents and people, and the groups that they are in."""
    _look_at_houses(installation, looking)
    if not installation.agents_are_named:
        fix = "usermod -aG mailwarrant-agents AGENT   # and in executor.toml: [intake] allow_uids = [`id -u AGENT`]"
        looking.find(Fault.AGENT_UNKNOWN, "no user is named whose processes are agents", fix)
    for agent in installation.agents:
        _look_at_agent(agent, installation, looking)
    houses = {user.uid: user.name for user in (installation.own.user, installation.other.user) if user is not None}
    for person in installation.reviewers:
        if person.uid in houses:
            what = f"{person.name} is a program's user, and may open the review page"
            looking.find(Fault.AGENT_NOT_SEPARATED, what, "Set [review] allow_uids in executor.toml to people's uids.")


def _look_at_houses(installation: Installation, looking: Looking) -> None:
    own, other = installation.own.user, installation.other.user
    _look_at_peer(installation, looking)
    if own is None:
        fix = "systemd-sysusers deploy/sysusers.d/mailwarrant.conf"
        looking.find(Fault.HOUSES_TOGETHER, f"there is no user {installation.own.command}", fix)
    if own is not None and own.uid == 0:
        looking.find(
            Fault.HOUSE_IS_ROOT,
            f"{installation.own.command} runs as root",
            f"User={installation.own.command} in its unit",
        )
    if own is None or other is None:
        return
    if own.uid == other.uid:
        looking.find(Fault.HOUSES_TOGETHER, f"both programs run as {own.name}", "A user for each: sudo deploy/install")
    look_at_user(own, (other,), looking)


def look_at_user(own: User, others: Iterable[User], looking: Looking) -> None:
    """Look at one program's user: nobody signs in as it, and its groups open nothing of the others'."""
    if own.shell not in _NO_SHELL:
        looking.find(
            Fault.HOUSE_SIGNS_IN,
            f"{own.name} has the shell {own.shell}",
            f"usermod --shell /usr/sbin/nologin {own.name}",
        )
    for other in others:
        if other.gid in own.groups and other.uid != own.uid:
            fix = f"gpasswd --delete {own.name} {group_name(other.gid)}"
            looking.find(Fault.HOUSE_GROUP, f"{own.name} is in the group {group_name(other.gid)} of {other.name}", fix)
    for name in _strong_groups(own):
        looking.find(Fault.HOUSE_GROUP, f"{own.name} is in the group {name}", f"gpasswd --delete {own.name} {name}")


def _look_at_peer(installation: Installation, looking: Looking) -> None:
    other = installation.other.user
    if other is not None and installation.peer_uid == other.uid != 0:
        return
    key = "[server] executor_uid" if installation.is_reader else "[reader] uid"
    said = "is not set" if installation.peer_uid is None else f"is {installation.peer_uid}"
    fix = f"In {installation.own.config}: set it to `id -u {installation.other.command}`"
    looking.find(Fault.PEER_UID, f"{key} {said}", fix)


def _look_at_agent(agent: User, installation: Installation, looking: Looking) -> None:
    own, other = installation.own.user, installation.other.user
    apart = "Run the agent as a user of its own, and set [intake] allow_uids to it."
    if agent.uid == 0:
        looking.find(Fault.AGENT_IS_ROOT, "root is named as an agent", apart)
        return
    for house in (own, other):
        if house is not None and house.uid == agent.uid:
            looking.find(Fault.AGENT_IS_HOUSE, f"the agent runs as {house.name}", apart)
    if any(agent.uid == person.uid for person in installation.reviewers):
        looking.find(
            Fault.AGENT_NOT_SEPARATED, f"agent not separated: {agent.name} may open the review page too", apart
        )
    houses = {user.gid for user in (own, other) if user is not None and user.uid != agent.uid}
    closed = [group_name(gid) for gid in sorted(agent.groups & houses)]
    for name in [*closed, *_strong_groups(agent)]:
        looking.find(Fault.AGENT_GROUP, f"{agent.name} is in the group {name}", f"gpasswd --delete {agent.name} {name}")
    if _gid_of_socket_folder(installation) in agent.groups:
        name = group_name(_gid_of_socket_folder(installation) or 0)
        looking.find(Fault.LINK_GROUP, f"{agent.name} is in the group {name}", f"gpasswd --delete {agent.name} {name}")
    for line in _sudo_rights(agent):
        looking.find(Fault.AGENT_SUDO, f"{agent.name} may run by sudo: {line}", "sudo visudo   # take the line out")


def _strong_groups(user: User) -> list[str]:
    return sorted(name for name in map(group_name, user.groups) if name in _STRONG)


def _gid_of_socket_folder(installation: Installation) -> int | None:
    try:
        return Path(installation.socket).parent.stat().st_gid
    except OSError:
        return None


def _sudo_rights(user: User) -> list[str]:
    """What sudo would let a user do; asked of sudo itself, by root alone."""
    sudo = shutil.which("sudo", path="/usr/bin:/bin:/usr/local/bin")
    if sudo is None or not user.may_be_tried:
        return []
    try:
        # S603: sudo's own listing, an argument list without a shell; it runs nothing.
        done = subprocess.run(  # noqa: S603 - see above
            [sudo, "-n", "-l", "-U", user.name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SUDO_SECONDS,
            env={"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return too_wide(done.stdout)


def too_wide(untrusted_listing: str) -> list[str]:
    """Return the lines of `sudo -l` that allow more than the optional sudoers file does."""
    after = untrusted_listing.partition("may run the following commands")[2]
    # A rule begins with its users in brackets; what does not was wrapped at the width of a terminal.
    rules = re.sub(r"\n\s*(?!\s*\()", " ", after.partition("\n")[2].strip()).splitlines()
    return [rule[:200] for rule in map(str.strip, rules) if rule and not _OURS.fullmatch(rule)]
