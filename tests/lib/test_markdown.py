from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memberintel.lib.markdown import render

HOSTILE = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "<script>alert(1)</script>",
                "<img src=x onerror=alert(1)>",
                "[x](javascript:alert(1))",
                "[x](JaVaScRiPt:alert(1))",
                "[x](&#106;avascript:alert(1))",
                "[x](data:text/html,<b>)",
                "[x](vbscript:x)",
                "![x](https://example.com/spy.png)",
                "<javascript:alert(1)>",
                '[x](https://example.com "title\\" onclick=x")',
                "| a |\n|:-:|\n| <b> |",
                "```\n<b>\n```",
                "# h\n",
                "[r]: javascript:x\n[r]",
                "\n",
                "\n\n",
                " ",
            ]
        ),
        st.text(max_size=12),
    )
).map("".join)

TAGS = {
    *("p", "br", "h3", "h4", "h5", "h6", "em", "strong", "s", "code", "pre", "blockquote", "hr", "ul", "ol"),
    *("li", "a", "div", "table", "thead", "tbody", "tr", "th", "td"),
}


@given(HOSTILE)
def test_nothing_that_runs_loads_or_restyles_comes_out(text: str) -> None:
    html = render(text)
    for tag in re.findall(r"<[^>]*>", html):
        name = re.match(r"</?([a-z0-9]+)", tag)
        assert name is not None
        assert name[1] in TAGS
        assert not re.search(r"\s(on\w+|style|src|srcset|id)\s*=", re.sub(r'"[^"]*"', '""', tag))
        if address := re.search(r'href="([^"]*)"', tag):
            assert re.match(r"(https?|mailto):", address[1], re.IGNORECASE)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# Plan", "<h3>Plan</h3>\n"),
        ("one\ntwo", "<p>one<br>\ntwo</p>\n"),
        (
            "[site](https://example.com)",
            '<p><a href="https://example.com" rel="nofollow noopener noreferrer" target="_blank">site</a></p>\n',
        ),
        ("[run](javascript:alert(1))", "<p>[run](javascript:alert(1))</p>\n"),
        ("<b>bold</b>", "<p>&lt;b&gt;bold&lt;/b&gt;</p>\n"),
    ],
)
def test_markdown_reads_as_expected(text: str, html: str) -> None:
    assert render(text).replace("<br />", "<br>") == html


def test_a_table_scrolls_by_itself_and_aligns_without_inline_style() -> None:
    html = render("| what | $ |\n|---|--:|\n| fee | 49 |")
    assert html.startswith('<div class="scroll-x" tabindex="0"><table>')
    assert '<td class="num-end">49</td>' in html


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("# a\n## b\n### c", "345"),
        ("### a", "3"),
        ("## a\n#### b\n## c", "343"),
        ("### a\n# b", "33"),
        ("# a\n# b", "33"),
        ("# 1\n## 2\n### 3\n#### 4\n##### 5\n###### 6", "345666"),
    ],
)
def test_headings_begin_below_the_pages_own_and_skip_no_level(text: str, levels: str) -> None:
    assert "".join(re.findall(r"<h(\d)>", render(text))) == levels
    assert "".join(re.findall(r"</h(\d)>", render(text))) == levels
