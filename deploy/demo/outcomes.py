"""What the unattended demo decides, and what must have come of it, checked as the mailbox's owner."""

import hashlib
import imaplib
from typing import Any, Final

from deploy.demo.person import Person
from deploy.demo.street import DemoFailed, Street, wait_for
from deploy.demo.telling import Teller
from shared.identity import email_id as id_of

_PASSWORD: Final = "a long enough sentence"  # noqa: S105 - of a throw-away person in a throw-away folder
_SECONDS: Final = 60.0

# slug -> what the person does, and the mailbox where the message must lie at the end
DECISIONS: Final = {
    "receipt": (("approve",), "Processed"),
    "delivered-4466": (("approve", "undo"), "Incoming"),
    "angry-customer": (("approve",), "Escalate"),
    "allergy": (("approve",), "Escalate"),
    "hostile-plain": (("reject",), "Incoming"),
}
_REACHED: Final = {"approve": "applied", "undo": "undone", "reject": "rejected"}


def sign_everything(street: Street, link: str, proposals: dict[str, dict[str, str]], teller: Teller) -> None:
    """Decide each proposal as a person would, through the page, and wait for what comes of it."""
    with Person(street.review_url) as person:
        person.sign_in_by_link(link, _PASSWORD)
        for slug, (actions, _) in DECISIONS.items():
            for action in actions:
                _decide(person, proposals[slug]["id"], action, teller)


def _decide(person: Person, proposal_id: str, action: str, teller: Teller) -> None:
    page = wait_for(lambda: person.offers(proposal_id, action), f"the page to offer {action}", _SECONDS)
    fields = {"reason": "A mail gave this order, not a person"} if action == "reject" else {}
    person.submit(page, f"/p/{proposal_id}/{action}", fields)

    def reached() -> bool:
        teller.tell_changes()
        return teller.state_of(proposal_id) == _REACHED[action]

    wait_for(reached, f"{proposal_id} to be {_REACHED[action]}", _SECONDS)


Messages = dict[str, dict[str, tuple[str, ...]]]


def whole_mailbox(street: Street) -> Messages:
    """Return what the owner sees, changing nothing: mailbox → digest of the octets → flags, keywords, INTERNALDATE."""
    found: Messages = {}
    with imaplib.IMAP4("127.0.0.1", street.mail_port, timeout=30) as owner:
        owner.login("owner", street.password("owner"))
        for line in owner.list()[1]:
            assert isinstance(line, bytes)
            name = line.decode().rpartition(" ")[2].strip('"')
            owner.select(name, readonly=True)
            found[name] = _messages(owner)
    return found


def _messages(owner: imaplib.IMAP4) -> dict[str, tuple[str, ...]]:
    answers = owner.uid("FETCH", "1:*", "(FLAGS INTERNALDATE BODY.PEEK[])")[1]
    messages = {}
    for answer in answers:
        if isinstance(answer, tuple):
            head, octets = answer
            flags = sorted(flag.decode() for flag in imaplib.ParseFlags(head) if flag != b"\\Recent")
            date = head.partition(b'INTERNALDATE "')[2].partition(b'"')[0].decode()
            messages[hashlib.sha256(octets).hexdigest()] = (*flags, date)
    return messages


def check_outcomes(street: Street, before: Messages, proposals: dict[str, dict[str, str]]) -> list[str]:
    """Return what was checked, line by line, or raise `DemoFailed` with the first thing that is not as it must be."""
    after = whole_mailbox(street)
    expected: dict[str, dict[str, tuple[str, ...]]] = {name: dict(messages) for name, messages in before.items()}
    checked = []
    for slug, (_, mailbox) in DECISIONS.items():
        digest = _digest_of(expected["Incoming"], proposals[slug]["emailId"])
        expected[mailbox][digest] = expected["Incoming"].pop(digest)
        if digest not in after[mailbox]:
            raise DemoFailed(f"{proposals[slug]['subject']} is not in {mailbox}")
        checked.append(f"{proposals[slug]['subject']!a} lies in {mailbox}")
    if expected != after:
        raise DemoFailed(f"the mailbox is not what the decisions say: {_difference(expected, after)}")
    count = sum(len(messages) for messages in after.values())
    checked.append(f"all {count} messages are there once, octets, flags, keywords and dates as they were")
    checked.append(street.executor_command("audit", "verify").strip().splitlines()[0])
    reads = street.reader_command("reads")
    if "Email/get" not in reads:
        raise DemoFailed("the read log holds nothing of the agent")
    checked.append(f"what the agent read is on record ({len(reads.strip().splitlines())} lines)")
    return checked


def _digest_of(messages: dict[str, tuple[str, ...]], email_id: str) -> str:

    for digest in messages:
        if id_of(bytes.fromhex(digest)) == email_id:
            return digest
    raise DemoFailed(f"{email_id} was not in Incoming")


def _difference(expected: dict[str, Any], after: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}: {len(expected.get(name, {}))} expected, {len(after.get(name, {}))} found"
        for name in sorted({*expected, *after})
        if expected.get(name) != after.get(name)
    )
