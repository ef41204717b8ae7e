"""Writes crds/*.yaml and crds/policies/*.yaml.

python -m mlwright_crds           writes them, and says how large they are
python -m mlwright_crds --check   exits with 1 if one is not current
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlwright_api.manifests import dump_yaml

from mlwright_crds.definitions import RESOURCES, definition
from mlwright_crds.policies import policies

ROOT = Path(__file__).parents[1]
NOTICE = "# Generated from mlwright_api by `make crds`; do not edit.\n"


def files() -> Mapping[Path, list[dict[str, Any]]]:
    """Every generated file, relative to crds/, and its objects."""
    definitions = {Path(f"{each.plural}.yaml"): [definition(each)] for each in RESOURCES}
    return definitions | {Path("policies/collector.yaml"): policies()}


def text(objects: list[dict[str, Any]]) -> str:
    """YAML of some objects."""
    return NOTICE + "---\n".join(map(dump_yaml, objects))


def main(arguments: list[str]) -> int:
    """Write the files, or compare them."""
    made = {ROOT / path: text(objects) for path, objects in files().items()}
    stale = [path for path in made if not path.exists() or path.read_text() != made[path]]
    if "--check" in arguments:
        for path in stale:
            sys.stderr.write(f"crds/{path.relative_to(ROOT)} is not current: make crds\n")
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(made[path])
    for path, objects in files().items():
        sizes = ", ".join(f"{len(json.dumps(each)):,}" for each in objects)
        sys.stdout.write(f"crds/{path}: {sizes} bytes as JSON\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
