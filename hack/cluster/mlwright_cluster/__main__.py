"""The command: `python -m mlwright_cluster programs | up | down | images`, which `make` calls."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mlwright_cluster import sandbox_image
from mlwright_cluster.cluster import down, found, up
from mlwright_cluster.errors import ClusterError
from mlwright_cluster.plan import Level
from mlwright_cluster.programs import CACHE, CONTROL_PLANE, PROGRAMS, build

FOLDER = CACHE / "up"
ROOT = Path(__file__).parents[3]


def programs(options: argparse.Namespace) -> None:
    """Builds what a level needs."""
    build(CONTROL_PLANE if options.level is Level.CONTROL_PLANE else PROGRAMS)


def cluster_up(options: argparse.Namespace) -> None:
    """Builds what is missing, starts the cluster or finds it, and says how to use it."""
    programs(options)
    cluster = up(options.level, options.folder, detached=True)
    print(f"export KUBECONFIG={cluster.kubeconfig}")


def cluster_down(options: argparse.Namespace) -> None:
    """Ends the cluster."""
    print("cluster: ended" if down(options.folder) else f"cluster: none in {options.folder}", file=sys.stderr)


def images(options: argparse.Namespace) -> None:
    """Builds the sandbox image, and loads it into the cluster if there is one."""
    image = sandbox_image.build(ROOT, base=options.base)
    if (options.folder / "cluster.json").exists() and (cluster := found(options.folder)).is_running():
        cluster.load_image(image.archive)
    print(f"{image.name} {image.archive}")


COMMANDS = {"programs": programs, "up": cluster_up, "down": cluster_down, "images": images}


def main(arguments: list[str]) -> int:
    """Runs one command; what is wrong is one line on standard error and status 1."""
    parser = argparse.ArgumentParser(prog="mlwright_cluster", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--level", type=Level, choices=list(Level), default=Level.NODE)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the cluster lives")
    parser.add_argument(
        "--base", default="", help="images: an image or archive to build from, in place of Debian's"
    )
    options = parser.parse_args(arguments)
    try:
        COMMANDS[options.command](options)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
