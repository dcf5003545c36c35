"""The page as text: escaped, self-contained, the same every time, whole when empty."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tests.report.hostile import TEXTS, hostile_results
from tests.report.rows import FACTS
from tests.report.synthetic import Cluster, Rows, make_facts, result
from tracekit.errors import ReportError, UsageError
from tracekit.model.results import QueryResult, ReportFacts
from tracekit.report import build_view, page_data, read_spec, render
from tracekit.report.anchors import visible

SPEC = read_spec()
EMPTY = {q: result(q, []) for q in SPEC.queries}
# What an element may carry; any other attribute in the page is a finding.
ATTRIBUTES = {
    "aria-hidden", "aria-label", "aria-labelledby", "charset", "checked", "class", "colspan",
    "content", "d", "data-name", "for", "height", "hidden", "href", "http-equiv", "id", "lang",
    "name", "patterntransform", "patternunits", "placeholder", "preserveaspectratio", "role",
    "style", "title", "type", "viewbox", "width",
}  # fmt: skip
ELEMENTS = {
    "a", "b", "blockquote", "body", "br", "button", "code", "defs", "details", "div",
    "fieldset", "figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "head", "header",
    "html", "i", "input", "label", "li", "main", "meta", "nav", "p", "path", "pattern", "pre",
    "rect", "script", "section", "small", "span", "style", "summary", "svg", "table", "tbody",
    "td", "tfoot", "th", "thead", "title", "tr", "ul",
}  # fmt: skip


class _Reader(HTMLParser):
    """Collects the elements, the attributes and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def count(self, tag: str) -> int:
        return sum(t == tag for t, _ in self.elements)


def _html(results: dict[str, QueryResult], facts: ReportFacts = FACTS) -> str:
    return render(build_view(results, facts))


@pytest.fixture(scope="module")
def made_up() -> str:
    """Give the page of the made-up recording."""
    return _html(Cluster(nodes=8, pods=60).results(), make_facts())


def test_hostile_text_is_shown_and_nothing_else() -> None:
    facts = ReportFacts(cluster=TEXTS[0], generated_by=TEXTS[1], counts={TEXTS[2]: 1})
    html = _html(hostile_results(), facts)
    page = _Reader(html)
    assert {t for t, _ in page.elements} <= ELEMENTS
    assert {a for _, attrs in page.elements for a in attrs} <= ATTRIBUTES
    assert (page.count("script"), page.count("style")) == (1, 1)
    shown = "".join(page.words)
    for words in (TEXTS[0], TEXTS[1], "{{ 7*7 }}", "javascript:alert(4)", "&lt;b&gt;&amp;"):
        assert words in shown, "the words are there, as words"
    assert "a\\u202egnp.exe" in shown
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x00\x1b\ud800-\udfff]", html)
    html.encode("utf-8")


def test_links_stay_inside_the_page() -> None:
    page = _Reader(_html(hostile_results()))
    links = [attrs["href"] for tag, attrs in page.elements if tag == "a"]
    assert links
    assert all(link is not None and link.startswith("#") for link in links)
    assert all(re.fullmatch(r"#[\w%./~-]*", link or "") for link in links)


def test_styles_hold_numbers_only() -> None:
    page = _Reader(_html(hostile_results()))
    styles = {s for tag, attrs in page.elements if (s := attrs.get("style")) and tag in "itdiv"}
    allowed = r"(?:(?:left|width|top|height|--q|--w):[\d.]+(?:%|px)?;?)+"
    assert all(re.fullmatch(allowed, s) for s in styles)


def test_nothing_is_fetched(made_up: str) -> None:
    page = _Reader(made_up)
    assert not [a for _, attrs in page.elements for a in attrs if a in ("src", "srcset", "xlink")]
    assert not re.search(r"https?://|@import|//[a-z]", _code(made_up))
    assert set(re.findall(r"url\((.*?)\)", made_up)) == {"#hatch"}
    policy = next(a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src")


def _code(html: str) -> str:
    """Return the style and the script of a page, without comments."""
    blocks = re.findall(r"<(style|script)>(.*?)</\1>", html, re.S)
    return re.sub(r"^\s*// .*$", "", "".join(body for _, body in blocks), flags=re.M)


def test_links_and_labels_have_their_target(made_up: str) -> None:
    page = _Reader(made_up)
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids)), "an id is there once"
    wanted = {(a["href"] or "")[1:] for t, a in page.elements if t == "a"}
    wanted |= {a["aria-labelledby"] or "" for _, a in page.elements if "aria-labelledby" in a}
    assert wanted <= set(ids)


