"""RFC 8621 §4.1.4: the values of parts: charsets, transfer encodings and their flaws, line ends, cuts."""

import pytest

from shared.message import BodyValue, HeaderForm, body_value, parse
from tests.shared.message.mail import entity


def value_of(octets: bytes, limit: int = 0) -> BodyValue:
    return body_value(parse(octets).root, limit)


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("iso-2022-jp", "日本語"),
        ("euc-kr", "한국어"),
        ("ks_c_5601-1987", "한국어 똠"),
        ("EUC-KR", "한국어 똠"),
        ("gbk", "中文𠀀"),
        ("gb18030", "中文€"),
        ("gb2312", "中文镕"),
        ("big5", "中文"),
        ("shift_jis", "日本①"),
        ("windows-1251", "Привет"),
        ("windows-1252", "“€”"),
        ("iso-8859-1", "“€”"),
        ("ISO_8859-1:1987", "café"),
        ("koi8-r", "Привет"),
        ("koi8-u", "Привіт"),
        ("utf-7", "日本 +"),
        ("utf-16", "日本"),
        ("utf-16be", "ab日本"),
        ("utf-32", "日本"),
        ("utf-8", "日本🧾"),
        ('"UTF-8"', "日本"),
        ("cp1252", "é"),
        ("iso-8859-15", "€"),
        ("x-euc-kr", "한국어"),
        ("X-Windows-949", "한국어"),
    ],
)
@pytest.mark.statement("140")
def test_charsets_in_real_use_decode_without_a_problem(charset: str, text: str) -> None:
    codec = {
        "ks_c_5601-1987": "cp949",
        "EUC-KR": "cp949",
        "gbk": "gb18030",
        "gb2312": "gbk",
        "shift_jis": "cp932",
        "x-euc-kr": "cp949",
        "X-Windows-949": "cp949",
        "iso-8859-1": "cp1252",
        '"UTF-8"': "utf-8",
    }.get(charset, charset)
    value = value_of(entity(f"text/plain; charset={charset}", text.encode(codec)))
    assert (text, False) == (value.value, value.is_encoding_problem)


@pytest.mark.statement("140")
def test_the_octets_that_windows_1252_leaves_undefined_are_no_problem() -> None:
    """WHATWG Encoding: the controls that iso-8859-1 means by them."""
    value = value_of(entity("text/plain; charset=windows-1252", b"\x81\x93\x9d"))
    assert ("\x81“\x9d", False) == (value.value, value.is_encoding_problem)


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.statement("140")
def test_the_order_of_octets_is_the_mark_s_or_that_of_latin_letters(width: int, order: str, mark: str) -> None:
    octets = f"{mark}ab 日本".encode(f"utf-{width}-{order}")
    for charset in (f"utf-{width}", f"utf-{width}{order}"):
        value = value_of(entity(f"text/plain; charset={charset}", octets))
        assert ("ab 日本", False) == (value.value, value.is_encoding_problem)


@pytest.mark.parametrize(
    ("charset", "octets", "text"),
    [
        ("iso-2022-jp", b"\x1b$B-!-j\x1b(B ok \x1b$BF|K\\|b!!\x1b(I6@\x1b(J\\\x1b(B", "①㈱ ok 日本髙　ｶﾀ¥"),
        ("iso-2022-jp-ms", b"\x1b$B-!\nplain\x1b$@F|\x1b(B", "①\nplain日"),
        ("iso-2022-jp", b"\x1b$(D0!\x1b$B-!\x1b(B", "丂①"),
        ("euc-jp", b"a\xad\xa1\xc6\xfc\x8e\xb6\x8f\xb0\xa1\xfc\xe2", "a①日ｶ丂髙"),
    ],
)
@pytest.mark.statement("140")
def test_characters_that_windows_adds_to_japanese_charsets_are_read(charset: str, octets: bytes, text: str) -> None:
    value = value_of(entity(f"text/plain; charset={charset}", octets))
    assert (text, False) == (value.value, value.is_encoding_problem)


@pytest.mark.parametrize(
    "octets", [b"\x1b$B-!\xff", b"\x1b$B-", b"\x1b$(P-!", b"\x1b(B\x1b$B\x7e\x7e", b"\x1b$B-!\x1b(Z"]
)
@pytest.mark.statement("139")
def test_what_is_no_japanese_either_is_flagged(octets: bytes) -> None:
    assert value_of(entity("text/plain; charset=iso-2022-jp", octets)).is_encoding_problem


@pytest.mark.parametrize(
    ("content_type", "octets", "text"),
    [
        ("text/plain; charset=x-nobody-knows", "é".encode(), "é"),
        ("text/plain; charset=x-nobody-knows", b"\xe9", "é"),
        ("text/plain", "é".encode(), "é"),
        ("text/plain; charset=utf-8", b"ok \xff \xc3\xa9", "ok \ufffd é"),
        ("text/plain; charset=punycode", b"abc", "abc"),
        ("text/plain; charset=rot13", b"abc", "abc"),
        ("text/plain; charset=euc-kr", b"a\xff", "a\ufffd"),
        ("text/html", b"<meta charset=koi8-r>\xf0", "<meta charset=koi8-r>П"),
    ],
)
@pytest.mark.statement("139", "141")
def test_what_does_not_fit_its_label_is_flagged_and_still_shown(content_type: str, octets: bytes, text: str) -> None:
    value = value_of(entity(content_type, octets))
    assert (text, True) == (value.value, value.is_encoding_problem)


