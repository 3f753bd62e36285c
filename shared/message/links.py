"""Where links lead, and which of them deceive; and links made so that nothing follows them.

Judged by what a message says itself: no host is looked up, no list of bad ones is kept.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import unquote

from shared.fence import clean_line
from shared.message.addresses import parse_addresses
from shared.message.domains import (
    NO_HOSTS,
    DomainConcern,
    KnownHosts,
    domain_concerns,
    is_same_or_within,
    readable_host,
)
from shared.message.headers import unfolded
from shared.message.limits import MAX_LINKS
from shared.message.model import Message
from shared.message.reading import ReadableText

_URL: Final = re.compile(r"\b(?:https?|ftp)://[^\s<>\"]++", re.IGNORECASE)
_AUTHORITY: Final = re.compile(r"(?:[a-z][a-z0-9+.-]{0,30}:)?[/\\]{2}([^/\\?#\s]*+)", re.IGNORECASE)
_MAILTO: Final = re.compile(r"mailto:([^?\s]*+)", re.IGNORECASE)
_BARE_HOST: Final = re.compile(r"(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_][\w-]{1,62}(?=[/:?#\\]|$)")
_PORT: Final = re.compile(r":[0-9]{0,5}$")

# In a label, a host with a scheme or `www.` names itself; a bare one is a host by the end of its name. These end most
# names that mail shows; `Node.js` and `report.pdf` end otherwise.
_SHOWN_HOST: Final = re.compile(
    r"(?:\b(?:https?|ftp)://|\bwww\.)[^\s<>\"'()\[\],;]++"
    r"|(?<![\w.-])(?:[^\W_][\w-]{0,62}\.){1,8}"
    r"(?:com|net|org|info|biz|edu|gov|mil|int|io|co|app|dev|shop|store|online|site|xyz|top|club|bank|test|example"
    r"|at|au|be|br|ca|ch|cn|cz|de|dk|es|eu|fi|fr|gr|hu|ie|il|in|it|jp|kr|mx|nl|no|nz|pl|pt|ro|ru|se|tr|tw|ua|uk|us|za|рф)"
    r"(?![\w@-]|\.\w)",
    re.IGNORECASE,
)
_MAX_SHOWN_HOSTS: Final = 5


class LinkConcern(StrEnum):
    """How a link, or an address of a sender, may deceive."""

    NAMES_ANOTHER_HOST = "namesAnotherHost"
    DISGUISED_HOST = "disguisedHost"
    MIXED_SCRIPTS = "mixedScripts"
    LOOK_ALIKE = "lookAlike"
    NOT_DECODABLE = "notDecodable"
    ADDRESS_INSTEAD_OF_NAME = "addressInsteadOfName"


_CONCERN_OF: Final = {
    DomainConcern.MIXED_SCRIPTS: LinkConcern.MIXED_SCRIPTS,
    DomainConcern.LOOK_ALIKE: LinkConcern.LOOK_ALIKE,
    DomainConcern.NOT_DECODABLE: LinkConcern.NOT_DECODABLE,
    DomainConcern.ADDRESS_INSTEAD_OF_NAME: LinkConcern.ADDRESS_INSTEAD_OF_NAME,
}


@dataclass(frozen=True, slots=True)
class LinkFinding:
    """A concern, the host that is behind the link, and what the link shows instead ("" where it shows nothing else).

    Both are the sender's words, decoded and cleaned.
    """

    concern: LinkConcern
    host: str
    shown: str = ""


def link_findings(message: Message, reading: ReadableText) -> tuple[LinkFinding, ...]:
    """Return what is suspicious about the links of a message's text and the addresses of its senders, each once.

    The recipients' own domains are the names that a look-alike would imitate. `MAX_LINKS` links are judged.
    """
    known = KnownHosts(domain for name in ("To", "Cc", "Delivered-To") for domain in _domains(message, name))
    senders = {domain for name in ("From", "Sender", "Reply-To") for domain in _domains(message, name)}
    found: dict[LinkFinding, None] = {}
    for domain in sorted(senders):
        found |= dict.fromkeys(_about_host(domain, known))
    for link in reading.links:
        found |= dict.fromkeys(judge_link(link.label, link.target, known))
    for url in _urls(reading.text):
        found |= dict.fromkeys(judge_link("", url, known))
    return tuple(found)


def hosts_of_links(reading: ReadableText) -> tuple[str, ...]:
    """Return the hosts that the links of a text lead to, each once, in the order of the text; `MAX_LINKS` are read.

    An address that a link only shows leads nowhere, and mail to somebody leads to no host.
    """
    shown = {url for link in reading.links for url in _urls(link.label)}
    written = (url for url in _urls(reading.text) if url not in shown)
    targets = (*(link.target for link in reading.links), *written)
    hosts = (host_of(target) for target in targets if not target.lower().startswith("mailto:"))
    return tuple(dict.fromkeys(host for host in hosts if host))


def _urls(text: str) -> Iterator[str]:
    # Most texts have none, and looking for that takes a hundredth of the time.
    for count, url in enumerate(_URL.finditer(text) if "://" in text else ()):
        if count == MAX_LINKS:
            return
        yield url[0].rstrip(".,;:!?'")


def _domains(message: Message, name: str) -> set[str]:
    wanted = name.lower()
    fields = [field for field in message.fields if field.name.lower() == wanted]
    emails = [address.email for field in fields[:MAX_LINKS] for address in parse_addresses(unfolded(field))]
    return {readable_host(email.rpartition("@")[2]) for email in emails[:MAX_LINKS] if "@" in email}


def judge_link(label: str, target: str, known_hosts: KnownHosts = NO_HOSTS) -> Iterator[LinkFinding]:
    """Yield what is suspicious about one link: its label as a person reads it, its target as a browser follows it."""
    host, user = _host_and_user(target)
    if not host:
        return
    if "." in user:
        # https://bank.example@evil.example/ shows one host and leads to the other.
        yield LinkFinding(LinkConcern.DISGUISED_HOST, _shown(host), _shown(user))
    yield from _about_host(host, known_hosts)
    for named in _named_hosts(label):
        if not is_same_or_within(named, host):
            yield LinkFinding(LinkConcern.NAMES_ANOTHER_HOST, _shown(host), _shown(named))
            return


def _about_host(host: str, known_hosts: KnownHosts) -> Iterator[LinkFinding]:
    for concern in domain_concerns(host, known_hosts):
        yield LinkFinding(_CONCERN_OF[concern], _shown(host))


def _shown(untrusted: str) -> str:
    return clean_line(untrusted).text


def host_of(url: str) -> str:
    """Return the host that a browser would ask, as a person reads it, or "" (WHATWG URL §4.4).

    Backslashes are slashes, what stands before the last `@` is a user, percent-escapes are undone. Of `mailto:` the
    domain of the first address.
    """
    return _host_and_user(url)[0]


def _host_and_user(url: str) -> tuple[str, str]:
    url = url.strip()
    if mail := _MAILTO.match(url):
        return readable_host(unquote(mail[1]).partition(",")[0].rpartition("@")[2]), ""
    found = _AUTHORITY.match(url)
    if found is None:
        bare = _BARE_HOST.match(url)
        return (readable_host(bare[0]) if bare else ""), ""
    user, _, host = found[1].rpartition("@")
    return readable_host(_PORT.sub("", clean_line(unquote(host)).text)), unquote(user).partition(":")[0]


def _named_hosts(label: str) -> Iterator[str]:
    """The hosts that a label seems to name; an address names the host after its `@`."""
    for count, shown in enumerate(_SHOWN_HOST.finditer(clean_line(label).text)):
        if count == _MAX_SHOWN_HOSTS:
            return
        text = shown[0]
        host = host_of(text) if "//" in text else readable_host(re.split(r"[/:?#\\]", text, maxsplit=1)[0])
        if host:
            yield host.rstrip(".-…!")


# The defanged schemes as people who handle such links write them.
_DEFANGED: Final = {"http": "hxxp", "https": "hxxps", "ftp": "fxp"}
_LIVE: Final = re.compile(
    r"\b(?P<scheme>https?|ftp)(?P<slashes>:[/\\]{2})(?P<host>[^/\\?#\s<>\"]*+)|(?P<www>\bwww\.[^/\\?#\s<>\"]++)"
    r"|\b(?P<other>mailto|tel|data|javascript|file|sms|ftps|ssh|vbscript):(?=\S)",
    re.IGNORECASE,
)


def defang(text: str) -> str:
    """Return the text with links that no program follows and a person can still read; idempotent.

    `https://a.example/x` becomes `hxxps://a[.]example/x`, `www.a.example` `www[.]a[.]example`, `mailto:a` `mailto[:]a`.
    """
    return _LIVE.sub(_without_teeth, text)


def _without_teeth(found: re.Match[str]) -> str:
    if found["other"]:
        return f"{found['other']}[:]"
    if found["www"]:
        return _bracketed(found["www"])
    return _DEFANGED[found["scheme"].lower()] + found["slashes"] + _bracketed(found["host"])


def _bracketed(host: str) -> str:
    return host.replace("[.]", ".").replace(".", "[.]")
