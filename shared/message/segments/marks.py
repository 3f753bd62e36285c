"""What each language's mail programs write around earlier messages: the closed tables.

All as `str.casefold` makes them. From Gmail, Apple Mail, Outlook, Thunderbird, Yahoo, Proton, QQ and NetEase.
"""

from enum import Enum, auto
from typing import Final


def _phrases(spelled: str) -> tuple[str, ...]:
    """Cut at bars, which stand in no phrase; blanks at the ends count."""
    return tuple(phrase.casefold() for phrase in spelled.split("|"))


class HeaderRole(Enum):
    """What a line in a header block of an earlier message says. SENT is a word that only mail uses for its date."""

    FROM = auto()
    SENT = auto()
    DATE = auto()
    TO = auto()
    CC = auto()
    SUBJECT = auto()


_LABELS: Final = {
    HeaderRole.FROM: (
        "from|van|de|von|da|från|fra|od|от|отправитель|від|差出人|送信者|发件人|發件人|寄件者|보낸 사람|보낸사람|"
        "lähettäjä|kimden|feladó|expéditeur|absender|afzender|remitente|mittente|remetente|nadawca|avsändare"
    ),
    HeaderRole.SENT: (
        "sent|verzonden|envoyé|envoyée|gesendet|enviado|enviado el|enviada|enviado em|enviada em|enviado a|inviato|"
        "skickat|skickade|sendt|wysłano|wysłane|data wysłania|отправлено|отправлен|надіслано|送信日時|送信|"
        "发送时间|发送日期|寄件日期|傳送時間|"
        "보낸 날짜|보낸날짜|lähetetty|gönderme tarihi|gönderildi|elküldve|odesláno|odesláno dne"
    ),
    HeaderRole.DATE: "date|datum|fecha|data|dato|дата|日付|日時|日期|时间|날짜|päivämäärä|päiväys|tarih|dátum",
    HeaderRole.TO: (
        "to|aan|à|an|para|a|till|til|do|komu|кому|宛先|收件人|收件者|받는 사람|받는사람|vastaanottaja|kime|címzett|"
        "destinataire|destinatario|destinatário|empfänger"
    ),
    HeaderRole.CC: (
        "cc|bcc|cci|kopia|kopi|dw|копия|копія|抄送|副本|참조|kopie|kopio|másolatot kap|bilgi|reply-to|antwort an|"
        "organization|organisation|importance|priority|attachments|pièces jointes|anlagen|bijlagen|reply to"
    ),
    HeaderRole.SUBJECT: (
        "subject|onderwerp|objet|betreff|asunto|oggetto|assunto|ämne|emne|temat|тема|件名|主题|主題|主旨|제목|aihe|konu|"
        "tárgy|předmět"
    ),
}

HEADER_ROLES: Final[dict[str, HeaderRole]] = {
    label: role for role, labels in _LABELS.items() for label in _phrases(labels)
}

# Between dashes: what follows is the message that is answered.
ORIGINAL_MESSAGE: Final = frozenset(
    _phrases(
        "original message|original|original email|original e-mail|original mail|reply message|original appointment|"
        "oorspronkelijk bericht|origineel bericht|oorspronkelijke bericht|message d'origine|message d’origine|"
        "message original|message initial|ursprüngliche nachricht|originalnachricht|original-nachricht|"
        "ursprüngliche mail|originalmail|mensaje original|mensaje de origen|messaggio originale|messaggio originario|"
        "antwort nachricht|"
        "mensagem original|ursprungligt meddelande|originalmeddelande|ursprungligt mail|originalt meddelande|"
        "oprindelig meddelelse|opprinnelig melding|alkuperäinen viesti|oryginalna wiadomość|wiadomość oryginalna|"
        "pierwotna wiadomość|původní zpráva|исходное сообщение|оригинальное сообщение|первоначальное сообщение|"
        "元のメッセージ|オリジナルメッセージ|元のメール|原始邮件|原始郵件|邮件原件|原邮件|"
        "回复的原邮件|回复的邮件|원본 메시지|원본 메일"
    )
)

