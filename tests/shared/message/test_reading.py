"""Text for reading: HTML as a person sees it, what is hidden apart, format=flowed, and which alternative is taken."""

import subprocess
import sys

import pytest

from shared.message import HidingTrick, ReadableText, TextSource, parse, readable_text
from shared.message.flowed import unflow
from shared.message.html import html_to_text
from shared.message.markup import MAX_NESTING


def text_of(html: str) -> str:
    return html_to_text(html).text


def hidden_in(html: str) -> list[tuple[str, HidingTrick]]:
    return [(found.text, found.trick) for found in html_to_text(html).hidden]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one\n  two</p><p>three</p>", "one two\n\nthree"),
        ("a<br>b<br><br>c", "a\nb\n\nc"),
        ("<div>a</div><div>b</div>", "a\nb"),
        ("<b>bo</b>ld <i>it</i>", "bold it"),
        ("a&nbsp;b &lt;c&gt; &amp;amp;", "a\xa0b <c> &amp;"),
        ('<a href="https://a.test/x">text</a> after', "text <https://a.test/x> after"),
        ('<a href="https://a.test/">https://a.test</a>', "https://a.test"),
        ('<a href="https://evil.test/">https://bank.test/</a>', "https://bank.test/ <https://evil.test/>"),
        ('<a href="mailto:a@b.test">a@b.test</a>', "a@b.test"),
        ('<a href="java\nscript:alert(1)">x</a>', "x <javascript:…>"),
        ('<a href="#top">x</a>', "x"),
        ('<a href="top">x</a>', "x"),
        ('<a href="www.a.test/b">x</a>', "x <www.a.test/b>"),
        ('<a href="https://a.test/<b>">x</a>', "x <https://a.test/%3Cb%3E>"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n  - c"),
        ('<ol start="3"><li>a</li><li>b</li></ol>', "3. a\n4. b"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>", "a | b\nc | d"),
        ("<blockquote>a<blockquote>b</blockquote></blockquote>c", "> a\n>\n> > b\n\nc"),
        ("<pre>a\n  b\n</pre>", "a\n  b"),
        ('<img src="https://t.test/p" alt="a plan">', "[image: a plan]"),
        ("x<hr>y", "x\n----------\ny"),
        ("<title>t</title><script>s()</script><style>p{}</style><!-- c --><p>p", "p"),
        ("a<script>b<!--<script>c</script>d", "ad"),
        ("a < b <3 c", "a < b <3 c"),
        ("<p", ""),
        ("<div title='</div>'>a</div>b", "a\nb"),
        ("<h1>T</h1>x", "T\n\nx"),
        ("", ""),
    ],
)
def test_html_becomes_the_text_that_a_person_sees(html: str, text: str) -> None:
    assert [line.rstrip() for line in text.split("\n") if line] == [
        line.rstrip() for line in text_of(html).split("\n") if line
    ]


def test_paragraphs_are_a_blank_line_apart_and_rows_are_not() -> None:
    assert text_of("<p>a</p><p>b</p><div>c</div><div>d</div>") == "a\n\nb\n\nc\nd"


@pytest.mark.parametrize(
    ("style", "trick"),
    [
        ("display:none", HidingTrick.DISPLAY),
        ("DISPLAY : NONE !important", HidingTrick.DISPLAY),
        (r"d\69splay:none", HidingTrick.DISPLAY),
        ("dis/**/play:x;display:/* x */none", HidingTrick.DISPLAY),
        ("visibility:hidden", HidingTrick.VISIBILITY),
        ("visibility:collapse", HidingTrick.VISIBILITY),
        ("opacity:0", HidingTrick.OPACITY),
        ("opacity:.01", HidingTrick.OPACITY),
        ("filter:opacity(0%)", HidingTrick.OPACITY),
        ("font-size:0", HidingTrick.SIZE),
        ("font-size:1px", HidingTrick.SIZE),
        ("font:0/0 a", HidingTrick.SIZE),
        ("max-height:0;overflow:hidden", HidingTrick.SIZE),
        ("width:0px;overflow:hidden", HidingTrick.SIZE),
        ("transform:scale(0)", HidingTrick.SIZE),
        ("position:absolute;left:-9999px", HidingTrick.OFF_SCREEN),
        ("text-indent:-9999px", HidingTrick.OFF_SCREEN),
        ("margin-left:-200em", HidingTrick.OFF_SCREEN),
        ("transform:translateX(-9999px)", HidingTrick.OFF_SCREEN),
        ("position:absolute;clip:rect(0,0,0,0)", HidingTrick.CLIP),
        ("clip-path:inset(50%)", HidingTrick.CLIP),
        ("clip-path:circle(0)", HidingTrick.CLIP),
        ("color:#fff", HidingTrick.COLOUR),
        ("color:white;background:#fefefe", HidingTrick.COLOUR),
        ("color:transparent", HidingTrick.COLOUR),
        ("color:rgba(0,0,0,0)", HidingTrick.COLOUR),
        ("color:rgb(10 10 10);background-color:black", HidingTrick.COLOUR),
        ("color:hsl(0,0%,100%)", HidingTrick.COLOUR),
    ],
)
def test_hidden_text_is_taken_out_and_handed_over_with_its_trick(style: str, trick: HidingTrick) -> None:
    html = f'<p>seen</p><div style="{style}">un<b>se</b>en</div><p>too</p>'
    assert ("seen\n\ntoo", [("un se en", trick)]) == (text_of(html), hidden_in(html))


