"""What a run over many submissions has finished so far: one Parquet file each, written whole or not at all.

A part's name is its key, a hash over everything its rows depend on. So a part that is there is right, what changed is
scored again, and runs that share a folder do not disturb each other.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import AssetscoreError
from .folders import write_atomically
from .table import ResultTable, Row

__all__ = ["PARTS_SCHEMA", "Part", "key_of", "read_part", "write_part"]

log = logging.getLogger(__name__)

PARTS_SCHEMA = 1
_META = b"assetscore"


@dataclass(frozen=True)
class Part:
    """One submission's rows, and what its reader passed over, in words."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def key_of(*parts: str) -> str:
    """64 hexadecimal digits that change with any of the texts, and with `PARTS_SCHEMA`."""
    return hashlib.sha256(json.dumps([PARTS_SCHEMA, *parts]).encode()).hexdigest()


def write_part(folder: Path, key: str, part: Part) -> None:
    """Write a part, whole or not at all: a run that is killed leaves no half of one."""
    import pyarrow.parquet as pq

    content = ResultTable(part.rows).to_arrow()
    meta = {"key": key, "rows": _digest(part.rows), "notes": list(part.notes)}
    content = content.replace_schema_metadata({_META: json.dumps(meta).encode()})
    file = io.BytesIO()
    pq.write_table(content, file)
    write_atomically(_file(folder, key), file.getvalue())


def read_part(folder: Path, key: str) -> Part | None:
    """The part of this key; None where there is none, or a damaged one, which is then scored again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = _file(folder, key)
    if not path.is_file():
        return None
    try:
        meta = json.loads((pq.read_schema(path).metadata or {})[_META])
        rows = ResultTable.read(path).rows
        if (meta["key"], meta["rows"]) == (key, _digest(rows)):
            return Part(rows, tuple(str(note) for note in meta["notes"]))
        log.warning("%s is damaged and scored again: its rows differ from their checksum", path)
    except (OSError, pa.ArrowException, AssetscoreError, KeyError, TypeError, ValueError) as error:
        log.warning("%s is damaged and scored again: %s", path, error)
    return None


def _file(folder: Path, key: str) -> Path:
    return folder / f"{key[:32]}.parquet"


def _digest(rows: Sequence[Row]) -> str:
    return hashlib.sha256(json.dumps(ResultTable(tuple(rows)).to_dicts()).encode()).hexdigest()