# Between dashes, or alone on a line with a colon: what follows is passed on, and is the message.
FORWARDED_MESSAGE: Final = frozenset(
    _phrases(
        "forwarded message|begin forwarded message|begin forwarded text|forwarded mail|forwarded email|forwarded by|"
        "doorgestuurd bericht|begin doorgestuurd bericht|begin van doorgestuurd bericht|"
        "message transféré|message réexpédié|début du message réexpédié|début du message transféré|"
        "message transmis|weitergeleitete nachricht|anfang der weitergeleiteten nachricht|"
        "weitergeleitete mail|weitergeleitete e-mail|mensaje reenviado|inicio del mensaje reenviado|"
        "messaggio inoltrato|inizio messaggio inoltrato|inizio del messaggio inoltrato|"
        "mensagem encaminhada|mensagem reencaminhada|início da mensagem encaminhada|"
        "início da mensagem reencaminhada|vidarebefordrat meddelande|vidarebefordrat brev|vidarebefordrat mail|"
        "videresendt meddelelse|videresendt melding|välitetty viesti|przekazana wiadomość|"
        "wiadomość przekazana dalej|przekazywana wiadomość|początek przekazywanej wiadomości|"
        "treść przekazanej wiadomości|přeposlaná zpráva|пересылаемое сообщение|пересланное сообщение|"
        "перенаправленное сообщение|начало переадресованного сообщения|начало пересылаемого сообщения|"
        "転送メッセージ|転送されたメッセージ|転送メール|転送されたメール|转发的邮件|转发邮件|转发的消息|转发邮件信息|"
        "以下是转发的邮件|开始转发的邮件|下面是被转发的邮件|轉寄郵件|轉寄的郵件|전달된 메시지|전달된 메일"
    )
)

# How an attribution begins where it does not begin with a name or a date.
ATTRIBUTION_BEGINNINGS: Final = _phrases(
    "on |op |le |am |el |il giorno |il |em |no dia |den |på |w dniu |dnia |в |在 |在|於 |于 |el día |il dì |"
    "wiadomość napisana przez |"
    "quoting |zitat von |citeren |citando |selon |cytowanie "
)

# Names of the days, as attributions that begin with the date shorten them.
WEEKDAYS: Final = frozenset(
    _phrases(
        "mon|tue|wed|thu|fri|sat|sun|ma|di|wo|do|vr|za|zo|lun|mar|mer|jeu|ven|sam|dim|mo|mi|fr|sa|so|"
        "mié|jue|vie|sáb|dom|gio|ter|qua|qui|sex|seg|mån|tis|ons|tors|fre|lör|sön|pon|wt|śr|czw|pt|sob|niedz|ndz|"
        "пн|вт|ср|чт|пт|сб|вс"
    )
)

# The verb, as a word of its own.
ATTRIBUTION_VERBS: Final = frozenset(
    _phrases(
        "wrote|writes|schreef|schrijft|geschreven|écrit|écrivait|écrivit|schrieb|schreibt|geschrieben|escribió|escribio|"
        "escribía|scritto|scrive|escreveu|escreve|skrev|skriver|napisał|napisała|napisał(a)|napisano|pisze|"
        "napisana|написал|написала|написал(а)|написал(a)|пишет|писал|писала|написав|kirjoitti|napsal|napsal(a)|írta|sent"
    )
)

# What stands beside the verb, or is written small before it.
AUXILIARIES: Final = frozenset(
    _phrases("a|ha|has|heeft|hat|het|volgende|you|du|je|sie|vous|tu|usted|você|ty|pan|pani|ezt|azt|om")
)

# The same where words are not set apart.
UNSPACED_VERBS: Final = (
    "写道",
    "寫道",
    "写到",
    "のメール",
    "は書きました",
    "が書きました",
    "さんが書いた",
    "書きました",
    "님이 작성",
    "来信",
)

# "On 3 March she wrote:" tells a story; a mail program puts a name there.
PRONOUNS: Final = frozenset(
    _phrases(
        "he|she|they|we|i|it|who|hij|zij|ze|je|jij|u|ik|wij|men|il|elle|vous|tu|nous|ils|elles|er|sie|du|ich|wir|"
        "usted|ella|él|yo|lei|lui|io|noi|você|ele|ela|eu|nós|han|hon|du|jag|vi|ni|ona|pan|pani|он|она|вы|ты|я|мы"
    )
)

