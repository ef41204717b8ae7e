"""What a script is refused for before a sandbox is spent on it: thrift, not security."""

from __future__ import annotations

import io
import tokenize

from mlwright_api.rollout import FILES_BYTES

from mlwright_trainer.collection.syntax import NotPython, parse_script


def refuse(script: str) -> str | None:
    """Why `script` cannot be run, in one line for a person and the ledger; None where it can."""
    for check in (_size, _bytes, _declared_encoding, _compiles):
        reason = check(script)
        if reason is not None:
            return reason
    return None


def _size(script: str) -> str | None:
    size = len(script.encode("utf-8", "surrogatepass"))
    return f"larger than {FILES_BYTES} bytes ({size})" if size > FILES_BYTES else None


def _bytes(script: str) -> str | None:
    if "\0" in script:
        return f"line {_line(script, script.index(chr(0)))}: a NUL byte"
    try:
        script.encode()
    except UnicodeEncodeError as error:
        return f"line {_line(script, error.start)}: half of a surrogate pair, which UTF-8 cannot hold"
    return None


def _line(script: str, position: int) -> int:
    return script.count("\n", 0, position) + 1


def _declared_encoding(script: str) -> str | None:
    """The file is written as UTF-8: a declaration of something else would change its strings."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(script.encode()).readline)
    except SyntaxError as error:
        return f"line 1: {error.msg}"
    if encoding in ("utf-8", "utf-8-sig") or script.isascii():
        return None
    return f"declares the encoding {encoding}, but scripts are UTF-8"


def _compiles(script: str) -> str | None:
    try:
        tree = parse_script(script)
    except NotPython as error:
        return str(error)
    return None if tree.body else "no statement"
