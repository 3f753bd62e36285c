"""Whether a text gives orders to a program, names this tool, or says where it wants to be moved: a hint for a person.

Words of eleven languages; a text that avoids them all is no safer, and one that uses them may be harmless.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final


def _any_of(*words: str) -> re.Pattern[str]:
    """Whole words (or beginnings, with a `*`), whatever their case; Chinese and Japanese write no blanks between."""
    return re.compile("|".join(_alternative(word) for word in words), re.IGNORECASE)


def _alternative(word: str) -> str:
    stem = re.escape(word.removesuffix("*")).replace(r"\ ", r"\s+")
    if not word[0].isascii() and ord(word[0]) > _FIRST_CJK:
        return stem
    return rf"\b{stem}" + ("" if word.endswith("*") else r"\b")


_FIRST_CJK: Final = 0x2E80

# Whom a text means that speaks to a program rather than to a person.
_TO_A_MACHINE: Final = _any_of(
    *("assistant*", "ai", "a.i.", "agent*", "bot", "bots", "chatbot*", "llm*", "language model*", "copilot", "gpt*"),
    *("ki", "assistent*", "sprachmodell*", "ki-agent*"),
    *("ia", "agente*", "asistente*", "assistente*", "modèle de langage", "modelo de lenguaje", "modelo de linguagem"),
    *("modello linguistico", "taalmodel", "asysten*", "agenci*", "агент*", "ассистент*", "помощник*", "бот"),
    *("助手", "智能体", "人工智能", "アシスタント", "エージェント", "人工知能"),
)

# What it is told to do.
_ORDERS: Final = _any_of(
    *("move*", "moving", "file", "files", "put", "transfer", "propose", "approve", "archive", "escalate", "ignore"),
    *("disregard", "forward", "delete", "mark", "hide", "conceal", "reveal", "must", "you are"),
    *("leite*", "markier*", "versteck*", "verbirg*", "transfèr*", "marqu*", "cach*", "marca*", "marque", "ocult*"),
    *("segna*", "nascond*", "encaminh*", "apag*", "escond*", "stuur*", "markeer*", "verberg*"),
    *("przekaż*", "oznacz*", "ukryj*", "переш*", "отмет*", "скро*", "скры*"),
    *("转发", "标记", "隐藏", "転送", "既読", "隠し", "変更して", "改为"),
    *(
        "verschieb*",
        "ablegen",
        "ablage",
        "lege",
        "leg",
        "genehmig*",
        "archivier*",
        "ignorier*",
        "lösch*",
        "weiterleit*",
    ),
    *("déplac*", "class*", "approuv*", "archiv*", "ignor*", "supprim*", "transfér*"),
    *("mueve", "mover", "muével*", "aprueb*", "aprobar", "elimina*", "borra*", "reenv*"),
    *("sposta*", "approva*", "cancella*", "inoltra*", "mova", "aprov*", "exclua", "encaminh*"),
    *("verplaats*", "goedkeur*", "negeer", "verwijder*", "przenieś", "zatwierdź", "zignoruj", "usuń"),
    *(
        "перемест*",
        "одобр*",
        "игнорир*",
        "удали*",
        "移动",
        "移到",
        "批准",
        "忽略",
        "删除",
        "移動",
        "承認",
        "無視",
        "削除",
    ),
)

# Orders about earlier orders, and the names of this tool: enough by themselves.
_OF_THIS_TOOL: Final = re.compile(
    r"propose_move|my_proposals|/v1/proposals|mailwarrant|system prompt|systemprompt"
    r"|(?:ignore|disregard|forget)\s+(?:all\s+|any\s+)?(?:the\s+|your\s+)?(?:previous|prior|earlier|above)"
    r"|(?:ignorier|vergiss)\w*\s+(?:alle\s+)?(?:die\s+)?(?:vorherig|bisherig|obig|früher)\w*"
    r"|ignor\w+\s+(?:toutes?\s+)?(?:les\s+)?(?:instructions|consignes)"
    r"|ignor\w+\s+(?:todas?\s+)?(?:las|le|as|tutte\s+le)\s+(?:instrucciones|istruzioni|instruções)"
    r"|zignoruj\w*\s+(?:wszystkie\s+)?(?:poprzednie|wcześniejsze)"
    r"|negeer\s+(?:alle\s+)?(?:vorige|eerdere)|игнорируй\w*\s+(?:все\s+)?(?:предыдущие|прошлые)"
    r"|忽略(?:之前|以上|所有)|以前の指示|上記の指示",
    re.IGNORECASE,
)

# Said with the name of a role or a mailbox in one sentence.
_MOVING: Final = _any_of(
    *("move*", "moving", "file", "put", "transfer", "send", "sort"),
    *("verschieb*", "ablegen", "lege", "leg", "schieb*", "déplac*", "class*", "rang*", "mueve", "mover", "muével*"),
    *("sposta*", "mova", "mover", "coloque", "verplaats*", "przenieś", "перемест*", "移动", "移到", "移動"),
)
_SENTENCE: Final = re.compile(r"[.!?。！？]+(?=\s|$)|[。！？]+|\n[>\s]*\n")
# A sentence goes on over the end of a line, in a quote too.
_LINE_END: Final = re.compile(r"\n[>\t ]*")


def asks_to_be_moved(text: str, names: Sequence[str]) -> bool:
    """Whether a text seems to give orders to a program: it speaks to one, names this tool, or names where to go.

    `names` are the queue's roles and mailboxes.
    """
    if _OF_THIS_TOOL.search(_LINE_END.sub(" ", text)):
        return True
    places = _places(names)
    return any(
        (_TO_A_MACHINE.search(sentence) and _ORDERS.search(sentence))
        or (_MOVING.search(sentence) and places.search(sentence))
        for sentence in (_LINE_END.sub(" ", each) for each in _SENTENCE.split(text))
    )


def _places(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names if name) or r"(?!)", re.IGNORECASE)
