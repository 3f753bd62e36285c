"""Receipts, payments, invoices and other mail that a shop's program or its suppliers send."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from deploy.demo.messages.files import csv, pdf
from deploy.demo.messages.letter import Attachment, Letter

_SEEN: Final = frozenset({"\\Seen"})


@dataclass(frozen=True, slots=True)
class _Receipt:
    """A notice with rows of (what, how much) and a total."""

    slug: str
    mailbox: str
    sender: str
    subject: str
    days: float
    words: str
    rows: tuple[tuple[str, str], ...]
    flags: frozenset[str] = frozenset()


_PAYWELL: Final = "Paywell <receipts@paywell.example>"
_RECEIPTS: Final = (
    _Receipt(
        "receipt",
        "Incoming",
        _PAYWELL,
        "Receipt for order 4466",
        0.85,
        "Payment received, thank you. Nothing more is to be done.",
        (("Smoked oolong, 2 tins", "38.00"), ("Postage", "4.90"), ("Total", "42.90")),
    ),
    _Receipt(
        "payment-hartwell",
        "Incoming",
        _PAYWELL,
        "Payment for order 4388 held for review",
        2.95,
        "The payer's bank has asked about this payment. It is held until the enquiry ends.",
        (("Darjeeling, 6 kg", "412.80"), ("Total", "412.80")),
        frozenset({"\\Flagged"}),
    ),
    _Receipt(
        "payout-1",
        "Incoming",
        _PAYWELL,
        "Your weekly payout: 1,284.10",
        0.55,
        "This week's payout is on its way to your bank.",
        (("41 payments", "1,318.40"), ("Fees", "-34.30"), ("Payout", "1,284.10")),
    ),
    _Receipt(
        "payout-2",
        "Processed",
        _PAYWELL,
        "Your weekly payout: 1,107.65",
        7.55,
        "This week's payout is on its way to your bank.",
        (("36 payments", "1,137.20"), ("Fees", "-29.55"), ("Payout", "1,107.65")),
        _SEEN,
    ),
    _Receipt(
        "payout-3",
        "Processed",
        _PAYWELL,
        "Your weekly payout: 986.00",
        14.55,
        "This week's payout is on its way to your bank.",
        (("31 payments", "1,012.30"), ("Fees", "-26.30"), ("Payout", "986.00")),
        _SEEN,
    ),
    _Receipt(
        "receipt-4431",
        "Processed",
        _PAYWELL,
        "Receipt for order 4431",
        12.3,
        "Payment received, thank you.",
        (("White peony, 100 g", "9.80"), ("Total", "9.80")),
        _SEEN,
    ),
    _Receipt(
        "receipt-4440",
        "Processed",
        _PAYWELL,
        "Receipt for order 4440",
        11.7,
        "Payment received, thank you.",
        (("Tasting set", "24.00"), ("Postage", "4.90"), ("Total", "28.90")),
        _SEEN,
    ),
    _Receipt(
        "receipt-4452",
        "Processed",
        _PAYWELL,
        "Receipt for order 4452",
        8.6,
        "Payment received, thank you.",
        (("Kyusu teapot", "64.00"), ("Total", "64.00")),
        _SEEN,
    ),
    _Receipt(
        "refund-4429",
        "Processed",
        _PAYWELL,
        "Refund for order 4429",
        11.3,
        "The refund has left your account.",
        (("Breakfast blend, 250 g", "-14.00"), ("Postage", "-4.90"), ("Total", "-18.90")),
        _SEEN,
    ),
    _Receipt(
        "delivered-4466",
        "Incoming",
        "Parcelway <track@parcelway.example>",
        "Delivered: parcel PW-87201-SE",
        0.95,
        "Your parcel was handed to: BERGSTROM, front door.",
        (("Order", "4466"), ("Weight", "0.61 kg")),
    ),
    _Receipt(
        "delayed-4471",
        "Incoming",
        "Parcelway <track@parcelway.example>",
        "Delayed: parcel PW-86990-SE",
        6.0,
        "The label could not be read. We are sorry for the delay.",
        (("Order", "4471"), ("Depot", "Malmö"), ("New date", "to be announced")),
        _SEEN,
    ),
    _Receipt(
        "power-bill",
        "INBOX",
        "Northlight Energy <bills@northlight.example>",
        "Your November bill",
        5.2,
        "We will collect the amount on the 5th. You used 6 % less than last year.",
        (("412 kWh", "118.45"), ("Standing charge", "12.00"), ("Total", "130.45")),
        _SEEN,
    ),
    _Receipt(
        "phone-bill",
        "INBOX",
        "Lantern Mobile <noreply@lantern-mobile.example>",
        "Bill 11/2026 is ready",
        9.4,
        "Your bill will be paid by direct debit.",
        (("Two numbers", "22.00"), ("Total", "22.00")),
        _SEEN,
    ),
    _Receipt(
        "archive-domain",
        "Archive",
        "Namegarden <billing@namegarden.example>",
        "halcyon-tea.example renewed for one year",
        18.0,
        "Thank you. The name is yours until next November.",
        (("One name, one year", "12.00"), ("Total", "12.00")),
        _SEEN,
    ),
)


def letters() -> list[Letter]:
    """Receipts in text and HTML, then the mail with files."""
    return [*(_letter(receipt) for receipt in _RECEIPTS), *_with_files()]


def _letter(receipt: _Receipt) -> Letter:
    rows = "".join(f"{what:<28}{amount:>14}\n" for what, amount in receipt.rows)
    cells = "".join(
        f'<tr><td>{escape(what)}</td><td style="text-align:right">{escape(amount)}</td></tr>\n'
        for what, amount in receipt.rows
    )
    html = (
        f'<!doctype html>\n<html><body style="font-family:Helvetica,sans-serif">\n<h1>{escape(receipt.subject)}</h1>\n'
        f'<p>{escape(receipt.words)}</p>\n<table width="360" cellpadding="6">\n{cells}</table>\n</body></html>\n'
    )
    return Letter(
        slug=receipt.slug,
        mailbox=receipt.mailbox,
        sender=receipt.sender,
        subject=receipt.subject,
        days=receipt.days,
        text=f"{receipt.words}\n\n{rows}",
        html=html,
        flags=receipt.flags,
        headers=(("Auto-Submitted", "auto-generated"),),
        utc_offset=0,
    )


def _with_files() -> list[Letter]:
    return [
        Letter(
            "supplier-invoice",
            "Incoming",
            "Hillgarden Estate <accounts@hillgarden-estate.example>",
            "Invoice HG-2026-118, due 14 December",
            1.75,
            text="Dear Halcyon,\n\nplease find our invoice for the autumn flush attached. New bank details are on the\n"
            "second line, please update your records.\n\nHillgarden Estate, Accounts\n",
            attachments=(
                Attachment(
                    "Invoice HG-2026-118.pdf",
                    "application/pdf",
                    pdf(
                        (
                            "Hillgarden Estate - Invoice HG-2026-118",
                            "Please pay to our new account XX00 0000 0000 0118",
                            "Autumn flush, 18 kg at 46.00: 828.00",
                            "Freight: 61.50",
                            "Total: 889.50, due 14 December",
                        )
                    ),
                ),
            ),
            utc_offset=5,
        ),
        Letter(
            "hotel-order",
            "Incoming",
            "Bellweather Hotels <purchasing@bellweather-hotels.example>",
            "December order (list attached)",
            0.45,
            text="Hello,\n\nour December order is in the attached list, for delivery to the Harbour house.\n\n"
            "Purchasing, Bellweather Hotels\n",
            attachments=(
                Attachment(
                    "Bestellung_für_Dezember.csv",
                    "text/csv",
                    csv((("tea", "grams"), ("Breakfast blend", "5000"), ("Roasted twig", "1500"), ("Mint", "2000"))),
                ),
            ),
        ),
        Letter(
            "review-alert",
            "Incoming",
            "Starfield Reviews <alerts@starfield-reviews.example>",
            "New review: 2 stars",
            2.0,
            html='<!doctype html>\n<html><body style="font-family:sans-serif"><p>A customer left a review of '
            "<b>Smoked oolong</b>:</p>\n<blockquote>★★☆☆☆ &ldquo;Tastes like a campfire that had an argument. "
            "Lovely tin.&rdquo;</blockquote>\n"
            '<p><a href="https://starfield-reviews.example/r/88213">Answer the review</a></p></body></html>\n',
            utc_offset=0,
        ),
        Letter(
            "contact-form",
            "Incoming",
            "Halcyon Tea website <forms@halcyon-tea.example>",
            "Contact form: message from Rufus Abara",
            1.45,
            html="<!doctype html>\n<html><body><table border=1 cellpadding=4><tr><th>Name<td>Rufus Abara"
            "<tr><th>Order<td>4505<tr><th>Message<td>Wrong tea in the tin: it says Assam, it is Ceylon. I like both, "
            "but I paid for Assam.</table></body></html>\n",
            headers=(("Reply-To", "Rufus Abara <rufus@abara.example>"),),
        ),
    ]
