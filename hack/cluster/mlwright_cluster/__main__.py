"""The command: `python -m mlwright_cluster programs | images | ready | up | down`, which `make` calls."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from mlwright_cluster import sandbox_image
from mlwright_cluster.cluster import down, found, up
from mlwright_cluster.errors import ClusterError
from mlwright_cluster.plan import Level
from mlwright_cluster.programs import CACHE, CONTROL_PLANE, PROGRAMS, build
from mlwright_cluster.progress import say

FOLDER = CACHE / "up"
ROOT = Path(__file__).parents[3]


def programs(options: argparse.Namespace) -> None:
    """Builds what a level needs."""
    build(CONTROL_PLANE if options.level is Level.CONTROL_PLANE else PROGRAMS)


def images(options: argparse.Namespace) -> None:
    """Builds the sandbox image, loads it into the cluster if there is one, and prints its name and its archive."""
    image = sandbox_image.build(ROOT, base=options.base)
    if (options.folder / "cluster.json").exists() and (cluster := found(options.folder)).is_running():
        cluster.load_image(image.archive)
    sys.stdout.write(f"{image.name} {image.archive}\n")


def ready(options: argparse.Namespace) -> None:
    """Makes what this machine's tests need, as far as it can; what it cannot is one line, and no failure."""
    steps: list[Callable[[argparse.Namespace], None]] = [programs]
    if options.level is Level.NODE:
        steps.append(images)
    for step in steps:
        try:
            step(options)
        except ClusterError as error:
            say(f"{step.__name__}: {error}")


def cluster_up(options: argparse.Namespace) -> None:
    """Builds what is missing, starts the cluster or finds it, and prints how to use it."""
    programs(options)
    cluster = up(options.level, options.folder, detached=True)
    if cluster.level is Level.CONTROL_PLANE:
        say("an API server without a node, which needs root")
    sys.stdout.write(f"export KUBECONFIG={cluster.kubeconfig}\n")


def cluster_down(options: argparse.Namespace) -> None:
    """Ends the cluster."""
    say("ended" if down(options.folder) else f"none in {options.folder}")


COMMANDS = {"programs": programs, "images": images, "ready": ready, "up": cluster_up, "down": cluster_down}


def main(arguments: list[str]) -> int:
    """Runs one command; what is wrong is said on standard error, with status 1."""
    parser = argparse.ArgumentParser(prog="mlwright_cluster", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    level = Level.NODE if os.geteuid() == 0 else Level.CONTROL_PLANE
    parser.add_argument("--level", type=Level, choices=list(Level), default=level)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the cluster lives")
    parser.add_argument("--base", default="", help="images: an image to build from, in place of Debian's")
    options = parser.parse_args(arguments)
    try:
        COMMANDS[options.command](options)
    except ClusterError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
