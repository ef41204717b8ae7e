"""Headless Chromium, and pages of made-up runs for it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

_BUILDER = Path(__file__).parents[2] / "unit" / "report" / "ledger_builder.py"
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--hide-scrollbars",
)  # fmt: skip


def _load_builder() -> ModuleType:
    name = "mlwright_tests_ledger_builder"
    if name not in sys.modules:
        spec = spec_from_file_location(name, _BUILDER)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes the page of a run by scenario fields; with seeds=(...), of several runs. Once for equal fields."""
    from mlwright_trainer.report import write_report

    builder, made = _load_builder(), dict[str, Path]()

    def make(seeds: tuple[int, ...] = (0,), **fields: object) -> Path:
        key = repr((seeds, sorted(fields.items())))
        if key not in made:
            folder = tmp_path_factory.mktemp("page")
            runs = [
                builder.build_run(folder / f"run-{seed}", builder.Scenario(seed=seed, **fields))
                for seed in seeds
            ]
            write_report(runs, folder / "report.html")
            made[key] = folder / "report.html"
        return made[key]

    return make


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()
