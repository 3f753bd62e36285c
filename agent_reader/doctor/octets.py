"""Does the mail server give the same octets of a message twice? A few messages, fetched by two connections."""

from contextlib import closing
from dataclasses import dataclass
from typing import Final

from agent_reader.config import Account
from agent_reader.errors import Refused
from agent_reader.identity import Identity, canonical_digest
from agent_reader.imap.session import ReadOnlySession
from agent_reader.imap.values import ListedMailbox
from shared.doctor.finding import Fault, Looking
from shared.identity import message_digest
from shared.imap_login import ImapFailure

# What a server makes anew it makes anew of every message, or of every one with parts: a handful shows it.
_MOST_MESSAGES: Final = 5
# A doctor's look costs less than a page of mail does.
_MOST_OCTETS: Final = 256 * 1024
# The newest of a mailbox of which some are larger; and the mailboxes that are opened to find a handful.
_LOOKED_THROUGH: Final = 50
_MOST_MAILBOXES: Final = 5
_UNSELECTABLE: Final = frozenset({"\\noselect", "\\nonexistent"})

_BY_HEADERS: Final = (
    'Set `identity = "headers"` for this account in reader.toml and restart the reader: the mail is read again, under '
    "ids that can be read and not be proposed"
)
_BY_OCTETS: Final = 'with `identity = "octets"` its messages could be proposed'
_NOTHING_HELPS: Final = (
    "Read the account by another way (the provider's own IMAP instead of a bridge): here each message gets a new id "
    "whenever it is fetched again"
)


@dataclass(frozen=True, slots=True)
class _Sample:
    mailbox: str
    uidvalidity: int
    uids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Given:
    """What one message came to: digests of its octets and of its canonical fields."""

    octets: bytes
    fields: bytes | None


def look_at_octets(account: Account, session: ReadOnlySession, listing: list[ListedMailbox], looking: Looking) -> None:
    """Compare what this connection gives with what another one does. Raises `ImapFailure` of this one."""
    names = [each.name for each in listing if _UNSELECTABLE.isdisjoint(map(str.lower, each.attributes))]
    allowed = [name for name in names if account.mailboxes is None or name in account.mailboxes]
    samples = _samples(session, sorted(allowed, key=lambda name: (name != "INBOX", name)))
    first = _given(session, samples)
    if not first:
        looking.notes.append(f"{account.id}: no message to compare: whether octets are stable was not seen")
        return
    try:
        with closing(ReadOnlySession.open(account)) as other:
            second = _given(other, samples)
            other.log_out()
    except ImapFailure as failure:
        # The login works; some servers let it in only so often at once.
        looking.unseen.append(f"{account.id}: whether octets are stable: {failure.code}: {failure.detail}")
        return
    # What was expunged meanwhile tells nothing.
    both = [(first[place], second[place]) for place in first.keys() & second.keys()]
    _tell(account, both, looking)


def _samples(session: ReadOnlySession, names: list[str]) -> list[_Sample]:
    samples: list[_Sample] = []
    left = _MOST_MESSAGES
    for name in names[:_MOST_MAILBOXES]:
        try:
            examined = session.examine(name)
            newest = session.uids(examined)[-_LOOKED_THROUGH:]
            sizes = {uid: each.size for uid, each in session.stated(newest).items()}
        except Refused:
            continue
        small = [uid for uid in newest if 0 < (sizes.get(uid) or 0) <= _MOST_OCTETS]
        if small:
            samples.append(_Sample(name, examined.uidvalidity, tuple(small[-left:])))
            left -= len(samples[-1].uids)
        if left == 0:
            break
    return samples


def _given(session: ReadOnlySession, samples: list[_Sample]) -> dict[tuple[str, int], _Given]:
    given: dict[tuple[str, int], _Given] = {}
    for sample in samples:
        try:
            if session.examine(sample.mailbox).uidvalidity != sample.uidvalidity:
                continue
            fetched = session.fetch_messages(sample.uids)
        except Refused:
            continue
        for uid, message in fetched.items():
            if message.octets is not None:
                digests = _Given(message_digest(message.octets), canonical_digest(message.octets))
                given[sample.mailbox, uid] = digests
    return given


def _tell(account: Account, both: list[tuple[_Given, _Given]], looking: Looking) -> None:
    altered = sum(first.octets != second.octets for first, second in both)
    renamed = sum(first.fields != second.fields for first, second in both)
    by_headers = account.named_by is Identity.HEADERS
    messages = f"{len(both)} message{'' if len(both) == 1 else 's'}"
    if renamed and by_headers:
        what = f"{account.id}: octets not stable: {renamed} of {messages} came with other header fields the second time"
        looking.find(Fault.OCTETS, what, _NOTHING_HELPS)
    elif altered and not by_headers:
        what = f"{account.id}: octets not stable: {altered} of {messages} came with other octets the second time"
        looking.find(Fault.OCTETS, what, _NOTHING_HELPS if renamed else _BY_HEADERS)
    elif by_headers and not altered:
        looking.notes.append(f"{account.id}: {messages} came with the same octets twice: {_BY_OCTETS}")
