"""Small attachments, made rather than stored: a PDF of one page, a PNG, a CSV."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence


def pdf(lines: Sequence[str]) -> bytes:
    """A PDF 1.4 of one A5 page with these ASCII lines in Helvetica."""
    shown = "".join(f"({line}) Tj T* " for line in lines)
    stream = f"BT /F1 11 Tf 40 540 Td 16 TL {shown}ET".encode("ascii")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 595] /Contents 4 0 R /Resources 6 0 R >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Font << /F1 5 0 R >> >>",
    ]
    written = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(written))
        written += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = len(written)
    written += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    written += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    written += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)
    return bytes(written)


def png(red: int, green: int, blue: int, width: int = 48, height: int = 32) -> bytes:
    """An 8-bit RGB PNG that fades this colour (0 to 255 each) towards black from left to right."""
    fade = (1 - column / (2 * width) for column in range(width))
    row = b"\0" + b"".join(bytes((int(red * f), int(green * f), int(blue * f))) for f in fade)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(row * height)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(kind, data) for kind, data in chunks)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def csv(rows: Iterable[Sequence[str]]) -> bytes:
    """Rows of plain cells, CRLF ended (RFC 4180 §2); no cell may need quotes."""
    return "".join(",".join(row) + "\r\n" for row in rows).encode("utf-8")
