"""What a message hides from a person: how, said in words, and also in the alternative that the page does not show.

Runs in the confined child alone.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from change_executor.evidence.reading import Warning as Caution
from shared.message import BodyLists, HiddenText, HidingTrick, ReadableText, body_value
from shared.message.html import html_to_text

# How a text was kept from the eye, as a person says it.
HOW: Final = {
    HidingTrick.DISPLAY: "not displayed",
    HidingTrick.VISIBILITY: "switched off",
    HidingTrick.OPACITY: "wholly transparent",
    HidingTrick.SIZE: "too small to be seen",
    HidingTrick.OFF_SCREEN: "placed outside the window",
    HidingTrick.CLIP: "cut away",
    HidingTrick.COLOUR: "in the colour of its background",
    HidingTrick.ATTRIBUTE: "marked as hidden",
}

_WORD: Final = re.compile(r"\w++")


def hidden_elsewhere(lists: BodyLists, readable: ReadableText) -> tuple[HiddenText, ...]:
    """Return what the HTML hides where the plain text is shown instead: an agent may have read it.

    What the text on the page says too, as the first lines that newsletters repeat for a list, is left out.
    """
    others = [part for part in lists.html_body if part.type == "text/html" and part not in lists.text_body]
    if readable.source.value != "plain" or not others:
        return ()
    said = set(_WORD.findall(readable.text.lower()))
    hidden = (each for part in others for each in html_to_text(body_value(part).value).hidden)
    return tuple(each for each in hidden if not said.issuperset(_WORD.findall(each.text.lower())))


def shown_apart(hidden: Iterable[HiddenText]) -> list[str]:
    """Return what was hidden, a line for each, with how before it."""
    return [f"[{HOW[each.trick]}] {each.text}" for each in hidden]


def about_hidden(hidden: Sequence[HiddenText], elsewhere: Sequence[HiddenText]) -> Iterable[Caution]:
    """Yield what is said of text that is hidden in what is shown, and in the HTML that is not."""
    for code, those in (("hidden_text", hidden), ("hidden_in_html", elsewhere)):
        if those:
            count = sum(len(_WORD.findall(each.text)) for each in those)
            how = ", ".join(sorted({HOW[each.trick] for each in those}))
            yield Caution(code=code, detail=f"{count} {'word' if count == 1 else 'words'}: {how}")
