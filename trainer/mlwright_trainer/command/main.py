"""The `mlwright` command: every subcommand in one place, and what becomes of errors."""

from __future__ import annotations

import signal
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console

from mlwright_trainer.command import doctor, ledger, replay, report, run, show, task
from mlwright_trainer.command.failures import explained
from mlwright_trainer.errors import MlwrightError

app = typer.Typer(
    name="mlwright",
    epilog="Start with `mlwright doctor`, then `mlwright run examples/quickstart/run.yaml`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)
run.register(app)
report.register(app)
replay.register(app)
show.register(app)
doctor.register(app)
app.add_typer(task.app, name="task")
app.add_typer(ledger.app, name="ledger")

INTERRUPTED = 130


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mlwright {version('mlwright')}")
        raise typer.Exit


@app.callback()
def mlwright(
    _version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Train language models to do machine-learning engineering, by reinforcement learning."""


def main() -> None:
    """Entry point; exit 0, 2 for the user's mistakes, 1 for ours, 130 after Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a stop like Ctrl-C: says how to go on
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        known = error if isinstance(error, MlwrightError) else explained(error)
        if known is None:
            raise
        console = Console(stderr=True, soft_wrap=True)
        console.print(f"mlwright: {known}", markup=False, highlight=False, style="red")
        sys.exit(known.exit_code)


if __name__ == "__main__":
    main()
