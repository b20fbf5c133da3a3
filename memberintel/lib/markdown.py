"""Markdown of answers as HTML that cannot run, load or restyle anything."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

SCHEMES = {"http", "https", "mailto"}
PAGE_HEADINGS = 2  # the page's own are h1 and h2


def render(text: str) -> str:
    """HTML for `text`: raw HTML is shown as text, pictures are not loaded, links go to the web or to mail.

    Its headings begin at h3 and skip no level, whichever levels the text uses.
    """
    parser, env = _parser(), {}
    tokens = parser.parse(text, env)
    _fit_headings(tokens)
    return str(parser.renderer.render(tokens, parser.options, env))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=Renderer)
    parser.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    parser.validateLink = allowed  # type: ignore[method-assign, assignment]
    return parser


def allowed(address: str) -> bool:
    """Whether a link may go there: an absolute address of a known scheme."""
    try:
        return urlsplit(address.strip()).scheme.lower() in SCHEMES
    except ValueError:
        return False


class Renderer(RendererHTML):
    """Links that leave nothing behind, tables without inline style."""

    def link_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        """Opens elsewhere, and the other side learns nothing of where it came from."""
        tokens[index].attrSet("rel", "nofollow noopener noreferrer")
        tokens[index].attrSet("target", "_blank")
        return self.renderToken(tokens, index, options, env)

    def table_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        """A wide table scrolls by itself, not the page."""
        return '<div class="scroll-x" tabindex="0"><table>\n'

    def table_close(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        """Ends what `table_open` began."""
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        """Alignment as a class: the page allows no inline style."""
        return _cell(tokens[index])

    td_open = th_open


def _cell(token: Token) -> str:
    side = {"text-align:left": "num-start", "text-align:center": "num-center", "text-align:right": "num-end"}
    name = side.get(str(token.attrGet("style") or ""))
    return f'<{token.tag} class="{name}">' if name else f"<{token.tag}>"


def _fit_headings(tokens: Sequence[Token]) -> None:
    """Number the headings anew: the levels in use follow one another, below those of the page."""
    headings = [token for token in tokens if token.type in {"heading_open", "heading_close"}]
    levels = sorted({token.tag for token in headings})
    before = PAGE_HEADINGS
    for token in headings:
        if token.type == "heading_open":
            before = min(PAGE_HEADINGS + 1 + levels.index(token.tag), before + 1, 6)
        token.tag = f"h{before}"
