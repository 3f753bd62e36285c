"""A second way to the mailbox in the agent's home: mail programs, keyrings, tools that speak IMAP for a model.

What can be found is found by name, and read as the agent itself. What is not found may be there all the same.
"""

import functools
import os
import re
import stat
from pathlib import Path
from typing import Final

from shared.doctor.finding import Fault, Looking
from shared.doctor.installation import Installation
from shared.doctor.users import User, tried_as

# There at all, they hold a mail account: where the programs keep their settings, as their manuals say.
_MAIL_PROGRAMS: Final = (
    *(".mbsyncrc", ".isyncrc", ".config/isyncrc", ".offlineimaprc", ".config/offlineimap/config"),
    *(".fetchmailrc", ".getmail/*", ".config/getmail/*", ".config/mpop/config", ".mpoprc", ".imapfilter/config.lua"),
    *(".muttrc", ".mutt/muttrc", ".config/mutt/muttrc", ".neomuttrc", ".config/neomutt/neomuttrc", ".pinerc"),
    *(".msmtprc", ".config/msmtp/config", ".config/himalaya/config.toml", ".himalaya.toml", ".config/meli/config.toml"),
    *(".config/aerc/accounts.conf", ".thunderbird/profiles.ini", ".icedove/profiles.ini", ".claws-mail/accountrc"),
    *("snap/thunderbird/common/.thunderbird/profiles.ini", ".sylpheed-2.0/accountrc", ".config/kmail2rc"),
    *(".var/app/org.mozilla.Thunderbird/.thunderbird/profiles.ini", ".config/evolution/sources/*.source"),
    *(".config/geary/account_*", ".config/goa-1.0/accounts.conf", ".config/akonadi_imap_resource_*rc"),
    *(".config/protonmail/bridge*", ".config/Mailspring/*", ".config/vdirsyncer/config", ".davmail.properties"),
)
# They may hold anything: a program that asks gets it while the person is signed in.
_KEYRINGS: Final = (
    *(".local/share/keyrings/*.keyring", ".local/share/kwalletd/*.kwl", ".gnome2/keyrings/*.keyring"),
    *(".local/share/evolution/mail/*/*", ".config/gmailctl/token.json", ".gmail-mcp/*", ".gmailieer.json"),
)
# They are there for other reasons too: only what they say of mail counts.
_READ: Final = (
    *(".netrc", ".authinfo", ".env", ".config/environment.d/*.conf", ".profile", ".bashrc", ".zshrc", ".bash_profile"),
    *(".claude.json", ".mcp.json", ".claude/settings.json", ".claude/settings.local.json", ".gemini/settings.json"),
    *(".config/claude/claude_desktop_config.json", ".config/Claude/claude_desktop_config.json", ".cursor/mcp.json"),
    *(".codex/config.toml", ".codeium/windsurf/mcp_config.json", ".config/opencode/opencode.json", ".vscode/mcp.json"),
    *(".config/zed/settings.json", ".config/Code/User/mcp.json", ".config/Code/User/settings.json"),
    *(".config/goose/config.yaml", ".continue/config.json", ".continue/config.yaml", ".openclaw/openclaw.json"),
)
_OF_MAIL: Final = re.compile(
    r"\bimaps?\b|imap[._:-]|_imap|\bsmtp|himalaya|gmail|mail\.google|graph\.microsoft|outlook|fastmail|protonmail",
    re.IGNORECASE,
)
_TOKENS: Final = (".config/mailwarrant/*",)
_MOST_OCTETS: Final = 1024 * 1024


def look_for_second_ways(installation: Installation, looking: Looking) -> None:
    """Look through each agent's home, as the agent."""
    for agent in installation.agents:
        if agent.uid == 0 or not agent.may_be_tried:
            continue
        home, hosts = agent.home, [host.lower() for host in installation.mail_hosts if len(host) > 1]
        for path, kind in tried_as(agent, functools.partial(_looked_through, home, hosts)):
            _tell(agent, path, kind, looking)


def _tell(agent: User, path: str, kind: str, looking: Looking) -> None:
    if kind == "token":
        looking.find(Fault.TOKEN_FILE, f"{path} can be read by others than {agent.name}", f"chmod 0400 {path}")
        return
    what = {"program": "a mail program's account", "keyring": "a keyring", "text": "a way to a mail server"}[kind]
    fix = f"Take it out of {agent.name}'s home, and change that password: {path}"
    looking.find(Fault.SECOND_WAY, f"{agent.name} has {what}: {path}", fix)


def _looked_through(home: Path, hosts: list[str]) -> list[tuple[str, str]]:
    found = []
    for patterns, kind in ((_MAIL_PROGRAMS, "program"), (_KEYRINGS, "keyring"), (_READ, "text"), (_TOKENS, "token")):
        for path in (path for pattern in patterns for path in _matching(home, pattern)):
            if kind == "text" and not _speaks_of_mail(path, hosts):
                continue
            if kind == "token" and not _is_open(path):
                continue
            found.append((str(path), kind))
    return found


def _matching(home: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path for path in home.glob(pattern) if os.path.lexists(path))
    except OSError:
        return []


def _speaks_of_mail(path: Path, hosts: list[str]) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return False
        text = file.read(_MOST_OCTETS).decode("utf-8", "replace").lower()
    return any(host in text for host in hosts) or _OF_MAIL.search(text) is not None


def _is_open(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and bool(found.st_mode & 0o077)
