"""Messages for tests, put together from entities."""

from shared.message import DefectCode, Message, Part


def entity(content_type: str, body: bytes | str = "", *fields: str) -> bytes:
    lines = [f"Content-Type: {content_type}"] if content_type else []
    octets = body.encode() if isinstance(body, str) else body
    return "\r\n".join([*lines, *fields, "", ""]).encode() + octets


def multipart(kind: str, *children: bytes, boundary: str = "b") -> bytes:
    inside = b"".join(f"--{boundary}\r\n".encode() + child + b"\r\n" for child in children)
    return entity(f'multipart/{kind}; boundary="{boundary}"', inside + f"--{boundary}--\r\n".encode())


def codes(message: Message) -> set[DefectCode]:
    return {defect.code for defect in message.defects}


def contents(parts: tuple[Part, ...]) -> str:
    return "".join(part.content().decode() for part in parts)
