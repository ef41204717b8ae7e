"""What scripts import, imported once before them; and the environment in which these libraries behave."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mlwright_sandbox import kernel

PRELOADED = (
    *("numpy", "pandas", "joblib", "scipy.optimize", "scipy.sparse.linalg", "scipy.special", "scipy.stats"),
    *("sklearn.calibration", "sklearn.cluster", "sklearn.compose", "sklearn.decomposition", "sklearn.dummy"),
    *("sklearn.ensemble", "sklearn.feature_extraction.text", "sklearn.feature_selection", "sklearn.impute"),
    *("sklearn.gaussian_process", "sklearn.kernel_ridge", "sklearn.linear_model", "sklearn.metrics"),
    *("sklearn.model_selection", "sklearn.multioutput", "sklearn.naive_bayes", "sklearn.neighbors"),
    *("sklearn.neural_network", "sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm", "sklearn.tree"),
)
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
HASH_SEED = "0"
"""A forked child has its server's string hashes, so they are the same in every rollout."""


def threads(cores: int) -> Mapping[str, str]:
    """What tells every library of numerics how many threads to use; read when it is imported."""
    return dict.fromkeys(_THREAD_VARIABLES, str(cores))


def script_environment(temporary: Path, *, cores: int = 1) -> dict[str, str]:
    """What a script finds in os.environ."""
    return {
        **threads(cores),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(temporary),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": HASH_SEED,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "LOKY_MAX_CPU_COUNT": str(cores),
    }


def preload() -> None:
    """Import what scripts import; what is not installed is left to the scripts to find out."""
    for name in PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)


def settle() -> None:
    """Make forks cheap and quiet: a frozen heap, and a process that its children cannot look into."""
    if kernel.LINUX:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    gc.collect()
    gc.freeze()
    gc.disable()
