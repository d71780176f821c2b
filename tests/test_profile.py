from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import assetscore
from assetscore import Profile, ReferenceSet, Scorer, replacing, store
from assetscore.encoders.base import Encoder
from assetscore.encoders.pixelstats import PixelStats
from assetscore.errors import (
    EmbeddingError,
    ProfileCorruptError,
    ProfileError,
    ProfileMismatchError,
    ProfileNotFoundError,
    ReferenceSetError,
    UnknownCategoryError,
    UsageError,
)
from assetscore.folders import data_folder, find_profile, named_profiles, shipped_folder
from assetscore.images import enlarge

from .conftest import Conditional, sprite


@pytest.fixture
def saved(profile: Profile, tmp_path: Path) -> Path:
    profile.save(tmp_path / "saved")
    return tmp_path / "saved"


class TestSaveAndLoad:
    def test_round_trip(self, profile: Profile, saved: Path) -> None:
        loaded = Profile.load(saved, Conditional())
        assert loaded.fingerprint == profile.fingerprint
        assert loaded.categories == profile.categories
        assert loaded.config == profile.config
        assert loaded.references.fingerprint == profile.references.fingerprint
        for category in profile.categories:
            for factor in ("art style", "object class", "a new one"):
                np.testing.assert_array_equal(loaded.vectors(category, factor), profile.vectors(category, factor))
                ours, theirs = loaded.calibration(category, factor), profile.calibration(category, factor)
                np.testing.assert_array_equal(ours.top, theirs.top)
                assert ours.threshold(0.15, 5) == theirs.threshold(0.15, 5)
        before, after = Scorer(profile).score(sprite(999), "item"), Scorer(loaded).score(sprite(999), "item")
        assert before.style == after.style
        assert before.semantic == after.semantic

    def test_pictures_are_kept_exactly(self, tmp_path: Path) -> None:
        shapes = {"wide": (8, 300), "tall": (2500, 9), "tiny": (1, 2), "square": (40, 40)}
        random = np.random.default_rng(0)
        pictures = {name: random.integers(0, 256, (*shape, 4)).astype(np.uint8) for name, shape in shapes.items()}
        pictures["doubled"] = enlarge(sprite(1), 2)
        pictures["half clear"] = sprite(2) * np.array([1, 1, 1, 0.5])[None, None].astype(np.uint8)
        pictures["half clear"][2, 2] = (9, 9, 9, 1)
        refs = ReferenceSet.from_textures([(name, "item", pixels) for name, pixels in pictures.items()])
        Profile.build(refs, PixelStats()).save(tmp_path / "p")
        loaded = Profile.load(tmp_path / "p")
        for reference in refs:
            texture = loaded.texture(reference.id)
            assert texture is not None
            np.testing.assert_array_equal(texture.pixels, reference.texture.pixels)
            assert texture.grid == reference.texture.grid
        assert loaded.texture("nobody") is None

    def test_no_pickle_and_nothing_else(self, saved: Path) -> None:
        assert sorted(p.name for p in saved.iterdir()) == [
            "atlas-0.png",
            "profile.json",
            "thresholds.json",
            "vectors.safetensors",
        ]
        assert [p.name for p in saved.parent.iterdir()] == ["saved"]

    def test_saved_twice_is_the_same_bytes(self, profile: Profile, saved: Path, tmp_path: Path) -> None:
        profile.save(tmp_path / "again")
        for file in saved.iterdir():
            assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()

    def test_a_profile_is_replaced_and_anything_else_is_not(
        self, profile: Profile, saved: Path, tmp_path: Path
    ) -> None:
        profile.save(saved)
        Profile.load(saved)
        other = tmp_path / "precious"
        other.mkdir()
        (other / "thesis.txt").write_text("years of work")
        with pytest.raises(ProfileError, match="not overwritten"):
            profile.save(other)
        assert (other / "thesis.txt").exists()

    def test_an_interrupted_write_leaves_the_old_one(
        self, profile: Profile, saved: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise OSError("disk full")

        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", fail)
            with pytest.raises(ProfileError, match="disk full"):
                profile.save(saved)
        Profile.load(saved)
        assert [p.name for p in saved.parent.iterdir()] == ["saved"]

    def test_thresholds_are_readable(self, profile: Profile, saved: Path) -> None:
        rows = json.loads((saved / "thresholds.json").read_text())
        (row,) = [r for r in rows if (r["category"], r["factor"]) == ("item", "art style")]
        assert row["tau"] == profile.calibration("item", "art style").threshold(0.15, 5)
        assert (row["n"], row["m"], row["k"]) == (40, 6, 5)

    def test_a_strangers_profile_json_does_not_make_a_folder_ours(self, profile: Profile, tmp_path: Path) -> None:
        for content in ('{"name": "my modpack"}', "[]", "nonsense", '{"schema": 1, "files": {}}'):
            folder = tmp_path / "modpack"
            folder.mkdir(exist_ok=True)
            (folder / "profile.json").write_text(content)
            (folder / "thesis.txt").write_text("years of work")
            with pytest.raises(ProfileError, match="not overwritten"):
                profile.save(folder)
            assert (folder / "thesis.txt").exists()

    @pytest.mark.parametrize("failing", [OSError("no"), KeyboardInterrupt()])
    def test_a_failed_exchange_puts_the_old_one_back(
        self, profile: Profile, saved: Path, monkeypatch: pytest.MonkeyPatch, failing: BaseException
    ) -> None:
        real = Path.rename
        calls = []

        def rename(self: Path, target: Path) -> Path:
            calls.append(self)
            if len(calls) == 2:
                raise failing
            return real(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(replacing, "exchange", lambda first, second: False)
            patch.setattr(Path, "rename", rename)
            with pytest.raises((ProfileError, KeyboardInterrupt)):
                profile.save(saved)
        Profile.load(saved)
        assert [p.name for p in saved.parent.iterdir()] == ["saved"]

    def test_two_processes_save_at_once(self, profile: Profile, tmp_path: Path) -> None:
        threads = [threading.Thread(target=lambda: [profile.save(tmp_path / "p") for _ in range(8)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        Profile.load(tmp_path / "p")
        assert [p.name for p in tmp_path.iterdir()] == ["p"]

    def test_many_atlas_pages(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("assetscore.atlas.PAGE", 16)
        refs = ReferenceSet.from_textures([(str(i), "item", sprite(i)) for i in range(23)])
        Profile.build(refs, PixelStats()).save(tmp_path / "p")
        assert (tmp_path / "p" / "atlas-22.png").exists()
        assert Profile.load(tmp_path / "p").references.fingerprint == refs.fingerprint

    def test_a_profile_saved_again_is_read_again(self, references: ReferenceSet, tmp_path: Path) -> None:
        Profile.build(references, PixelStats()).save(tmp_path / "p")
        assert assetscore.score(sprite(999), "item", profile=tmp_path / "p").style.n == 40
        fewer = ReferenceSet("fewer", references.of("item")[:30])
        Profile.build(fewer, PixelStats()).save(tmp_path / "p")
        assert assetscore.score(sprite(999), "item", profile=tmp_path / "p").style.n == 30


class TestDamage:
    @pytest.fixture
    def forge(self, saved: Path):  # type: ignore[no-untyped-def]
        """Write changed tensors or descriptions with the hashes made right again, as a stranger would."""

        def write(change_json=None, change_tensors=None) -> None:  # type: ignore[no-untyped-def]
            described = json.loads((saved / "profile.json").read_text())
            if change_tensors is not None:
                tensors = load_file(saved / "vectors.safetensors")
                change_tensors(tensors)
                save_file(tensors, saved / "vectors.safetensors")
                digest = hashlib.sha256((saved / "vectors.safetensors").read_bytes()).hexdigest()
                described["files"]["vectors.safetensors"] = digest
            if change_json is not None:
                change_json(described)
            (saved / "profile.json").write_text(json.dumps(described))

        return write

    LOO = "leave one out\nitem\nart style"

    @pytest.mark.parametrize(
        "change",
        [
            lambda t: t.update({TestDamage.LOO: t[TestDamage.LOO][0]}),
            lambda t: t.update({TestDamage.LOO: t[TestDamage.LOO][:-1]}),
            lambda t: t.update({TestDamage.LOO: t[TestDamage.LOO][:, :3].copy()}),
            lambda t: t.update({TestDamage.LOO: t[TestDamage.LOO] * np.nan}),
            lambda t: t.update({TestDamage.LOO: t[TestDamage.LOO] * 0 - 5}),
            lambda t: t.update({TestDamage.LOO: t[TestDamage.LOO][:, ::-1].copy()}),
            lambda t: t.update({TestDamage.LOO: t[TestDamage.LOO].astype(np.int8)}),
            lambda t: t.pop(TestDamage.LOO),
            lambda t: t.update({"features\nitem": t["features\nitem"][0]}),
            lambda t: t.update({"features\nitem": t["features\nitem"] * np.inf}),
            lambda t: t.update({"features\nitem": t["features\nitem"][1:]}),
            lambda t: t.pop("features\nitem"),
        ],
    )
    def test_tensors_of_a_stranger(self, saved: Path, forge, change) -> None:  # type: ignore[no-untyped-def]
        forge(change_tensors=change)
        with pytest.raises(ProfileCorruptError):
            Profile.load(saved)

    @pytest.mark.parametrize(
        ("where", "value"),
        [
            (("encoder", "batch_noise"), "1"),
            (("encoder", "batch_noise"), float("inf")),
            (("encoder", "metric"), "foo"),
            (("encoder", "conditional"), "yes"),
            (("config", "alpha"), "0.15"),
            (("config", "families"), "no"),
            (("config", "k"), 21),
            (("schema",), True),
            (("references", "rows", 0, 7, 5), 4096),
            (("references", "rows", 0, 7, 5), float("inf")),
            (("references", "rows", 0, 7, 1), -1),
            (("references", "rows", 0, 7, 3), 10**9),
            (("references", "rows", 0), []),
            (("files",), {}),
        ],
    )
    def test_values_of_a_stranger(self, saved: Path, forge, where, value) -> None:  # type: ignore[no-untyped-def]
        def change(described) -> None:  # type: ignore[no-untyped-def]
            part = described
            for key in where[:-1]:
                part = part[key]
            part[where[-1]] = value

        forge(change_json=change)
        start = time.perf_counter()
        with pytest.raises(ProfileCorruptError):
            Profile.load(saved)
        assert time.perf_counter() - start < 5

    def test_what_profile_json_says_of_the_encoder_is_held_against_it(self, references, saved: Path, forge) -> None:  # type: ignore[no-untyped-def]
        Profile.build(references, PixelStats()).save(saved)
        forge(change_json=lambda d: d["encoder"].update(conditional=True))
        with pytest.raises(ProfileMismatchError, match="conditional"):
            Profile.load(saved, "pixelstats")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
    def test_no_pipe_is_waited_for(self, saved: Path) -> None:
        (saved / "thresholds.json").unlink()
        os.mkfifo(saved / "thresholds.json")
        with pytest.raises(ProfileCorruptError, match="regular"):
            Profile.load(saved)

    @pytest.mark.parametrize("name", ["vectors.safetensors", "thresholds.json", "atlas-0.png"])
    @pytest.mark.parametrize("how", ["changed", "missing", "truncated", "lfs"])
    def test_the_part_that_differs_is_named(self, saved: Path, name: str, how: str) -> None:
        path = saved / name
        content = path.read_bytes()
        if how == "missing":
            path.unlink()
        elif how == "lfs":
            path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
        else:
            path.write_bytes(content[:-9] if how == "truncated" else content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(ProfileCorruptError, match=name) as caught:
            Profile.load(saved)
        assert ("LFS" in str(caught.value)) == (how == "lfs")

    @pytest.mark.parametrize(
        "content", ["", "{", "[]", "null", '{"schema": 99}', '{"schema": 1}', "[" * 50_000, '{"schema": 1, "files": 3}']
    )
    def test_profile_json(self, saved: Path, content: str) -> None:
        (saved / "profile.json").write_text(content)
        with pytest.raises(ProfileCorruptError):
            Profile.load(saved)

    @pytest.mark.parametrize("name", ["../secret", "/etc/passwd", ".hidden"])
    def test_no_path_leads_outside(self, saved: Path, name: str) -> None:
        described = json.loads((saved / "profile.json").read_text())
        described["files"][name] = "0" * 64
        (saved / "profile.json").write_text(json.dumps(described))
        with pytest.raises(ProfileCorruptError, match="outside"):
            Profile.load(saved)

    def test_every_value_of_the_wrong_kind(self, saved: Path) -> None:
        described = json.loads((saved / "profile.json").read_text())
        for key in described:
            for value in (None, 7, "x", [], {}, [[1]], {"a": 1}):
                if key in ("name", "library") or value == described[key]:
                    continue
                (saved / "profile.json").write_text(json.dumps({**described, key: value}))
                with pytest.raises((ProfileCorruptError, UsageError)):
                    Profile.load(saved).calibration("item", "art style")


class TestNames:
    def test_users_profiles_come_before_shipped_ones(self, profile: Profile) -> None:
        shipped = Profile.load("dungeon-crawl")
        assert len(shipped.references) > 1000
        profile.save(data_folder() / "dungeon-crawl")
        assert Profile.load("dungeon-crawl").references.fingerprint == profile.references.fingerprint
        assert named_profiles()["dungeon-crawl"].parent == data_folder()

    def test_a_folder_here_does_not_shadow_a_name(
        self, saved: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        here = saved.parent
        monkeypatch.chdir(here)
        for name in ("dungeon-crawl", "mine"):
            shutil.copytree(saved, here / name)
        shutil.copytree(saved, data_folder() / "mine")
        assert find_profile("dungeon-crawl").parent == shipped_folder()
        assert "./dungeon-crawl" in caplog.text
        caplog.clear()
        assert find_profile("mine").parent == data_folder()
        assert "./mine" in caplog.text
        caplog.clear()
        assert find_profile("./dungeon-crawl").resolve() == here / "dungeon-crawl"
        assert find_profile(Path("dungeon-crawl")).resolve() == here / "dungeon-crawl"
        assert find_profile("saved").resolve() == saved  # no profile of that name: the folder here
        assert not caplog.text

    @pytest.mark.parametrize("name", ["nobody", "", ".", "..", "../dungeon-crawl", "a/b"])
    def test_not_found(self, name: str) -> None:
        with pytest.raises(ProfileNotFoundError, match="dungeon-crawl"):
            Profile.load(name)


class TestEncoders:
    def test_another_encoder_is_an_error_that_names_both(self, saved: Path) -> None:
        with pytest.raises(ProfileMismatchError, match=r"conditional-test/1.*pixelstats"):
            Profile.load(saved, "pixelstats")

    def test_loading_needs_no_encoder(self, saved: Path) -> None:
        assert Profile.load(saved).calibration("item", "art style").n == 40

    def test_vectors_must_be_of_unit_length(self, references: ReferenceSet) -> None:
        class Long(PixelStats):
            def condition(self, features, factors):  # type: ignore[no-untyped-def]
                return dict.fromkeys(factors, features * 2)

        with pytest.raises(EmbeddingError, match="unit"):
            Profile.build(references, Long())

    def test_references_without_an_embedding_are_left_out(self, references: ReferenceSet) -> None:
        class Picky(PixelStats):
            def features(self, images):  # type: ignore[no-untyped-def]
                rows = super().features(images)
                rows[[i % 7 == 0 for i in range(len(rows))]] = np.nan
                return rows

        built = Profile.build(references, Picky())
        assert len(built.references) == len(references) - 9
        assert len(built.references.skipped) == 9
        assert built.calibration("item", "art style").n == built.categories["item"]

    def test_a_one_stage_encoder_keeps_new_factors_in_the_cache(self, references: ReferenceSet, tmp_path: Path) -> None:
        class OneStage(Encoder):
            name, fingerprint, conditional = "one-stage", "one-stage/1", True

            def __init__(self) -> None:
                self.passes = 0

            def embed(self, images, factors):  # type: ignore[no-untyped-def]
                self.passes += len(images)
                return Conditional().embed(images, factors)

        first = OneStage()
        built = Profile.build(references, first)
        built.save(tmp_path / "p")
        expected = built.vectors("item", "ruby sword")
        second = OneStage()
        loaded = Profile.load(tmp_path / "p", second)
        np.testing.assert_array_equal(loaded.vectors("item", "ruby sword"), expected)
        assert second.passes == 0
        (file,) = (Path(os.environ["ASSETSCORE_HOME"]) / "cache" / "vectors").iterdir()
        file.write_bytes(b"damaged")
        np.testing.assert_array_equal(Profile.load(tmp_path / "p", second).vectors("item", "ruby sword"), expected)
        assert second.passes == len(references.of("item"))

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda v: v[1:],
            lambda v: np.concatenate([v, v[:1]]),
            lambda v: v[0],
            lambda v: v[None],
            lambda v: v.astype(str),
            lambda v: v * 0,
            lambda v: v * np.nan,
        ],
    )
    def test_vectors_of_the_wrong_shape_are_named_errors(self, references: ReferenceSet, spoil) -> None:  # type: ignore[no-untyped-def]
        class Spoilt(Encoder):
            name, fingerprint = "spoilt", "spoilt/1"

            def embed(self, images, factors):  # type: ignore[no-untyped-def]
                return dict.fromkeys(factors, spoil(PixelStats().features(images)))

        with pytest.raises((EmbeddingError, ReferenceSetError)):
            Profile.build(references, Spoilt())

    def test_a_passing_failure_is_not_kept(self, references: ReferenceSet) -> None:
        class Flaky(Encoder):
            name, fingerprint, conditional, broken = "flaky", "flaky/1", True, False

            def embed(self, images, factors):  # type: ignore[no-untyped-def]
                vectors = Conditional().embed(images, factors)
                return {f: v * np.nan for f, v in vectors.items()} if self.broken else vectors

        flaky = Flaky()
        scorer = Scorer(Profile.build(references, flaky))
        flaky.broken = True
        with pytest.raises(EmbeddingError):
            scorer.profile.vectors("item", "ruby sword")
        flaky.broken = False
        assert scorer.score(sprite(999), "item", "ruby sword").status == "scored"

    def test_lpips_metric(self, references: ReferenceSet) -> None:
        class Distance(PixelStats):
            name, fingerprint = "distance", "distance/1"
            metric = "lpips"

            def condition(self, features, factors):  # type: ignore[no-untyped-def]
                return dict.fromkeys(factors, features * 3)

        built = Profile.build(references, Distance())
        vectors = built.vectors("item", "art style").astype(float)
        distances = ((vectors[:, None] - vectors[None]) ** 2).sum(-1)
        np.fill_diagonal(distances, np.inf)
        expected = 1 - np.sort(distances, axis=1)[:, :5].mean(axis=1)
        np.testing.assert_allclose(built.calibration("item", "art style").scores(5), expected, atol=1e-5)
        asset = sprite(1234)
        query = 3 * PixelStats().features([asset]).astype(float)[0]
        S = 1 - np.sort(((vectors - query) ** 2).sum(-1))[:5].mean()
        assert Scorer(built).score(asset, "item").style.similarity == pytest.approx(S, abs=1e-5)


def test_reranking_reaches_thresholds_and_scores(references: ReferenceSet) -> None:
    """Candidates by vectors, values by pairs: recomputed by hand."""

    def pair(a, b) -> float:  # type: ignore[no-untyped-def]
        return 1 - abs(float(a.pixels.mean()) - float(b.pixels.mean())) / 255

    class Pairs(PixelStats):
        name, fingerprint, rerank_top = "pairs", "pairs/1", 8

        def rerank(self, query, candidates, factor):  # type: ignore[no-untyped-def]
            return np.array([pair(query, candidate) for candidate in candidates])

    built = Profile.build(references, Pairs())
    items = references.of("item")
    vectors = built.vectors("item", "art style").astype(float)
    matrix = vectors @ vectors.T
    np.fill_diagonal(matrix, -np.inf)
    expected = []
    for i, row in enumerate(matrix):
        candidates = np.argsort(-row, kind="stable")[:8]
        expected.append(
            np.mean(sorted((pair(items[i].texture, items[j].texture) for j in candidates), reverse=True)[:5])
        )
    np.testing.assert_allclose(built.calibration("item", "art style").scores(5), expected, atol=1e-12)
    asset = assetscore.images.load(sprite(4321))
    query = PixelStats().features([asset]).astype(float)[0]
    candidates = np.argsort(-(vectors @ query), kind="stable")[:8]
    S = np.mean(sorted((pair(asset, items[j].texture) for j in candidates), reverse=True)[:5])
    result = Scorer(built).score(asset, "item")
    assert result.style.similarity == pytest.approx(S, abs=1e-12)
    assert len(result.style.top) == 8


class TestFamilies:
    def build(self, families: bool) -> Profile:
        refs = [
            assetscore.references.Reference(f"{i}", "item", assetscore.images.load(sprite(i // 4)), family=str(i // 4))
            for i in range(80)
        ]
        # Variants of one drawing that differ in one pixel.
        varied = []
        for i, reference in enumerate(refs):
            pixels = np.array(reference.texture.pixels)
            pixels[0, i % 4] = (i, i, i, 255)
            varied.append(
                assetscore.references.Reference(
                    reference.id, "item", assetscore.images.load(pixels), family=reference.family
                )
            )
        return Profile.build(ReferenceSet.build(varied, "families"), PixelStats(), families=families)

    def test_left_out_together(self) -> None:
        together, apart = self.build(True), self.build(False)
        assert together.calibration("item", "art style").n == 20
        assert apart.calibration("item", "art style").n == 80
        assert together.fingerprint != apart.fingerprint
        # A family vouches for its own members, so leaving out one at a time sets the threshold too high.
        high = apart.calibration("item", "art style").threshold(0.15, 1)
        low = together.calibration("item", "art style").threshold(0.15, 1)
        assert high is not None
        assert low is not None
        assert high > low


def test_wrong_use(profile: Profile, references: ReferenceSet) -> None:
    with pytest.raises(UnknownCategoryError, match="block, item"):
        profile.calibration("gui", "art style")
    for options in (
        {"k": 0},
        {"k": 21},
        {"k": True},
        {"alpha": "0.1"},
        {"alpha": 0.0},
        {"rule": "x"},
        {"factors": ()},
        {"factors": [""]},
    ):
        with pytest.raises(UsageError):
            Profile.build(references, PixelStats(), **options)  # type: ignore[arg-type]


def test_many_requests_do_not_pile_up(references: ReferenceSet) -> None:
    built = Profile.build(references, Conditional())
    for i in range(100):
        built.calibration("item", f"request {i}")
    assert len(built._vectors) + len(built._calibrations) < 100
    assert ("item", "art style") in built._vectors


def test_a_copied_folder_works(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "elsewhere" / "copy")
    copied = Profile.load(tmp_path / "elsewhere" / "copy")
    assert copied.name == "drawn"
    copied.save(tmp_path / "again")
    assert (tmp_path / "again" / "profile.json").read_bytes() == (saved / "profile.json").read_bytes()


@pytest.mark.parametrize("can_exchange", [True, False], ids=["exchanged", "moved aside"])
def test_readers_always_find_a_profile_while_others_replace_it(
    saved: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(replacing, "exchange", lambda first, second: False)
    elif not replacing.exchange(saved, shutil.copytree(saved, saved.parent / "other")):
        pytest.skip("this file system cannot exchange two folders")
    profiles = [Profile.load(saved), Profile.load(saved)]
    profiles[1].name = "another"
    errors: list[BaseException] = []
    names: set[str] = set()
    stop = time.monotonic() + 3

    def repeat(once: Callable[[], object]) -> None:
        try:
            while time.monotonic() < stop:
                once()
        except BaseException as error:
            errors.append(error)

    jobs = [*(lambda profile=profile: profile.save(saved) for profile in profiles)]
    jobs += [lambda: names.add(Profile.load(saved).name)] * 2
    threads = [threading.Thread(target=repeat, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert names == {"drawn", "another"}
    assert {entry.name for entry in saved.parent.iterdir()} <= {"saved", "other"}


def test_a_damaged_profile_is_not_taken_for_one_that_is_being_replaced(saved: Path) -> None:
    (saved / "thresholds.json").write_text("{}")
    began = time.monotonic()
    with pytest.raises(ProfileCorruptError, match=r"thresholds\.json"):
        Profile.load(saved)
    assert time.monotonic() - began < 1


def test_a_profile_replaced_while_it_is_read_is_read_again(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    after = Profile.load(saved)
    after.name = "another"
    read, saves = store._checked_files, []

    def replaced_first(folder: Path, hashes: dict[str, str]) -> dict[str, bytes]:
        if not saves:
            saves.append(after.save(saved))
            raise ProfileCorruptError("these files are not those that profile.json names")
        return read(folder, hashes)

    monkeypatch.setattr(store, "_checked_files", replaced_first)
    assert Profile.load(saved).name == "another"


def test_a_profile_that_is_away_for_a_moment_is_waited_for(saved: Path) -> None:
    aside = saved.parent / ".saved-old-x"
    aside.mkdir()
    saved.rename(aside / "saved")

    def put_back() -> None:
        (aside / "saved").rename(saved)
        aside.rmdir()

    timer = threading.Timer(0.1, put_back)
    timer.start()
    assert Profile.load(saved).name == "drawn"
    timer.join()


def test_an_exchange_leaves_no_moment_without_a_profile(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not replacing.exchange(saved, shutil.copytree(saved, saved.parent / "other")):
        pytest.skip("this file system cannot exchange two folders")
    again = Profile.load(saved)

    def moved(self: Path, target: Path) -> Path:
        raise AssertionError(f"{self} was moved away")

    monkeypatch.setattr(Path, "rename", moved)
    again.name = "another"
    again.save(saved)
    assert Profile.load(saved).name == "another"


def test_a_profile_goes_to_other_processes(profile: Profile) -> None:
    """Workers get a copy that judges alike, with locks of its own."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    expected = _thresholds(profile)
    copy = pickle.loads(pickle.dumps(profile))
    assert _thresholds(copy) == expected
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as workers:
        assert list(workers.map(_thresholds, [profile, copy])) == [expected, expected]


def _thresholds(profile: Profile) -> list[dict[str, Any]]:
    return store.thresholds(profile)
