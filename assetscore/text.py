"""Names of files as they can be shown, stored and printed anywhere."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["counted", "printable"]


def printable(text: str) -> str:
    """A stranger's text without what could break a table, a terminal or an encoding: such characters are escaped.

    >>> printable("gem" + chr(27) + "[31m"), printable("Grün 1")
    ('gem\\\\x1b[31m', 'Grün 1')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(counts: Mapping[str, int], most: int = 6) -> str:
    """Counts by name in one short line, the largest first where some are left out.

    >>> counted({"block": 20, "item": 40}), counted({"a": 1, "b": 3, "c": 2}, most=2)
    ('block 20, item 40', 'b 3, c 2, 1 more')
    """
    shown = list(counts) if len(counts) <= most else sorted(counts, key=lambda name: (-counts[name], name))[:most]
    parts = [f"{printable(name)[:40]} {counts[name]}" for name in shown]
    return ", ".join(parts + ([f"{len(counts) - len(shown)} more"] if len(shown) < len(counts) else []))
