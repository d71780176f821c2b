"""JSON from strangers: bounded in size and depth before it is parsed."""

from __future__ import annotations

import json
import re
from typing import Any

from ..errors import ArchiveError

__all__ = ["DamagedJson", "parse_json"]

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 100
"""Levels. Models and item definitions that games load have fewer than 20."""

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


class DamagedJson(ValueError):
    """Not JSON: the one file is passed over, as the game passes over it."""


def parse_json(data: bytes, label: str) -> Any:
    """The value of a JSON file, in UTF-8 with or without a byte order mark.

    Raises:
        DamagedJson: not JSON.
        ArchiveError: larger than 8 MiB or more than 100 levels deep, which no game file is.

    >>> parse_json(b'\\xef\\xbb\\xbf{"parent": "item/generated"}', "ruby.json")
    {'parent': 'item/generated'}
    """
    if len(data) > MAX_BYTES:
        raise ArchiveError(f"{label}: {len(data)} bytes of JSON, at most {MAX_BYTES} are read")
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _depth_exceeds(data, MAX_DEPTH):
        raise ArchiveError(f"{label}: JSON more than {MAX_DEPTH} levels deep")
    try:
        return json.loads(data.decode("utf-8-sig"), parse_int=_number)
    except (ValueError, RecursionError) as error:
        raise DamagedJson(f"{label}: not readable as JSON: {error}") from error


def _depth_exceeds(data: bytes, limit: int) -> bool:
    depth = 0
    for token in _TOKENS.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
            if depth > limit:
                return True
        elif first in b"]}":
            depth -= 1
    return False


def _number(digits: str) -> float:
    return int(digits) if len(digits) < 20 else float(digits[:300])  # a million digits take int() minutes
