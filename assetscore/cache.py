"""Embeddings kept on disk, so that a picture is embedded once, whichever run, process or submission it comes up in.

One SQLite file (write-ahead log), safe under several processes of one machine. An entry's key is everything its numbers
depend on, so a stale answer is impossible: the canonical pixels (never a path), the encoder's fingerprint (weights,
preprocessing and dtype), the factor, and `CACHE_SCHEMA`. An entry whose checksum is wrong is computed again; a file
that is no database any more is begun anew; where nothing can be written, what is there is read, and the rest computed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from .encoders.base import Encoder, TwoStageEncoder, as_textures
from .factors import check_factors
from .images import Asset, Texture

__all__ = ["CACHE_SCHEMA", "CachedEncoder", "CachedTwoStageEncoder", "EmbeddingCache", "cached", "default_path"]

log = logging.getLogger(__name__)

CACHE_SCHEMA = 1
"""Raised when what is stored, or what a vector depends on, changes: older entries are then never found."""
MAX_BYTES = 4 << 30
"""About 250,000 vectors of 4,096 numbers, or six million of pixelstats'. Beyond it the oldest fifth goes."""
FEATURES = "features"
"""Stands in a key where a factor would, for the image pass of a two-stage encoder, which no factor changes."""
_DIGEST = 16
_WAIT = 30.0
"""Seconds to wait for another process's write."""
_AT_ONCE = 500
"""Keys in one query; SQLite's own limit is 999 in old versions."""

Vectors = NDArray[np.float32]


def default_path() -> Path:
    """The cache file in the user's cache folder."""
    from .folders import cache_folder

    return cache_folder() / "embeddings.sqlite"


class EmbeddingCache:
    """Rows of float32 by key. Safe to share between threads, and the file between processes.

    Args:
        path: the SQLite file; made, with its folder, when first used. A local disk: SQLite's locks are not to be relied
            on over a network.
        max_bytes: how large it may grow; the oldest entries go first.

    Attributes:
        hits, misses: how many rows were found and not found so far.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, max_bytes: int = MAX_BYTES) -> None:
        self.path = default_path() if path is None else Path(path)
        self.max_bytes = max_bytes
        self.hits = self.misses = 0
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._owner = 0
        self._off = False
        self._read_only = False

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The stored rows of these keys; damaged ones are not there."""
        found: dict[bytes, Vectors] = {}
        with self._lock:
            connection = self._open()
            if connection is not None:
                try:
                    for start in range(0, len(keys), _AT_ONCE):
                        part = keys[start : start + _AT_ONCE]
                        marks = ",".join("?" * len(part))
                        for key, blob in connection.execute(
                            f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part
                        ):
                            row = _unpacked(key, blob)
                            if row is not None:
                                found[key] = row
                except sqlite3.Error as error:
                    self._failed(error)
            self.hits += len(found)
            self.misses += len(set(keys)) - len(found)
        return found

    def put(self, rows: Mapping[bytes, Vectors]) -> None:
        """Store rows, all of them or none. What is not finite is left out: it is tried again next time."""
        good = [(key, _packed(key, row)) for key, row in rows.items() if np.isfinite(row).all()]
        with self._lock:
            connection = self._open() if good else None
            if connection is None or self._read_only:
                return
            try:
                with connection:
                    connection.executemany("INSERT OR REPLACE INTO vectors (key, vector) VALUES (?, ?)", good)
                self._make_room(connection)
            except sqlite3.Error as error:
                self._failed(error)

    def __len__(self) -> int:
        with self._lock:
            connection = self._open()
            return 0 if connection is None else int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])

    def close(self) -> None:
        """Close the file. It is opened again when next used."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection | None:
        """The connection of this process; a child that was forked opens its own."""
        if self._off or (self._connection is not None and self._owner == os.getpid()):
            return self._connection
        self._owner = os.getpid()
        try:
            if self.path.is_file() and not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
                first, self._read_only = not self._read_only, True
                self._connection = _connect_read_only(self.path)
                if first:
                    log.warning("%s cannot be written: embeddings are read from it, no new ones kept", self.path)
                return self._connection
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._connection = _connect(self.path)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    time.sleep(0.2)  # another process is making the file: that alone SQLite does not wait for
                else:
                    log.warning("%s is damaged and begun anew: %s", self.path, error)
                    self._remove()
                self._connection = _connect(self.path)
        except (OSError, sqlite3.Error) as error:
            self._failed(error)
        return self._connection

    def _remove(self) -> None:
        for ending in ("-wal", "-shm", ""):  # a log without its file first, so that none is replayed into a new one
            Path(f"{self.path}{ending}").unlink(missing_ok=True)

    def _failed(self, error: Exception) -> None:
        """Go on without: a cache may cost time, never a result."""
        self.close()
        damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        if damaged and self.path.is_file() and not self._read_only:
            log.warning("%s is damaged and begun anew: %s", self.path, error)
            try:
                self._remove()
                return
            except OSError as second:
                error = second
        self._off = True
        log.warning("embeddings are not cached: %s: %s", self.path, error)

    def _make_room(self, connection: sqlite3.Connection) -> None:
        pages, free, size = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        if (pages - free) * size <= self.max_bytes:
            return
        with connection:
            connection.execute(
                "DELETE FROM vectors WHERE rowid IN "
                "(SELECT rowid FROM vectors ORDER BY rowid LIMIT (SELECT count(*) / 5 + 1 FROM vectors))"
            )


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB UNIQUE, vector BLOB)"
        )
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """A file that cannot be written, as it was when its log was last written back: entries have their own checksums."""
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, timeout=_WAIT, check_same_thread=False, uri=True)
    try:
        connection.execute("SELECT key FROM vectors LIMIT 1")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _packed(key: bytes, row: Vectors) -> bytes:
    content = np.ascontiguousarray(row, "<f4").tobytes()
    return hashlib.sha256(key + content).digest()[:_DIGEST] + content


def _unpacked(key: object, blob: object) -> Vectors | None:
    if not isinstance(key, bytes) or not isinstance(blob, bytes) or len(blob) <= _DIGEST or len(blob) % 4:
        return None
    content = blob[_DIGEST:]
    if hashlib.sha256(key + content).digest()[:_DIGEST] != blob[:_DIGEST]:
        return None
    return np.frombuffer(content, "<f4").astype(np.float32)


def key_of(texture: Texture, fingerprint: str, factor: str) -> bytes:
    """32 bytes that change with anything the vector depends on. The grid counts: a frame may have its sheet's."""
    parts = (str(CACHE_SCHEMA), fingerprint, factor, texture.content_hash, str(texture.grid))
    return hashlib.sha256("\0".join(parts).encode()).digest()


