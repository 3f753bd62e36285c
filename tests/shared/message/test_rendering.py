"""A well-formed message, put together again from what was read of it, is the same octets."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from shared.message import Part, parse


@dataclass
class Drawn:
    """A well-formed part: its header fields as they stand, and its text or its parts behind a boundary."""

    fields: list[bytes]
    text: bytes = b""
    boundary: bytes = b""
    parts: list["Drawn"] = field(default_factory=list)

    def octets(self) -> bytes:
        head = b"".join(line + b"\r\n" for line in self.fields) + b"\r\n"
        if not self.boundary:
            return head + self.text
        opened = b"".join(b"--" + self.boundary + b"\r\n" + part.octets() + b"\r\n" for part in self.parts)
        return head + opened + b"--" + self.boundary + b"--\r\n"


WORDS = st.text("abc XYZ,.=?-é", max_size=12).map(lambda text: text.encode().strip())
LINES = st.lists(WORDS, max_size=4).map(b"\r\n".join)
FIELD = st.builds(
    lambda name, value, more: name.encode() + b": " + value + b"".join(b"\r\n " + line for line in more if line),
    st.text("ABCxyz-", min_size=1, max_size=8).filter(lambda name: not name.lower().startswith("content")),
    WORDS,
    st.lists(WORDS, max_size=2),
)
LEAF = st.builds(Drawn, st.lists(FIELD, max_size=3), LINES)


@st.composite
def tree(draw: st.DrawFn, depth: int = 0, number: str = "q") -> Drawn:
    if depth == 3 or draw(st.booleans()):
        return draw(LEAF)
    boundary = b"=_" + number.encode() + b"_="
    parts = [draw(tree(depth + 1, f"{number}{index}")) for index in range(draw(st.integers(1, 3)))]
    fields = [*draw(st.lists(FIELD, max_size=2)), b'Content-Type: multipart/mixed; boundary="' + boundary + b'"']
    return Drawn(fields, boundary=boundary, parts=parts)


def rendered(part: Part) -> bytes:
    head = b"".join(part.octets[each.start : each.end] for each in part.fields) + b"\r\n"
    if not part.is_multipart:
        return head + part.octets[part.start : part.end]
    boundary = part.parameters["boundary"].encode()
    opened = b"".join(b"--" + boundary + b"\r\n" + rendered(each) + b"\r\n" for each in part.subparts)
    return head + opened + b"--" + boundary + b"--\r\n"


@given(FIELD, tree())
def test_a_well_formed_message_is_rendered_from_its_parts_as_it_came(first: bytes, drawn: Drawn) -> None:
    drawn.fields.insert(0, first)
    octets = drawn.octets()
    message = parse(octets)
    assert () == message.defects
    assert octets == rendered(message.root)


def shape(part: Part) -> object:
    fields = [part.octets[each.start : each.end] for each in part.fields]
    below = [shape(each) for each in part.subparts] if part.is_multipart else part.content()
    return part.type, dict(part.parameters), part.disposition, part.name, fields, below


def cut_out(part: Part) -> bytes:
    begin = part.fields[0].start if part.fields else part.start - len(b"\r\n")
    return part.octets[begin : part.end]


@given(FIELD, tree())
def test_what_a_part_is_in_the_whole_it_is_when_read_alone(first: bytes, drawn: Drawn) -> None:
    drawn.fields.insert(0, first)
    for part in parse(drawn.octets()).root.walk():
        assert shape(part) == shape(parse(cut_out(part)).root)
