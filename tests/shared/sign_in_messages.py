"""Messages that let somebody in, and near misses: written for this test, in the words that such mail uses.

Each row: what it is, its language, its subject, its text. `{t}` stands for a secret in a link.
"""

# ruff: noqa: E501 - a row is a message, in the letters of its language

from typing import Final

_T: Final = "eyJ1c2VyIjo0NzExfQ7kd83kdjHs82"

LETS_IN: Final = tuple(
    (language, subject, text.replace("{t}", _T))
    for language, subject, text in (
        ("en", "Your verification code", "Hello,\n\nYour verification code is:\n\n482913\n\nIt expires in 10 minutes."),
        (
            "en",
            "482 913 is your login code",
            "Use 482 913 as your login code for Example. Do not share it with anybody.",
        ),
        (
            "en",
            "Sign in to Example",
            "Here is your one-time passcode: 77103946. If you did not request it, ignore this email.",
        ),
        (
            "en",
            "Your Example security code",
            "Hi Ann,\n\nEnter this security code to continue:\n\n0419\n\nThanks,\nExample",
        ),
        ("en", "G-204981 is your verification code", "G-204981 is your verification code. Don't share it."),
        (
            "en",
            "Confirm it's you",
            "Someone is trying to log in. Your authentication code: 91-2044\nUse 912044 within 5 minutes.",
        ),
        ("en", "Example: two-factor code", "Two-factor code\n\nK7Q2M9\n\nThis code will expire in 15 minutes."),
        ("en", "Your temporary code", "Your temporary code is 5 5 2 0 1 8. Valid for 10 minutes."),
        (
            "en",
            "OTP for transaction",
            "Dear customer, 338201 is the OTP for your transaction at SHOP. Never share it with anyone.",
        ),
        ("en", "Your PIN", "Your PIN code is 4471. It expires in 5 minutes. If you didn't request it, tell us."),
        (
            "en",
            "Reset your password",
            "Somebody asked to reset your password.\nhttps://example.org/reset?token={t}\nThe link expires in 1 hour.",
        ),
        (
            "en",
            "Password reset request",
            "We received a request to reset your password. Click below:\nhttps://example.org/users/password/edit/{t}",
        ),
        (
            "en",
            "Forgot your password?",
            "To choose a new password go to https://accounts.example.org/p?key={t}\nIf you did not request this, ignore this email.",
        ),
        (
            "en",
            "Set your new password",
            "An administrator reset your account. Set your password here: https://example.org/set#/{t}",
        ),
        ("en", "Account recovery", "You asked to recover your account. Continue: https://example.org/recover/{t}"),
        (
            "en",
            "Your magic link",
            "Click the link to sign in:\n\nhttps://app.example.org/auth/{t}\n\nIt can be used once.",
        ),
        (
            "en",
            "Log in to Example",
            "Tap this button to log in: https://example.org/login?code=49fke93kd0 The link expires in 20 minutes.",
        ),
        ("en", "Confirm your email address", "Welcome! Please verify your email: https://example.org/verify?token={t}"),
        (
            "en",
            "Security alert",
            "Your password was changed. If it wasn't you, reset your password now: https://example.org/r/{t}",
        ),
        ("en", "Hello from Example", "Your sign-in code is 661204. You can also use https://example.org/l/{t}."),
        (
            "de",
            "Ihr Bestätigungscode",
            "Guten Tag,\n\nIhr Bestätigungscode lautet: 739201\n\nEr ist gültig für 10 Minuten.",
        ),
        ("de", "Anmeldung bei Beispiel", "Ihr Sicherheitscode: 884 201. Geben Sie diesen Code niemandem weiter."),
        ("de", "mTAN für Ihren Auftrag", "Die Mobile-TAN für Ihre Überweisung lautet 402918."),
        (
            "de",
            "Passwort zurücksetzen",
            "Sie haben Ihr Passwort vergessen? Neues Passwort festlegen: https://example.de/pw?token={t}",
        ),
        (
            "de",
            "Ihr Kennwort",
            "Um Ihr Kennwort zurückzusetzen, folgen Sie dem Link: https://example.de/k/{t}\nWenn Sie das nicht angefordert haben, ignorieren Sie diese Nachricht.",
        ),
        (
            "de",
            "Ihr Anmelde-Link",
            "Hier ist Ihr Anmelde-Link: https://example.de/login/{t}. Er läuft in 15 Minuten ab.",
        ),
        (
            "fr",
            "Votre code de vérification",
            "Bonjour,\n\nVotre code de vérification est 204918. Il expire dans 10 minutes.",
        ),
        ("fr", "Connexion", "Code à usage unique : 77 20 41. Ne partagez ce code avec personne."),
        (
            "fr",
            "Réinitialisation de votre mot de passe",
            "Cliquez ici : https://example.fr/mdp?token={t}\nSi vous n'avez pas demandé ce changement, ignorez cet e-mail.",
        ),
        ("fr", "Votre lien de connexion", "Voici votre lien de connexion : https://example.fr/c/{t}"),
        ("es", "Tu código de verificación", "Hola:\n\nTu código de verificación es 558210. Caduca en 10 minutos."),
        ("es", "Restablecer contraseña", "Para restablecer tu contraseña pulsa aquí: https://example.es/r?token={t}"),
        (
            "es",
            "Acceso a tu cuenta",
            "Este es tu enlace de inicio de sesión: https://example.es/e/{t} No lo compartas.",
        ),
        ("it", "Il tuo codice di verifica", "Il tuo codice di verifica è 920418. Scade tra 10 minuti."),
        (
            "it",
            "Reimposta la password",
            "Per reimpostare la password: https://example.it/p?token={t}\nSe non hai richiesto tu, ignora questa email.",
        ),
        ("pt", "Seu código de verificação", "Seu código de verificação é 447120. Não compartilhe."),
        ("pt", "Redefinir senha", "Para redefinir sua senha: https://example.com.br/s?token={t}"),
        ("nl", "Je verificatiecode", "Je verificatiecode is 118204. Deel deze code met niemand."),
        (
            "nl",
            "Wachtwoord opnieuw instellen",
            "Klik om je wachtwoord opnieuw in te stellen: https://example.nl/w?token={t}",
        ),
        ("pl", "Kod weryfikacyjny", "Twój kod weryfikacyjny: 630128. Kod jest ważny 10 minut."),
        ("pl", "Resetowanie hasła", "Aby ustawić nowe hasło, kliknij: https://example.pl/h?token={t}"),
        ("cs", "Ověřovací kód", "Váš ověřovací kód je 270418. Kód je platný 10 minut."),
        ("ru", "Код подтверждения", "Ваш код подтверждения: 504918. Никому не сообщайте этот код."),
        ("ru", "Восстановление пароля", "Чтобы сменить пароль, перейдите по ссылке: https://example.ru/p?token={t}"),
        ("uk", "Код підтвердження", "Ваш код підтвердження: 774012. Дійсний 10 хвилин."),
        ("sv", "Din verifieringskod", "Din verifieringskod är 330187. Den är giltig i 10 minuter."),
        ("da", "Din bekræftelseskode", "Din bekræftelseskode er 448291."),
        ("fi", "Vahvistuskoodi", "Vahvistuskoodi: 551203"),
        ("tr", "Doğrulama kodu", "Doğrulama kodunuz: 902817. Kod 10 dakika geçerlidir."),
        ("tr", "Şifre sıfırlama", "Şifrenizi sıfırlamak için: https://example.com.tr/s?token={t}"),
        ("zh", "验证码", "您的验证码是 482913，10 分钟内有效，请勿泄露给他人。"),
        ("zh", "重置密码", "请点击以下链接重置您的密码：https://example.cn/r?token={t}"),
        ("ja", "認証コードのお知らせ", "認証コード：482913\n有効期限は10分です。"),
        (
            "ja",
            "パスワード再設定のご案内",
            "下記のURLよりパスワードの再設定をお願いします。\nhttps://example.jp/r?token={t}",
        ),
        ("ko", "인증번호 안내", "인증번호는 482913 입니다. 10분간 유효합니다."),
        ("ko", "비밀번호 재설정", "아래 링크에서 비밀번호를 재설정하세요: https://example.kr/r?token={t}"),
        ("ar", "رمز التحقق", "رمز التحقق الخاص بك هو 482913. صالح لمدة 10 دقائق."),
        ("he", "קוד אימות", "קוד אימות: 482913. הקוד בתוקף ל-10 דקות."),
        # Hard ones: no words for it in the subject, words of its own, the code as an image or spelled out.
        ("en", "Action required", "Enter 620114 on the screen where you started. It works once."),
        ("en", "Welcome back", "Use the button below.\nhttps://example.org/in/{t}"),
        ("en", "Your code", "Your verification code is four eight two nine one three."),
    )
)

