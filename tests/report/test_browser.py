"""The page in a real browser, from ``file://``: silent, alone, inert and usable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.report.hostile import TEXTS, hostile_results
from tests.report.synthetic import Cluster, make_facts
from tracekit.report import build_view, render

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@dataclass
class Visit:
    """An open page and everything it did that a report must not do."""

    page: Page
    url: str
    noise: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def refuse(self, dialog: Dialog) -> None:
        self.noise.append(f"dialog: {dialog.message}")
        dialog.dismiss()


def _visit(browser: Browser, path: Path, scheme: Literal["light", "dark"], width: int) -> Visit:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    visit = Visit(page, path.as_uri())
    page.on("console", lambda m: visit.noise.append(f"console {m.type}: {m.text}"))
    page.on("pageerror", lambda e: visit.noise.append(f"error: {e}"))
    page.on("dialog", visit.refuse)
    page.on("request", lambda r: visit.requests.append(r.url))
    page.goto(visit.url)
    return visit


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the report of the made-up recording as a file."""
    path = tmp_path_factory.mktemp("report") / "tracekit-report.html"
    view = build_view(Cluster(nodes=12, pods=260).results(), make_facts())
    path.write_text(render(view), encoding="utf-8")
    return path


@pytest.fixture
def visit(browser: Browser, report: Path) -> Iterator[Visit]:
    """Give the report, open; it must have been silent and alone at the end."""
    found = _visit(browser, report, "light", 1440)
    yield found
    assert found.noise == []
    assert {r.split("#")[0] for r in found.requests} == {found.url}
    found.page.close()


@pytest.mark.parametrize("width", [1440, 900])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_opens_silently_and_fits(
    browser: Browser, report: Path, tmp_path: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    visit = _visit(browser, report, scheme, width)
    visit.page.screenshot(path=tmp_path / f"{scheme}-{width}.png", full_page=True)
    assert (tmp_path / f"{scheme}-{width}.png").stat().st_size > 100_000
    assert visit.noise == []
    assert visit.requests == [visit.url]
    assert visit.page.evaluate("document.documentElement.scrollWidth") == width
    ground = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(252, 252, 251)", "dark": "rgb(20, 22, 26)"}[scheme]
    visit.page.close()


def test_hostile_text_is_inert(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(render(build_view(hostile_results(), make_facts())), encoding="utf-8")
    visit = _visit(browser, path, "light", 1440)
    page = visit.page
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.wait_for_timeout(200)
    assert page.locator("img, iframe, object, embed, link, base, form").count() == 0
    assert page.locator("script").count() == 1
    assert page.locator("[onerror], [onload], [onclick]").count() == 0
    assert TEXTS[0] in page.locator("body").inner_text()
    assert visit.noise == []
    assert visit.requests == [visit.url]
    page.close()


def test_the_switch_changes_the_theme_for_this_view(visit: Visit) -> None:
    page = visit.page
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
    page.get_by_role("button", name="Light").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_the_heat_strips_switch_between_resources_by_keyboard(visit: Visit) -> None:
    strips = visit.page.locator("#fig-nodes .sr svg:visible")
    assert set(strips.evaluate_all("all => all.map(e => e.getAttribute('class'))")) == {"k-cpu"}
    visit.page.locator("#fig-nodes-cpu").focus()
    visit.page.keyboard.press("ArrowRight")
    assert set(strips.evaluate_all("all => all.map(e => e.getAttribute('class'))")) == {"k-memory"}


def test_a_link_to_a_pod_opens_its_page(visit: Visit) -> None:
    page = visit.page
    link = page.locator("#fig-spells .lab a").first
    target = link.get_attribute("href")
    assert target is not None
    link.click()
    pod = page.locator(f"[id='{target[1:]}']")
    assert pod.evaluate("e => e.open")
    assert pod.locator(".life").is_visible()


def test_a_pod_page_opens_from_the_address(browser: Browser, report: Path) -> None:
    visit = _visit(browser, report, "light", 1440)
    anchor = visit.page.locator(".pod").nth(3).get_attribute("id")
    visit.page.goto(f"{visit.url}#{anchor}")
    visit.page.reload()
    assert visit.page.locator(f"[id='{anchor}']").evaluate("e => e.open")
    assert visit.noise == []
    visit.page.close()


def test_pods_are_filtered_by_name(visit: Visit) -> None:
    pods = visit.page.locator(".pod:visible")
    assert pods.count() == 200
    visit.page.get_by_label("Filter pods by name").fill("APP-3-")
    assert 0 < pods.count() < 20


def test_sql_can_be_copied(visit: Visit) -> None:
    page = visit.page
    page.locator("#fig-pending summary", has_text="SQL: pending").click()
    page.locator("#fig-pending .sql button").click()
    page.locator("#fig-pending .sql button", has_text="Copied").wait_for(timeout=2000)


def test_it_reads_without_script(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("h1").is_visible()
    assert page.locator("#fig-pending svg").is_visible()
    assert not page.locator("#theme").is_visible()
    page.locator(".pod summary").first.click()
    assert page.locator(".pod .life").first.is_visible()
    context.close()


def test_it_prints_on_light_ground(browser: Browser, report: Path) -> None:
    visit = _visit(browser, report, "dark", 1440)
    visit.page.emulate_media(media="print")
    assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(252, 252, 251)"
    )
    assert not visit.page.locator(".nav").is_visible()
    assert visit.page.pdf().startswith(b"%PDF")
    visit.page.close()
