"""What mail that lets somebody in says, in its languages: regular expressions, one row for a language or a family.

A row is a list of ways to say one thing, in lower case. Another language is another row in each table. What a row can
match holds one of the table's stems: a text without any of them, as nearly all mail is, need not be matched.
"""

# ruff: noqa: E501 - a row is a language, and is read as one

from typing import Final

CODE_STEMS: Final = (
    "code", "one-time ", "onetime ", "otp", "einmalp", "einmalk", "mobiletan", "mobile-tan", "pushtan", "push-tan", "smstan", "sms-tan",
    "à usage unique", "código", "contraseña de un", "codice", "password monouso", "password usa e", "password temporane",
    "eenmalig", "kod ", "jednorazow", " kód", "код", "одноразовый", "проверочный", "skod", "kode", "koodi", "inen salasana", "kodu",
    " şifre", "验证码", "驗證碼", "校验码", "动态密码", "一次性密码", "安全代码", "コード", "認証番号", "ワンタイム", "번호", "코드", "رمز ", "كلمة مرور لمرة", "קוד ",
)  # fmt: skip
CODE_WORDS: Final = (
    # English
    r"(?:verification|security|log-?in|sign-?in|sign in|log in|authentication|authenticator|access) (?:pass)?code",
    r"(?:two-?factor|2fa|mfa|one-?time|single-?use|temporary|passwordless) (?:pass)?code",
    r"one-?time (?:password|pin|passcode|verification)",
    r"\botp\b",
    r"code to (?:verify|sign in|log in|confirm (?:it's you|your identity))",
    # German
    r"(?:verifizierungs|sicherheits|anmelde|login|einmal|zugangs|bestätigungs|authentifizierungs|freischalt)-?code",
    r"einmal(?:passwort|kennwort|pin)",
    r"\b(?:mobile|push|sms)-?tan\b",
    # French, Spanish, Italian, Portuguese, Dutch
    r"codes? (?:de |d['’])(?:vérification|sécurité|connexion|accès|authentification|validation)",
    r"(?:code|mot de passe) à usage unique",
    r"código (?:de )?(?:verificación|seguridad|acceso|inicio de sesión|un solo uso)",
    r"contraseña de un solo uso",
    r"codice di (?:verifica|sicurezza|accesso|autenticazione)",
    r"(?:codice|password) (?:monouso|usa e getta|temporane[oa])",
    r"código de (?:verificação|segurança|acesso|autenticação|uso único)",
    r"(?:verificatie|beveiligings|inlog|toegangs|eenmalige )code",
    r"eenmalig(?:e)? (?:wachtwoord|toegangscode)",
    # Polish, Czech, Russian, Ukrainian
    r"kod (?:weryfikacyjny|bezpieczeństwa|logowania|dostępu|jednorazowy|uwierzytelniający)",
    r"jednorazow(?:y kod|e hasło)",
    r"(?:ověřovací|bezpečnostní|přihlašovací|jednorázový) kód",
    r"код (?:подтверждения|безопасности|доступа|для входа|проверки|авторизации)",
    r"(?:одноразовый|проверочный) (?:код|пароль)",
    r"код (?:підтвердження|безпеки|доступу|для входу)",
    # Swedish, Danish, Norwegian, Finnish, Turkish
    r"(?:verifierings|säkerhets|inloggnings|engångs)kod",
    r"(?:bekræftelses|sikkerheds|login|engangs|verifiserings|sikkerhets|innloggings|engangs)kode",
    r"(?:vahvistus|turva|kirjautumis|kertakäyttö)(?:koodi|inen salasana)",
    r"(?:doğrulama|güvenlik|giriş|onay|tek kullanımlık) (?:kodu|şifre)",
    # Chinese, Japanese, Korean, Arabic, Hebrew
    r"验证码|驗證碼|校验码|动态密码|一次性密码|安全代码",
    r"認証コード|確認コード|認証番号|ワンタイムパスワード|ワンタイムコード|セキュリティコード|ログインコード",
    r"인증\s?번호|인증\s?코드|보안\s?코드|일회용\s?(?:비밀번호|코드)|확인\s?코드",
    r"رمز (?:التحقق|التأكيد|الأمان|الدخول)|كلمة مرور لمرة واحدة",
    r"קוד (?:אימות|אבטחה|כניסה|חד[- ]פעמי)",
)
# Bookings, parcels and orders have these too: they need one more sign.
WEAK_CODE_STEMS: Final = ("code", "your pin", "código", "codice", "kod potw", "twój kod", "ваш код", "kodu")
WEAK_CODE_WORDS: Final = (
    r"confirmation code|\bpin code|\byour pin\b|your code|\bcode below\b",
    r"code de confirmation|votre code",
    r"código de confirmación|código de confirmação|tu código|seu código",
    r"codice di conferma|il tuo codice",
    r"bevestigingscode|je code|uw code",
    r"ihr code|dein code",
    r"kod potwierdzający|twój kod",
    r"ваш код",
    r"onay kodu",
)

