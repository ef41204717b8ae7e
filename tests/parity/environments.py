"""Makes one virtual environment an anchor, pinned, beside our torch (`make parity` does it on the way).

Each sees the packages of the interpreter that runs this (torch, transformers) through a .pth file and adds the
anchor without its dependencies, plus the few that importing it needs. None of it enters our own environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(os.environ.get("MLWRIGHT_PARITY", Path.home() / ".cache" / "mlwright" / "parity"))
_DATASETS = ("datasets==5.2.0", "dill==0.4.1", "multiprocess==0.70.19", "pyarrow==26.0.1", "xxhash==4.1.0")
PINS: dict[str, tuple[str, ...]] = {
    "verl": (
        "verl==0.9.1",
        "antlr4-python3-runtime==4.9.3",
        "codetiming==1.4.0",
        "hydra-core==1.3.8",
        "jsonschema==4.26.0",
        "jsonschema-specifications==2025.9.1",
        "msgpack==1.2.4",
        "omegaconf==2.4.0",
        "orjson==3.13.0",
        "protobuf==7.36.2",
        "pyvers==0.2.3",
        "ray==2.60.0",
        "referencing==0.37.0",
        "rpds-py==2026.9.1",
        "tensordict==0.15.3",
    ),
    "trl_grpo": ("trl==1.16.0", *_DATASETS),
    "trl_ppo": (
        "trl==0.11.4",
        "docstring-parser==0.18.0",
        "shtab==1.13.0",
        "typeguard==4.6.1",
        "tyro==1.0.17",
        *_DATASETS,
    ),
}


def python(anchor: str) -> Path:
    """The interpreter of an anchor's environment."""
    return ROOT / anchor / "bin" / "python"


def make(anchor: str) -> None:
    """Create or complete an environment; does nothing where it has the pins already."""
    folder, stamp = ROOT / anchor, ROOT / anchor / "pins.txt"
    pins = "\n".join(PINS[anchor])
    if stamp.is_file() and stamp.read_text() == pins:
        return
    venv.create(folder, with_pip=True, clear=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    ours = folder / "lib" / version / "site-packages" / "ours.pth"
    ours.write_text(sysconfig.get_paths()["purelib"] + "\n")
    install = [python(anchor), "-m", "pip", "install", "--quiet", "--no-deps", *PINS[anchor]]
    subprocess.run(install, check=True)
    stamp.write_text(pins)


if __name__ == "__main__":
    for name in sys.argv[1:] or PINS:
        make(name)
