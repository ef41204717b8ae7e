"""`make images`: the sandbox image, built without a daemon and without a registry, once for what goes into it.

The base is Debian, made by mmdebstrap, or what is given. Python packages are fetched on the machine, with its own
pip configuration, and given to the build as a folder: the build itself needs no network.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mlwright_cluster.errors import ProgramsMissing
from mlwright_cluster.machine import run
from mlwright_cluster.programs import CACHE, alone
from mlwright_cluster.progress import timed

SUITE = "bookworm"
BASE_PACKAGES = ("python3", "python3-pip", "libseccomp2")
BASE_PYTHON = "3.11"
CONTEXT = ("sandbox-image", "crds/mlwright_api")
"""What of the checkout goes into the image."""
CONTAINERFILE = "sandbox-image/Containerfile"
REQUIREMENTS = "sandbox-image/requirements.txt"
PIP_CONFIGURATION = "[global]\nno-index = true\nfind-links = /wheels\ndisable-pip-version-check = true\n"
KEPT = 3
"""How many images stay in the cache."""
BUILDER_PACKAGES = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}


@dataclass(frozen=True)
class Image:
    """A built image: the name that pods use, and its archive."""

    name: str
    archive: Path


def lacks_builder() -> str | None:
    """Why images cannot be built here, if they cannot."""
    missing = [package for command, package in BUILDER_PACKAGES.items() if shutil.which(command) is None]
    return f"missing: {', '.join(missing)} (apt-get install {' '.join(missing)})" if missing else None


def context_files(root: Path) -> list[Path]:
    """The files of the checkout that go into the image, relative to it."""
    paths = (path for folder in CONTEXT for path in (root / folder).rglob("*"))
    return sorted(
        path.relative_to(root) for path in paths if path.is_file() and "__pycache__" not in path.parts
    )


def image_key(*, files: Iterable[tuple[str, bytes]], base: str) -> str:
    """The first 12 hexadecimal digits of a digest of the base's name and of everything that goes into the image."""
    digest = hashlib.sha256(f"{base}\n{PIP_CONFIGURATION}".encode())
    for name, content in sorted(files):
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def planned(root: Path, *, base: str = "") -> Image:
    """The name and the archive that the image of this checkout has or would have."""
    files = [(str(path), (root / path).read_bytes()) for path in context_files(root)]
    key = image_key(files=files, base=base or _base_name())
    return Image(name=f"localhost/mlwright-sandbox:{key}", archive=CACHE / f"images/sandbox-{key}.tar")


def build(root: Path, *, base: str = "") -> Image:
    """The sandbox image of this checkout, built if it has not been yet.

    base: an image that buildah finds, in place of Debian's. Raises ProgramsMissing, CommandFailed.
    """
    image = planned(root, base=base)
    if image.archive.exists():
        return image
    if why := lacks_builder():
        raise ProgramsMissing(why)
    with alone(image.archive.parent):
        if not image.archive.exists():
            _build(root, image, base=base or _make_base())
    return image


def _build(root: Path, image: Image, *, base: str) -> None:
    wheels = _fetch_wheels(root / REQUIREMENTS)
    with tempfile.TemporaryDirectory() as scratch, timed(f"building {image.name}"):
        context, configuration = Path(scratch, "context"), Path(scratch, "pip.conf")
        for path in context_files(root):
            (context / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / path, context / path)
        configuration.write_text(PIP_CONFIGURATION)
        _buildah(
            *("build", "--isolation", "chroot", "--layers", "--build-arg", f"BASE={base}"),
            *("--volume", f"{wheels}:/wheels:ro", "--volume", f"{configuration}:/etc/pip.conf:ro"),
            *("--file", str(context / CONTAINERFILE), "--tag", image.name, str(context)),
        )
    partial = image.archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with timed("writing its archive"):
        # Half the seconds of gzip, and smaller.
        form = ("--quiet", "--compression-format", "zstd")
        _buildah("push", *form, image.name, f"oci-archive:{partial}:{image.name}")
    partial.rename(image.archive)
    _forget(image)


def _forget(newest: Image) -> None:
    """Removes all but the last few images: every change of a source makes another one."""
    archives = sorted(newest.archive.parent.glob("sandbox-*.tar"), key=lambda path: path.stat().st_mtime)
    for archive in archives[:-KEPT]:
        archive.unlink()
        name = f"localhost/mlwright-sandbox:{archive.stem.removeprefix('sandbox-')}"
        if name in _buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
            _buildah("rmi", name)


def _base_name() -> str:
    key = hashlib.sha256(repr((SUITE, BASE_PACKAGES)).encode()).hexdigest()[:12]
    return f"localhost/mlwright-base:{key}"


def _make_base() -> str:
    """Debian's smallest system with Python, as an image; made once."""
    name = _base_name()
    if name in _buildah("images", "--format", "{{.Name}}:{{.Tag}}"):
        return name
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch, timed(f"making the base, Debian's {SUITE}"):
        archive = Path(scratch, "base.tar")
        run("mmdebstrap", "--variant=minbase", f"--include={','.join(BASE_PACKAGES)}", SUITE, str(archive))
        Path(scratch, "Containerfile").write_text("FROM scratch\nADD base.tar /\n")
        _buildah("build", "--isolation", "chroot", "--tag", name, scratch)
    return name


def _fetch_wheels(requirements: Path) -> Path:
    """A folder with the wheels of the pinned requirements, for the base's Python."""
    key = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = CACHE / f"images/wheels-{key}"
    machine = platform.machine()
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in (17, 28)]
    platforms += [f"--platform=manylinux2014_{machine}"]
    form = ["--only-binary=:all:", "--implementation=cp", f"--python-version={BASE_PYTHON}", *platforms]
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        with timed("fetching the sandbox's Python packages"):
            run(
                *(sys.executable, "-m", "pip", "download", "--quiet", *form),
                *("--dest", str(partial), "--requirement", str(requirements)),
            )
        partial.rename(folder)
    return folder


def _buildah(*arguments: str) -> str:
    store = CACHE / "images"
    return run(
        "buildah",
        *("--root", str(store / "storage"), "--runroot", str(store / "storage-run")),
        *arguments,
    )
