from __future__ import annotations

import json
import threading
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import assetscore
from assetscore import Profile, ReferenceSet, Scorer
from assetscore.encoders.base import Encoder, get_encoder
from assetscore.encoders.pixelstats import PixelStats
from assetscore.errors import (
    FactorError,
    UnknownCategoryError,
    UnknownEncoderError,
    UnsupportedTypeError,
    UsageError,
)
from assetscore.images import enlarge
from assetscore.scorer import Item

from .conftest import Conditional, sprite
from .png import PALETTE, RGBA, chunk, png


@pytest.fixture(scope="module")
def scorer(profile: Profile) -> Scorer:
    return Scorer(profile)


class TestTheScore:
    def test_against_a_plain_loop(self, scorer: Scorer, references: ReferenceSet) -> None:
        """The whole way from pixels to p, recomputed with loops and sorting."""
        encoder, asset = Conditional(), sprite(500)
        items = references.of("item")
        result = scorer.score(asset, "item", request="blue orb")
        for check, factor in ((result.style, "art style"), (result.semantic, "blue orb")):
            assert check is not None
            vectors = encoder.embed([r.texture for r in items], [factor])[factor].astype(float)
            query = encoder.embed([asset], [factor])[factor][0].astype(float)
            similarities = sorted(((float(v @ query), r.id) for v, r in zip(vectors, items, strict=True)), reverse=True)
            loo = []
            for i, v in enumerate(vectors):
                others = sorted((float(v @ w) for j, w in enumerate(vectors) if j != i), reverse=True)
                loo.append(sum(others[:5]) / 5)
            S = sum(s for s, _ in similarities[:5]) / 5
            tau = sorted(loo)[int(0.15 * 41) - 1]
            assert check.factor == factor
            assert check.similarity == pytest.approx(S, abs=1e-9)
            assert check.threshold == pytest.approx(tau, abs=1e-9)
            assert check.margin == pytest.approx(S - tau, abs=1e-9)
            assert check.p_value == pytest.approx((1 + sum(s <= S for s in loo)) / 41)
            assert check.passed is (tau <= S)
            assert [n.reference for n in check.neighbours] == [id for _, id in similarities[:5]]
            assert (check.k, check.alpha, check.n, check.rule) == (5, 0.15, 40, "conformal")
            assert list(check.top) == pytest.approx([s for s, _ in similarities[:20]], abs=1e-9)

    def test_a_reference_scores_its_leave_one_out_value_when_it_is_new(self, references: ReferenceSet) -> None:
        """Take one reference out, score it: S is the leave-one-out score that the whole set gave it."""
        whole = Profile.build(references, PixelStats())
        expected = whole.calibration("item", "art style").scores(5)
        items = references.of("item")
        for i in (0, 17, 39):
            rest = ReferenceSet("rest", tuple(r for r in references if r.id != items[i].id))
            result = Scorer(Profile.build(rest, PixelStats())).score(items[i].texture, "item")
            assert result.style.similarity == pytest.approx(expected[i], abs=1e-12)

    def test_the_semantic_factor(self, scorer: Scorer) -> None:
        plain = scorer.score(sprite(500), "item")
        assert plain.semantic is not None
        assert plain.semantic.factor == "object class"
        asked = scorer.score(sprite(500), "item", "  ruby   sword ")
        assert asked.semantic is not None
        assert asked.semantic.factor == "ruby sword"
        assert asked.style == plain.style

    def test_an_unconditional_encoder_has_no_semantic_check(self, references: ReferenceSet) -> None:
        result = Scorer(Profile.build(references, PixelStats())).score(sprite(500), "item", "ruby sword")
        assert result.semantic is None
        assert result.passed is result.style.passed

    def test_frames_are_averaged(self, scorer: Scorer, tmp_path: Path) -> None:
        frames = [sprite(501), sprite(502), sprite(501)]
        path = tmp_path / "strip.png"
        path.write_bytes(png(np.concatenate(frames), RGBA))
        (tmp_path / "strip.png.mcmeta").write_text('{"animation": {}}')
        result = scorer.score(path, "item")
        alone = [scorer.score(frame, "item").style.similarity for frame in frames[:2]]
        assert result.frames == 2
        assert result.style.similarity == pytest.approx(np.mean(alone), abs=1e-12)  # type: ignore[arg-type]

    def test_to_dict_is_json(self, scorer: Scorer) -> None:
        again = json.loads(json.dumps(scorer.score(sprite(500), "item").to_dict()))
        assert again["style"]["neighbours"][0]["similarity"] >= again["style"]["neighbours"][1]["similarity"]
        assert again["encoder"] == Conditional.fingerprint


