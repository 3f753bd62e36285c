"""RFC 8621 §4.1.4: textBody, htmlBody and attachments beside the RFC's own algorithm, over many shapes of messages."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from shared.message import Part, body_lists, parse
from tests.shared.message.mail import entity, multipart

_LEAVES = (
    ("text/plain",),
    ("text/plain; name=a.txt",),
    ("text/html",),
    ("text/html", "Content-Disposition: inline; filename=a.html"),
    ("text/csv",),
    ("image/png",),
    ("video/mp4; name=v",),
    ("audio/ogg", "Content-Disposition: attachment"),
    ("text/plain", "Content-Disposition: attachment"),
    ("application/pdf",),
)
_KINDS = ("mixed", "mixed", "alternative", "alternative", "related", "report")


@dataclass
class _Suggested:
    """`parseStructure` of RFC 8621 §4.1.4, line by line; a list that is `null` there is None here."""

    attachments: list[Part] = field(default_factory=list)

    def parse_structure(  # noqa: C901, PLR0912 - as the RFC has it, so that it can be laid beside it
        self,
        parts: tuple[Part, ...],
        multipart_type: str,
        in_alternative: bool,
        html_body: list[Part] | None,
        text_body: list[Part] | None,
    ) -> None:
        text_length = -1 if text_body is None else len(text_body)
        html_length = -1 if html_body is None else len(html_body)
        for i, part in enumerate(parts):
            is_media = part.type.startswith(("image/", "audio/", "video/"))
            is_inline = (
                part.disposition != "attachment"
                and (part.type in {"text/plain", "text/html"} or is_media)
                and (i == 0 or (multipart_type != "related" and (is_media or not part.name)))
            )
            if part.is_multipart:
                sub_multi_type = part.type.split("/")[1]
                is_alternative = in_alternative or sub_multi_type == "alternative"
                self.parse_structure(part.subparts, sub_multi_type, is_alternative, html_body, text_body)
            elif is_inline:
                if multipart_type == "alternative":
                    # The RFC adds to a list that may be null: then there is nowhere but the attachments.
                    body = {"text/plain": text_body, "text/html": html_body}.get(part.type)
                    (self.attachments if body is None else body).append(part)
                    continue
                if in_alternative:
                    if part.type == "text/plain":
                        html_body = None
                    if part.type == "text/html":
                        text_body = None
                if text_body is not None:
                    text_body.append(part)
                if html_body is not None:
                    html_body.append(part)
                if (text_body is None or html_body is None) and is_media:
                    self.attachments.append(part)
            else:
                self.attachments.append(part)
        if multipart_type == "alternative" and text_body is not None and html_body is not None:
            if text_length == len(text_body) and html_length != len(html_body):
                text_body += html_body[html_length:]
            if html_length == len(html_body) and text_length != len(text_body):
                html_body += text_body[text_length:]


def _shape(chance: random.Random, depth: int) -> bytes:
    if depth and chance.random() < (0.8 if depth > 1 else 0.4):
        children = (_shape(chance, depth - 1) for _ in range(chance.randint(1, 3)))
        return multipart(chance.choice(_KINDS), *children, boundary=f"b{depth}")
    content_type, *fields = chance.choice(_LEAVES)
    return entity(content_type, "x", *fields)


@pytest.mark.statement("128", "129", "130", "131")
def test_the_lists_are_those_that_the_algorithm_of_the_rfc_gives() -> None:
    # The same shapes each time: what fails once fails again.
    chance = random.Random(8621)
    for _ in range(800):
        octets = _shape(chance, 4)
        message = parse(octets)
        text_body, html_body, suggested = list[Part](), list[Part](), _Suggested()
        suggested.parse_structure((message.root,), "mixed", False, html_body, text_body)
        lists = body_lists(message)
        expected = [[each.part_id for each in of] for of in (text_body, html_body, suggested.attachments)]
        found = [[each.part_id for each in of] for of in (lists.text_body, lists.html_body, lists.attachments)]
        assert expected == found, octets.decode()
