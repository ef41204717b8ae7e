"""Options and arguments that several subcommands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Backend(StrEnum):
    """How scripts are kept in: the best that this machine has, or one by name."""

    AUTO = "auto"
    NAMESPACES = "namespaces"
    LOCK = "lock"
    PLAIN = "plain"


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else.")]
RunArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder.")]