def test_the_same_rows_give_the_same_bytes() -> None:
    first, second = (
        _html(Cluster(nodes=6, pods=40).results(), make_facts()).encode() for _ in range(2)
    )
    assert first == second


def test_an_empty_store_says_what_to_collect_in_every_section() -> None:
    nothing: dict[str, QueryResult] = {}
    for results in (nothing, EMPTY):
        html = _html(results, ReportFacts(cluster="empty"))
        for section in SPEC.sections:
            assert f'<section class="sec" id="{section.id}">' in html
            assert _Reader(section.empty).words[0] in "".join(_Reader(html).words)
    assert "was not run" in _html({}), "a query nobody ran is named"


@pytest.mark.parametrize("name", SPEC.queries)
def test_one_query_without_rows_leaves_the_rest(name: str) -> None:
    results = Cluster(nodes=4, pods=12).results()
    assert "<h1>" in _html({**results, name: result(name, [])}, make_facts())


@pytest.mark.parametrize("name", SPEC.queries)
def test_rows_of_nulls_are_no_error(name: str) -> None:
    results = Cluster(nodes=4, pods=12).results()
    nulls = [dict.fromkeys(row) for row in results[name].rows[:3]]
    nothing: Rows = [{}]
    for rows in (nulls, [*results[name].rows, *nulls], nothing):
        assert "<h1>" in _html({**results, name: result(name, rows)}, make_facts())


def test_the_page_is_also_plain_data() -> None:
    view = build_view(Cluster(nodes=4, pods=12).results(), make_facts())
    data = page_data(view)
    assert data["cluster"] == "made-up"
    assert isinstance(data["sections"], tuple)


def test_a_report_can_have_some_sections_alone() -> None:
    spec = SPEC.only(["pending", "balance"])
    assert [s.id for s in spec.sections] == ["balance", "pending"]
    assert spec.queries == (
        "node_balance", "balance", "node_changes", "pending", "pending_by_cause",
    )  # fmt: skip
    assert 'id="zones"' not in render(build_view(EMPTY, FACTS, spec))
    with pytest.raises(UsageError, match="no section is called 'nope'; use one of verdict"):
        SPEC.only(["nope"])


def test_an_unknown_report_is_refused() -> None:
    with pytest.raises(ReportError, match="there is no report 'nope'"):
        read_spec("nope")


@pytest.mark.parametrize(
    ("words", "shown"),
    [("a\u202eb", "a\\u202eb"), ("a\tb\nc", "a\tb\nc"), ("é 你好 ±", "é 你好 ±")],
)
def test_unseen_characters_are_printed_as_codes(words: str, shown: str) -> None:
    assert visible(words) == shown


def _tokens(html: str, theme: str) -> dict[str, str]:
    blocks = re.findall(r"\{color-scheme:(\w+);(.*?)\}", html)
    return dict(re.findall(r"--([\w-]+):(#[0-9a-f]{6})", next(b for t, b in blocks if t == theme)))


def _luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_on_its_ground(made_up: str, theme: str) -> None:
    """Source: WCAG 2.2 success criterion 1.4.3, contrast of at least 4.5 to 1."""
    tokens = _tokens(made_up, theme)
    for name in ("ink", "ink2", "ink3", "accent", "crit", "high", "med", "info", "good", "z0",
                 "z1", "z2", "zn"):  # fmt: skip
        pair = sorted((_luminance(tokens[name]), _luminance(tokens["bg"])), reverse=True)
        assert (pair[0] + 0.05) / (pair[1] + 0.05) >= 4.5, name
