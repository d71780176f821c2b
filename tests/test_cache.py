"""The embedding cache: equal to no cache, never stale, shared by processes, and not in the way when damaged."""

from __future__ import annotations

import logging
import os
import pickle
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assetscore import Profile, Scorer, Texture
from assetscore import cache as module
from assetscore.cache import CachedEncoder, CachedTwoStageEncoder, EmbeddingCache, cached
from assetscore.encoders.base import Encoder
from assetscore.encoders.pixelstats import PixelStats
from assetscore.errors import FactorError
from assetscore.images import load

from .conftest import Conditional, sprite
from .png import RGBA, png


class OneStage(Encoder):
    """The conditional encoder without features, counting (pictures, factors) embedded."""

    name = "one-stage-test"
    conditional = True
    fingerprint = "one-stage-test/1"

    def __init__(self) -> None:
        self.calls: list[tuple[int, tuple[str, ...]]] = []
        self._inner = Conditional()

    def embed(self, images, factors):  # type: ignore[no-untyped-def]
        self.calls.append((len(images), tuple(factors)))
        return self._inner.embed(images, factors)

    def check_factor(self, factor: str) -> str:
        if factor == "forbidden":
            raise FactorError("not this one")
        return super().check_factor(factor)


def textures(*seeds: int) -> list[Texture]:
    return [load(sprite(seed)) for seed in seeds]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[EmbeddingCache]:
    made = EmbeddingCache(tmp_path / "deep" / "embeddings.sqlite")
    yield made
    made.close()


def stored(cache: EmbeddingCache, statement: str, *values: object) -> list[tuple[object, ...]]:
    """Run SQL on the file, past the cache."""
    connection = sqlite3.connect(cache.path)
    with connection:
        found = list(connection.execute(statement, values))
    connection.close()
    return found


class TestEqualToNone:
    def test_two_stages(self, cache: EmbeddingCache) -> None:
        inner = Conditional()
        encoder = cached(inner, cache)
        fresh = Conditional().embed(textures(1, 2, 3, 1), ["art style", "axe"])
        for passes in (3, 3):  # a picture that comes twice is embedded once, and the second time none is
            found = encoder.embed(textures(1, 2, 3, 1), ["art style", "axe"])
            for factor, rows in fresh.items():
                assert np.array_equal(found[factor], rows)
            assert inner.image_passes == passes
        encoder.embed(textures(3, 4), ["a new factor costs no image pass"])
        assert inner.image_passes == 4

    def test_one_stage(self, cache: EmbeddingCache) -> None:
        inner = OneStage()
        encoder = cached(inner, cache)
        assert isinstance(encoder, CachedEncoder)
        factors = ["art style", "axe"]
        encoder.embed(textures(1, 2), ["art style"])
        encoder.embed(textures(2), ["axe"])
        inner.calls.clear()
        found = encoder.embed(textures(1, 2, 3, 3), factors)
        # 1 lacks its axe, 2 nothing, 3 both and comes twice
        assert sorted(inner.calls) == [(1, ("art style", "axe")), (1, ("axe",))]
        fresh = Conditional().embed(textures(1, 2, 3, 3), factors)
        for factor, rows in fresh.items():
            assert np.array_equal(found[factor], rows)

    def test_says_what_its_encoder_says(self, cache: EmbeddingCache) -> None:
        for inner in (OneStage(), Conditional(), PixelStats()):
            encoder = cached(inner, cache)
            for name in ("name", "metric", "conditional", "fingerprint", "batch_noise"):
                assert getattr(encoder, name) == getattr(inner, name)
            assert cached(encoder, cache) is encoder
            other = cached(encoder, EmbeddingCache(cache.path))
            assert isinstance(other, (CachedEncoder, CachedTwoStageEncoder))
            assert other.inner is inner
        assert isinstance(encoder, CachedTwoStageEncoder)
        with pytest.raises(FactorError):
            cached(OneStage(), cache).check_factor("forbidden")

    def test_nothing_to_embed(self, cache: EmbeddingCache) -> None:
        assert cached(PixelStats(), cache).embed([], ["art style"])["art style"].shape == (0, 172)

    def test_scores(self, references, cache: EmbeddingCache) -> None:  # type: ignore[no-untyped-def]
        assets = [(sprite(3000 + i), "item", "an axe" if i % 2 else None) for i in range(9)]
        plain = Scorer(Profile.build(references, Conditional(), name="p")).score_many(assets)
        profile = Profile.build(references, Conditional(), name="p")
        inner = Conditional()
        profile.use_encoder(cached(inner, cache))
        for _ in range(2):
            assert Scorer(profile).score_many(assets) == plain
            assert [Scorer(profile).score(*asset) for asset in assets] == plain, "alone as in a batch"
        assert inner.image_passes == 9

    def test_not_finite_is_tried_again(self, cache: EmbeddingCache) -> None:
        class Sometimes(PixelStats):
            bad = True

            def features(self, images):  # type: ignore[no-untyped-def]
                rows = super().features(images)
                return np.where(self.bad, np.nan, rows).astype(np.float32)

        inner = Sometimes()
        encoder = cached(inner, cache)
        assert np.isnan(encoder.embed(textures(1), ["x"])["x"]).all()
        inner.bad = False
        assert np.isfinite(encoder.embed(textures(1), ["x"])["x"]).all()