@pytest.mark.parametrize(
    "style",
    [
        "display:block",
        "opacity:.5",
        "font-size:9px",
        "max-height:0",
        "color:#fff;background:#000",
        "color:#fff;background:url(x.png)",
        "color:white;background-image:linear-gradient(red,blue)",
        "color:#767676",
        "text-indent:-10px",
        "position:absolute;left:-20px",
        "color:nonsense",
        "line-height:0",
        "mso-hide:all",
        "font:bold 12px/1 arial",
        "font:400 14px serif",
    ],
)
def test_text_that_can_be_seen_stays(style: str) -> None:
    assert (text_of(f'<p style="{style}">seen</p>'), hidden_in(f'<p style="{style}">seen</p>')) == ("seen", [])


@pytest.mark.parametrize(
    ("sheet", "is_hidden"),
    [
        (".a{display:none}", True),
        ("#i{display:none}", True),
        ("p{display:none}", True),
        ("div p.a{display:none}", True),
        ("body > div > p{display:none}", True),
        ("div > div p{display:none}", False),
        (".b,.a{display:none}", True),
        (".b{display:none}", False),
        (".a{display:none}.a{display:block}", False),
        ("#i{display:none}.a{display:block}", True),
        (".a{display:none!important}#i{display:block}", True),
        ("@media (max-width:600px){.a{display:none}}", False),
        ("@media only screen and (min-width:600px){.a{display:none}}", True),
        ("@media print{.a{display:none}}", False),
        ("@media screen{.b{color:red}.a{display:none}}", True),
        ("@import url(x);.a{display:none}", True),
        (".a:hover{display:none}", False),
        ("/* .a{display:block} */.a{display:none}", True),
        ("<!-- .a{display:none} -->", True),
        ("}.a{display:none}", True),
    ],
)
def test_style_sheets_hide_by_the_cascade(sheet: str, is_hidden: bool) -> None:
    html = f"<style>{sheet}</style><div><p id=i class='x a'>words</p></div>"
    assert bool(hidden_in(html)) is is_hidden


def test_a_style_attribute_is_stronger_than_a_rule_but_not_than_important() -> None:
    assert text_of("<style>p{display:none}</style><p style='display:block'>a</p>") == "a"
    assert text_of("<style>p{display:none!important}</style><p style='display:block'>a</p>") == ""


def test_a_child_may_be_seen_in_a_hidden_parent_only_where_css_says_so() -> None:
    assert text_of('<p style="visibility:hidden">a<b style="visibility:visible">b</b></p>') == "b"
    assert text_of('<div style="font-size:0">a<b style="font-size:14px">b</b></div>') == "b"
    assert text_of('<p style="display:none">a<b style="display:block">b</b></p>') == ""


def test_old_attributes_count_too() -> None:
    assert hidden_in('<table bgcolor="#ffffff"><tr><td><font color="#ffffff">a</font></td></tr></table>') == [
        ("a", HidingTrick.COLOUR)
    ]
    assert text_of('<table bgcolor="black"><tr><td><font color="#ffffff">a</font></td></tr></table>') == "a"
    assert hidden_in("<p hidden>a</p>") == [("a", HidingTrick.ATTRIBUTE)]
    assert hidden_in('<img alt="obey" width="1" height="1">') == [("obey", HidingTrick.SIZE)]


