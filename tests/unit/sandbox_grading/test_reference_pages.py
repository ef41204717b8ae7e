"""The pages on metrics and milestones say what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlwright_api.metric_catalog import CATALOG
from mlwright_api.results import MILESTONES
from mlwright_sandbox.metrics import RANKING
from mlwright_sandbox.metrics.reference import metrics_page, rules_of
from mlwright_sandbox.milestones import MARK_NAME

REFERENCE = Path(__file__).parents[3] / "docs/reference"


def test_the_page_of_metrics_is_current() -> None:
    page = (REFERENCE / "metrics.md").read_text()
    notice = next(line for line in page.splitlines() if line.startswith("<!--"))
    assert page == metrics_page(notice), "make docs"


@pytest.mark.parametrize("name", CATALOG)
def test_every_metric_says_what_it_does_on_one_line(name: str) -> None:
    assert rules_of(name).endswith(".")
    assert f"| `{name}` | " in metrics_page("")


def test_the_table_has_as_many_cells_in_every_row() -> None:
    rows = [line.replace("\\|", "") for line in metrics_page("").splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {8}
    assert len(rows) == 2 + len(CATALOG)


def test_the_metrics_that_see_only_order_are_named() -> None:
    page = metrics_page("")
    assert all(f"`{name}`" in page.split("## What counts as trivial")[1] for name in RANKING)


def test_the_page_of_milestones_lists_them_in_order_with_the_marks_name() -> None:
    page = (REFERENCE / "milestones.md").read_text()
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| ") and "`" in line]
    assert [(int(index), name.strip().strip("`")) for index, name in rows] == list(enumerate(MILESTONES))
    assert f"`{MARK_NAME}`" in page