NEAR_MISSES: Final = tuple(
    (language, subject, text.replace("{t}", _T))
    for language, subject, text in (
        (
            "en",
            "Re: Password reset does not work",
            "Hi team,\n\nthree customers wrote that the password reset mail never arrives. Can you look at the logs of 2026-11-04? Ticket 48291.",
        ),
        (
            "en",
            "How we changed the password reset flow",
            "The reset your password page now asks for the address first. Design: https://docs.example.org/design/password-reset. Comments by Friday.",
        ),
        (
            "en",
            "Re: verification codes",
            "I think six digits are enough for a verification code. Let us talk on Monday at 14:30 in room 2041.",
        ),
        (
            "en",
            "Security newsletter November",
            "Five tips: never share a verification code, use a password manager, and reset your password when a site was breached. Read on: https://news.example.org/november",
        ),
        (
            "en",
            "Your password was changed",
            "The password of your account was changed on 4 November 2026 at 10:31. If it was you, there is nothing to do.",
        ),
        (
            "en",
            "New sign-in from Firefox on Linux",
            "We noticed a new sign-in to your account from Berlin. If this was you, you can ignore this message.",
        ),
        (
            "en",
            "Invoice 482913",
            "Please find attached invoice 482913 for 1,204.50 EUR, due 2026-12-14. Customer number 77103946.",
        ),
        (
            "en",
            "Your order 4471-0092",
            "Thank you. Order number 44710092 ships tomorrow. Track it: https://track.example.org/t/1Z999AA10123456784",
        ),
        ("en", "Your parcel is ready", "Collect it from the locker with pickup code 482913 until Friday."),
        (
            "en",
            "20% off for you",
            "Use discount code SAVE20NOW at checkout. Offer ends Sunday. https://shop.example.org/c/{t}",
        ),
        ("en", "Booking confirmed", "Your hotel is booked. Confirmation code: HMXY12. Check-in from 15:00."),
        (
            "en",
            "Meeting ID",
            "Join the call: Meeting ID 822 4471 9204, passcode 338201. https://meet.example.org/j/82244719204",
        ),
        ("en", "Your boarding pass", "Booking reference K7Q2M9, seat 14C, gate closes 08:40."),
        ("en", "Support ticket 482913", "Your ticket 482913 was closed. Reply to open it again."),
        (
            "en",
            "Card payment declined",
            "Please check the card number and the security code (CVV, three digits) on the back of your card. Order 44710.",
        ),
        (
            "en",
            "Statement for account ending 4471",
            "Your statement is ready. Balance: 1,204.50. Sign in as usual at https://bank.example.org.",
        ),
        (
            "en",
            "Error code 50014 in production",
            "The login service answers error code 50014 since 10:31. Runbook: https://wiki.example.org/runbooks/login",
        ),
        (
            "en",
            "Please review: access code path",
            "The diff touches the access code path in auth.py, lines 482 to 913. https://git.example.org/pull/4471",
        ),
        (
            "en",
            "Two-factor authentication is now required",
            "From 1 December everybody needs two-factor authentication. Set it up in your settings. The guide: https://intranet.example.org/2fa",
        ),
        (
            "en",
            "Confirm your subscription",
            "One click and you get our newsletter: https://news.example.org/confirm/{t}",
        ),
        (
            "en",
            "Weekly digest",
            "12 new posts. Forgot your password? You can always get help at https://example.org/help.",
        ),
        ("en", "Re: OTP library", "The OTP library has 4471 stars. I would rather use the one with 12 contributors."),
        ("en", "Postal code missing", "We need your postal code to deliver. Our own is 10115. Call 030 448291."),
        ("en", "Gift card", "Here is your gift card: code XK72-99QM-4410. Enjoy!"),
        (
            "en",
            "Minutes of the security meeting",
            "Item 3: the verification code mails. Decided: shorter texts. Item 4: budget 2027: 48000 EUR.",
        ),
        (
            "en",
            "Your receipt from Example",
            "Receipt 2201-9931. Authorization code for card ending 4471: see statement. Total $48.29.",
        ),
        (
            "de",
            "AW: Passwort zurücksetzen klappt nicht",
            "Hallo Jana, bei mir kommt keine Mail an. Kannst du im Ticket 48291 nachsehen?",
        ),
        ("de", "Rechnung 739201", "Anbei die Rechnung 739201 über 120,40 EUR, zahlbar bis 14.12.2026."),
        ("de", "Ihre Sendung", "Abholcode für die Packstation: 4471. Abholung bis 12.12."),
        ("de", "Kundennummer und Vertrag", "Ihre Kundennummer ist 7739201, Ihr Vertrag läuft bis 2027."),
        (
            "de",
            "Rundschreiben: sichere Passwörter",
            "Bitte ändern Sie Ihr Passwort einmal im Jahr. Die Anleitung steht im Intranet: https://intra.example.de/passwort",
        ),
        ("de", "Termin am 4.12.", "Wir sehen uns am 4.12. um 14:30, Raum 2041. Der Türcode steht im Kalender."),
        ("fr", "Facture 204918", "Veuillez trouver ci-joint la facture 204918 d'un montant de 120,40 €."),
        ("fr", "Re: mot de passe oublié", "Bonjour, le lien ne marche toujours pas chez deux clients. Ticket 48291."),
        ("fr", "Code promo", "Avec le code promo ETE2026, 20 % sur tout jusqu'à dimanche."),
        ("es", "Factura 558210", "Adjuntamos la factura 558210 por 120,40 EUR."),
        ("es", "Tu pedido 44710092", "Tu pedido está en camino. Código postal de entrega: 28013."),
        ("it", "Fattura 920418", "In allegato la fattura 920418 di 120,40 EUR."),
        ("nl", "Factuur 118204", "Bijgaand de factuur 118204. Postcode 1012 AB."),
        ("pl", "Faktura 630128", "W załączeniu faktura 630128. Kod pocztowy 00-950."),
        ("ru", "Счёт 504918", "Во вложении счёт 504918 на сумму 12 040 руб."),
        ("sv", "Faktura 330187", "Bifogat finns faktura 330187, förfaller 2026-12-14."),
        ("tr", "Fatura 902817", "Ekte 902817 numaralı fatura bulunmaktadır."),
        ("zh", "订单 44710092", "您的订单 44710092 已发货，快递单号 1Z999AA101。"),
        ("ja", "ご注文番号 44710092", "ご注文ありがとうございます。お届けは12月4日です。"),
        ("ko", "주문번호 44710092", "주문이 발송되었습니다. 운송장 번호 448291."),
        # Hard ones: they hold what such mail holds.
        (
            "en",
            "Fwd: question",
            "She pasted it into the chat: 'my login code is 482913'. We should tell people not to do that.",
        ),
        (
            "en",
            "QA report",
            "Test 14: the mail says 'your verification code is 000000', which is the test value. Passed.",
        ),
    )
)