RESET_STEMS: Final = (
    "passphrase", "password", "account recovery", "recover your", "regain access", "passwort", "kennwort", "mot de passe", "contraseña",
    "senha", "palavra-passe", "wachtwoord", "hasł", "hesla", "парол", "lösenord", "adgangskode", "passord", "salasanan", "şifre", "parola",
    "密码", "密碼", "パスワード", "비밀번호", "إعادة تعيين", "סיסמ",
)  # fmt: skip
RESET_WORDS: Final = (
    r"(?:reset|recover|restore|set|choose|create)(?:ting)? (?:a |your |the )?(?:new )?(?:account )?(?:password|passphrase)",
    r"password (?:reset|recovery|change request)",
    r"forg[oe]t(?:ten)? (?:your )?password",
    r"account recovery|recover your account|regain access",
    r"(?:passwort|kennwort)\w{0,3} (?:zurück(?:zu)?setzen|neu (?:zu )?(?:setzen|vergeben|festlegen)|vergessen)",
    r"(?:passwort|kennwort)-?(?:rücksetzung|zurücksetzung|wiederherstellung|reset)|neues passwort (?:festlegen|vergeben|wählen)",
    r"réinitialis\w{1,6} (?:de )?(?:votre |ton |le |du )?mot de passe|mot de passe oublié",
    r"(?:restablec|recuper|cambi)\w{1,7} (?:de )?(?:tu |su |la )?contraseña|contraseña olvidada",
    r"(?:reimpost|ripristin|recuper)\w{1,6} (?:della |la |tua )*password|password dimenticata",
    r"(?:redefin|recuper|alter)\w{1,7} (?:de |da |a )?(?:sua |tua )?(?:senha|palavra-passe)",
    r"wachtwoord (?:opnieuw in(?:te)?stellen|herstellen|vergeten|resetten)|nieuw wachtwoord (?:instellen|kiezen)",
    r"(?:zresetuj|resetowanie|zresetowa\w{1,3}|odzyskiwanie|zmian\w) (?:swoje |twojego )?hasł\w|obnov\w{1,4} hesla|reset hesla",
    r"(?:сброс\w*|восстановлени\w|сменить) (?:ваш\w* )?парол\w|(?:скидання|відновлення) пароля",
    r"återställ\w{0,3} (?:ditt )?lösenord|nulstil\w{0,4} (?:din |af )?adgangskode|tilbakestill\w{0,4} passord|salasanan (?:palautus|vaihto)",
    r"(?:şifre|parola)\w{0,4} (?:sıfırla|yenile)\w*",
    r"重置.{0,4}密码|重設.{0,4}密碼|找回密码|密码重置|パスワード(?:の)?(?:再設定|リセット)|비밀번호\s?(?:재설정|초기화|찾기)",
    r"إعادة تعيين كلمة (?:المرور|السر)|איפוס (?:ה)?סיסמ",
)