@pytest.mark.statement("140")
@pytest.mark.parametrize("number", range(1250, 1259))
def test_each_windows_charset_is_read_under_each_of_its_names(number: int) -> None:
    letters = bytes(range(0xC0, 0xE0)).decode(f"cp{number}", "ignore")
    for name in (f"windows-{number}", f"WINDOWS-{number}", f"cp{number}", f"x-cp{number}"):
        value = value_of(entity(f"text/plain; charset={name}", letters.encode(f"cp{number}")))
        assert (letters, False) == (value.value, value.is_encoding_problem)


@pytest.mark.statement("139")
def test_a_transfer_encoding_that_nobody_knows_is_flagged_and_what_stands_there_is_shown() -> None:
    part = parse(entity("text/plain; charset=utf-8", "é=20!", "Content-Transfer-Encoding: x-uuencode")).root
    value = body_value(part)
    assert ("é=20!", True) == (value.value, value.is_encoding_problem)
    # RFC 8621 §4.1.4: as though it had none.
    assert len("é=20!".encode()) == part.size


@pytest.mark.statement("149")
def test_half_a_surrogate_pair_never_leaves() -> None:
    value = value_of(entity("text/plain; charset=utf-7", b"a+2AA-b"))
    assert "a\ufffdb" == value.value
    assert parse(b"Subject: =?utf-7?Q?a+2AA-b?=\r\n\r\n").header("Subject", HeaderForm.TEXT) == "a\ufffdb"


@pytest.mark.statement("138")
def test_line_ends_are_lf_only_and_nul_is_gone() -> None:
    assert value_of(entity("text/plain", b"a\r\nb\rc\nd\0e")).value == "a\nb\nc\nde"
    # Where a line end is more than its two octets too.
    for charset in ("utf-16", "utf-32"):
        octets = "a\r\nb\rc\nd\0e".encode(charset)
        assert value_of(entity(f"text/plain; charset={charset}", octets)).value == "a\nb\nc\nde"


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"=C3=A9=\r\n!", "é!"),
        (b"a=  \r\nb", "ab"),
        (b"trailing \t\r\nb", "trailing\nb"),
        (b"=zz =3", "=zz =3"),
        (b"=3d=\rx\r\ny", "==\nx\ny"),
        (b"soft at the end=", "soft at the end"),
    ],
)
def test_quoted_printable_with_garbage(octets: bytes, text: str) -> None:
    field = "Content-Transfer-Encoding: Quoted-Printable"
    assert text == value_of(entity("text/plain; charset=utf-8", octets, field)).value


@pytest.mark.parametrize(
    "octets",
    [
        b"aGVsbG8=",
        b"aGVsbG8",
        b"aG V\r\nsb\tG8=\r\n\r\n",
        b"a*G!V(s)b-G_8=",
        b"aGVs=bG8=",
        b"aGVsbG8=\r\n--\r\n=",
        b"aGU=bGxv",
    ],
)
def test_base64_with_garbage(octets: bytes) -> None:
    assert value_of(entity("text/plain", octets, "Content-Transfer-Encoding: BASE64 (c)")).value == "hello"


def test_base64_that_breaks_off_after_six_bits_keeps_what_came_before() -> None:
    assert value_of(entity("text/plain", b"aGVsbG8hQ", "Content-Transfer-Encoding: base64")).value == "hello!"


@pytest.mark.statement("142")
def test_limits_of_one_to_six_octets_never_cut_a_character() -> None:
    octets = entity("text/plain; charset=utf-8", "aé🧾")  # 1 + 2 + 4
    cut = [(value_of(octets, limit).value, value_of(octets, limit).is_truncated) for limit in range(8)]
    whole = "aé🧾"
    assert cut == [(whole, False), ("a", True), ("a", True), *[("aé", True)] * 4, (whole, False)]
    pictures = entity("text/plain; charset=utf-8", "🧾🧾")
    assert ["🧾", "🧾", "🧾🧾"] == [value_of(pictures, limit).value for limit in (6, 7, 8)]
    # Only HTML has tags.
    assert "a <b" == value_of(entity("text/plain", "a <bcd> e"), 4).value


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        (4, "abc "),
        (5, "abc "),
        (20, "abc "),
        (22, "abc "),
        (23, 'abc <a href="x>y" id=1>'),
        (25, 'abc <a href="x>y" id=1>de'),
        (26, 'abc <a href="x>y" id=1>def'),
        (40, 'abc <a href="x>y" id=1>def'),
    ],
)
@pytest.mark.statement("143")
def test_html_is_not_cut_inside_a_tag_or_comment(limit: int, value: str) -> None:
    octets = entity("text/html", 'abc <a href="x>y" id=1>def<!-- > it\'s -->gh')
    assert value == value_of(octets, limit).value


@pytest.mark.statement("142", "143")
def test_html_is_cut_before_any_kind_of_tag_and_not_where_it_is_no_longer_than_it_may_be() -> None:
    for tag in ("</b>", "<b>", "<!doctype html>", "<?pi?>", "<!-- c -->"):
        for limit in range(3, 3 + len(tag)):
            assert "abc" == value_of(entity("text/html", f"abc{tag}d"), limit).value, tag
    unfinished = entity("text/html", "abc <b")
    assert [("abc ", True), ("abc <b", False)] == [
        (value_of(unfinished, limit).value, value_of(unfinished, limit).is_truncated) for limit in (5, 6)
    ]
    assert "1 < 2" == value_of(entity("text/html", "1 < 2 is so"), 5).value
