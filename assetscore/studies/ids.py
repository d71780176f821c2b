"""What votes call an asset: its asset_id, and where several assets of the results share one, whose it is too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from ..errors import UsageError
from ..table import Row

__all__ = ["MAX_ID", "check_id", "full_id", "rows_by_name", "vote_names"]

MAX_ID = 8 * 1024
"""Bytes of an id in UTF-8."""


def check_id(text: str, what: str = "asset id") -> str:
    """The id, exactly as it is; refused where a votes file could not hold it.

    Raises:
        UsageError: it is blank, longer than 8 KiB, or holds a NUL or half of a surrogate pair (a file name that is no
            UTF-8, say).

    Example:
        >>> check_id(" ruby, red")
        ' ruby, red'
    """
    shown = repr(text[:60])
    if not text.strip():
        raise UsageError(f"{what} {shown} is blank")
    if "\0" in text:
        raise UsageError(f"{what} {shown} holds a NUL character")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise UsageError(f"{what} {shown} is no text that UTF-8 can write") from None
    if size > MAX_ID:
        raise UsageError(f"{what} {shown}... has {size} bytes; at most {MAX_ID} are allowed")
    return text


def full_id(row: Row) -> str:
    """The asset_id after the game, group and task whose it is, as far as the row names them.

    Example:
        >>> full_id(Row("ruby.png", game="minecraft", group="model-a", task="gems"))
        'minecraft/model-a/gems: ruby.png'
        >>> full_id(Row("ruby.png"))
        'ruby.png'
    """
    whose = "/".join(part for part in (row.game, row.group, row.task) if part)
    return f"{whose}: {row.asset_id}" if whose else row.asset_id


def vote_names(rows: Sequence[Row]) -> list[str]:
    """What a study calls each row: its asset_id where no other row shares it, else its `full_id`.

    Empty for a row that neither tells from every other one.

    Example:
        >>> vote_names([Row("a.png", group="x"), Row("a.png", group="y"), Row("b.png", group="y")])
        ['x: a.png', 'y: a.png', 'b.png']
    """
    # a row counts once for each text by which it can be called
    taken = Counter(name for row in rows for name in {row.asset_id, full_id(row)})
    return [next((name for name in (row.asset_id, full_id(row)) if taken[name] == 1), "") for row in rows]


def rows_by_name(rows: Iterable[Row], needed: Collection[str]) -> dict[str, Row]:
    """The rows that votes name, by the names the votes use: an asset_id or a `full_id`. Unknown names are left out.

    Raises:
        UsageError: a name belongs to two rows, or two names to one.
    """
    wanted = frozenset(needed)
    table: dict[str, Row] = {}
    used: dict[int, str] = {}
    for place, row in enumerate(rows):
        for name in wanted & {row.asset_id, full_id(row)}:
            if name in table:
                one, other = full_id(table[name]), full_id(row)
                hint = f"votes tell them apart as {one!r} and {other!r}" if one != other else "make ids unique"
                groups = f"groups {table[name].group!r} and {row.group!r}"
                raise UsageError(f"asset_id {name!r} belongs to two rows of the results ({groups}); {hint}")
            if place in used:
                raise UsageError(f"the votes name one asset in two ways, {used[place]!r} and {name!r}")
            table[name], used[place] = row, name
    return table
