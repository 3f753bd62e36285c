"""The 25 tasks: what is asked, what an agent would look for, and the words that must come into view.

Every agent is given the same: a phrase that stands in the message, perhaps a sender, a mailbox, a day; which line of a
list to look into first; and whether the answer is in one message, a whole conversation, a list or an attachment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from tests.bench.context.letters import COUNT, Letter, Talk, filler, notice, with_attachment


class Kind(StrEnum):
    """Where the answer is."""

    MESSAGE = "message"
    CONVERSATION = "conversation"
    NEWS = "news"
    ATTACHMENT = "attachment"


@dataclass(frozen=True, slots=True)
class Task:
    """A question, how it is looked for, and all the texts that answer it. `hint` stands in the line to look into."""

    question: str
    phrase: str
    hint: str
    answers: tuple[str, ...]
    kind: Kind = Kind.MESSAGE
    sender: str | None = None
    mailbox: str = "INBOX"
    since: timedelta | None = None
    attachment: str | None = field(default=None)


TASKS: Final = (
    Task("What is the number of Harbour Print's invoice for the catalogue?", "catalogue", "invoice for the catalogue",
         ("INV-2026-04417",), sender="harbour-print.example"),
    Task("How much is that invoice?", "catalogue", "invoice for the catalogue", ("1,284.50 EUR",),
         sender="harbour-print.example"),
    Task("What is the parcel number of the kiln furniture?", "kiln furniture", "kiln furniture", ("JJD0149933021",)),
    Task("Who promised the revised drawings, and by when?", "revised drawings", "drawings",
         ("Mara Lindqvist", "by Thursday 10 December"), Kind.CONVERSATION),
    Task("Is Oakfield waiting for an answer, and to what?", "delivery slot", "delivery slot",
         ("could you confirm the slot on the 14th",), Kind.CONVERSATION, sender="oakfield.example"),
    Task("What came since yesterday?", "", "", ("Kiln controller fault", "Refund of ticket 88213", "Saturday rota",
         "Van key"), Kind.NEWS, since=timedelta(days=1)),
    Task("What is the Wi-Fi password of the showroom?", "Wi-Fi password", "Wi-Fi", ("copper-lantern-52",)),
    Task("What does the price list say a stoneware mug costs?", "price list", "price list", ("Stoneware mug 350 ml",
         "11.80"), Kind.ATTACHMENT, attachment="prices-2027.csv"),
    Task("What is the plumber's mobile number?", "boiler pressure", "boiler", ("+44 7700 900318",)),
    Task("What notice does the lease ask for?", "notice period", "lease", ("three months to the end of a quarter",)),
    Task("What is the booking code of the flight to Porto?", "flight to Porto", "Porto", ("K7XQ2M",)),
    Task("Where is the photographer's new studio?", "new studio", "studio", ("27 Tannery Lane",)),
    Task("What did Ines say about the budget?", "budget", "budget", ("raise it to 42,000",),
         Kind.CONVERSATION, sender="duarte-kilns.example"),
    Task("What is the order number of the espresso machine?", "espresso machine", "espresso", ("AX-7719-20",)),
    Task("What did the landlord write last about the roof?", "roof", "roof",
         ("scaffolding goes up on Monday the 7th",), sender="holt-lettings.example"),
    Task("Which version mends the crash of the till?", "till crash", "till", ("version 4.8.3",)),
    Task("When is the VAT return due?", "VAT return", "VAT", ("15 January 2027",)),
    Task("Who comes to the glazing workshop?", "glazing workshop", "glazing workshop",
         ("Count me in for both days", "I can only come on the Sunday", "Wen brings two colleagues"),
         Kind.CONVERSATION),
    Task("Which packaging supplier was chosen, and why?", "packaging supplier", "packaging supplier",
         ("we go with Kestrel", "lowest breakage"), Kind.CONVERSATION),
    Task("From which address was the last sign-in to the bank?", "new sign-in", "sign-in", ("203.0.113.77",)),
    Task("How much was refunded for ticket 88213?", "88213", "88213", ("64.90 EUR",)),
    Task("What is the confirmation number of the hotel in Lyon?", "hotel in Lyon", "Lyon", ("HX-99812",)),
    Task("What did I promise Amelie?", "vitrine", "vitrine", ("send the samples on Monday",), mailbox="Sent"),
    Task("What is the caterer's account number?", "opening buffet", "buffet", ("GB33 BUKB 2020 1555 5555 55",)),
    Task("To when was tomorrow's pick-up moved?", "pick-up", "pick-up", ("moved to 14:30",)),
)  # fmt: skip


def mailbox(now: datetime) -> list[Letter]:
    """The whole mailbox, oldest first."""
    letters = list(_looked_for(now))
    letters += filler(COUNT - len(letters), now)
    return sorted(letters, key=lambda letter: letter.at)


def _looked_for(now: datetime) -> Iterator[Letter]:
    yield from _talks(now)
    yield from _notices(now)
    yield from _conversations(now)
    yield from _since_yesterday(now)
    rows = "\n".join(f"Article {number},{number * 3 % 17}.50" for number in range(40))
    yield with_attachment(
        1, "Priya Nair", "New price list", "The price list for January is attached.", "prices-2027.csv",
        f"article,price\n{rows}\nStoneware mug 350 ml,11.80\n", now - timedelta(days=12),
    )  # fmt: skip


def _talks(now: datetime) -> Iterator[Letter]:
    for place, (who, subject, texts) in enumerate(
        (
            ("Harbour Print", "Your invoice for the catalogue", (
                "Please find the invoice for the catalogue: number INV-2026-04417, 1,284.50 EUR, due in 30 days.",)),
            ("Harbour Print", "Proofs of the catalogue", ("The proofs of the catalogue are ready for you to look at.",
                "Page 12 of the catalogue has a new picture now.")),
            ("Jonas Weber", "Showroom: Wi-Fi", ("The Wi-Fi password of the showroom is copper-lantern-52 now.",)),
            ("Tom Becker", "Boiler pressure", ("The boiler pressure is too low; I can come on Friday and bleed it.",)),
            ("Derek Holt", "Your lease", ("The notice period is three months to the end of a quarter.",)),
            ("Derek Holt", "The roof", ("The roofer was here about the roof and sends an offer.",
                "We took the offer for the roof.", "On the roof: the scaffolding goes up on Monday the 7th.")),
            ("Wen Zhao", "We have moved our photographer", ("Our photographer has a new studio: 27 Tannery Lane.",)),
            ("Amelie Roux", "The vitrine", ("How far are you with the pieces for the vitrine?",)),
        )
    ):  # fmt: skip
        talk = Talk(100 + place, subject)
        for step, text in enumerate(texts):
            yield talk.letter(who, now - timedelta(days=20 + 3 * place - step), text)
        if who == "Amelie Roux":
            text = "The pieces for the vitrine are fired. I send the samples on Monday."
            yield talk.letter("Alex Moreno", now - timedelta(days=17 + 3 * place), text)


def _notices(now: datetime) -> Iterator[Letter]:
    more = "You get this message because you have an account with us. Our service answers from nine to five."
    for place, (sender, subject, line) in enumerate(
        (
            ("Nordwind Parcel <info@nordwind.example>", "Your kiln furniture is on its way",
             "Your parcel with the kiln furniture left our depot. Its number is JJD0149933021."),
            ("Iberia Wings <booking@wings.example>", "Your flight to Porto",
             "Thank you for booking your flight to Porto. Your booking code is K7XQ2M."),
            ("Coffee Works <orders@coffee.example>", "We have your order",
             "Your espresso machine is reserved. The order number is AX-7719-20."),
            ("Till Support <support@till.example>", "The till crash is mended",
             "The till crash that you reported is mended in version 4.8.3."),
            ("Lowe Accountants <office@lowe.example>", "VAT return", "Your VAT return is due on 15 January 2027."),
            ("Northbank <alerts@northbank.example>", "A new sign-in",
             "There was a new sign-in to your account from 203.0.113.77."),
            ("Hotel des Arts <stay@hotel-arts.example>", "Your hotel in Lyon",
             "We look forward to your stay at our hotel in Lyon. Confirmation number: HX-99812."),
            ("Green Table <hello@green-table.example>", "Your opening buffet",
             "For the deposit of the opening buffet please use GB33 BUKB 2020 1555 5555 55."),
        )
    ):  # fmt: skip
        yield notice(40_000 + place, sender, subject, (line, more, more), now - timedelta(days=9 + place))


def _conversations(now: datetime) -> Iterator[Letter]:
    for place, (subject, days, said) in enumerate(
        (
            ("Drawings of the shop front", 6, (
                ("Priya Nair", "When do we get the revised drawings? The joiner asks."),
                ("Mara Lindqvist", "You get the revised drawings by Thursday 10 December, with the new stairs."))),
            ("Delivery slot for the Christmas order", 4, (
                ("Oakfield Stores", "We need a delivery slot for the Christmas order, forty cartons."),
                ("Alex Moreno", "We could offer a delivery slot on the 14th in the morning."),
                ("Oakfield Stores", "That suits us: could you confirm the slot on the 14th, and send the papers?"))),
            ("Budget of the second kiln", 15, (
                ("Ines Duarte", "The budget of 38,000 does not cover the hood."),
                ("Alex Moreno", "What budget would cover it?"),
                ("Ines Duarte", "If you raise it to 42,000 the hood and the fitting are in."))),
            ("The glazing workshop in February", 11, (
                ("Priya Nair", "Who comes to the glazing workshop? Count me in for both days."),
                ("Jonas Weber", "I can only come on the Sunday."),
                ("Wen Zhao", "Wen brings two colleagues, if there is room."))),
            ("Choosing a packaging supplier", 30, (
                ("Jonas Weber", "We need a packaging supplier by spring; there are three offers."),
                ("Wen Zhao", "We would be glad to go on as your packaging supplier."),
                ("Priya Nair", "The test parcels are back: eleven, four and two broken."),
                ("Jonas Weber", "The cheapest broke most."),
                ("Priya Nair", "Then I am for the third."),
                ("Alex Moreno", "Agreed: we go with Kestrel, for the lowest breakage."))),
        )
    ):  # fmt: skip
        talk = Talk(200 + place, subject)
        for step, (who, text) in enumerate(said):
            yield talk.letter(who, now - timedelta(days=days) + timedelta(hours=3 * step), text)


def _since_yesterday(now: datetime) -> Iterator[Letter]:
    pick_up = Talk(300, "Tomorrow's pick-up")
    yield pick_up.letter("Jonas Weber", now - timedelta(days=3), "The pick-up is planned for noon.")
    yield pick_up.letter(
        "Wen Zhao", now - timedelta(hours=30), "Tomorrow's pick-up is moved to 14:30, the driver is late."
    )
    fault = Talk(301, "Kiln controller fault")
    yield fault.letter("Ines Duarte", now - timedelta(hours=20), "We look at the controller's log.", seen=False)
    yield notice(
        41_000, "Till Support <support@till.example>", "Refund of ticket 88213",
        ("We have refunded 64.90 EUR for ticket 88213.",), now - timedelta(hours=8), seen=False,
    )  # fmt: skip
    rota = Talk(302, "Saturday rota")
    yield rota.letter("Priya Nair", now - timedelta(hours=5), "Here is who is in on Saturday.", seen=False)
    key = Talk(303, "Van key")
    yield key.letter("Jonas Weber", now - timedelta(hours=2), "The van key is in the drawer.", seen=False)
