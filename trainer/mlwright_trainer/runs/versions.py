"""Versions of everything that a run's numbers depend on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("mlwright", "torch", "transformers", "peft", "numpy", "pandas", "scikit-learn", "scipy")


def software_versions() -> dict[str, str]:
    """Python, the kernel, and each of PACKAGES that is installed."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
