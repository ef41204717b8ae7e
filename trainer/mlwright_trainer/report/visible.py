"""Text of others made safe to look at: what would not be seen, or would steer a terminal, is written out."""

from __future__ import annotations


def visible(text: str, *, keep: str = "\n\t\N{NO-BREAK SPACE}") -> str:
    """`text` with every character that is neither printable nor in `keep` as its escape.

    Escape sequences of terminals, bidirectional marks and lone surrogates all become plain text.
    """
    return "".join(
        character if character in keep or character.isprintable() else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
