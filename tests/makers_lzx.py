"""An LZX compressor for tests: every block type, runs in code lengths, recent offsets, blocks across frames.

Written from [MS-PATCH] apart from the decoder; `cabinet` wraps its frames so that other programs can check them.
"""

from __future__ import annotations

import heapq
import struct
from collections import Counter
from dataclasses import dataclass, field

FRAME = 0x8000
WINDOW = 1 << 16
SLOT_BASE: list[int] = []
SLOT_BITS: list[int] = []
for slot in range(32):
    SLOT_BITS.append(0 if slot < 4 else (slot - 2) // 2)
    SLOT_BASE.append(0 if slot == 0 else SLOT_BASE[-1] + 2 ** SLOT_BITS[slot - 1])


@dataclass
class BitWriter:
    words: bytearray = field(default_factory=bytearray)
    pending: str = ""

    def put(self, value: int, count: int) -> None:
        self.pending += format(value, f"0{count}b") if count else ""
        while len(self.pending) >= 16:
            self.words += struct.pack("<H", int(self.pending[:16], 2))
            self.pending = self.pending[16:]

    def align(self, at_least_one: bool = False) -> None:
        if self.pending or at_least_one:
            self.put(0, 16 - len(self.pending))


def code_lengths(frequencies: Counter, size: int) -> list[int]:
    lengths = [0] * size
    heap = [(count, symbol, (symbol,)) for symbol, count in frequencies.items()]
    if len(heap) == 1:
        heap.append((0, size, ((heap[0][1] + 1) % size,)))
    heapq.heapify(heap)
    while len(heap) > 1:
        a, b = heapq.heappop(heap), heapq.heappop(heap)
        for symbol in a[2] + b[2]:
            lengths[symbol] += 1
        heapq.heappush(heap, (a[0] + b[0], a[1], a[2] + b[2]))
    assert max(lengths) <= 16
    return lengths


def canonical(lengths: list[int]) -> dict[int, tuple[int, int]]:
    codes, code, last = {}, 0, 0
    for length, symbol in sorted((n, s) for s, n in enumerate(lengths) if n):
        code <<= length - last
        codes[symbol] = (code, length)
        code, last = code + 1, length
    return codes


def tokens_of(data: bytes, start: int, end: int, recent: list[int]) -> list[tuple]:
    """("literal", byte) or ("match", slot symbol, footer, footer bits, length); no match crosses a frame or the end."""
    tokens: list[tuple] = []
    seen: dict[bytes, int] = {}
    for i in range(max(0, start - 2000), start):
        seen[data[i : i + 3]] = i
    at = start
    while at < end:
        limit = min(end, (at // FRAME + 1) * FRAME, at + 257)
        best, best_offset = 0, 0
        candidates = list(recent)
        if data[at : at + 3] in seen:
            candidates.append(at - seen[data[at : at + 3]])
        for offset in candidates:
            if 0 < offset <= min(at, WINDOW - 3):
                length = 0
                while at + length < limit and data[at + length] == data[at + length - offset]:
                    length += 1
                if length > best:
                    best, best_offset = length, offset
        if best >= 2 and (best >= 3 or best_offset in recent):
            if best_offset in recent:
                which = recent.index(best_offset)
                recent[0], recent[which] = recent[which], recent[0]
                tokens.append(("match", which, 0, 0, best))
            else:
                formatted = best_offset + 2
                which = max(s for s in range(32) if SLOT_BASE[s] <= formatted)
                tokens.append(("match", which, formatted - SLOT_BASE[which], SLOT_BITS[which], best))
                recent[:] = [best_offset, recent[0], recent[1]]
        else:
            best = 1
            tokens.append(("literal", data[at]))
        for i in range(at, at + best):
            seen[data[i : i + 3]] = i
        at += best
    return tokens


def put_lengths(bits: BitWriter, lengths: list[int], before: list[int]) -> None:
    codes: list[tuple[int, int, int, int]] = []  # pretree code, extra value, extra bits, then maybe a second code
    at = 0
    while at < len(lengths):
        run = 1
        while at + run < len(lengths) and lengths[at + run] == lengths[at]:
            run += 1
        if lengths[at] == 0 and run >= 20:
            run = min(run, 51)
            codes.append((18, run - 20, 5, -1))
        elif lengths[at] == 0 and run >= 4:
            run = min(run, 19)
            codes.append((17, run - 4, 4, -1))
        elif run >= 4:
            run = min(run, 5)
            codes.append((19, run - 4, 1, (before[at] - lengths[at]) % 17))
        else:
            run = 1
            codes.append(((before[at] - lengths[at]) % 17, 0, 0, -1))
        at += run
    frequencies = Counter(c[0] for c in codes) + Counter(c[3] for c in codes if c[3] >= 0)
    pre = code_lengths(frequencies, 20)
    table = canonical(pre)
    for length in pre:
        bits.put(length, 4)
    for code, value, extra, second in codes:
        bits.put(*table[code])
        bits.put(value, extra)
        if second >= 0:
            bits.put(*table[second])


def compress(data: bytes, blocks: list[tuple[str, int]]) -> list[tuple[bytes, int]]:
    """Frames as (packed, size unpacked).

    Args:
        data: what to pack.
        blocks: ("verbatim" | "aligned" | "stored", bytes unpacked) in order; together the size of `data`.
    """
    assert sum(size for _, size in blocks) == len(data)
    frames: list[tuple[bytes, int]] = []
    bits = BitWriter()
    bits.put(0, 1)  # no x86 call translation
    recent = [1, 1, 1]
    main_before, length_before = [0] * 512, [0] * 249
    done = 0

    def advance(count: int) -> None:
        nonlocal done, bits
        done += count
        if done % FRAME == 0 or done == len(data):
            bits.align()
            frames.append((bytes(bits.words), done - len(frames) * FRAME))
            bits = BitWriter()

    for kind, size in blocks:
        bits.put({"verbatim": 1, "aligned": 2, "stored": 3}[kind], 3)
        bits.put(size >> 8, 16)
        bits.put(size & 255, 8)
        start = done
        if kind == "stored":
            bits.align(at_least_one=True)
            bits.words += struct.pack("<III", *recent)
            while done < start + size:
                part = min(start + size - done, FRAME - done % FRAME)
                bits.words += data[done : done + part]
                if done + part == start + size and size % 2:
                    bits.words += b"\0"
                advance(part)
            continue
        tokens = tokens_of(data, start, start + size, recent)
        main, lengths, low = Counter(), Counter(), Counter()
        for token in tokens:
            if token[0] == "literal":
                main[token[1]] += 1
                continue
            _, slot, footer, footer_bits, length = token
            main[256 + slot * 8 + min(length - 2, 7)] += 1
            if length >= 9:
                lengths[length - 9] += 1
            if footer_bits >= 3:
                low[footer & 7] += 1
        if kind == "aligned":
            aligned = code_lengths(low or Counter({0: 1}), 8)
            for length in aligned:
                bits.put(length, 3)
            aligned_codes = canonical(aligned)
        main_lengths = code_lengths(main, 512)
        length_lengths = code_lengths(lengths, 249) if lengths else [0] * 249
        put_lengths(bits, main_lengths[:256], main_before[:256])
        put_lengths(bits, main_lengths[256:], main_before[256:])
        put_lengths(bits, length_lengths, length_before)
        main_before, length_before = main_lengths, length_lengths
        main_codes, length_codes = canonical(main_lengths), canonical(length_lengths)
        for token in tokens:
            if token[0] == "literal":
                bits.put(*main_codes[token[1]])
                advance(1)
                continue
            _, slot, footer, footer_bits, length = token
            bits.put(*main_codes[256 + slot * 8 + min(length - 2, 7)])
            if length >= 9:
                bits.put(*length_codes[length - 9])
            if kind == "aligned" and footer_bits >= 3:
                bits.put(footer >> 3, footer_bits - 3)
                bits.put(*aligned_codes[footer & 7])
            else:
                bits.put(footer, footer_bits)
            advance(length)
    return frames


def cabinet(frames: list[tuple[bytes, int]], name: str) -> bytes:
    """A Microsoft cabinet with one file, packed as `frames`: for checking them with another decoder."""
    body = b"".join(struct.pack("<IHH", 0, len(packed), size) + packed for packed, size in frames)
    file_name = name.encode() + b"\0"
    files_at = 36 + 8
    data_at = files_at + 16 + len(file_name)
    total = sum(size for _, size in frames)
    header = struct.pack("<4sIIIIIBBHHHHH", b"MSCF", 0, data_at + len(body), 0, files_at, 0, 3, 1, 1, 1, 0, 0, 0)
    folder = struct.pack("<IHH", data_at, len(frames), 3 | 16 << 8)
    entry = struct.pack("<IIHHHH", total, 0, 0, 0x21, 0, 0x20) + file_name
    return header + folder + entry + body