def cached(encoder: Encoder, cache: EmbeddingCache) -> Encoder:
    """The encoder with a cache in front: same name, fingerprint and vectors. A cache that it has is replaced."""
    if isinstance(encoder, (CachedEncoder, CachedTwoStageEncoder)):
        return encoder if encoder.cache is cache else cached(encoder.inner, cache)
    if isinstance(encoder, TwoStageEncoder):
        return CachedTwoStageEncoder(encoder, cache)
    return CachedEncoder(encoder, cache)


class _Described:
    """What a wrapper says of itself: all that its encoder says."""

    def __init__(self, inner: Encoder, cache: EmbeddingCache) -> None:
        self.inner, self.cache = inner, cache
        self.name, self.metric, self.conditional = inner.name, inner.metric, inner.conditional
        self.fingerprint, self.batch_noise = inner.fingerprint, inner.batch_noise

    def check_factor(self, factor: str) -> str:
        return self.inner.check_factor(factor)


class CachedTwoStageEncoder(_Described, TwoStageEncoder):
    """Keeps the features, one row a picture; what a factor makes of them is cheap and computed each time."""

    inner: TwoStageEncoder

    def features(self, images: Sequence[Asset | Texture]) -> Vectors:
        textures = as_textures(images)
        keys = [key_of(texture, self.fingerprint, FEATURES) for texture in textures]
        found = _of_one_width(self.cache.get(list(dict.fromkeys(keys))))
        absent = {key: texture for key, texture in zip(keys, textures, strict=True) if key not in found}
        if absent or not keys:
            rows = np.asarray(self.inner.features(list(absent.values())), np.float32)
            if not keys:
                return rows
            if found and rows.shape[1] != next(iter(found.values())).size:
                return np.asarray(self.inner.features(textures), np.float32)
            fresh = dict(zip(absent, rows, strict=True))
            self.cache.put(fresh)
            found |= fresh
        return np.stack([found[key] for key in keys])

    def condition(self, features: Vectors, factors: Sequence[str]) -> dict[str, Vectors]:
        return self.inner.condition(features, factors)


class CachedEncoder(_Described, Encoder):
    """Keeps the vectors, one row a picture and factor. Pictures that lack the same factors are embedded together."""

    def embed(self, images: Sequence[Asset | Texture], factors: Sequence[str]) -> dict[str, Vectors]:
        textures, factors = as_textures(images), check_factors(factors)
        if not textures:
            return self.inner.embed(textures, factors)
        keys = {factor: [key_of(t, self.fingerprint, factor) for t in textures] for factor in factors}
        found = _of_one_width(self.cache.get(list(dict.fromkeys(key for column in keys.values() for key in column))))
        absent: dict[tuple[str, ...], dict[str, int]] = {}
        for i, texture in enumerate(textures):
            lacking = tuple(factor for factor in factors if keys[factor][i] not in found)
            if lacking:
                absent.setdefault(lacking, {}).setdefault(f"{texture.content_hash} {texture.grid}", i)
        for lacking, positions in absent.items():
            embedded = self.inner.embed([textures[i] for i in positions.values()], lacking)
            fresh = {
                keys[factor][i]: np.asarray(row, np.float32)
                for factor in lacking
                for i, row in zip(positions.values(), embedded[factor], strict=True)
            }
            self.cache.put(fresh)
            found |= fresh
        return {factor: np.stack([found[key] for key in column]) for factor, column in keys.items()}


def _of_one_width(found: dict[bytes, Vectors]) -> dict[bytes, Vectors]:
    """Nothing where rows differ in length: no encoder gives that, so what stored them was none we know."""
    return found if len({row.size for row in found.values()}) <= 1 else {}