class TestIndependence:
    assets = [sprite(600 + i, size) for i, size in enumerate((16, 16, 24, 32, 9, 16, 40, 16))]

    def test_alone_in_a_batch_and_in_any_order(self, scorer: Scorer) -> None:
        together = scorer.score_many([(a, "item", f"thing {i % 3}") for i, a in enumerate(self.assets)])
        alone = [scorer.score(a, "item", f"thing {i % 3}") for i, a in enumerate(self.assets)]
        assert together == alone
        order = [5, 0, 7, 2, 1, 6, 3, 4]
        shuffled = scorer.score_many([(self.assets[i], "item", f"thing {i % 3}") for i in order])
        assert shuffled == [alone[i] for i in order]

    def test_across_chunks(self, scorer: Scorer, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = scorer.score_many([(a, "item") for a in self.assets])
        monkeypatch.setattr("assetscore.scorer.CHUNK", 3)
        assert scorer.score_many([(a, "item") for a in self.assets]) == whole

    def test_storage_mode_does_not_matter(self, scorer: Scorer) -> None:
        grey = np.asarray(Image.fromarray(sprite(700)).convert("LA"))
        rgba = np.dstack([grey[..., :1]] * 3 + [grey[..., 1:]])
        shades, indices = np.unique(rgba.reshape(-1, 4), axis=0, return_inverse=True)
        indices = indices.reshape(16, 16)
        files = [
            png(rgba, RGBA),
            png(rgba.astype(int) * 257, RGBA, 16),
            png(rgba, RGBA, interlaced=True),
            png(grey, 4),
            png(indices, PALETTE, 8, palette=shades[:, :3], trns=shades[:, 3].tobytes()),
        ]
        webp = BytesIO()
        Image.fromarray(rgba).save(webp, "WEBP", lossless=True, exact=True)
        styles = {scorer.score(file, "item").style for file in [*files, webp.getvalue()]}
        assert len(styles) == 1

    def test_colour_under_alpha_0_does_not_matter(self, scorer: Scorer) -> None:
        rgba = sprite(701)
        other = rgba.copy()
        other[rgba[..., 3] == 0, :3] = (255, 0, 255)
        assert scorer.score(rgba, "item") == scorer.score(other, "item")

    @pytest.mark.parametrize("factor", [2, 3, 4])
    def test_an_exact_enlargement_scores_the_same(self, scorer: Scorer, factor: int) -> None:
        small, large = scorer.score(sprite(702), "item"), scorer.score(enlarge(sprite(702), factor), "item")
        assert large.style == small.style
        assert (small.grid, large.grid) == (1, factor)

    def test_threads(self, scorer: Scorer) -> None:
        expected = [scorer.score(a, "item", "a thread's request") for a in self.assets]
        found: dict[int, list[assetscore.Score]] = {}

        def work(number: int) -> None:
            found[number] = [scorer.score(a, "item", "a thread's request") for a in self.assets]

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(scores == expected for scores in found.values())
        assert len(found) == 6


class TestStatuses:
    def test_each_bad_file_is_one_row_and_the_others_are_complete(self, scorer: Scorer, tmp_path: Path) -> None:
        good = png(sprite(800), RGBA)
        bad = {
            "empty.png": (b"", "unreadable"),
            "cut.png": (good[:-30], "unreadable"),
            "text.png": (b"hello", "unreadable"),
            "lfs.png": (b"version https://git-lfs.github.com/spec/v1\n", "unreadable"),
            "huge.png": (good[:16] + b"\0\0\xc3\x50\0\0\xc3\x50" + good[24:], "unreadable"),
            "clear.png": (png(np.zeros((16, 16, 4), np.uint8), RGBA), "empty"),
            "dot.png": (png(np.full((1, 1, 4), 255), RGBA), "empty"),
            "copy.png": (png(sprite(7), RGBA), "not_custom"),
            "large copy.png": (png(enlarge(sprite(7), 2), RGBA), "not_custom"),
            "crc.png": (png(sprite(801), RGBA, before_idat=chunk(b"tEXt", b"x", bad_crc=True)), "scored"),
            "one colour.png": (png(np.full((16, 16, 4), 200), RGBA), "scored"),
            "one pixel high.png": (png(np.full((1, 300, 4), 90), RGBA), "scored"),
            "long.png": (png(np.random.default_rng(0).integers(0, 256, (2000, 16, 4)), RGBA), "scored"),
        }
        for name, (content, _) in bad.items():
            (tmp_path / name).write_bytes(content)
        (tmp_path / "folder.png").mkdir()
        paths = [tmp_path / name for name in bad] + [tmp_path / "gone.png", tmp_path / "folder.png"]
        statuses = [status for _, status in bad.values()] + ["missing", "unreadable"]
        mixed = [item for path in paths for item in ((path, "item"), (sprite(802), "item"))]
        scores = scorer.score_many(mixed)
        assert [s.status for s in scores[::2]] == statuses
        assert all(s.reason for s in scores)
        reference = scorer.score(sprite(802), "item")
        assert all(s == reference for s in scores[1::2])
        verdicts = {"unreadable": False, "missing": False, "not_custom": False, "empty": None}
        for s in scores[::2]:
            if s.status != "scored":
                assert s.passed is verdicts[s.status]
                assert s.style.passed is s.passed
                assert s.style.similarity is None
        assert [s.custom for s in scores[::2]] == [s not in ("unreadable", "missing", "not_custom") for s in statuses]

    def test_a_copy_is_named(self, scorer: Scorer) -> None:
        assert "item/7" in scorer.score(sprite(7), "block").reason

    def test_uncalibrated(self) -> None:
        few = ReferenceSet.from_textures([(str(i), "item", sprite(i)) for i in range(5)])
        result = Scorer(Profile.build(few, PixelStats())).score(sprite(99), "item")
        assert (result.status, result.passed, result.style.threshold) == ("uncalibrated", None, None)
        assert result.style.similarity is not None
        assert "5 references" in result.reason
        lenient = Scorer(Profile.build(few, PixelStats()), alpha=0.4).score(sprite(99), "item")
        assert lenient.status == "scored"

    def test_one_reference(self) -> None:
        one = ReferenceSet.from_textures([("a", "item", sprite(1))])
        result = Scorer(Profile.build(one, PixelStats())).score(sprite(2), "item")
        assert (result.status, result.passed) == ("uncalibrated", None)

    def test_a_category_smaller_than_k(self) -> None:
        few = ReferenceSet.from_textures([(str(i), "item", sprite(i)) for i in range(4)])
        result = Scorer(Profile.build(few, PixelStats(), alpha=0.3)).score(sprite(99), "item")
        assert (result.style.k, len(result.style.neighbours)) == (3, 3)

    def test_no_references_is_a_row_in_a_stream_only(self, scorer: Scorer) -> None:
        (result,) = scorer.stream([Item(sprite(1000), "gui")])
        assert (result.status, result.passed) == ("no_references", None)
        with pytest.raises(UnknownCategoryError, match="block, item"):
            scorer.score(sprite(1), "gui")

    def test_known_from_the_reader(self, scorer: Scorer) -> None:
        (result,) = scorer.stream([Item(b"", "item", status="not_custom", reason="names minecraft:item/stick")])
        assert (result.status, result.passed, result.reason) == ("not_custom", False, "names minecraft:item/stick")


class _Moody(Encoder):
    """Raises for pictures wider than 20, gives NaN for those with a red corner."""

    name = "moody"
    fingerprint = "moody/1"

    def __init__(self) -> None:
        self._inner = PixelStats()

    def embed(self, images, factors):  # type: ignore[no-untyped-def]
        if any(image.size[0] > 20 for image in images):
            raise RuntimeError("too wide for me")
        vectors = self._inner.features(images)
        vectors[[tuple(image.pixels[0, 0]) == (255, 0, 0, 255) for image in images]] = np.nan
        return dict.fromkeys(factors, vectors)


class TestFailingEncoders:
    def test_each_failure_costs_one_row(self, references: ReferenceSet) -> None:
        moody = Scorer(Profile.build(references, _Moody()))
        red = sprite(901)
        red[0, 0] = (255, 0, 0, 255)
        assets = [sprite(900), sprite(902, 30), red, sprite(903)]
        scores = moody.score_many([(asset, "item") for asset in assets])
        assert [s.status for s in scores] == ["scored", "failed", "failed", "scored"]
        assert "too wide for me" in scores[1].reason
        assert "finite" in scores[2].reason
        assert [s.passed for s in scores[1:3]] == [False, False]
        assert scores[0] == moody.score(assets[0], "item")
        assert scores[0].custom
        assert scores[1].custom

    def test_every_asset_fails(self, references: ReferenceSet) -> None:
        moody = Scorer(Profile.build(references, _Moody()))
        assert [s.status for s in moody.score_many([(sprite(i, 30), "item") for i in range(3)])] == ["failed"] * 3

    @pytest.mark.parametrize("change", [lambda v: v[1:], lambda v: np.concatenate([v, v[:1]]), lambda v: v[0]])
    def test_rows_are_never_given_to_another_asset(self, references: ReferenceSet, change) -> None:  # type: ignore[no-untyped-def]
        encoder = _Moody()
        scorer = Scorer(Profile.build(references, encoder))
        expected = [s.style.similarity for s in scorer.score_many([(sprite(i), "item") for i in range(900, 905)])]
        real = encoder.embed
        encoder.embed = lambda images, factors: (
            {f: change(v) for f, v in real(images, factors).items()} if len(images) > 1 else real(images, factors)
        )  # type: ignore[method-assign]
        again = scorer.score_many([(sprite(i), "item") for i in range(900, 905)])
        assert [s.style.similarity for s in again] == expected

    def test_a_request_that_fails_among_the_references_costs_who_asked(self, references: ReferenceSet) -> None:
        class Allergic(Conditional):
            def condition(self, features, factors):  # type: ignore[no-untyped-def]
                if "cursed" in factors and len(features) > 5:
                    raise RuntimeError("out of memory")
                return super().condition(features, factors)

        scorer = Scorer(Profile.build(references, Allergic()))
        wanted = ["cursed", None, "axe", "cursed"]
        scores = scorer.score_many([(sprite(900 + i), "item", r) for i, r in enumerate(wanted)])
        assert [s.status for s in scores] == ["failed", "scored", "scored", "failed"]
        assert "out of memory" in scores[0].reason

    def test_batch_noise_makes_borderline(self, references: ReferenceSet) -> None:
        noisy = PixelStats()
        noisy.batch_noise = 10.0
        assert Scorer(Profile.build(references, noisy)).score(sprite(1000), "item").borderline
        assert not Scorer(Profile.build(references, PixelStats())).score(sprite(1000), "item").borderline


class TestWrongUse:
    @pytest.mark.parametrize("asset", [None, 5, np.zeros((4, 4)), [sprite(1)], np.zeros((3, 3, 7), np.uint8)])
    def test_types(self, scorer: Scorer, asset: object) -> None:
        with pytest.raises(UnsupportedTypeError):
            scorer.score(asset, "item")  # type: ignore[arg-type]

    @pytest.mark.parametrize("request_", ["   ", "x" * 2000])
    def test_requests(self, scorer: Scorer, request_: str) -> None:
        with pytest.raises(FactorError):
            scorer.score(sprite(1), "item", request_)

    @pytest.mark.parametrize("options", [{"alpha": 0}, {"alpha": 1.2}, {"k": 0}, {"k": 21}, {"rule": "median"}])
    def test_options(self, profile: Profile, options: dict[str, object]) -> None:
        with pytest.raises(UsageError):
            Scorer(profile, **options)  # type: ignore[arg-type]

    def test_nothing_is_scored_before_the_mistake_is_found(self, profile: Profile) -> None:
        encoder = profile.encoder
        assert isinstance(encoder, Conditional)
        before = encoder.image_passes
        with pytest.raises(UnknownCategoryError):
            Scorer(profile).score_many([(sprite(1000), "item"), (sprite(1001), "gui")])
        assert encoder.image_passes == before


def test_a_new_request_costs_no_image_pass(references: ReferenceSet) -> None:
    encoder = Conditional()
    scorer = Scorer(Profile.build(references, encoder))
    passes = encoder.image_passes
    scorer.score_many([(sprite(1000), "item", f"request {i}") for i in range(7)])
    assert encoder.image_passes == passes + 7


def test_progress_goes_to_stderr(scorer: Scorer, capsys: pytest.CaptureFixture[str]) -> None:
    scorer.score_many([(sprite(1), "item")], progress=True)
    assert capsys.readouterr().out == ""


def test_the_shipped_profile_is_ready() -> None:
    random = np.random.default_rng(0)
    result = assetscore.score(random.integers(0, 256, (32, 32, 3)).astype(np.uint8), "item")
    assert result.status == "scored"
    assert result.style.passed is False


@pytest.mark.parametrize(("name", "said"), [("pixelstats:x", "takes nothing behind a colon"), ("nosuch", "known are")])
def test_an_encoder_name_that_means_nothing_is_refused_in_words(name: str, said: str) -> None:
    with pytest.raises(UnknownEncoderError, match=said):
        get_encoder(name)
