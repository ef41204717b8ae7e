"""`mlwright report`, `show` and `ledger`: one document or lines fit for a person, and nothing overwritten."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from mlwright_trainer.command import ledger, report, show
from mlwright_trainer.errors import UserError
from mlwright_trainer.ledger import LedgerReader
from typer.testing import CliRunner, Result

MakeRun = Callable[..., Path]
app = typer.Typer()
report.register(app)
show.register(app)
app.add_typer(ledger.app, name="ledger")


def call(*arguments: object) -> Result:
    """Run a command; errors of ours come through, as they do to main."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def test_json_is_one_document_and_nothing_else(make_run: MakeRun) -> None:
    document = json.loads(call("report", make_run(), "--json").stdout)
    assert document["updates"] == 12
    both = json.loads(call("report", make_run(), make_run(seed=11), "--json").stdout)
    assert len(both["runs"]) == both["seeds"]["runs"] == 2


def test_the_page_goes_where_it_is_asked_to(make_run: MakeRun, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    result = call("report", make_run(), "--out", out)
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert result.stdout.splitlines()[-1] == f"Report: {out}"
    assert "rose from" in result.stdout
    assert call("report", make_run(), "--html", "--out", "-").stdout.startswith("<!doctype html>")


def test_the_page_of_one_run_goes_into_its_folder(make_run: MakeRun, tmp_path: Path) -> None:
    assert report.default_page([tmp_path]) == tmp_path / "report.html"
    assert report.default_page([tmp_path, tmp_path]) == Path("report.html")


def test_a_report_replaces_a_report_and_nothing_else(make_run: MakeRun, tmp_path: Path) -> None:
    for arguments, name in ((["--html"], "page.html"), (["--json"], "data.json")):
        out = tmp_path / name
        call("report", make_run(), *arguments, "--out", out)
        call("report", make_run(), *arguments, "--out", out)
    mine = tmp_path / "thesis.html"
    mine.write_text("years of work")
    with pytest.raises(UserError, match="exists and is no report"):
        call("report", make_run(), "--out", mine)
    assert mine.read_text() == "years of work"
    with pytest.raises(UserError, match="is a folder"):
        call("report", make_run(), "--out", tmp_path)


def test_mistakes_with_report_are_the_users(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="choose one"):
        call("report", make_run(), "--json", "--html")
    with pytest.raises(UserError, match="no such folder"):
        call("report", tmp_path / "nowhere")
    with pytest.raises(UserError, match="cannot be written"):
        call("report", make_run(), "--out", tmp_path / "nowhere" / "page.html")


def best_of(folder: Path) -> str:
    with LedgerReader(folder / "ledger.sqlite") as reader:
        return next(score.rollout for score in reader.sealed() if score.subject == "best")


def test_show_tells_a_rollout_by_id_beginning_or_as_the_best(make_run: MakeRun) -> None:
    id = best_of(make_run())
    outputs = [call("show", make_run(), name).stdout for name in (id, "best")]
    assert outputs[0] == outputs[1]
    for part in (
        id,
        "Scored",
        "Reward",
        "Final",
        "predictions_made",
        "execution",
        "Namespaces, 1 of 1 checks held",
    ):
        assert part in outputs[0]
    assert "read_csv" in outputs[0]
    assert "Validation AUC" in outputs[0]


def test_show_hides_selection_unless_it_is_asked_for(make_run: MakeRun) -> None:
    hidden, shown = call("show", make_run(), "best"), call("show", make_run(), "best", "--selection")
    assert "Selection" not in hidden.stdout
    assert "Selection" in shown.stdout
    documents = [
        json.loads(call("show", make_run(), "best", "--json", *flag).stdout) for flag in ([], ["--selection"])
    ]
    assert [set(document["scores"]) for document in documents] == [{"Reward"}, {"Reward", "Selection"}]


def test_show_as_json_has_everything_of_the_row(make_run: MakeRun) -> None:
    document = json.loads(call("show", make_run(improve=0.5, seed=1), "train-005-001", "--json").stdout)
    assert set(document) >= {
        "rollout", "promptKind", "parent", "script", "outcome", "reason", "scores", "final", "milestones", "seconds",
        "outputTail", "isolation", "reward", "batch", "policyVersion",
    }  # fmt: skip
    assert document["rollout"] == "train-005-001"


def test_show_says_which_rollouts_a_beginning_could_mean(make_run: MakeRun) -> None:
    with pytest.raises(UserError, match="'train-00' could be train-000-000, train-000-001"):
        call("show", make_run(), "train-00")
    for name in ("nobody", ""):
        with pytest.raises(UserError, match="no rollout"):
            call("show", make_run(), name)
    with pytest.raises(UserError, match="not sealed yet"):
        call("show", make_run(sealed=False), "best")


def test_show_lets_no_escape_sequence_through(make_run: MakeRun) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\u202e"
    folder = make_run(hostile=hostile, seed=9, updates=2, planned=2)
    for text in (call("show", folder, "best").stdout, call("ledger", "list", folder).stdout):
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "\u202e" not in text
    assert "\\x1b]0;owned" in call("show", folder, "best").stdout


def test_show_shows_the_response_where_there_was_no_script(make_run: MakeRun) -> None:
    rows = json.loads(call("ledger", "list", make_run(), "--outcome", "Unparsed", "--json").stdout)
    assert "I cannot do that." in call("show", make_run(), rows[0]["rollout"]).stdout


def test_list_has_a_line_a_rollout_in_the_order_of_sampling(make_run: MakeRun) -> None:
    lines = call("ledger", "list", make_run()).stdout.splitlines()
    assert len(lines) == 12 * 24 + 2 * 64
    assert lines[0].split()[:4] == ["before-000-000", "Before", "0", "churn"]
    assert lines[-1].startswith("after-000-063")


@pytest.mark.parametrize(
    ("arguments", "key", "allowed"),
    [
        (["--outcome", "Error", "--outcome", "Timeout"], "outcome", {"Error", "Timeout"}),
        (["--purpose", "After"], "purpose", {"After"}),
        (["--update", "3"], "batch", {3}),
        (["--task", "churn"], "task", {"churn"}),
    ],
)
def test_list_filters(make_run: MakeRun, arguments: list[str], key: str, allowed: set[object]) -> None:
    rows = json.loads(call("ledger", "list", make_run(), "--json", *arguments).stdout)
    assert rows
    assert {row[key] for row in rows} == allowed


def test_list_of_nothing_is_empty(make_run: MakeRun) -> None:
    assert call("ledger", "list", make_run(), "--open").stdout == ""
    assert json.loads(call("ledger", "list", make_run(), "--task", "other", "--json").stdout) == []


@pytest.mark.parametrize(
    ("name", "format"),
    [("copy.sqlite", None), ("copy", "sqlite"), ("copy.jsonl", None), ("copy.txt", "jsonl")],
)
def test_export_writes_what_the_name_or_the_option_says(
    make_run: MakeRun, tmp_path: Path, name: str, format: str | None
) -> None:
    out = tmp_path / name
    call("ledger", "export", make_run(), "--out", out, *(["--format", format] if format else []))
    if format == "jsonl" or name.endswith("jsonl"):
        tables = [json.loads(text)["table"] for text in out.read_text().splitlines()]
        assert tables.count("rollouts") == 416
    else:
        with LedgerReader(out) as copy:
            assert len(copy.rollouts()) == 416
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_export_overwrites_nothing(make_run: MakeRun, tmp_path: Path) -> None:
    for name in ("mine.sqlite", "mine.jsonl"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(UserError, match="exists already"):
            call("ledger", "export", make_run(), "--out", tmp_path / name)
        assert (tmp_path / name).read_text() == "mine"
        with pytest.raises(UserError, match="cannot be written"):
            call("ledger", "export", make_run(), "--out", tmp_path / "nowhere" / name)


def test_export_to_standard_output_is_lines(make_run: MakeRun) -> None:
    lines = call("ledger", "export", make_run(), "--out", "-").stdout.splitlines()
    assert json.loads(lines[0])["table"] == "run"
    with pytest.raises(UserError, match="only JSON lines"):
        call("ledger", "export", make_run(), "--out", "-", "--format", "sqlite")


def test_a_folder_without_a_run_is_the_users_mistake(tmp_path: Path) -> None:
    for arguments in (
        ["show", tmp_path, "x"],
        ["ledger", "list", tmp_path],
        ["ledger", "export", tmp_path, "--out", "-"],
    ):
        with pytest.raises(UserError, match="no run here"):
            call(*arguments)


WITHOUT_EXTRA = """
import sys
sys.modules["jinja2"] = sys.modules["markupsafe"] = sys.modules["pygments.lexers.python"] = None
from pathlib import Path
from mlwright_trainer.command import ledger, report, show
from mlwright_trainer.errors import UserError
from mlwright_trainer.report import load_report, write_report
folder = Path(sys.argv[1])
print(load_report([folder]).updates)
try:
    write_report([folder], folder / "page.html")
except UserError as error:
    print(error)
"""


def test_without_the_extra_there_is_data_and_the_page_says_what_is_missing(make_run: MakeRun) -> None:
    command = [sys.executable, "-c", WITHOUT_EXTRA, str(make_run())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "12"
    assert "pip install 'mlwright[report]', or use --json" in done.stdout.splitlines()[1]
    assert not (make_run() / "page.html").exists()
