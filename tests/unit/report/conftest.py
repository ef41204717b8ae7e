"""Fixtures of the report's tests: run folders made by the real ledger."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

_BUILDER = Path(__file__).with_name("ledger_builder.py")


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
def builder() -> ModuleType:
    """The module that makes run folders."""
    return _load_builder()


@pytest.fixture(scope="session")
def make_run(builder: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a run's folder by scenario fields, once for equal fields; tests only read it."""
    made: dict[str, Path] = {}

    def make(**fields: object) -> Path:
        key = repr(sorted(fields.items()))
        if key not in made:
            made[key] = builder.build_run(tmp_path_factory.mktemp("run") / "run", builder.Scenario(**fields))
        return made[key]

    return make
