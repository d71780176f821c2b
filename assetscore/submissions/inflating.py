"""One long DEFLATE stream read in pieces: forward while it is gone through, and again from marks left on the way."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from typing import BinaryIO, NamedTuple

from ..errors import ArchiveError

__all__ = ["Inflating"]

PACKED = 16 * 1024
UNPACKED = 256 * 1024
SPACING = 2 * 1024 * 1024
"""Bytes of content between marks. A mark holds the decompressor's window, about 50 kB."""


class _Mark(NamedTuple):
    made: int
    """How much content comes before it."""
    offset: int
    """In the file, of what is packed behind it."""
    stream: zlib._Decompress


class Inflating:
    """The content of a raw DEFLATE stream that begins at the file's position and ends with the file.

    Memory does not grow with the content, but for a mark every 2 MiB.

    Args:
        file: seekable; others may move it between calls.
        total: at most so many bytes are unpacked,
        ratio: and at most so many times what is packed,
        ratio_from: where more than this many come out.
        label: for messages.

    >>> import io
    >>> packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    >>> stream = Inflating(io.BytesIO(packer.compress(b"ruby sword") + packer.flush()), 100, 200, 100, "a.tmod")
    >>> stream.read(4), stream.position
    (b'ruby', 4)
    >>> stream.seek(5), stream.read(99)
    (None, b'sword')

    `read` and `seek` raise an ArchiveError where the stream is damaged or a limit is passed.
    """

    def __init__(self, file: BinaryIO, total: int, ratio: int, ratio_from: int, label: str) -> None:
        self._file, self._start, self._label = file, file.tell(), label
        self._total, self._ratio, self._ratio_from = total, ratio, ratio_from
        self._marks: list[_Mark] = []
        self._ready = bytearray()
        self._go(_Mark(0, self._start, zlib.decompressobj(-15)))

    @property
    def position(self) -> int:
        """In the content, of what is read next."""
        return self._made - len(self._ready)

    def read(self, size: int) -> bytes:
        """The next `size` bytes; fewer where the stream ends."""
        while len(self._ready) < size and self._more():
            pass
        taken = bytes(self._ready[:size])
        del self._ready[:size]
        return taken

    def seek(self, position: int) -> None:
        """Go to a position in the content, or to the end where there is less."""
        nearest = self._marks[max(bisect_right(self._marks, position, key=lambda mark: mark.made) - 1, 0)]
        if position < self.position or nearest.made > self._made:
            self._go(nearest)
        while self.position < position:
            ahead = position - self.position
            if not self._ready and not self._more():
                return
            del self._ready[:ahead]

    def _go(self, mark: _Mark) -> None:
        self._made, self._offset, self._stream = mark.made, mark.offset, mark.stream.copy()
        self._ready.clear()
        if not self._marks:
            self._marks.append(mark)

    def _more(self) -> bool:
        """Unpack a piece; False at the end."""
        if self._made >= self._marks[-1].made + SPACING:
            self._marks.append(_Mark(self._made, self._offset, self._stream.copy()))
        pending = self._stream.unconsumed_tail
        if not pending:
            self._file.seek(self._offset)
            pending = self._file.read(PACKED)
            self._offset += len(pending)
        if not pending or self._stream.eof:
            return False
        try:
            block = self._stream.decompress(pending, UNPACKED)
        except zlib.error as error:
            raise ArchiveError(f"{self._label}: damaged DEFLATE data: {error}") from error
        self._made += len(block)
        packed = self._offset - self._start
        if self._made > self._total or (self._made > self._ratio_from and self._made > self._ratio * packed):
            raise ArchiveError(
                f"{self._label}: {packed} bytes unpack to {self._made} or more, at most {self._total} and "
                f"{self._ratio} to 1 are read"
            )
        self._ready += block
        return True
