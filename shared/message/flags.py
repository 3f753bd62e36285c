"""Facts about a message that an agent or a person should know before acting on it, as typed flags.

Each follows from header fields and types alone, so a sender can make any of them appear; none proves good faith.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from shared.message.addresses import Address, parse_addresses
from shared.message.headers import unfolded
from shared.message.ids import without_comments
from shared.message.model import Message, Part


class Fact(StrEnum):
    """What a flag says."""

    AUTOMATIC_MAIL = "automaticMail"
    LIST_MAIL = "listMail"
    DELIVERY_REPORT = "deliveryReport"
    DISPOSITION_REPORT = "dispositionReport"
    CALENDAR_INVITATION = "calendarInvitation"
    CALENDAR_REPLY = "calendarReply"
    CALENDAR_CANCELLATION = "calendarCancellation"
    CALENDAR_ENTRY = "calendarEntry"
    ENCRYPTED = "encrypted"
    SIGNED_NOT_VERIFIED = "signedNotVerified"
    REPLY_TO_DIFFERS = "replyToDiffers"
    SENDER_DIFFERS = "senderDiffers"
    SEVERAL_SENDERS = "severalSenders"
    NAME_SHOWS_ANOTHER_ADDRESS = "nameShowsAnotherAddress"
    REPEATED_FIELD = "repeatedField"


@dataclass(frozen=True, slots=True)
class Flag:
    """A fact, and where it stands: a header field's name or a media type, always one of ours and never the sender's."""

    fact: Fact
    where: str


# RFC 3834 §2, and what answering programs write besides. `list` is a fact of its own.
_AUTOMATIC_PRECEDENCE: Final = frozenset({"bulk", "junk", "auto_reply"})

# RFC 2919 §3 and RFC 2369 §3; a newsletter has List-Unsubscribe alone, and is list mail too.
_LIST_FIELDS: Final = (
    "List-Id",
    "List-Post",
    "List-Help",
    "List-Subscribe",
    "List-Unsubscribe",
    "List-Owner",
    "List-Archive",
)

_REPORTS: Final = {
    "message/delivery-status": Fact.DELIVERY_REPORT,  # RFC 3464 §2
    "message/global-delivery-status": Fact.DELIVERY_REPORT,  # RFC 6533 §4.2
    "message/disposition-notification": Fact.DISPOSITION_REPORT,  # RFC 8098 §3
    "message/global-disposition-notification": Fact.DISPOSITION_REPORT,  # RFC 6533 §4.4
}
_REPORT_TYPES: Final = {
    "delivery-status": Fact.DELIVERY_REPORT,
    "disposition-notification": Fact.DISPOSITION_REPORT,
}

# RFC 5546 §1.4: what the method wants of the one who gets it. An object without a method is an entry to keep.
_CALENDAR_METHODS: Final = {
    "request": Fact.CALENDAR_INVITATION,
    "add": Fact.CALENDAR_INVITATION,
    "reply": Fact.CALENDAR_REPLY,
    "refresh": Fact.CALENDAR_REPLY,
    "counter": Fact.CALENDAR_REPLY,
    "declinecounter": Fact.CALENDAR_REPLY,
    "cancel": Fact.CALENDAR_CANCELLATION,
    "publish": Fact.CALENDAR_ENTRY,
}
_CALENDAR_TYPES: Final = frozenset({"text/calendar", "application/ics"})
_CALENDAR_METHOD: Final = re.compile(
    rb"^METHOD(?:;[^:\r\n]{0,200})?:[ \t]{0,9}([A-Za-z]{1,20})", re.MULTILINE | re.IGNORECASE
)
# METHOD is a property of the whole calendar and stands at its beginning (RFC 5545 §3.6).
_METHOD_WITHIN: Final = 4_096

_PKCS7: Final = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
# RFC 8551 §3.2.2; certs-only and compressed-data hide nothing and sign nothing.
_SMIME_TYPES: Final = {
    "": Fact.ENCRYPTED,
    "enveloped-data": Fact.ENCRYPTED,
    "authenveloped-data": Fact.ENCRYPTED,
    "signed-data": Fact.SIGNED_NOT_VERIFIED,
}
# RFC 9580 §6.2.1 and §7: armour within a plain text.
_ARMOUR: Final = (
    (re.compile(rb"^-----BEGIN PGP MESSAGE-----[ \t\r]*$", re.MULTILINE), Fact.ENCRYPTED),
    (re.compile(rb"^-----BEGIN PGP SIGNED MESSAGE-----[ \t\r]*$", re.MULTILINE), Fact.SIGNED_NOT_VERIFIED),
)

# RFC 5322 §3.6: what may stand once; a second one lets two programs show two different messages.
_ONCE: Final = ("From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References")

_ADDRESS_IN_NAME: Final = re.compile(r"[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[\w-]{2,63}")


def flags(message: Message) -> tuple[Flag, ...]:
    """Return the facts about a message, in the order of `Fact`, each with the first place that says so.

    Of repeated fields each has a flag of its own.
    """
    found: dict[Fact | Flag, Flag] = {}
    for look in _LOOKS:
        for flag in look(message):
            found.setdefault(flag if flag.fact is Fact.REPEATED_FIELD else flag.fact, flag)
    order = list(Fact)
    return tuple(sorted(found.values(), key=lambda flag: order.index(flag.fact)))


def _values(message: Message, name: str) -> list[str]:
    wanted = name.lower()
    return [unfolded(field).strip() for field in message.fields if field.name.lower() == wanted]


def _keyword(value: str) -> str:
    """The value before comments and parameters, in lower case."""
    return without_comments(value).partition(";")[0].strip().lower()


def _automatic(message: Message) -> Iterator[Flag]:
    """RFC 3834 §5: any Auto-Submitted but `no`. §2: bulk and junk. RFC 5321 §4.5.5: the null reverse-path.

    A mailing list calls what people write to it bulk too.
    """
    if any(_keyword(value) not in {"", "no"} for value in _values(message, "Auto-Submitted")):
        yield Flag(Fact.AUTOMATIC_MAIL, "Auto-Submitted")
    is_bulk = any(_keyword(value) in _AUTOMATIC_PRECEDENCE for value in _values(message, "Precedence"))
    if is_bulk and not any(True for _ in _list(message)):
        yield Flag(Fact.AUTOMATIC_MAIL, "Precedence")
    # The server that delivered the message wrote the topmost one (RFC 5321 §4.4).
    paths = _values(message, "Return-Path")
    if paths and "".join(without_comments(paths[0]).split()) == "<>":
        yield Flag(Fact.AUTOMATIC_MAIL, "Return-Path")


def _list(message: Message) -> Iterator[Flag]:
    for name in _LIST_FIELDS:
        if any(_values(message, name)):
            yield Flag(Fact.LIST_MAIL, name)
    if any(_keyword(value) == "list" for value in _values(message, "Precedence")):
        yield Flag(Fact.LIST_MAIL, "Precedence")


def _by_parts(message: Message) -> Iterator[Flag]:
    for part in message.root.walk():
        fact = _fact_of(part)
        if fact is not None:
            yield Flag(fact, part.type)
        if part.type == "text/plain":
            content = part.content()
            if b"-----BEGIN PGP " in content:
                yield from (Flag(fact, part.type) for armour, fact in _ARMOUR if armour.search(content))


def _fact_of(part: Part) -> Fact | None:
    match part.type:
        case "multipart/report":  # RFC 6522 §3
            return _REPORT_TYPES.get(part.parameters.get("report-type", "").strip().lower())
        case "multipart/encrypted" | "application/pgp-encrypted":  # RFC 1847 §2.2, RFC 3156 §4
            return Fact.ENCRYPTED
        case "multipart/signed":  # RFC 1847 §2.1
            return Fact.SIGNED_NOT_VERIFIED
        case kind if kind in _PKCS7:
            return _SMIME_TYPES.get(part.parameters.get("smime-type", "").strip().lower())
        case kind if kind in _CALENDAR_TYPES:
            return _CALENDAR_METHODS.get(_calendar_method(part), Fact.CALENDAR_ENTRY)
        case kind:
            return _REPORTS.get(kind)


def _calendar_method(part: Part) -> str:
    """RFC 6047 §2.4: the parameter says what the object's METHOD says; where it is missing the object counts."""
    method = part.parameters.get("method", "").strip().lower()
    if method:
        return method
    found = _CALENDAR_METHOD.search(part.content()[:_METHOD_WITHIN])
    return found[1].decode("ascii").lower() if found else ""


