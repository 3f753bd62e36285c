"""Words of ours in the search table: what an Email is and where it lies, told so that FTS5 intersects it itself.

Each begins with `TOKEN_MARK`, which no text of mail and of questions can hold.
"""

import hashlib
import re
from collections.abc import Collection, Iterable
from typing import Final

from agent_reader.store.fold import TOKEN_MARK, sort_order
from shared.message.fields import HeaderField
from shared.message.headers import text

# Each Email has one of these two.
ORDINARY: Final = TOKEN_MARK + "o"
SIGN_IN: Final = TOKEN_MARK + "i"
ATTACHMENT: Final = TOKEN_MARK + "a"
# Without `$seen`: the few that most questions for a missing keyword are about, found without a look at all the others.
UNSEEN: Final = TOKEN_MARK + "u"
SEEN: Final = "$seen"
# No Email has it: what matches nothing.
NONE: Final = TOKEN_MARK + "n"
# Between texts of which nobody wrote one after the other, so that no phrase goes from one to the next.
BETWEEN_TEXTS: Final = TOKEN_MARK + "b"

# The fields by which one message or one list is looked for in a large mailbox (RFC 5322 §3.6.4, RFC 2919 §3). What
# names a message has one token wherever it stands, a third of what one for each field would take.
_MESSAGE_ID: Final = "message-id"
_LIST_ID: Final = "list-id"
_NAMING_MESSAGES: Final = frozenset({_MESSAGE_ID, "in-reply-to", "references"})
INDEXED_FIELDS: Final = _NAMING_MESSAGES | {_LIST_ID}

# What these fields hold between angle brackets: a text that asks for a whole one can only be found with that one.
_BRACKETED: Final = re.compile(r"<[^<>\s]+>")

# 64 bits of a digest: none of a mailbox's few keywords and lists, and none of its senders, meets another by chance.
_DIGEST_CHARACTERS: Final = 16
# 40 bits where the header itself is looked at for each hit.
_NARROWING_CHARACTERS: Final = 10


def of_mailbox(mailbox_key: int) -> str:
    """Return the token of every Email in a mailbox."""
    return f"{TOKEN_MARK}m{mailbox_key}"


def of_unseen_in(mailbox_key: int) -> str:
    """Return the token of every Email in a mailbox without `$seen`: what is new there is asked for most."""
    return f"{UNSEEN}{mailbox_key}"


def of_from_words(folded: str) -> str:
    """Return the tokens of words of From, each alone and in a row as they are.

    A name is a word like any other: where it stands in From alone there is no look at all the texts that it is in.
    """
    return " ".join(f"{TOKEN_MARK}f{word}" for word in folded.split())


def of_keyword(keyword: str) -> str:
    """Return the token of every Email with a keyword, in lower case; hashed, since keywords hold any ASCII."""
    return f"{TOKEN_MARK}k{_digest(keyword)}"


def of_sender(sender: str) -> str:
    """Return the token of every Email from an address or from a domain, in lower case."""
    return f"{TOKEN_MARK}s{_digest(sender)}"


def of_header(name: str, folded_text: str | None) -> tuple[str, ...] | None:
    """Return the tokens of every Email with a header field that contains a text, or with one of that name at all.

    None where no token tells: of other fields, and of a text that holds no whole identifier in angle brackets.
    """
    if name not in INDEXED_FIELDS:
        return None
    if not folded_text:
        return None if name == _MESSAGE_ID else (_of_field(name, ""),)
    return tuple(_of_identifier(name, each) for each in _BRACKETED.findall(folded_text)) or None


def tells_all_of_header(name: str, folded_text: str | None) -> bool:
    """Whether the tokens of a text are all that there is to know: it is one list's identifier and nothing else."""
    return not folded_text or (name == _LIST_ID and _BRACKETED.fullmatch(folded_text) is not None)


def header_tokens(fields: Iterable[HeaderField]) -> str:
    """Return the tokens of a header, with one space between."""
    found: dict[str, None] = {}
    for field in fields:
        name = field.name.lower()
        if name in INDEXED_FIELDS:
            if name != _MESSAGE_ID:
                found[_of_field(name, "")] = None
            found.update((_of_identifier(name, each), None) for each in _BRACKETED.findall(sort_order(text(field))))
    return " ".join(found)


def of_email(
    mailbox_keys: Collection[int],
    keywords: Collection[str],
    senders: Iterable[str],
    *,
    has_attachment: bool,
    signs_in: bool,
) -> str:
    """Return the tokens of an Email besides its header's; `senders` are its address and domain, empty ones left out."""
    found = [
        SIGN_IN if signs_in else ORDINARY,
        *map(of_mailbox, sorted(mailbox_keys)),
        *map(of_keyword, sorted(keywords)),
    ]
    found += [of_sender(sender) for sender in senders if sender]
    if SEEN not in keywords:
        found += [UNSEEN, *map(of_unseen_in, sorted(mailbox_keys))]
    if has_attachment:
        found.append(ATTACHMENT)
    return " ".join(found)


def _of_field(name: str, bracketed: str) -> str:
    return f"{TOKEN_MARK}h{_digest(f'{name}:{bracketed}')}"


def _of_identifier(name: str, bracketed: str) -> str:
    if name == _LIST_ID:
        return _of_field(name, bracketed)
    return f"{TOKEN_MARK}r{_digest(bracketed)[:_NARROWING_CHARACTERS]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
