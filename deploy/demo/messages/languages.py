"""Customers who write in their own language, each in the charset and encoding that their program would use."""

from __future__ import annotations

from typing import Final

from deploy.demo.messages.letter import Letter

_ARABIC_HTML: Final = """<!doctype html>
<html dir="rtl" lang="ar"><body style="font-family:sans-serif">
<p>مرحباً،</p>
<p>أودّ أن أسأل عن الطلب رقم <b>4517</b>. هل يمكن تغليفه كهدية مع بطاقة صغيرة؟ إنه لعيد ميلاد والدتي يوم الجمعة.</p>
<p>شكراً جزيلاً<br>ليلى منصور</p>
</body></html>
"""


def letters() -> list[Letter]:
    """One letter a language, German twice."""
    return [*_western(), *_eastern()]


def _western() -> list[Letter]:
    return [
        Letter(
            "german-return",
            "Incoming",
            "Jürgen Müßig <j.muessig@teefreund.example>",
            "Rückgabe: Größe der Teekanne passt nicht",
            2.4,
            text="Guten Tag,\n\ndie Kanne aus Bestellung 4497 ist wunderschön, aber für uns zwei viel zu groß. "
            "Darf ich sie\ngegen die kleinere tauschen? Den Preisunterschied können Sie gern als Gutschein "
            "behalten.\n\nMit freundlichen Grüßen\nJürgen Müßig\n",
            charset="iso-8859-1",
        ),
        Letter(
            "german-praise",
            "Incoming",
            "Käthe Süß <kaethe@suess.example>",
            "Herzlichen Dank für die schöne Verpackung",
            6.2,
            text="Liebes Team,\n\nso liebevoll eingepackt bekommt man selten etwas. Die Schleife trägt jetzt unser "
            "Dackel.\n\nHerzliche Grüße aus Köln\nKäthe Süß\n",
            flags=frozenset({"\\Seen"}),
        ),
        Letter(
            "dutch-delivery",
            "Incoming",
            "Sanne de Vries <sanne@devries.example>",
            "Bezorging op zaterdag mogelijk?",
            1.5,
            text="Hallo,\n\nIk ben doordeweeks nooit thuis. Kunnen jullie bestelling 4520 op zaterdag laten "
            "bezorgen,\nof bij de buren op nummer 12? Die zijn altijd thuis, en dol op koekjes.\n\nGroetjes,\nSanne\n",
        ),
        Letter(
            "french-order",
            "Incoming",
            "Amélie Rousseau <amelie.rousseau@boiteauxlettres.example>",
            "Question sur la commande nº 4511",
            3.0,
            text="Bonjour,\n\nj’ai commandé du thé à la bergamote, mais j’ai reçu du thé à la violette. Il est "
            "délicieux,\nalors je le garde volontiers ! Pourriez-vous tout de même m’envoyer l’autre ?\n\n"
            "Bien à vous,\nAmélie Rousseau\n",
            encoding="base64",
        ),
        Letter(
            "spanish-stock",
            "Incoming",
            "Íñigo Peña <inigo@pena.example>",
            "¿Cuándo vuelve el té de jazmín?",
            4.1,
            text="Hola:\n\n¿Sabéis cuándo habrá otra vez té de jazmín? En casa ya nos miramos de reojo por la "
            "última bolsita.\n\nUn saludo,\nÍñigo\n",
            charset="iso-8859-1",
            encoding="8bit",
        ),
        Letter(
            "polish-invoice",
            "Incoming",
            "Łukasz Żak <lukasz@zak-herbata.example>",
            "Prośba o fakturę do zamówienia 4503",
            5.3,
            text="Dzień dobry,\n\nproszę o przesłanie faktury do zamówienia 4503. Paczka przyszła szybko, herbata "
            "pachnie\njak lato u babci.\n\nPozdrawiam serdecznie\nŁukasz Żak\n",
            charset="iso-8859-2",
            flags=frozenset({"\\Seen"}),
        ),
    ]


def _eastern() -> list[Letter]:
    return [
        Letter(
            "japanese-gift",
            "Incoming",
            "山田 花子 <hanako@yamada.example>",
            "贈り物の包装について",
            1.9,
            text="はじめまして。\n\n注文番号4514の品物を、贈り物用に包んでいただけますか。\n"
            "祖母の八十歳の誕生日に届けたいと思っています。\n\nよろしくお願いいたします。\n山田花子\n",
            charset="iso-2022-jp",
            encoding="7bit",
            utc_offset=9,
        ),
        Letter(
            "chinese-wholesale",
            "Incoming",
            "陈晓梅 <xiaomei@chen-tea.example>",
            "关于订单4509的发货时间",
            2.7,
            text="您好:\n\n请问订单4509什么时候发货?我们下周五要在店里举办品茶会,希望周四之前能收到。\n"
            "如果来不及,先寄一半也可以。\n\n谢谢!\n陈晓梅\n",
            charset="gb18030",
            encoding="base64",
            utc_offset=8,
        ),
        Letter(
            "arabic-gift",
            "Incoming",
            "ليلى منصور <layla@mansour.example>",
            "تغليف هدية للطلب 4517",
            0.95,
            text="مرحباً،\n\nأودّ أن أسأل عن الطلب رقم 4517. هل يمكن تغليفه كهدية مع بطاقة صغيرة؟ "
            "إنه لعيد ميلاد والدتي يوم الجمعة.\n\nشكراً جزيلاً\nليلى منصور\n",
            html=_ARABIC_HTML,
            encoding="base64",
            utc_offset=3,
        ),
        Letter(
            "russian-question",
            "Incoming",
            "Ольга Смирнова <olga@smirnova.example>",
            "Вопрос о чайнике из чугуна",
            3.5,
            text="Добрый день!\n\nПодскажите, пожалуйста, можно ли ставить чугунный чайник на открытый огонь? Хотим "
            "взять его\nна дачу. И есть ли у вас к нему подставка?\n\nС уважением,\nОльга Смирнова\n",
            charset="koi8-r",
            encoding="8bit",
            utc_offset=3,
        ),
    ]
