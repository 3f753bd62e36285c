"""Messages for the tests, as octets."""

from datetime import UTC, datetime

RECEIVED = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


def letter(
    subject: str, text: str = "Thank you for the order.", sender: str = "Carla Jansen <carla@customer.example>"
) -> bytes:
    """A plain message; the subject makes it one of its kind."""
    return (
        f"From: {sender}\r\n"
        "To: Support <support@shop.example>\r\n"
        f"Subject: {subject}\r\n"
        "Date: Fri, 20 Nov 2026 10:30:00 +0100\r\n"
        f"Message-ID: <{subject.encode().hex()}@customer.example>\r\n"
        "MIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        "Content-Transfer-Encoding: 8bit\r\n"
        "\r\n"
        f"{text}\r\n"
    ).encode()
