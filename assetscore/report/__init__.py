"""What a run leaves behind for people: one self-contained HTML page, and the paper's table as text."""

from __future__ import annotations

from .page import write_report
from .tables import Columns, Format, render, render_games

__all__ = ["Columns", "Format", "render", "render_games", "write_report"]
