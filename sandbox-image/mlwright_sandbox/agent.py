"""The agent's process, `python -I -m mlwright_sandbox.agent`: starts over as a pod's runner in a clean environment.

Isolated mode ignores PYTHONHASHSEED, and libraries read their number of threads when they are imported; so both are
set for a second interpreter, which takes the place of this one and of nothing else's settings.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from mlwright_sandbox import cgroups, libraries

_KEPT = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "LD_LIBRARY_PATH")
"""The first two tell the receipt which API server must not be reached."""


def clean_environment(given: Mapping[str, str], *, cores: int) -> dict[str, str]:
    """Of a container's environment only what a runner needs."""
    return {
        **{name: given[name] for name in _KEPT if name in given},
        **libraries.threads(cores),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": libraries.HASH_SEED,
    }


def main(arguments: Sequence[str]) -> NoReturn:
    """Become the pod's runner."""
    command = [sys.executable, "-s", "-P", "-B", "-m", "mlwright_sandbox.pod", *arguments]
    os.execve(sys.executable, command, clean_environment(os.environ, cores=cgroups.own_cores()))


if __name__ == "__main__":
    main(sys.argv[1:])
