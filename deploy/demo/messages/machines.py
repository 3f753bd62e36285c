"""Mail with a shape of its own: an auto-reply, a delivery report, an invitation, a forwarded message."""

from __future__ import annotations

from datetime import datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final

from deploy.demo.messages.letter import SHOP, Attachment, Letter

_GONE: Final = "old-friend@closed-mailbox.example"


def letters(now: datetime) -> list[Letter]:
    """All of them in Incoming, but for one invitation in INBOX."""
    return [_auto_reply(), _second_auto_reply(), _delivery_report(), _invitation(now), _forwarded()]


def _auto_reply() -> Letter:
    return Letter(
        "auto-reply",
        "Incoming",
        "Ilse Brandt <ilse@lesecafe-brandt.example>",
        "Automatische Antwort: Re: Tea for our reading café",
        7.38,
        text="Guten Tag,\n\nich bin bis Freitag auf der Buchmesse und lese Ihre Nachricht danach.\n\nIlse Brandt\n",
        # RFC 3834 §5: says that no person wrote it, so that nobody answers an answer.
        headers=(("Auto-Submitted", "auto-replied"), ("X-Auto-Response-Suppress", "All")),
        flags=frozenset({"\\Seen"}),
    )


def _second_auto_reply() -> Letter:
    return Letter(
        "auto-reply-ticket",
        "Incoming",
        "Parcelway Help <help@parcelway.example>",
        "[Case 55-2041] We have received your message",
        4.05,
        text="Thank you for writing. Your case number is 55-2041. We answer within two working days.\n\n"
        "This is an automatic message.\n",
        headers=(("Auto-Submitted", "auto-replied"), ("Precedence", "junk")),
        flags=frozenset({"\\Seen"}),
    )


def _delivery_report() -> Letter:
    return Letter(
        "delivery-report",
        "Incoming",
        "Mail Delivery System <MAILER-DAEMON@mx.halcyon-tea.example>",
        "Undelivered Mail Returned to Sender",
        3.7,
        headers=(("Auto-Submitted", "auto-replied"),),
        utc_offset=0,
        build=_report_body,
    )


def _report_body(now: datetime) -> EmailMessage:
    """A multipart/report of three parts: words, status (RFC 3464 §2), the header of the lost mail."""
    report = EmailMessage(policy=SMTP)
    report.set_content(
        f"Your message could not be delivered.\n\n<{_GONE}>: 550 5.1.1 no mailbox here by that name\n", cte="7bit"
    )
    report.make_mixed()
    about_message = EmailMessage(policy=SMTP)
    about_message["Reporting-MTA"] = "dns; mx.halcyon-tea.example"
    about_message["Arrival-Date"] = format_datetime((now - timedelta(days=3.8)).replace(microsecond=0))
    about_recipient = EmailMessage(policy=SMTP)
    about_recipient["Final-Recipient"] = f"rfc822; {_GONE}"
    about_recipient["Action"] = "failed"
    about_recipient["Status"] = "5.1.1"
    about_recipient["Diagnostic-Code"] = "smtp; 550 5.1.1 no mailbox here by that name"
    status = EmailMessage(policy=SMTP)
    status["Content-Type"] = "message/delivery-status"
    status.set_payload([about_message, about_recipient])
    lost = EmailMessage(policy=SMTP)
    lost.set_content(f"From: {SHOP}\nTo: {_GONE}\nSubject: Your tea is back in stock\n", "rfc822-headers", cte="7bit")
    del lost["MIME-Version"]
    report.attach(status)
    report.attach(lost)
    report.replace_header("Content-Type", 'multipart/report; report-type="delivery-status"')
    return report


def _invitation(now: datetime) -> Letter:
    begins = (now + timedelta(days=5)).replace(hour=14, minute=0, second=0, microsecond=0)
    calendar = "\r\n".join(
        (
            "BEGIN:VCALENDAR",
            "VERSION:2.0",
            "PRODID:-//Bellweather Hotels//Diary//EN",
            "METHOD:REQUEST",
            "BEGIN:VEVENT",
            "UID:tasting-2041@bellweather-hotels.example",
            f"DTSTAMP:{begins - timedelta(days=7):%Y%m%dT%H%M%SZ}",
            f"DTSTART:{begins:%Y%m%dT%H%M%SZ}",
            f"DTEND:{begins + timedelta(hours=1):%Y%m%dT%H%M%SZ}",
            "SUMMARY:Tea tasting for the breakfast menu",
            "LOCATION:Harbour house\\, kitchen",
            "ORGANIZER;CN=Grace Bell:mailto:grace@bellweather-hotels.example",
            "ATTENDEE;RSVP=TRUE:mailto:support@halcyon-tea.example",
            "END:VEVENT",
            "END:VCALENDAR",
            "",
        )
    )
    return Letter(
        "invitation",
        "Incoming",
        "Grace Bell <grace@bellweather-hotels.example>",
        "Invitation: Tea tasting for the breakfast menu",
        1.6,
        text=f"Grace Bell invites you.\n\nTea tasting for the breakfast menu\n{begins:%A, %d %B %Y, %H:%M} UTC\n"
        "Harbour house, kitchen\n",
        calendar=calendar,
        attachments=(Attachment("invite.ics", "application/ics", calendar.encode("utf-8")),),
        utc_offset=0,
    )


def _forwarded() -> Letter:
    return Letter(
        "forwarded",
        "Incoming",
        "Tom Adeyemi <tom@halcyon-tea.example>",
        "Fwd: Complaint from the market stall",
        2.5,
        to=SHOP,
        build=_forwarded_body,
        flags=frozenset({"$Forwarded"}),
    )


def _forwarded_body(now: datetime) -> EmailMessage:
    """A few words and the whole forwarded message as message/rfc822."""
    complaint = EmailMessage(policy=SMTP)
    complaint["From"] = "Agnes Thorne <agnes@thorne.example>"
    complaint["To"] = "Tom Adeyemi <tom@halcyon-tea.example>"
    complaint["Subject"] = "Complaint from the market stall"
    complaint["Date"] = format_datetime((now - timedelta(days=3.1)).replace(microsecond=0))
    complaint["Message-ID"] = "<market-stall-07@thorne.example>"
    complaint.set_content(
        "The mint I bought at your stall on Sunday had a snail in it. It is well and lives with us now.\n"
        "Still, I should like a new bag.\n\nAgnes Thorne\n",
        cte="7bit",
    )
    message = EmailMessage(policy=SMTP)
    message.set_content(
        "Could one of you take this? She came by the stall, so there is no order number.\n\nTom\n", cte="7bit"
    )
    message.add_attachment(complaint)
    return message
