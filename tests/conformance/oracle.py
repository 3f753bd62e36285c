"""Our Email/get beside that of Cyrus over the same messages, property by property.

`make jmap-oracle` writes docs/jmap-oracle.md: how many values agree, and each difference with its reason. Ends with 1
where a difference has no reason in `oracle_reasons.toml`, or a reason no difference.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import imaplib
import json
import sys
import tempfile
import tomllib
import urllib.request
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.agent_reader.email_get import email_get
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of
from tests.servers.cyrus import Cyrus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REPOSITORY: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = REPOSITORY / "docs/jmap-oracle.md"
REASONS: Final = Path(__file__).with_name("oracle_reasons.toml")
MAILBOX: Final = "Archive"
# Reasons are written by hand, so these are few; the hostile cases have expectations of their own in their files.
_HOSTILE_OF_EACH: Final = 3
# Characters of a value that is shown.
_EXAMPLE: Final = 120
_CORE, _MAIL = "urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"

PROPERTIES: Final = (
    "size",
    "messageId",
    "inReplyTo",
    "references",
    "sender",
    "from",
    "to",
    "cc",
    "bcc",
    "replyTo",
    "subject",
    "sentAt",
    "hasAttachment",
    "preview",
    "bodyStructure",
    "textBody",
    "htmlBody",
    "attachments",
    "bodyValues",
    "header:Subject:asText",
    "header:From:asGroupedAddresses",
    "header:List-Post:asURLs",
    "header:Received:asRaw:all",
)
# Named by each server as it likes (RFC 8621 §4.1.1, §4.1.4): compared where they lead, not as they are spelled.
_OWN_NAMES: Final = frozenset({"partId", "blobId"})
_ARGUMENTS: Final = {"fetchAllBodyValues": True, "properties": [*PROPERTIES, "blobId"]}


@dataclass(frozen=True, slots=True)
class Difference:
    """One property of one message on which the two disagree."""

    message: str
    property: str
    ours: Any
    theirs: Any


def main() -> int:
    """Compare and write the document; 0 when every difference has a reason and every reason a difference."""
    messages = dict(_messages())
    with Cyrus() as cyrus:
        with cyrus.connect() as owner:
            version = str(owner.welcome.decode().partition("Cyrus IMAP ")[2].split()[0])
        refused = {name: said for name, octets in messages.items() if (said := _refusal(cyrus, octets))}
        taken = {name: octets for name, octets in messages.items() if name not in refused}
        theirs = _theirs(cyrus, taken)
    refused |= dict.fromkeys(sorted(taken.keys() - theirs.keys()), "takes it, with other octets")
    taken = {name: octets for name, octets in taken.items() if name in theirs}
    ours = _ours(taken)
    differences = [
        Difference(name, each, ours[name][each], theirs[name].get(each))
        for name in taken
        for each in PROPERTIES
        if ours[name][each] != theirs[name].get(each)
    ]
    reasons = tomllib.loads(REASONS.read_text("utf-8"))["difference"] if REASONS.exists() else []
    found, unexplained = _explained(differences, reasons)
    DOCUMENT.write_text(_document(version, taken, refused, found, unexplained), "utf-8")
    for each in unexplained:
        said = f"{each.message} {each.property}\n  ours   {_short(each.ours)}\n  theirs {_short(each.theirs)}\n"
        sys.stderr.write(said)
    unused = [reason for reason in reasons if not any(reason is one for one, _ in found)]
    for reason in unused:
        sys.stderr.write(f"nothing differs any more: {reason['messages']} {reason['properties']}\n")
    return int(bool(unexplained or unused))


def _messages() -> Iterator[tuple[str, bytes]]:
    """The sample messages, and a few hostile ones of each kind."""
    for path in sorted((REPOSITORY / "tests/golden").glob("*.eml")):
        yield path.stem, path.read_bytes()
    for path in sorted((REPOSITORY / "tests/golden/hostile").glob("rfc*.toml")):
        cases = tomllib.loads(path.read_text("utf-8"))["case"]
        whole = [case for case in cases if "octets" in case and "\r\n\r\n" in case["octets"]]
        for number, case in enumerate(whole[:_HOSTILE_OF_EACH], 1):
            yield f"{path.stem} {number}: {case['says']}", case["octets"].encode("latin-1")


def _refusal(cyrus: Cyrus, octets: bytes) -> str:
    """Deliver; what the server says where it does not take the message."""
    try:
        with contextlib.suppress(AssertionError):
            cyrus.deliver(MAILBOX, octets)
            return ""
        with cyrus.connect() as owner:
            return str(owner.append(MAILBOX, "", "", octets)[1][0].decode(errors="replace"))
    except imaplib.IMAP4.error as refused:
        return str(refused)


def _theirs(cyrus: Cyrus, messages: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    emails: dict[str, dict[str, Any]] = {}
    (query,) = _ask(cyrus, ["Email/query", {"accountId": "owner", "limit": 1000}, "0"])
    for first in range(0, len(query["ids"]), 50):
        wanted = {"accountId": "owner", "ids": query["ids"][first : first + 50]} | _ARGUMENTS
        (got,) = _ask(cyrus, ["Email/get", wanted, "0"])
        emails |= {str(email["blobId"]): _comparable(email) for email in got["list"]}
    # Cyrus names a blob by its SHA-1; a message whose line ends it mended has other octets.
    named = {name: f"G{hashlib.sha1(octets, usedforsecurity=False).hexdigest()}" for name, octets in messages.items()}
    return {name: emails[blob] for name, blob in named.items() if blob in emails}


def _ask(cyrus: Cyrus, *calls: list[Any]) -> list[Any]:
    secret = base64.b64encode(f"owner:{cyrus.passwords['owner']}".encode()).decode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{cyrus.jmap_port}/jmap/",
        json.dumps({"using": [_CORE, _MAIL], "methodCalls": calls}).encode(),
        {"Authorization": f"Basic {secret}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return [body for _, body, _ in json.load(answer)["methodResponses"]]


def _ours(messages: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        account = Mirrored(Path(folder))
        with contextlib.closing(account.store):
            account.begin("INBOX")
            account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(messages.values(), 1)))
            ids = {name: id_of(octets) for name, octets in messages.items()}
            with account.store.snapshot(ACCOUNT) as snapshot:
                got = email_get(snapshot, [*ids.values()], properties=[*PROPERTIES], fetch_all=True)
    by_id = {str(email["id"]): _comparable(email) for email in got.list}
    return {name: by_id[email_id] for name, email_id in ids.items()}


def _comparable(email: Mapping[str, Any]) -> dict[str, Any]:
    """An Email whose body values stand in the order of its parts, and whose parts go without names of their own."""
    order = list(_part_ids(email["bodyStructure"]))
    values = email["bodyValues"]
    named: dict[str, Any] = _without_names(email)
    return named | {"bodyValues": [values[part] for part in order if part in values]}


def _part_ids(part: Mapping[str, Any]) -> Iterator[str]:
    if part.get("partId"):
        yield part["partId"]
    for inner in part.get("subParts") or ():
        yield from _part_ids(inner)


def _without_names(value: Any) -> Any:
    match value:
        case dict():
            own = _OWN_NAMES | ({"size"} if "subParts" in value else set[str]())
            return {name: _without_names(inner) for name, inner in value.items() if name not in own}
        case list():
            return [_without_names(inner) for inner in value]
        case _:
            return value


def _explained(
    differences: list[Difference], reasons: list[dict[str, Any]]
) -> tuple[list[tuple[dict[str, Any], Difference]], list[Difference]]:
    found, unexplained = [], []
    for each in differences:
        for reason in reasons:
            if each.property in reason["properties"] and any(
                fnmatch(each.message, glob) for glob in reason["messages"]
            ):
                found.append((reason, each))
                break
        else:
            unexplained.append(each)
    return found, unexplained


def _document(
    version: str,
    taken: Mapping[str, bytes],
    refused: Mapping[str, str],
    found: list[tuple[dict[str, Any], Difference]],
    unexplained: list[Difference],
) -> str:
    compared = len(taken) * len(PROPERTIES)
    lines = [
        "# Email/get beside Cyrus",
        "",
        f"Written by `make jmap-oracle`: the sample messages and a few hostile ones, in an account of Cyrus {version}",
        "(which has JMAP built in) and in the reader's index; Email/get of both, property by property. Ids of blobs",
        "and parts are each server's own and left aside, and so is the size of a multipart: Cyrus has 0, ours is the",
        "octets of its body (RFC 8621 §4.1.4 wants what is left once the transfer encoding is decoded, and a multipart",
        "has none to decode).",
        "",
        f"{len(taken)} messages, {len(PROPERTIES)} properties: {compared} values, of which",
        f"{compared - len(found) - len(unexplained)} are equal, {len(found)} differ for a reason below,",
        f"{len(unexplained)} differ for no reason known.",
        "",
        "## Where they differ",
        "",
        "| who is right | why | values | for example |",
        "|---|---|---|---|",
    ]
    counts = Counter(id(reason) for reason, _ in found)
    shown: set[int] = set()
    for reason, each in found:
        if id(reason) not in shown:
            shown.add(id(reason))
            example = f"{each.message}, `{each.property}`: ours {_code(each.ours)}, Cyrus {_code(each.theirs)}"
            lines.append(f"| {reason['right']} | {reason['why']} | {counts[id(reason)]} | {example} |")
    lines += [f"| unknown | | 1 | {each.message}, `{each.property}` |" for each in unexplained]
    if refused:
        lines += ["", "## What Cyrus does not take", ""]
        lines += [f"- {name}: {said}" for name, said in refused.items()]
    return "\n".join(lines) + "\n"


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:600]


def _code(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    text = text if len(text) <= _EXAMPLE else text[:_EXAMPLE] + "..."
    return "`" + text.replace("|", "\\|").replace("`", "'") + "`"


if __name__ == "__main__":
    sys.exit(main())
