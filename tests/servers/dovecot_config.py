"""What a Dovecot of the tests is told: one mailbox, three logins, every process as one ordinary user.

Dovecot 2.3 (Debian 12) and 2.4 (Debian 13) speak incompatible configuration languages, so there is a
generator for each. Both describe the same server.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MAIL_USER: Final = "shop"
LOGINS: Final = ("owner", "reader", "executor")

INCOMING: Final = "Incoming"
DESTINATIONS: Final = ("Processed", "Escalate")
# Its name needs modified UTF-7 (RFC 9051 §A.1) for the umlauts and for the ampersand alike.
NON_ASCII_MAILBOX: Final = "Bücher & Löhne"
SPECIAL_USE: Final = {"Trash": "\\Trash", "Junk": "\\Junk", "Sent": "\\Sent"}
MAILBOXES: Final = ("INBOX", INCOMING, *DESTINATIONS, "Archive", *SPECIAL_USE, NON_ASCII_MAILBOX)

OWNER_RIGHTS: Final = "lrwstipekxa"
READER_RIGHTS: Final = "lr"


class ExecutorRights(StrEnum):
    """What the server lets the executor's login do (RFC 4314 §2.1)."""

    WIDE = "wide"
    NARROW = "narrow"

    def on(self, mailbox: str) -> str:
        """The rights on one mailbox; none outside incoming and the destinations."""
        if mailbox == INCOMING:
            return "lrswite" if self is ExecutorRights.WIDE else "lrte"
        if mailbox in DESTINATIONS:
            return "lrswite" if self is ExecutorRights.WIDE else "lrswi"
        return ""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where one server keeps its things; short, since a Unix socket's path ends at 107 bytes."""

    base: Path

    @property
    def config(self) -> Path:
        return self.base / "dovecot.conf"

    @property
    def run(self) -> Path:
        return self.base / "run"

    @property
    def log(self) -> Path:
        return self.base / "log"

    @property
    def mail(self) -> Path:
        return self.base / "mail"

    @property
    def tls(self) -> Path:
        return self.base / "tls"

    @property
    def users(self) -> Path:
        return self.base / "users"

    @property
    def acl(self) -> Path:
        return self.base / "acl"

    @property
    def oauth(self) -> Path:
        return self.base / "oauth2.conf.ext"

    @property
    def pre_login(self) -> Path:
        return self.base / "rawlog" / "pre-login"

    def rawlog(self, login: str) -> Path:
        return self.base / "rawlog" / login

    def folders(self) -> tuple[Path, ...]:
        state = self.base / "state"
        return self.run, state, self.mail, self.tls, self.pre_login, *map(self.rawlog, LOGINS)


@dataclass(frozen=True, slots=True)
class Server:
    """The facts that both configuration languages are generated from."""

    layout: Layout
    os_user: str
    os_group: str
    port: int
    tls_port: int
    executor_rights: ExecutorRights
    passwords: Mapping[str, str]
    introspection_url: str = ""


def users_file(server: Server) -> str:
    """The passwd-file: each login is the one mail user, with its own name for ACLs and its own command log."""
    return "".join(
        f"{login}:{{PLAIN}}{password}::::::user={MAIL_USER}"
        f" userdb_acl_user={MAIL_USER if login == 'owner' else login}"
        f" userdb_rawlog_dir={server.layout.rawlog(login)}\n"
        for login, password in server.passwords.items()
    )


def _grants(server: Server) -> Iterator[tuple[str, str, str]]:
    yield "*", "owner", OWNER_RIGHTS
    yield "*", "user=reader", READER_RIGHTS
    for mailbox in (INCOMING, *DESTINATIONS):
        yield mailbox, "user=executor", server.executor_rights.on(mailbox)


def acl_file(server: Server) -> str:
    """The global ACL file: mailbox pattern, identifier, rights."""
    return "".join(f"{mailbox} {identifier} {rights}\n" for mailbox, identifier, rights in _grants(server))


def _mailboxes(more: Mapping[str, str]) -> str:
    blocks = []
    for mailbox in MAILBOXES:
        if mailbox != "INBOX":
            special_use = f"special_use = {SPECIAL_USE[mailbox]}\n" if mailbox in SPECIAL_USE else ""
            blocks.append(f'mailbox "{mailbox}" {{\nauto = create\n{special_use}{more.get(mailbox, "")}}}\n')
    return "".join(blocks)