@pytest.mark.parametrize("unit", ["<div>", "<span>", "<font a=1>", "<div></span>", "<div><table><td></div></table>"])
def test_html_that_would_choke_a_parser_keeps_its_text_and_says_so(unit: str) -> None:
    html = "".join(unit.replace("a=1", f"color={index}") for index in range(50_000)) + "words"
    reading = html_to_text(html)
    assert reading.text.split()[-1] == "words"
    assert "too deeply nested" in reading.reason


def test_real_nesting_is_laid_out() -> None:
    depth = MAX_NESTING - 10
    assert html_to_text("<div>" * depth + "<p>a" + "</div>" * depth).reason == ""


def test_thousands_of_unclosed_items_and_misnested_tags_are_laid_out() -> None:
    html = "<ul>" + "<li>x" * 5_000 + "</ul>" + "<b><i>y</b></i>" * 1_000 + "<p>z" * 5_000
    assert html_to_text(html).reason == ""


def test_html_that_is_very_long_is_cut_and_says_so() -> None:
    assert "cut after 2 MiB" in html_to_text("word " * 500_000).reason


@pytest.mark.parametrize(
    ("text", "delete_space", "expected"),
    [
        ("one \ntwo\n", False, "one two\n"),
        ("one \ntwo\n", True, "onetwo\n"),
        ("> one \n> two\nthree", False, "> one two\nthree"),
        (">> one \n> two", False, ">> one \n> two"),
        (" > no quote\n", False, "> no quote\n"),
        ("one \n-- \nMo", False, "one \n-- \nMo"),
        ("fixed\nlines", False, "fixed\nlines"),
        ("> -- \n> Mo", False, "> -- \n> Mo"),
        ("", False, ""),
    ],
)
def test_flowed_text_is_joined_at_soft_breaks_only(text: str, delete_space: bool, expected: str) -> None:
    assert expected == unflow(text, delete_space=delete_space)


def read(content_type: str, body: str) -> ReadableText:
    return readable_text(parse(f"Content-Type: {content_type}\r\n\r\n{body}".encode()))


def alternative(plain: str, html: str) -> ReadableText:
    return read(
        "multipart/alternative; boundary=b",
        f"--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{plain}\r\n"
        f"--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{html}\r\n--b--\r\n",
    )


def test_the_plain_text_is_taken_where_one_was_written() -> None:
    reading = alternative("The van comes at nine on Tuesday.", "<p>The van comes at <b>nine</b> on Tuesday.</p>")
    assert ("The van comes at nine on Tuesday.", TextSource.PLAIN) == (reading.text, reading.source)


def test_an_empty_plain_text_gives_way() -> None:
    assert (" Party ", TextSource.HTML) == (f" {alternative('', '<p>Party</p>').text} ", alternative("", "<p>P").source)


def test_a_message_without_text_has_none() -> None:
    assert ("", TextSource.NONE) == (read("application/pdf", "x").text, read("application/pdf", "x").source)


def test_pictures_between_texts_stand_by_their_names() -> None:
    reading = read(
        "multipart/mixed; boundary=b",
        "--b\r\n\r\none\r\n--b\r\nContent-Type: image/png; name=p.png\r\n\r\nx\r\n--b\r\n\r\ntwo\r\n--b--\r\n",
    )
    assert reading.text == "one\n\n[image: p.png]\n\ntwo"


def test_a_plain_message_is_read_without_loading_an_html_parser() -> None:
    program = (
        "import sys, shared.message as m\n"
        "message = m.parse(b'Subject: a\\r\\n\\r\\nplain')\n"
        "assert m.readable_text(message).text == 'plain'\n"
        "m.email_json(message, properties=['bodyStructure', 'bodyValues', 'preview'])\n"
        "sys.exit(any(name.startswith('selectolax') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a<textarea>in <b>area</b></textarea>b", "ain <b>area</b>b"),
        ("a<xmp>raw <i></b></xmp>c", "araw <i></b>c"),
        ("a<xmp>never ends", "anever ends"),
        ("a<plaintext>the <b>rest", "athe <b>rest"),
    ],
)
def test_what_a_browser_shows_as_it_stands_is_text(html: str, text: str) -> None:
    message = parse(f"Content-Type: text/html\r\n\r\n{html}".encode())
    assert text == readable_text(message).text