# How a phone or a program signs. A line of the signature begins so, or ends so where the language puts it last.
MOBILE_BEGINNINGS: Final = _phrases(
    "sent from my |sent from mail for |sent from outlook|sent from yahoo|sent from proton|sent with proton|"
    "sent from a mobile|sent from samsung|sent from gmail|sent via |sent using |get outlook for|"
    "sent from the all new|sent from aol|sent from myMail|sent from blackberry|sent on the go|sent from an i|"
    "verstuurd vanaf |verzonden vanaf |verstuurd met |verzonden met |verzonden via |outlook voor ios|"
    "outlook voor android|outlook downloaden|download outlook voor|"
    "envoyé de mon |envoyé depuis |envoyé à partir de |envoyé avec |télécharger outlook|téléchargez outlook|"
    "obtenir outlook|obtenez outlook|von meinem |gesendet von |gesendet mit |diese nachricht wurde von meinem |"
    "outlook für ios|outlook für android|holen sie sich outlook|laden sie outlook|"
    "enviado desde |enviado con |obtener outlook|descargar outlook|inviato da |inviato dal |inviata da |"
    "ottieni outlook|"
    "scarica outlook|enviado do |enviado a partir |enviado pelo |enviado de |obter o outlook|obtenha o outlook|"
    "skickat från |skickades från |skaffa outlook|hämta outlook|sendt fra |lähetetty |"
    "wysłane z |wysłano z |wysłane przy |pobierz outlook|отправлено с |отправлено из |отправлено от |"
    "скачать outlook|发自我的|从我的|發自我的|傳送自|来自我的|發送自|发送自|获取 outlook|获取outlook|"
    "outlook for ios|outlook for android|ios 版 outlook|android 版 outlook"
)
MOBILE_ENDINGS: Final = (
    "から送信",
    "から送信されました",
    "からの送信",
    "を入手",
    "を入手してください",
    " gesendet",
    " verstuurd",
    " verzonden",
    "发送",
    "傳送",
)

# What a line that ends so must name to be a program's signature.
DEVICES: Final = _phrases(
    "iphone|ipad|android|samsung|galaxy|outlook|handy|smartphone|huawei|xiaomi|pixel|windows|mobil|tablet|ios|gmail|"
    "yahoo|proton|aol|gmx|web.de|libero|spark|thunderbird|mail app|posta|correo|mobile|phone|oppo|redmi|nokia|xperia|"
    "lg |htc|kindle|mail for|mail voor|mail für|acompli|telefon|téléphone|gsm|celular|móvil|blackberry|手机|携帯|スマホ"
)

# A closing formula: begins the last lines of a letter.
CLOSINGS: Final = _phrases(
    "kind regards|best regards|warm regards|regards|best wishes|best|thanks|many thanks|thank you|cheers|sincerely|"
    "yours sincerely|yours faithfully|yours|with kind regards|thanks and regards|br|"
    "met vriendelijke groet|met vriendelijke groeten|vriendelijke groet|vriendelijke groeten|hartelijke groet|groet|"
    "groeten|mvg|met groet|hoogachtend|bedankt|"
    "cordialement|bien cordialement|bien à vous|sincères salutations|meilleures salutations|salutations|amicalement|"
    "mit freundlichen grüßen|mit freundlichen grüssen|mit freundlichem gruß|freundliche grüße|viele grüße|"
    "beste grüße|liebe grüße|herzliche grüße|schöne grüße|gruß|grüße|mfg|vg|lg|"
    "saludos|un saludo|saludos cordiales|un cordial saludo|atentamente|gracias|"
    "cordiali saluti|distinti saluti|saluti|un saluto|grazie|cordialmente|"
    "atenciosamente|cumprimentos|com os melhores cumprimentos|melhores cumprimentos|abraço|obrigado|obrigada|"
    "med vänlig hälsning|med vänliga hälsningar|vänliga hälsningar|vänlig hälsning|mvh|hälsningar|"
    "pozdrawiam|z poważaniem|serdecznie pozdrawiam|z wyrazami szacunku|"
    "с уважением|с наилучшими пожеланиями|всего доброго|"
    "よろしくお願いいたします|よろしくお願い致します|以上、よろしくお願いいたします|以上|敬具|"
    "此致|祝好|谢谢|顺祝商祺|此致敬礼"
)
