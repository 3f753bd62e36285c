"""What is said of a message's dangers: a closed table of sentences; which of them are a reason to hold back, and which
only say what kind of message it is.

Where every newsletter is warned of, people stop reading warnings: what is told of most messages is told softly.
"""

from typing import Final

from change_executor.evidence.reading import Reading, Verdict
from change_executor.evidence.reading import Warning as Caution

WARNINGS: Final = {
    "agent_instructions": "The message itself asks to be moved, or addresses an assistant.",
    "hidden_text": "The message has text that is hidden from a person but not from an agent.",
    "hidden_in_html": "Its HTML, which is not what you see, hides text that an agent may have read.",
    "invisible_characters": "Invisible, control or direction characters were removed from what you see here. How many:",
    "html_only": "The message has no plain text; what you see was made from its HTML.",
    "alternatives_differ": "Its plain text and its HTML say different things; other programs may show the other one.",
    "text_from_html": "The message has plain text too; what you see was made from its richer HTML.",
    "octets_cut": "The message is longer than the part that was read for this page.",
    "text_cut": "The text of the message is longer than what is shown here.",
    "encoding_problem": "Some of the message could not be decoded.",
    "invisible_words": "Invisible characters spell words that an agent may read.",
    "automatic_mail": "The message says that a program sent it: an automatic answer, a report or a bulk mailing.",
    "list_mail": "The message came through a mailing list or is a newsletter.",
    "delivery_report": "The message is a report about the delivery of another one.",
    "disposition_report": "The message is a receipt: it says what became of another one.",
    "calendar_invitation": "The message holds an invitation for a calendar.",
    "calendar_reply": "The message holds an answer to an invitation.",
    "calendar_cancellation": "The message holds the cancellation of an appointment.",
    "calendar_entry": "The message holds an entry for a calendar.",
    "encrypted": "The message is encrypted; its content cannot be shown.",
    "signed_not_verified": "The message is signed, and the signature was not verified: it proves nothing here.",
    "authentication_failed": "The mail server says that the sender's address could not be verified.",
    "look_alike_domain": "An internet address looks like another one and is not the same.",
    "mixed_script_domain": "An internet address mixes letters of different scripts.",
    "undecodable_domain": "An internet address is encoded and cannot be decoded.",
    "link_names_another_host": "A link shows one host and leads to another.",
    "link_disguises_host": "A link begins with the name of another host than it leads to.",
    "link_without_name": "A link leads to a bare network address.",
    "name_shows_another_address": "The sender's name shows another address than the sender's.",
    "malformed": "The message is malformed; another program may read it differently.",
    "several_senders": "The message names more than one sender.",
    "sender_differs": "The From field and the Sender field name different addresses.",
    "reply_to_differs": "Answers would go to another address than the sender's.",
    "duplicate_header": "A header field that must stand once stands more than once.",
}

# Warnings of words that the page shows apart from the text.
HIDING: Final = frozenset({"hidden_text", "hidden_in_html", "invisible_words"})

VERDICTS: Final = {
    Verdict.PASSED: "The mail server verified the sender's domain.",
    Verdict.FAILED: "The mail server could not verify the sender's domain.",
    Verdict.UNKNOWN: "The mail server says nothing about the sender's domain.",
}

# Codes that honest mail earns every day. A code that is not here, and so each new one, is a warning.
KINDS: Final = frozenset(
    {
        "automatic_mail",
        "list_mail",
        "delivery_report",
        "disposition_report",
        "calendar_invitation",
        "calendar_reply",
        "calendar_cancellation",
        "calendar_entry",
        "html_only",
        "text_from_html",
        "signed_not_verified",
    }
)


def warnings(reading: Reading) -> list[Caution]:
    """Return what a person must read before deciding."""
    return [each for each in reading.warnings if each.code not in KINDS]


def kinds(reading: Reading) -> list[Caution]:
    """Return what says what kind of message it is."""
    return [each for each in reading.warnings if each.code in KINDS]
