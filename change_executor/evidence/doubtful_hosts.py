"""What is doubtful about the hosts that a message names: which, where it stands, and which of its letters deceive.

Runs in the confined child alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from change_executor.evidence.look_alikes import Acquaintances
from change_executor.evidence.reading import MAX_LINE_CHARACTERS
from change_executor.evidence.reading import Warning as Caution
from shared.fence import clean_line
from shared.message import HeaderForm, LinkConcern, LinkFinding, Message, ReadableText, hosts_of_links, link_findings
from shared.message.domains import KnownHosts, readable_host, script_of

CONCERN_CODES: Final = {
    LinkConcern.NAMES_ANOTHER_HOST: "link_names_another_host",
    LinkConcern.DISGUISED_HOST: "link_disguises_host",
    LinkConcern.MIXED_SCRIPTS: "mixed_script_domain",
    LinkConcern.LOOK_ALIKE: "look_alike_domain",
    LinkConcern.NOT_DECODABLE: "undecodable_domain",
    LinkConcern.ADDRESS_INSTEAD_OF_NAME: "link_without_name",
}

# A person looks at the first few; a newsletter can have a hundred of one kind.
_MAX_NAMED_HOSTS: Final = 5

_SENDERS: Final = {
    "From": "in the sender's address",
    "Sender": "in the address of the Sender field",
    "Reply-To": "in the address that answers go to",
}
_RECIPIENTS: Final = ("To", "Cc", "Delivered-To")


def about_hosts(message: Message, readable: ReadableText, known_hosts: Iterable[str]) -> Iterable[Caution]:
    """Yield one caution for each concern that any host of the message gives; `known_hosts` are of people known here."""
    places = {host: where for name, where in reversed(_SENDERS.items()) for host in _hosts_of_addresses(message, name)}
    findings = link_findings(message, readable)
    imitations = _imitations(message, readable, known_hosts, places)
    for concern, code in CONCERN_CODES.items():
        said = {each.host: _said(each, places) for each in findings if each.concern is concern}
        if concern is LinkConcern.LOOK_ALIKE:
            said |= {host: _pointed_out(host, places, f"can be taken for {of}") for host, of in imitations.items()}
        elif concern is LinkConcern.MIXED_SCRIPTS:
            # That is told where it is told for what it can be taken.
            said = {host: words for host, words in said.items() if host not in imitations}
        if said:
            yield Caution(code=code, detail=_listed(list(said.values())))


def named_for_a_person(host: str) -> str:
    """Return a host as a list of links names it: where it is not plain letters, with its name among servers."""
    return host if host.isascii() else f"{host} ({_encoded(host)})"


def _imitations(
    message: Message, readable: ReadableText, known_hosts: Iterable[str], places: Mapping[str, str]
) -> dict[str, str]:
    """Hosts of senders and links, each with the host that it looks like: of the recipients, or of people known here.

    A link is also held against the sender's own host, more narrowly: who has a second name often has a similar one.
    """
    recipients = (host for name in _RECIPIENTS for host in _hosts_of_addresses(message, name))
    acquaintances = Acquaintances([*recipients, *known_hosts])
    links = hosts_of_links(readable)
    senders = KnownHosts(places)
    found = {host: acquaintances.imitated_by(host) for host in (*places, *links)}
    found |= {host: senders.imitated_by(host) for host in links if found[host] is None}
    return {host: clean_line(known).text for host, known in found.items() if known is not None}


def _hosts_of_addresses(message: Message, name: str) -> list[str]:
    values = message.header(name, HeaderForm.ADDRESSES)
    listed = values if isinstance(values, list) else []
    emails = [str(each.get("email") or "") for each in listed if isinstance(each, dict)]
    return [readable_host(email.rpartition("@")[2]) for email in emails if "@" in email]


def _said(finding: LinkFinding, places: Mapping[str, str]) -> str:
    if finding.shown:
        return f"{finding.host} (shows {finding.shown})"
    if finding.host.isascii():
        return finding.host
    return _pointed_out(finding.host, places)


def _pointed_out(host: str, places: Mapping[str, str], why: str = "") -> str:
    """A host with its foreign letters in brackets, where it stands, and how it is written among servers."""
    labels = [_bracketed(label) for label in clean_line(host).text.split(".")]
    scripts = sorted({script for _, found in labels for script in found})
    facts = [why] if why else []
    if scripts:
        facts.append(f"the letters in brackets are {' and '.join(scripts)}")
        facts.append(f"among servers it is called {_encoded(host)}")
    return f"{'.'.join(label for label, _ in labels)}, {places.get(host, 'in a link')}: {'; '.join(facts)}"


def _bracketed(label: str) -> tuple[str, set[str]]:
    """A label with the letters that are not of its script, or not of ASCII, in brackets, and the names of theirs."""
    scripts = Counter(script for letter in label if (script := script_of(letter)) is not None)
    # No `most_common`: that loads a module at its first call, and the confined child can load none.
    home = max(scripts, key=lambda script: (scripts[script], script == "LATIN"), default="LATIN")
    # Of a word of another script, its Latin letters are the strange ones; of any other, what is no plain letter.
    by_script = home != "LATIN" and len(scripts) > 1
    pieces, found = [], set()
    for letter in label:
        script = script_of(letter)
        if (script not in {None, home}) if by_script else (not letter.isascii()):
            pieces.append(f"[{letter}]")
            found.add("Latin with marks" if script == "LATIN" and not letter.isascii() else (script or "no").title())
        else:
            pieces.append(letter)
    return "".join(pieces).replace("][", ""), found


def _encoded(host: str) -> str:
    labels = []
    for label in host.split("."):
        spelled = label
        with suppress(UnicodeError):
            spelled = label if label.isascii() else "xn--" + label.encode("punycode").decode("ascii")
        labels.append(spelled)
    return ".".join(labels)


def _listed(said: list[str]) -> str:
    more = f" and {len(said) - _MAX_NAMED_HOSTS} more" if len(said) > _MAX_NAMED_HOSTS else ""
    return ", ".join(said[:_MAX_NAMED_HOSTS])[: MAX_LINE_CHARACTERS - 20] + more
