"""Mailboxes in which a message is deleted after a while, learnt from as junk, or in no one place, known by their names.

For servers that tell no use of a mailbox (RFC 6154): Exchange names them in the language of their owner.
"""

import unicodedata
from typing import Final

# The last part of the name, in lower case, in eleven languages.
_NAMES: Final = {
    "Trash": (
        *("trash", "bin", "deleted", "deleted items", "deleted messages", "papierkorb", "gelöscht"),
        *("gelöschte elemente", "gelöschte objekte", "corbeille", "éléments supprimés", "messages supprimés"),
        *("papelera", "elementos eliminados", "cestino", "posta eliminata", "elementi eliminati", "lixeira"),
        *("itens excluídos", "itens eliminados", "prullenbak", "prullenmand", "verwijderde items", "kosz"),
        *("elementy usunięte", "корзина", "удаленные", "удалённые", "已删除", "已删除邮件", "废纸篓", "ゴミ箱"),
        *("削除済みアイテム", "papperskorgen", "borttaget", "papirkurv", "slettet post"),
    ),
    "Junk": (
        *("junk", "junk e-mail", "junk email", "junk-e-mail", "junk mail", "spam", "bulk mail", "spamverdacht"),
        *("unerwünschte werbung", "courrier indésirable", "indésirables", "correo no deseado"),
        *("posta indesiderata", "lixo eletrônico", "lixo eletrónico", "ongewenste e-mail", "wiadomości-śmieci"),
        *("спам", "нежелательная почта", "垃圾邮件", "迷惑メール", "skräppost", "uønsket mail"),
    ),
    "All Mail": (
        *("all mail", "alle nachrichten", "tous les messages", "tutti i messaggi", "alle berichten", "вся почта"),
        *("所有邮件", "すべてのメール"),
    ),
}

_TRAPS: Final = {name: trap for trap, names in _NAMES.items() for name in names}


def trap_of(mailbox: str) -> str | None:
    """Return which trap a mailbox is by its name: Trash, Junk or All Mail; None for another."""
    # The hierarchy separator is one of these on every server that is known.
    last_part = unicodedata.normalize("NFC", mailbox).replace(".", "/").rsplit("/", 1)[-1]
    return _TRAPS.get(last_part.strip().casefold())