def _senders(message: Message) -> Iterator[Flag]:
    senders = _addresses(message, "From")
    sender = {address.email.lower() for address in senders}
    if len(sender) > 1:
        yield Flag(Fact.SEVERAL_SENDERS, "From")
    if {address.email.lower() for address in _addresses(message, "Reply-To")} - sender:
        yield Flag(Fact.REPLY_TO_DIFFERS, "Reply-To")
    if {address.email.lower() for address in _addresses(message, "Sender")} - sender:
        yield Flag(Fact.SENDER_DIFFERS, "Sender")
    if any(_shows_another(address) for address in senders):
        yield Flag(Fact.NAME_SHOWS_ANOTHER_ADDRESS, "From")
    for name in _ONCE:
        if len(_values(message, name)) > 1:
            yield Flag(Fact.REPEATED_FIELD, name)


def _addresses(message: Message, name: str) -> tuple[Address, ...]:
    """Those of the last instance, as everywhere (RFC 8621 §4.1.3)."""
    values = _values(message, name)
    return parse_addresses(values[-1]) if values else ()


def _shows_another(address: Address) -> bool:
    shown = _ADDRESS_IN_NAME.search(address.name or "")
    return shown is not None and shown[0].lower() != address.email.lower()


_LOOKS: Final[tuple[Callable[[Message], Iterator[Flag]], ...]] = (_automatic, _list, _by_parts, _senders)