class TestNeverStale:
    def count(self, cache: EmbeddingCache, texture: Texture, encoder: Encoder | None = None) -> int:
        before = cache.misses
        cached(encoder or PixelStats(), cache).embed([texture], ["art style"])
        return cache.misses - before

    def test_what_the_key_holds(self, cache: EmbeddingCache, monkeypatch: pytest.MonkeyPatch) -> None:
        (texture,) = textures(1)
        assert self.count(cache, texture) == 1
        assert self.count(cache, texture) == 0
        other = PixelStats()
        other.fingerprint = "pixelstats/1/float16"
        assert self.count(cache, texture, other) == 1
        assert self.count(cache, replace(texture, grid=2)) == 1, "a frame of a sheet may have the sheet's grid"
        assert self.count(cache, *textures(2)) == 1
        monkeypatch.setattr(module, "CACHE_SCHEMA", module.CACHE_SCHEMA + 1)
        assert self.count(cache, texture) == 1

    def test_factor(self, cache: EmbeddingCache) -> None:
        inner = OneStage()
        encoder = cached(inner, cache)
        first, second = (encoder.embed(textures(1), [factor])[factor] for factor in ("axe", "pick"))
        assert not np.array_equal(first, second)

    def test_overwritten_file(self, cache: EmbeddingCache, tmp_path: Path) -> None:
        path = tmp_path / "a.png"
        encoder = cached(PixelStats(), cache)
        for seed in (1, 2, 1):
            path.write_bytes(png(sprite(seed), RGBA))
            assert np.array_equal(encoder.embed([path], ["x"])["x"], PixelStats().embed([sprite(seed)], ["x"])["x"])

    def test_files_that_look_equal_share_an_entry(self, cache: EmbeddingCache, tmp_path: Path) -> None:
        hidden = sprite(1)
        hidden[hidden[..., 3] == 0, :3] = 77
        (tmp_path / "b.png").write_bytes(png(hidden, RGBA))
        assert self.count(cache, *textures(1)) == 1
        assert self.count(cache, load(tmp_path / "b.png")) == 0


def flip(blob: bytes) -> bytes:
    return blob[:-1] + bytes([blob[-1] ^ 1])


DAMAGES: dict[str, Callable[[bytes], object]] = {
    "a bit": flip,
    "cut": lambda blob: blob[:-40],
    "empty": lambda blob: b"",
    "none": lambda blob: None,
    "text": lambda blob: "vector",
    "zeros": lambda blob: bytes(len(blob)),
    "a pickle": lambda blob: pickle.dumps([1, 2, 3]),
}


