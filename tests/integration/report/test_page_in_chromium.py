"""The report in a real browser: nothing loaded, nothing run, nothing cut, on any screen and on paper."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

pytestmark = pytest.mark.browser

MakePage = Callable[..., Path]
HOSTILE = (
    "</script><script>window.hit=1</script><img src=x onerror='window.hit=2'><svg onload='window.hit=3'>\"'"
)
PAGES: dict[str, dict[str, Any]] = {
    "sealed": {"improve": 0.5, "mode": "Continuous"},
    "window": {"mode": "Window", "batch_size": 40},
    "several tasks": {"tasks": ("churn", "houses"), "metric": "rmse"},
    "begun": {"updates": 0, "fresh": 0, "after": False, "sealed": False, "ended": ""},
    "running": {"updates": 2, "after": False, "sealed": False, "ended": ""},
    "long": {"updates": 70, "planned": 70, "batch_size": 6, "fresh": 8},
    "seeds": {"seeds": (0, 11, 12)},
    "hostile": {"hostile": HOSTILE, "improve": 0.9, "updates": 6, "planned": 6},
}


def log_of(browser: webdriver.Chrome, kind: str) -> list[dict[str, Any]]:
    """What has been logged since the last call."""
    entries: list[dict[str, Any]] = browser.get_log(kind)  # type: ignore[no-untyped-call]  # selenium's own
    return entries


PHONE, DESK = 360, 1280


@contextmanager
def screen(
    browser: webdriver.Chrome, width: int, *, media: str = "", scheme: str = "light"
) -> Iterator[None]:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def show(browser: webdriver.Chrome, page: Path) -> None:
    browser.get(page.as_uri())


@pytest.mark.parametrize("kind", PAGES)
def test_nothing_is_loaded_run_or_complained_of(browser: webdriver.Chrome, page: MakePage, kind: str) -> None:
    target = page(**PAGES[kind])
    browser.get("about:blank")
    for kind_of_log in ("browser", "performance"):
        log_of(browser, kind_of_log)
    show(browser, target)
    messages = [json.loads(entry["message"])["message"] for entry in log_of(browser, "performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if not url.startswith("data:")] == [target.as_uri()]
    assert log_of(browser, "browser") == []
    assert browser.execute_script("return [document.scripts.length, window.hit ?? null]") == [0, None]


OVERFLOWING = """
const wide = [];
for (const each of document.querySelectorAll('main *')) {
  if (each.closest('.scroll, pre, svg')) continue;
  const box = each.getBoundingClientRect();
  if (box.width && box.right > innerWidth + 0.5) wide.push(each.outerHTML.slice(0, 120));
}
return [document.documentElement.scrollWidth, wide];
"""


@pytest.mark.parametrize("kind", PAGES)
@pytest.mark.parametrize("width", [320, PHONE, 768, DESK])
def test_nothing_sticks_out_sideways(
    browser: webdriver.Chrome, page: MakePage, kind: str, width: int
) -> None:
    with screen(browser, width):
        show(browser, page(**PAGES[kind]))
        assert browser.execute_script(OVERFLOWING) == [width, []]


CHARTS = """
return [...document.querySelectorAll('svg.chart')].map(svg => {
  const frame = svg.getBoundingClientRect();
  const marks = [...svg.querySelectorAll('circle.dot, rect.bar, path.line')].map(e => e.getBoundingClientRect());
  const texts = [...svg.querySelectorAll('text')].map(e => ({text: e.textContent, box: e.getBoundingClientRect(),
    style: e.getAttribute('class') || '', size: parseFloat(getComputedStyle(e).fontSize) * frame.width / 360}));
  const clash = [];
  for (const [i, a] of texts.entries()) for (const b of texts.slice(i + 1)) {
    const over = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
    const under = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
    if (a.text && b.text && over > 0.5 && under > 3) clash.push(a.text + ' / ' + b.text);
  }
  return {
    title: svg.querySelector('title').textContent, width: frame.width, height: frame.height,
    visible: marks.filter(box => box.width > 0.4 || box.height > 0.4).length,
    outside: texts.filter(t => t.text && (t.box.left < frame.left - 1 || t.box.right > frame.right + 1
      || t.box.top < frame.top - 2 || t.box.bottom > frame.bottom + 3)).map(t => t.text),
    smallest: Math.min(...texts.filter(t => t.text).map(t => t.size)), clash: clash};
});
"""


@pytest.mark.parametrize("kind", PAGES)
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_every_chart_shows_something_and_its_text_is_whole_and_legible(
    browser: webdriver.Chrome, page: MakePage, kind: str, width: int
) -> None:
    with screen(browser, width):
        show(browser, page(**PAGES[kind]))
        charts = browser.execute_script(CHARTS)
    assert bool(charts) == (kind != "begun")
    for chart in charts:
        assert chart["visible"] > 0, chart
        assert chart["outside"] == [], chart
        assert chart["clash"] == [], chart
        assert chart["smallest"] >= 9, chart
        assert chart["height"] > 60, chart


@pytest.mark.parametrize("kind", ["sealed", "several tasks", "seeds", "begun"])
def test_headings_descend_in_order(browser: webdriver.Chrome, page: MakePage, kind: str) -> None:
    show(browser, page(**PAGES[kind]))
    levels = browser.execute_script(
        "return [...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert set(levels[1:2]) <= {2}


def test_a_reader_who_does_not_see_the_charts_is_told_what_they_show(
    browser: webdriver.Chrome, page: MakePage
) -> None:
    show(browser, page(**PAGES["sealed"]))
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    images = [node for node in nodes if node.get("role", {}).get("value") in ("image", "img")]
    names = [node.get("name", {}).get("value", "") for node in images]
    assert len(names) >= 15
    assert all(names)
    assert any("in update 11" in name for name in names)


CONTRASTS = """
const luminance = text => {
  const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map(Number).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const page = luminance(getComputedStyle(document.body).backgroundColor);
const contrast = colour => {
  const other = luminance(colour);
  return (Math.max(page, other) + 0.05) / (Math.min(page, other) + 0.05);
};
const texts = [...document.querySelectorAll('p, td, th, dt, dd, li, h1, h2, a, figcaption')]
  .filter(e => e.textContent.trim() && !e.closest('.code, .notes'))
  .map(e => [contrast(getComputedStyle(e).color), e.className || e.tagName]);
const ticks = [...document.querySelectorAll('svg text')].map(e => [contrast(getComputedStyle(e).fill), 'svg text']);
const marks = [...document.querySelectorAll('svg .dot, svg .line')]
  .map(e => [contrast(getComputedStyle(e)[e.tagName === 'path' ? 'stroke' : 'fill']), e.getAttribute('class')]);
return [page, texts.concat(ticks).sort((a, b) => a[0] - b[0])[0], marks.sort((a, b) => a[0] - b[0])[0]];
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_marks_stand_out_from_the_page(
    browser: webdriver.Chrome, page: MakePage, scheme: str
) -> None:
    with screen(browser, DESK, scheme=scheme):
        show(browser, page(**PAGES["sealed"]))
        background, text, mark = browser.execute_script(CONTRASTS)
    assert (background < 0.05) == (scheme == "dark")
    assert text[0] >= 4.5, text
    assert mark[0] >= 3, mark


def test_parent_and_child_stand_side_by_side_on_a_desk_and_stacked_on_a_phone(
    browser: webdriver.Chrome, page: MakePage
) -> None:
    boxes = """
    return [...document.querySelectorAll('.beside .code')].map(e => e.getBoundingClientRect())
      .map(box => [box.left, box.top]);
    """
    target = page(**PAGES["hostile"])
    for width, beside in ((DESK, True), (PHONE, False)):
        with screen(browser, width):
            show(browser, target)
            parent, child = browser.execute_script(boxes)
        assert (parent[1] == child[1]) is beside
        assert (parent[0] == child[0]) is not beside


def test_on_paper_details_are_open_and_nothing_is_cut(browser: webdriver.Chrome, page: MakePage) -> None:
    with screen(browser, 700, media="print"):
        show(browser, page(**PAGES["sealed"]))
        heights = browser.execute_script(
            "return [...document.querySelectorAll('details > :last-child')].map(e => e.getBoundingClientRect().height)"
        )
        assert len(heights) >= 2
        assert all(height > 50 for height in heights)
        assert browser.execute_script(OVERFLOWING) == [700, []]


@pytest.mark.parametrize("kind", ["sealed", "seeds", "begun", "long"])
def test_the_page_prints_on_a4(browser: webdriver.Chrome, page: MakePage, kind: str) -> None:
    show(browser, page(**PAGES[kind]))
    answer = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})
    document = base64.b64decode(answer["data"])
    assert document.startswith(b"%PDF-")
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", document)
    assert 1 <= len(boxes) <= 20
    assert {(round(float(width)), round(float(height))) for width, height in boxes} == {(595, 842)}
