"""Minecraft's ".png.mcmeta": which parts of a strip are the frames of an animation.

A strip without one is a tall picture and is never cut.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

__all__ = ["Box", "frame_boxes"]

Box: TypeAlias = tuple[int, int, int, int]
"""(left, top, width, height) in pixels."""

MAX_MCMETA_BYTES = 1024 * 1024
MAX_FRAMES = 512
"""Each is embedded. The longest strip seen in the wild has 400."""


def frame_boxes(mcmeta: bytes, width: int, height: int) -> tuple[tuple[Box, ...], list[str]]:
    """Where the frames of a width x height strip lie, by its .mcmeta, and remarks in words.

    Without "width" and "height" a frame is a square of the shorter side; frames are numbered along rows. Of a "frames"
    list each number counts once, and numbers outside the strip are left out with a remark. What is no usable animation
    gives no boxes: the picture is one frame. Source: the game's own resource pack format.

    >>> frame_boxes(b'{"animation": {"frametime": 2}}', 16, 48)
    (((0, 0, 16, 16), (0, 16, 16, 16), (0, 32, 16, 16)), [])
    """
    if len(mcmeta) > MAX_MCMETA_BYTES:
        return (), [".mcmeta ignored: larger than 1 MiB"]
    try:
        content: Any = json.loads(mcmeta.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return (), [".mcmeta ignored: not readable as JSON"]
    animation = content.get("animation") if isinstance(content, dict) else None
    if not isinstance(animation, dict):
        return (), []
    frame_width, frame_height = _side(animation.get("width")), _side(animation.get("height"))
    if frame_width is None and frame_height is None:
        frame_width = frame_height = min(width, height)
    frame_width, frame_height = frame_width or width, frame_height or height
    if frame_width > width or frame_height > height:
        return (), [f".mcmeta ignored: frames of {frame_width} x {frame_height} in a strip of {width} x {height}"]
    remarks: list[str] = []
    if width % frame_width or height % frame_height:
        remarks.append(
            f"the strip of {width} x {height} is no multiple of its frames of {frame_width} x {frame_height}"
        )
    columns, rows = width // frame_width, height // frame_height
    count = columns * rows
    wanted: Sequence[int] = range(count)
    listed = animation.get("frames")
    if isinstance(listed, list) and listed:
        numbers = [entry.get("index") if isinstance(entry, dict) else entry for entry in listed]
        inside = [n for n in numbers if type(n) is int and 0 <= n < count]
        if len(inside) < len(numbers):
            remarks.append(f".mcmeta names frames that the strip of {count} does not have")
        wanted = list(dict.fromkeys(inside)) or wanted
    if len(wanted) > MAX_FRAMES:
        remarks.append(f"only the first {MAX_FRAMES} of {len(wanted)} frames are used")
        wanted = wanted[:MAX_FRAMES]
    boxes = [(n % columns * frame_width, n // columns * frame_height, frame_width, frame_height) for n in wanted]
    return tuple(boxes), remarks


def _side(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None
