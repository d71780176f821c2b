"""Names of files as they can be shown, stored and printed anywhere."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    """A stranger's text without what could break a table, a terminal or an encoding: such characters are escaped.

    >>> printable("gem" + chr(27) + "[31m"), printable("Grün 1")
    ('gem\\\\x1b[31m', 'Grün 1')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
