"""LZX decompression, as compressed .xnb files use it.

Written from Microsoft's description of the format in [MS-PATCH]: LZX DELTA Compression and Decompression (its bits,
block types and trees are those of LZX; the delta extensions do not occur here). Input comes in frames of up to 32 KiB
of output; trees, recent offsets and an unfinished block carry over from frame to frame, the bit buffer does not.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate

from ..errors import ArchiveError

__all__ = ["LzxDecoder"]

WINDOW_BITS = 16
POSITION_SLOTS = 2 * WINDOW_BITS
LITERALS = 256
MAIN_SYMBOLS = LITERALS + 8 * POSITION_SLOTS
LENGTH_SYMBOLS = 249
VERBATIM, ALIGNED, UNCOMPRESSED = 1, 2, 3
FOOTER_BITS = [max(0, slot // 2 - 1) for slot in range(POSITION_SLOTS)]
"""Extra offset bits of each position slot: 0 0 0 0 1 1 2 2 3 3 ..."""
BASES = [0, *accumulate(1 << bits for bits in FOOTER_BITS)]
"""The first formatted offset of each slot: 0 1 2 3 4 6 8 12 16 24 ..."""
END_SLACK = 4
"""Words of zeros that may be looked at behind the end of a frame, since codes are looked up 16 bits at a time."""


class LzxDecoder:
    """The state that carries over from frame to frame."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._out = bytearray()
        self._recent = [1, 1, 1]
        self._main = [0] * MAIN_SYMBOLS
        self._length = [0] * LENGTH_SYMBOLS
        self._kind = 0
        self._remaining = 0
        self._pad_byte = False
        self._started = False
        self._tables: tuple[list[int], int, list[int], int, list[int], int] = ([], 0, [], 0, [], 0)

    def decode(self, data: bytes, size: int) -> bytes:
        """The next `size` bytes of output, from one frame of input.

        Raises:
            ArchiveError: damaged data; never anything else, and never more than `size` bytes.
        """
        bits = _Bits(data, self.label)
        if not self._started:
            self._started = True
            if bits.take(1):
                raise ArchiveError(f"{self.label}: LZX data with x86 call translation, which no texture has")
        start = len(self._out)
        target = start + size
        while len(self._out) < target:
            if self._remaining == 0:
                self._begin_block(bits)
            before = len(self._out)
            wanted = min(self._remaining, target - before)
            if self._kind == UNCOMPRESSED:
                self._out += bits.raw(wanted)
            else:
                self._decode_block(bits, before + wanted)
            self._remaining -= len(self._out) - before
            if len(self._out) > target or self._remaining < 0:
                raise ArchiveError(f"{self.label}: damaged LZX data: a match runs past the end of its frame or block")
            if self._remaining == 0 and self._pad_byte:
                bits.skip_pad()
                self._pad_byte = False
        frame = bytes(self._out[start:])
        del self._out[: -(1 << WINDOW_BITS)]
        return frame

    def _begin_block(self, bits: _Bits) -> None:
        self._kind = bits.take(3)
        self._remaining = bits.take(16) << 8 | bits.take(8)
        if self._kind not in (VERBATIM, ALIGNED, UNCOMPRESSED) or self._remaining == 0:
            raise ArchiveError(f"{self.label}: damaged LZX data: block type {self._kind} of {self._remaining} bytes")
        if self._kind == UNCOMPRESSED:
            bits.align()
            self._recent = list(struct.unpack("<III", bits.raw(12)))
            self._pad_byte = self._remaining % 2 == 1
            return
        aligned: list[int] = []
        if self._kind == ALIGNED:
            aligned = [bits.take(3) for _ in range(8)]
        _read_lengths(bits, self._main, 0, LITERALS)
        _read_lengths(bits, self._main, LITERALS, MAIN_SYMBOLS)
        _read_lengths(bits, self._length, 0, LENGTH_SYMBOLS)
        self._tables = (
            *_table(self._main, self.label),
            *_table(self._length, self.label),
            *_table(aligned, self.label),
        )

    def _decode_block(self, bits: _Bits, target: int) -> None:
        out, (recent, second, third) = self._out, self._recent
        main, main_bits, length_table, length_bits, aligned_table, aligned_bits = self._tables
        aligned = self._kind == ALIGNED
        while len(out) < target:
            symbol = bits.symbol(main, main_bits)
            if symbol < LITERALS:
                out.append(symbol)
                continue
            slot, length = (symbol - LITERALS) >> 3, (symbol & 7) + 2
            if length == 9:
                length += bits.symbol(length_table, length_bits)
            if slot == 0:
                offset = recent
            elif slot == 1:
                offset, second = second, recent
            elif slot == 2:
                offset, third = third, recent
            else:
                extra = FOOTER_BITS[slot]
                if aligned and extra >= 3:
                    footer = bits.take(extra - 3) << 3 | bits.symbol(aligned_table, aligned_bits)
                else:
                    footer = bits.take(extra)
                offset, second, third = BASES[slot] + footer - 2, recent, second
            recent = offset
            if not 0 < offset <= len(out):
                raise ArchiveError(
                    f"{self.label}: damaged LZX data: a match {offset} bytes before its {len(out)} bytes"
                )
            if offset >= length:
                out += out[len(out) - offset : len(out) - offset + length]
            else:
                pattern = bytes(out[-offset:])
                out += (pattern * (length // offset + 1))[:length]
        self._recent = [recent, second, third]


class _Bits:
    """Bits of little-endian 16-bit words, highest first."""

    def __init__(self, data: bytes, label: str) -> None:
        self._data, self._label = data, label
        self._padded = data + bytes(2 * END_SLACK + 1)
        self._byte = 0
        self._held = 0
        self._count = 0

    def _fill(self) -> None:
        if self._byte + 1 >= len(self._padded):
            raise ArchiveError(f"{self._label}: damaged LZX data: it ends early")
        self._held = (self._held << 16 | self._padded[self._byte] | self._padded[self._byte + 1] << 8) & 0xFFFFFFFF
        self._byte += 2
        self._count += 16

    def take(self, count: int) -> int:
        """The next `count` bits, at most 16, as a number."""
        if self._count < count:
            self._fill()
        self._count -= count
        return self._held >> self._count & ((1 << count) - 1)

    def symbol(self, table: list[int], width: int) -> int:
        """The next symbol, by a table of (symbol << 5 | bits) for every value of the next `width` bits."""
        if self._count < width:
            self._fill()
        entry = table[self._held >> (self._count - width) & ((1 << width) - 1)] if table else -1
        if entry < 0:
            raise ArchiveError(f"{self._label}: damaged LZX data: a code that stands for nothing")
        self._count -= entry & 31
        return entry >> 5

    def align(self) -> None:
        """To the next word: 1 to 16 bits are padding."""
        if self._count == 0:
            self._fill()
        if self._count > 16:
            self._byte -= 2
        self._count = self._held = 0

    def raw(self, size: int) -> bytes:
        """Whole bytes; only at the boundary of a word, or where `raw` stopped."""
        content = self._data[self._byte : self._byte + size]
        if len(content) != size:
            raise ArchiveError(f"{self._label}: damaged LZX data: {size} plain bytes wanted, {len(content)} left")
        self._byte += size
        return content

    def skip_pad(self) -> None:
        """Over the byte that follows plain bytes of an odd number."""
        self._byte += 1


def _read_lengths(bits: _Bits, lengths: list[int], start: int, end: int) -> None:
    """Update code lengths from their differences to those before, coded by a small tree of their own."""
    table, width = _table([bits.take(4) for _ in range(20)], bits._label)
    at = start
    while at < end:
        code = bits.symbol(table, width)
        if code == 17:
            count, value = bits.take(4) + 4, 0
        elif code == 18:
            count, value = bits.take(5) + 20, 0
        else:
            count = 1
            if code == 19:
                count = bits.take(1) + 4
                code = bits.symbol(table, width)
                if code > 16:
                    raise ArchiveError(f"{bits._label}: damaged LZX data: a run of code lengths of no length")
            value = (lengths[at] - code) % 17
        if at + count > end:
            raise ArchiveError(f"{bits._label}: damaged LZX data: a run of code lengths past the end of its tree")
        lengths[at : at + count] = [value] * count
        at += count


def _table(lengths: Sequence[int], label: str) -> tuple[list[int], int]:
    """Code lengths to the look-up table of `_Bits.symbol` and the bits that it is indexed by; empty for no codes.

    Codes are canonical: shorter ones first, equal lengths by symbol.
    """
    coded = sorted((length, symbol) for symbol, length in enumerate(lengths) if length)
    if not coded:
        return [], 0
    width = coded[-1][0]
    table: list[int] = []
    for length, symbol in coded:
        table += [symbol << 5 | length] * (1 << (width - length))
        if len(table) > 1 << width:
            raise ArchiveError(f"{label}: damaged LZX data: code lengths that fit no tree")
    return table + [-1] * ((1 << width) - len(table)), width