LINK_STEMS: Final = (
    "link", "url", "click", "tap", "button", "sign in to", "verify ", "confirm ", "validate ", "bestätigen", "verifizieren", "lien ",
    " votre ", "enlace ", "verific", "confirm", "conferm", "verifi", "potwierdź", "zweryfikuj", "ссылк", "подтвердите", "länk",
    "bevestig ", "bekräfta din", "bekræft din", "giriş ba", "doğrula", "登录链接", "登入連結", "验证", "ログイン", "メールアドレスの確認", "로그인", "이메일",
    "رابط", "קישור",
)  # fmt: skip
LINK_WORDS: Final = (
    r"magic link|(?:sign-?in|log-?in|one-?time|single-?use|access|passwordless) (?:link|url)",
    r"(?:link|click|tap|button)[^.\n]{0,60} to (?:sign|log) ?in\b|sign in to [^.\n]{1,40} (?:with|using) (?:this|the) link",
    r"(?:verify|confirm|validate) (?:your |this |the )?(?:e-?mail|account|sign-?in|log-?in|identity)",
    r"(?:anmelde|login|zugangs|einmal)-?link|e-?mail-?adresse (?:zu )?(?:bestätigen|verifizieren)|anmeldung bestätigen",
    r"lien (?:de connexion|magique|d['’]accès)|(?:confirm|vérifi)\w{1,4} votre (?:adresse|compte)|valid\w{1,3} votre adresse",
    r"enlace (?:de inicio de sesión|mágico|de acceso)|(?:verific|confirm)\w{1,3} (?:tu|su) (?:correo|cuenta|dirección)",
    r"link (?:di accesso|magico)|(?:verific|conferm)\w{1,3} (?:il tuo|la tua|l['’]) ?(?:indirizzo|e-?mail|account)",
    r"link de (?:acesso|login)|(?:verifi|confirm)\w{1,4} (?:o |a )?(?:seu|sua) (?:e-?mail|conta)",
    r"inlog-?link|(?:bevestig|verifieer) (?:je|uw) (?:e-?mail|account)",
    r"link do logowania|(?:potwierdź|zweryfikuj) (?:swój )?(?:adres|konto)|ссылк\w для входа|подтвердите (?:адрес|почту|аккаунт|вход)",
    r"inloggningslänk|bekräfta din e-?post|login-?link|bekræft din e-?mail|giriş bağlantısı|e-?posta(?:nızı)? doğrula",
    r"登录链接|登入連結|验证(?:您的)?(?:邮箱|电子邮件)|ログイン(?:用)?(?:リンク|url)|メールアドレスの確認|로그인 링크|이메일 (?:주소 )?(?:인증|확인)",
    r"رابط (?:تسجيل )?الدخول|קישור (?:ה)?(?:התחברות|כניסה)",
)

ENDS_SOON: Final = (
    r"expires? (?:in|after|at)|valid (?:for|until)|will expire|only be used once|can be used once|do not share|don't share|never share",
    r"(?:gültig (?:bis|für)|läuft (?:in|nach)|verfällt|nicht weiter(?:geben)?|geben sie diesen code)",
    r"expire (?:dans|en|tra|em)|valable (?:pendant|jusqu)|ne partagez|ne communiquez",
    r"caduca|expira|válid[oa] (?:por|durante|hasta|até)|no comparta|no compartas|não (?:o )?compartilhe|vence (?:en|em)",
    r"scade (?:tra|fra)|valido (?:per|fino)|non condivider",
    r"verloopt|geldig (?:tot|voor)|deel deze code|(?:ważny|wygasa)|platný|действител\w+|никому не сообщайте|дійсний",
    r"giltig i|upphör|gyldig i|udløber|utløper|voimassa|geçerlidir|paylaşmayın",
    r"分钟内有效|分鐘內有效|请勿.{0,6}(?:泄露|告诉|转发)|有効期限|分間有効|유효|صالح لمدة|تنتهي صلاحية|בתוקף",
)
NOT_ASKED: Final = (
    r"(?:did(?:n['’]t| not)|have(?:n['’]t| not)) (?:request|ask|make|initiate|try)\w*|(?:wasn['’]t|was not) you|not you\?|ignore this (?:e-?mail|message)",
    r"nicht (?:angefordert|beantragt|veranlasst|von ihnen|von dir)|ignorieren sie diese",
    r"n['’](?:avez|êtes|as|es) pas (?:demandé|à l['’]origine|fait)|ignorez (?:cet|ce)",
    r"no (?:ha |has )?solicit\w+|no (?:fuiste|fue) tú|ignor[ae] este|não (?:foi você|solicit\w+)|ignore este",
    r"non (?:hai |ha )?(?:richiesto|effettuato)|ignora questa|niet (?:aangevraagd|zelf)|negeer (?:deze|dit)",
    r"nie (?:prosił|ty|wysyłał)\w*|zignoruj|не (?:запрашивали|вы)|проигнорируйте|не запитували",
    r"inte (?:begärt|du)|ikke (?:bedt|anmodet|deg|dig)|siz (?:değilseniz|istemediyseniz)|talep etmediyseniz",
    r"非本人|如果不是您|不是您本人|心当たりがない|覚えのない|본인이 (?:아닌|요청하지)|إذا لم تطلب|אם לא ביקשת",
)
