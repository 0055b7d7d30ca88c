"""HTML from values: every text and attribute is escaped unless it is markup already, so nothing can be forgotten."""

import html
import json
from collections.abc import Iterable
from dataclasses import dataclass

from streamgauge.model.text import directed, printable

_VERBATIM = {"title", "pre", "code"}
"""Elements whose text is shown as it is in a file, or that can have no other element in them."""
_VOID = {"meta", "br", "hr", "line", "rect", "circle", "path", "polygon"}


@dataclass(frozen=True, slots=True)
class Markup:
    """Markup that was made here. A plain string is never taken for it."""

    text: str


Child = Markup | str | None


def element(name: str, /, *children: Child, **attributes: object) -> Markup:
    """``<name …>children</name>``. ``class_`` is class, ``data_role`` data-role; an attribute of None is omitted."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(printable(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID and not children:
        return Markup(f"<{name}{written}>" if name in ("meta", "br", "hr") else f"<{name}{written}/>")
    if name in _VERBATIM:
        children = tuple(printable(child) if isinstance(child, str) else child for child in children)
    return Markup(f"<{name}{written}>{join(children).text}</{name}>")


def join(children: Iterable[Child]) -> Markup:
    """Several, one after the other."""
    return Markup("".join(_text(child) for child in children if child is not None))


def _text(child: Markup | str) -> str:
    """Escaped text. One that changes its direction is isolated, so that nothing after it is reversed."""
    if isinstance(child, Markup):
        return child.text
    return f"<bdi>{html.escape(child)}</bdi>" if directed(child) else html.escape(child)


def table(heads: Iterable[Child], rows: Iterable[Iterable[Child]], numbers: int = 0, **attributes: object) -> Markup:
    """A table; its columns from ``numbers`` on are aligned to the right."""
    head = element("tr", *(_cell("th", at, cell, numbers) for at, cell in enumerate(heads)))
    body = [element("tr", *(_cell("td", at, cell, numbers) for at, cell in enumerate(row))) for row in rows]
    whole = element("table", element("thead", head), element("tbody", *body), **attributes)
    return element("div", whole, class_="scroll")


def _cell(kind: str, at: int, cell: Child, numbers: int) -> Markup:
    return element(kind, cell, class_="number" if at >= numbers else None, scope="col" if kind == "th" else None)


def json_script(identifier: str, content: object) -> Markup:
    """Values for the page's script. No text in it can end the element or begin another one."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(f'<script type="application/json" id="{html.escape(identifier)}">{safe}</script>')
