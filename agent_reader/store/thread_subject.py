"""The subject by which threads are told apart: without what mail programs and lists put before it, in any language.

RFC 5256 §2.1 knows `Re`, `Fw` and `Fwd`; mail programs translate them. RFC 8621 §3 lets a server know more. A word too
many here joins nothing by itself: only messages whose Message-IDs name each other are compared.
"""

import re
from typing import Final

from agent_reader.store.fold import sort_order
from shared.message import base_subject

# What programs of these languages write, as far as known; where it is one word for several (`VS`), it stands once.
_PREFIXES: Final = (
    *("Re", "Fw", "Fwd", "Reply", "Forward"),  # English, and most programs in most languages
    *("AW", "Antwort", "WG", "Weitergeleitet"),  # German
    *("RE", "RÉF", "Rép", "TR"),  # French
    *("RES", "ENC"),  # Portuguese
    *("RV", "Resp", "Reenv"),  # Spanish, Catalan
    *("R", "RIF", "I", "Inoltro"),  # Italian
    *("Antw", "Antwoord", "Doorst"),  # Dutch
    *("SV", "VB", "VS", "VL", "Videresendt", "Videresend", "Svar"),  # Swedish, Danish, Norwegian, Finnish
    *("FS", "Áframs"),  # Icelandic
    *("Odp", "PD"),  # Polish
    *("Odg", "Posr", "Preposl", "Odpov", "Přep"),  # Croatian, Serbian, Slovenian, Czech, Slovak
    *("Vá", "Válasz", "Továbbítás", "Tov"),  # Hungarian
    *("Răsp", "Redir"),  # Romanian
    *("Ats", "Persiųsta", "Atb", "Pārs", "Vast", "Edasi"),  # Lithuanian, Latvian, Estonian
    *("YNT", "İLT", "ILT"),  # Turkish
    *("BLS", "TRS", "Balas", "Teruskan"),  # Indonesian, Malay
    *("TL", "CT", "Trả lời", "Chuyển tiếp"),  # Vietnamese
    *("ATB", "YML"),  # Welsh
    *("ΑΠ", "Απάντηση", "ΣΧΕΤ", "ΠΡΘ"),  # Greek
    *("Отв", "Ответ", "Пересл", "НА", "Відп", "Переадр"),  # Russian, Ukrainian
    *("השב", "תגובה", "תשובה", "הועבר"),  # Hebrew
    *("رد", "إعادة توجيه", "پاسخ"),  # Arabic, Persian
    *("回复", "回覆", "答复", "答覆", "转发", "轉寄", "轉發", "答回"),  # Chinese
    *("返信", "転送"),  # Japanese
    *("회신", "답장", "전달"),  # Korean
    *("ตอบกลับ", "ส่งต่อ"),  # Thai
)

# Folded as subjects are before they are looked at: case, marks, wide forms (a wide colon is a colon then). Longest
# first. Some programs count replies: `Re[2]:`, `Re(2):`, `Re^2:`.
_LEADER: Final = re.compile(
    "(?:"
    + "|".join(sorted({re.escape(sort_order(prefix)) for prefix in _PREFIXES}, key=lambda each: (-len(each), each)))
    + r")\s?(?:\[[^\[\]]*+\]\s?|\(\d{1,3}\)\s?|\^\d{1,3}\s?)?:\s?"
)

# People compare no further, and a subject is not a text.
_MOST_CHARACTERS: Final = 1_000


def thread_subject(subject: str) -> str:
    """Return what must be equal for two messages to be in one Thread, of a decoded subject. Pure, one pass."""
    return "".join(base_subject(sort_order(subject[:_MOST_CHARACTERS]), _LEADER).split())