class TestDamage:
    @pytest.mark.parametrize("damage", DAMAGES)
    def test_an_entry(self, cache: EmbeddingCache, damage: str) -> None:
        inner = Conditional()
        encoder = cached(inner, cache)
        fresh = encoder.embed(textures(1, 2), ["x"])["x"]
        ((key, blob),) = stored(cache, "SELECT key, vector FROM vectors LIMIT 1")
        assert isinstance(blob, bytes)
        stored(cache, "UPDATE vectors SET vector = ? WHERE key = ?", DAMAGES[damage](blob), key)
        for passes in (3, 3):
            assert np.array_equal(encoder.embed(textures(1, 2), ["x"])["x"], fresh)
            assert inner.image_passes == passes

    def test_another_pictures_vector_is_noticed(self, cache: EmbeddingCache) -> None:
        encoder = cached(PixelStats(), cache)
        fresh = encoder.embed(textures(1, 2), ["x"])["x"]
        (first, second) = (row[0] for row in stored(cache, "SELECT vector FROM vectors"))
        stored(cache, "UPDATE vectors SET vector = ? WHERE vector = ?", first, second)
        assert np.array_equal(encoder.embed(textures(1, 2), ["x"])["x"], fresh)

    @pytest.mark.parametrize("content", [b"rubbish" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
    def test_the_file(self, cache: EmbeddingCache, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
        cache.path.parent.mkdir()
        cache.path.write_bytes(content)
        encoder = cached(PixelStats(), cache)
        fresh = PixelStats().embed(textures(1, 2), ["x"])["x"]
        with caplog.at_level(logging.WARNING):
            assert np.array_equal(encoder.embed(textures(1, 2), ["x"])["x"], fresh)
        assert "damaged and begun anew" in caplog.text
        assert np.array_equal(encoder.embed(textures(1, 2), ["x"])["x"], fresh)
        assert len(cache) == 2

    def test_pages_overwritten_while_open(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        path = tmp_path / "c.sqlite"
        first = EmbeddingCache(path)
        cached(PixelStats(), first).embed(textures(*range(40)), ["x"])
        first.close()
        content = bytearray(path.read_bytes())
        content[4096:] = bytes(len(content) - 4096)
        path.write_bytes(content)
        fresh = PixelStats().embed(textures(*range(40)), ["x"])["x"]
        again = EmbeddingCache(path)
        for _ in range(3):
            assert np.array_equal(cached(PixelStats(), again).embed(textures(*range(40)), ["x"])["x"], fresh)
        assert len(again) == 40, "usable again after it was found damaged"
        again.close()

    @pytest.mark.parametrize("denied", ["file", "folder", "both"])
    def test_a_cache_that_cannot_be_written_is_read(
        self, cache: EmbeddingCache, denied: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        cached(Conditional(), cache).embed(textures(1, 2), ["x"])
        cache.close()
        before = {path.name: path.read_bytes() for path in cache.path.parent.iterdir()}
        closed = {"file": [cache.path], "folder": [cache.path.parent], "both": [cache.path, cache.path.parent]}[denied]
        monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK or Path(path) not in closed)
        for path in closed:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            inner, shared = Conditional(), EmbeddingCache(cache.path)
            with caplog.at_level(logging.WARNING):
                for passes in (1, 2):
                    found = cached(inner, shared).embed(textures(1, 2, 3), ["x"])["x"]
                    assert np.array_equal(found, Conditional().embed(textures(1, 2, 3), ["x"])["x"])
                    assert inner.image_passes == passes, "the third alone, and again: nothing new is kept"
                    shared.close()
            assert (shared.hits, caplog.text.count("cannot be written")) == (4, 1)
            assert {path.name: path.read_bytes() for path in cache.path.parent.iterdir()} == before
        finally:
            for path in reversed(closed):
                path.chmod(0o755)

    @pytest.mark.parametrize("content", [b"", b"rubbish" * 1000])
    def test_a_damaged_one_that_cannot_be_written_is_left_alone(
        self, cache: EmbeddingCache, content: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        cache.path.parent.mkdir()
        cache.path.write_bytes(content)
        monkeypatch.setattr("os.access", lambda path, mode: False)
        with caplog.at_level(logging.WARNING):
            found = cached(PixelStats(), cache).embed(textures(1), ["x"])["x"]
        assert np.array_equal(found, PixelStats().embed(textures(1), ["x"])["x"])
        assert "embeddings are not cached" in caplog.text
        assert cache.path.read_bytes() == content

    def test_nowhere_to_write(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "file").write_bytes(b"")
        cache = EmbeddingCache(tmp_path / "file" / "c.sqlite")
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                found = cached(PixelStats(), cache).embed(textures(1), ["x"])["x"]
        assert np.array_equal(found, PixelStats().embed(textures(1), ["x"])["x"])
        assert caplog.text.count("embeddings are not cached") == 1


def test_bounded(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path / "c.sqlite", max_bytes=400_000)
    random = np.random.default_rng(0)
    keys = [bytes([i // 256, i % 256]) * 16 for i in range(2000)]
    for key in keys:
        cache.put({key: random.random(100, np.float32)})
    assert 200 < len(cache) < 1000, "2,000 rows of 400 bytes do not fit in 400,000"
    assert set(cache.get(keys[-100:])) == set(keys[-100:]), "the newest stay"
    assert not cache.get(keys[:500])
    cache.close()
    assert (tmp_path / "c.sqlite").stat().st_size < 800_000


def test_threads(cache: EmbeddingCache) -> None:
    encoder = cached(PixelStats(), cache)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: encoder.embed(textures(*range(i, i + 12)), ["x"])["x"], range(0, 40, 4)))
    for i, rows in zip(range(0, 40, 4), found, strict=True):
        assert np.array_equal(rows, PixelStats().embed(textures(*range(i, i + 12)), ["x"])["x"])
    assert len(cache) == 48


@pytest.mark.slow
def test_several_processes(tmp_path: Path) -> None:
    """Three processes begin on no file at all, overlap in what they embed, and all get what a fresh encoder gives."""
    script = textwrap.dedent(
        """
        import logging, sys
        import numpy as np
        from assetscore.cache import EmbeddingCache, cached
        from assetscore.encoders.pixelstats import PixelStats
        from tests.conftest import sprite

        logging.basicConfig(level=logging.WARNING)
        encoder = cached(PixelStats(), EmbeddingCache(sys.argv[1]))
        sys.stdin.readline()
        for start in range(int(sys.argv[2]), 90, 10):
            pictures = [sprite(i) for i in range(start, start + 20)]
            assert np.array_equal(encoder.embed(pictures, ["x"])["x"], PixelStats().embed(pictures, ["x"])["x"])
        """
    )
    path = tmp_path / "shared.sqlite"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(path), str(start)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        for start in (0, 0, 5)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
    # 0 to 99 of the first two, 5 to 104 of the third
    assert len(EmbeddingCache(path)) == 105