def config_2_3(server: Server) -> str:
    """dovecot.conf in the language of Dovecot 2.3."""
    at = server.layout
    return f"""\
{_own_folders_and_user(server)}
service imap-login {{
  executable = imap-login -R {at.pre_login}
  chroot =
  process_min_avail = 1
  service_count = 0
  inet_listener imap {{
    port = {server.port}
  }}
  inet_listener imaps {{
    port = {server.tls_port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
{_oauth_2_3(server)}passdb {{
  driver = passwd-file
  args = scheme=PLAIN {at.users}
}}
userdb {{
  driver = prefetch
}}
disable_plaintext_auth = no
ssl = yes
ssl_cert = <{at.tls}/server.crt
ssl_key = <{at.tls}/server.key
mail_location = maildir:~/Maildir
mail_plugins = acl
protocol imap {{
  mail_plugins = acl imap_acl
}}
plugin {{
  acl = vfile:{at.acl}
}}
namespace inbox {{
  inbox = yes
  separator = /
{_mailboxes({})}}}
"""


def _own_folders_and_user(server: Server) -> str:
    at = server.layout
    return f"""\
base_dir = {at.run}
state_dir = {at.base}/state
log_path = {at.log}
protocols = imap
listen = 127.0.0.1
default_internal_user = {server.os_user}
default_internal_group = {server.os_group}
default_login_user = {server.os_user}
first_valid_uid = 1
first_valid_gid = 1
mail_uid = {server.os_user}
mail_gid = {server.os_group}
mail_home = {at.mail}/{MAIL_USER}
mail_max_userip_connections = 100
auth_mechanisms = plain login{" xoauth2 oauthbearer" if server.introspection_url else ""}
"""


def oauth_file(server: Server) -> str:
    """What 2.3 keeps apart of its configuration: where a token is asked about (RFC 7662)."""
    return f"""\
introspection_url = {server.introspection_url}
introspection_mode = post
username_attribute = email
username_format = %u
active_attribute = active
active_value = true
pass_attrs = user={MAIL_USER} userdb_acl_user=reader userdb_rawlog_dir={server.layout.rawlog("reader")}
"""


def _oauth_2_3(server: Server) -> str:
    if not server.introspection_url:
        return ""
    return f"""\
passdb {{
  driver = oauth2
  mechanisms = xoauth2 oauthbearer
  args = {server.layout.oauth}
}}
"""


def _oauth_2_4(server: Server) -> str:
    if not server.introspection_url:
        return ""
    return f"""\
passdb oauth2 {{
  mechanisms_filter = xoauth2 oauthbearer
  fields {{
    user = {MAIL_USER}
    userdb_acl_user = reader
    userdb_rawlog_dir = {server.layout.rawlog("reader")}
  }}
}}
oauth2 {{
  introspection_url = {server.introspection_url}
  introspection_mode = post
  username_attribute = email
  username_validation_format = %{{user}}
  active_attribute = active
  active_value = true
}}
"""


def config_2_4(server: Server) -> str:
    """dovecot.conf in the language of Dovecot 2.4 and later 2.x, with the rights inside it."""
    at, rights = server.layout, _acl_blocks(server)
    return f"""\
dovecot_config_version = 2.4.0
dovecot_storage_version = 2.4.0
{_own_folders_and_user(server)}
service imap-login {{
  executable = imap-login -R {at.pre_login}
  chroot =
  process_min_avail = 1
  restart_request_count = unlimited
  inet_listener imap {{
    port = {server.port}
  }}
  inet_listener imaps {{
    port = {server.tls_port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
{_oauth_2_4(server)}passdb passwd-file {{
  passwd_file_path = {at.users}
}}
userdb prefetch {{
}}
auth_allow_cleartext = yes
ssl = yes
ssl_server_cert_file = {at.tls}/server.crt
ssl_server_key_file = {at.tls}/server.key
mail_driver = maildir
mail_path = ~/Maildir
mail_plugins {{
  acl = yes
}}
protocol imap {{
  mail_plugins {{
    imap_acl = yes
  }}
}}
acl_driver = vfile
namespace inbox {{
  inbox = yes
  separator = /
{rights.pop("*")}{_mailboxes(rights)}}}
"""


def _acl_blocks(server: Server) -> dict[str, str]:
    blocks: dict[str, str] = {}
    for mailbox, identifier, rights in _grants(server):
        blocks[mailbox] = blocks.get(mailbox, "") + f"acl {identifier} {{\nrights = {rights}\n}}\n"
    return blocks
