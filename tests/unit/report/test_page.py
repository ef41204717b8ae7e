"""The page: self-contained, escaped, honest, and there for every kind of run."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from mlwright_trainer.errors import UserError
from mlwright_trainer.report import load_report, render_page, write_report

MakeRun = Callable[..., Path]
VOID = {"meta", "link", "br", "img", "hr", "input"}
KINDS: dict[str, dict[str, object]] = {
    "sealed": {},
    "finished": {"sealed": False},
    "stopped": {"updates": 3, "after": False, "sealed": False, "ended": "interrupted"},
    "begun": {"updates": 0, "fresh": 0, "after": False, "sealed": False, "ended": ""},
    "sampled": {"updates": 0, "after": False, "sealed": False, "ended": ""},
    "window": {"mode": "Window", "seed": 3, "batch_size": 40},
    "improve": {"improve": 0.5, "seed": 1, "mode": "Continuous"},
    "several": {"tasks": ("churn", "houses"), "metric": "rmse", "seed": 4},
    "unknown tasks": {"with_tasks": False, "sealed": False},
    "no fresh": {"fresh": 0, "after": False},
}
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'{{7*7}}</style></pre>\u202e\x1b[31m"
)


class Outline(HTMLParser):
    """What a page is made of; complains of tags that do not close in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.headings: list[int] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if "id" in dict(attrs):
            self.ids.append(str(dict(attrs)["id"]))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> without a beginning"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page_of(*folders: Path) -> str:
    return render_page(load_report(folders))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_has_a_well_formed_page(make_run: MakeRun, kind: str) -> None:
    outline = Outline(page_of(make_run(**KINDS[kind])))
    assert len(set(outline.ids)) == len(outline.ids)
    targets = {str(attrs["href"])[1:] for tag, attrs in outline.tags if tag == "a"}
    assert targets <= set(outline.ids)
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    steps = zip(outline.headings, outline.headings[1:], strict=False)
    assert all(after <= before + 2 for before, after in steps)


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_says_nan_none_or_undefined(make_run: MakeRun, kind: str) -> None:
    outline = Outline(page_of(make_run(**KINDS[kind])))
    shown = " ".join(outline.text).split("run.yaml, every value filled in")[0]
    assert not re.search(r"\b(nan|None|inf|undefined)\b", shown)


def test_the_page_loads_nothing_and_runs_nothing(make_run: MakeRun) -> None:
    page = page_of(make_run())
    outline = Outline(page)
    assert not {"script", "iframe", "object", "embed", "img", "form"} & {tag for tag, _ in outline.tags}
    for _, attrs in outline.tags:
        assert not [name for name in attrs if name.startswith("on")]
        for name in ("src", "href", "data", "action"):
            assert str(attrs.get(name, "#")).startswith(("#", "data:,"))
    assert "url(" not in page
    assert "@import" not in page
    policy = next(
        str(a["content"]) for t, a in outline.tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_hostile_scripts_output_and_titles_are_only_text(make_run: MakeRun) -> None:
    page = page_of(make_run(seed=5, hostile=HOSTILE, improve=0.4, updates=4, planned=4))
    outline = Outline(page)
    assert not {"script", "img"} & {tag for tag, _ in outline.tags}
    assert "<script>alert(1)</script><img" in "".join(outline.text)
    assert "{{7*7}}" in "".join(outline.text)
    assert [tag for tag, _ in outline.tags].count("style") == 1
    assert not {"\x1b", "\u202e"} & set(page)


def test_lone_surrogates_can_be_written(make_run: MakeRun, tmp_path: Path) -> None:
    report = load_report([make_run()])
    broken = report.model_copy(update={"name": "a\ud800b"})
    (tmp_path / "page.html").write_text(render_page(broken), encoding="utf-8")


def test_the_page_says_which_split_did_what(make_run: MakeRun) -> None:
    sealed, unsealed = page_of(make_run()), page_of(make_run(sealed=False))
    for page in (sealed, unsealed):
        assert "<b>Reward</b> was learned from, <b>Selection</b> chose the best script" in page
    assert (
        "<b>Final</b> was read once, after the run had ended. The comparison of fresh samples is on Final."
        in sealed
    )
    assert "it has not been read yet. The comparison of fresh samples is on Reward." in unsealed


def test_the_page_tells_how_to_replay_and_what_the_weights_are(make_run: MakeRun) -> None:
    page = page_of(make_run())
    for command in ("mlwright replay {}", "mlwright report {} --json", "mlwright show {} ROLLOUT"):
        assert command.format(make_run()) in page
    assert "0012" + "5e" * 30 in page
    assert "torch 2.15.0" in page
    assert "learningRate" in page


def test_an_improvement_stands_beside_its_parent(make_run: MakeRun) -> None:
    page = page_of(make_run(seed=5, improve=0.8))
    assert 'class="beside"' in page
    assert 'class="row added"' in page


def test_several_runs_share_a_page(make_run: MakeRun) -> None:
    page = page_of(*(make_run(seed=seed) for seed in (0, 11, 12)))
    outline = Outline(page)
    assert "Over 3 runs, the valid fraction rose from" in page
    assert "intervals are Student's t over runs" in page
    assert [tag for tag, _ in outline.tags].count("svg") == 3


def test_several_unfinished_runs_share_a_page_too(make_run: MakeRun) -> None:
    begun = {"updates": 0, "fresh": 0, "after": False, "sealed": False, "ended": ""}
    page = page_of(make_run(**begun), make_run(seed=1, **begun))
    Outline(page)
    assert "Nothing can be compared yet." in page


def test_the_same_report_gives_the_same_page(make_run: MakeRun) -> None:
    assert page_of(make_run()) == page_of(make_run())


def test_writing_replaces_whole_and_leaves_nothing_behind(make_run: MakeRun, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text("old")
    write_report([make_run()], out)
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert out.stat().st_mode & 0o777 == 0o644


def test_a_page_that_cannot_be_written_is_the_users_mistake(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        write_report([make_run()], tmp_path / "nowhere" / "report.html")
