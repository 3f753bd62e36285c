"""What an octet of a hostile header costs at most: in lines of code that run, so that no clock decides.

An octet of a typical message costs some 80 ns, most of it within regular expressions and codecs, and a line of this
package some 70 ns; so ten lines are about ten times the typical octet. Fields of one or two characters again and again
cost up to fifteen; of a message of 10 MB a header is at most a tenth.
"""

from functools import partial
from typing import Final

import pytest

from tests.bench.linear_time import everything
from tests.shared.message.test_linear import steps

MOST_LINES_PER_OCTET: Final = 10

# Where each token is one character.
MOST_LINES_FOR_CRUMBS: Final = 15
CRUMBS: Final = {b'"', b"(a", b"a (b) <c@d>,"}

SIZE: Final = 12_000

# What stands in one field again and again, and the field.
UNITS: Final = (
    ("To", b"a:;"), ("To", b"a:b@c;"), ("To", b"a:b c@d <e>;"), ("To", b"a@b,"), ("To", b"a@b, "), ("To", b"<a@b>"),
    ("To", b'\\"'), ("To", b'"'), ("To", b'"" '), ("To", b"("), ("To", b"()"), ("To", b"(a"), ("To", b"<"),
    ("To", b"[]"), ("To", b"=?"), ("To", b"=?utf-8?q?a?= "), ("To", b"a (b) <c@d>,"), ("To", b"\xc3\xa9@b, "),
    ("Subject", b"=?utf-8?q?a?= "), ("Subject", b"=?utf-8?q?a?==?iso-8859-1?q?b?="), ("Subject", b"=?a?q?b?="),
    ("References", b"<a@b>"), ("References", b"<>"), ("References", b"(a)<b>"), ("References", b'"a"<b>'),
    ("List-Unsubscribe", b"<a:b>,"), ("List-Unsubscribe", b"(a)<b:c>,"),
    ("Content-Type", b"; a=b"), ("Content-Type", b"; a*1*=x"), ("Content-Type", b'; a="b"'), ("Content-Type", b"(a);"),
    ("Content-Disposition", b"; filename*0*=x"), ("Content-ID", b"<a@b>"), ("Content-Language", b"a,"),
    ("Date", b"(a)"),
)  # fmt: skip


@pytest.mark.parametrize(("field", "unit"), UNITS)
def test_an_octet_of_a_header_costs_no_more_lines_than_its_kind_may(field: str, unit: bytes) -> None:
    most = MOST_LINES_FOR_CRUMBS if unit in CRUMBS else MOST_LINES_PER_OCTET
    octets = field.encode() + b": x" + unit * (SIZE // len(unit)) + b"\r\n\r\n"
    assert steps(partial(everything, octets)) <= most * len(octets)
