"""The recipe of the embedded encoder: what is held out, restylings, batches, losses, and a run on a tiny slice."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from assetscore.encoders.lite import Lite, damage, data, evaluate, restyle
from assetscore.encoders.lite.data import Corpus, build_corpus, held_out_codepoint
from assetscore.encoders.lite.sampler import Sampler
from assetscore.encoders.lite.text import TextTable
from assetscore.errors import ManifestError

WORDS = ("ball", "box", "roof", "line", "ring", "cross", "star", "dot")
COLUMNS = ("file", "pack", "family", "category", "object_words", "name", "width", "height", "licence", "package")
PACKS = {
    "north/main": ("north", (200, 40, 40)),
    "south/main": ("south", (40, 200, 60)),
    "cdda/One": ("cdda", (60, 60, 220)),
    "cdda/Two": ("cdda", (220, 210, 40)),
    "cdda/HoderTileset": ("cdda", (10, 10, 10)),
    "angband/old": ("angband", (90, 90, 90)),
    "wesnoth/items": ("wesnoth", (150, 20, 150)),
}


def drawing(word: str, colour: tuple[int, int, int], seed: int) -> Image.Image:
    image = Image.new("RGBA", (24, 24))
    draw = ImageDraw.Draw(image)
    box = [2 + seed % 3, 3, 20, 19 + seed % 2]
    getattr(draw, ("ellipse", "rectangle", "rounded_rectangle", "chord")[WORDS.index(word) % 4])(
        box, *((0, 200) if WORDS.index(word) % 4 == 3 else ()), fill=colour, outline=(0, 0, 0)
    )
    draw.point([(5 + i * 2, 8 + WORDS.index(word)) for i in range(5)], (255, 255, 255))
    return image


def make_pool(path: Path, families: dict[str, tuple[str, tuple[int, int, int]]] | None = None) -> Path:
    rows = []
    with zipfile.ZipFile(path, "w") as archive:
        for pack, (family, colour) in (families or PACKS).items():
            for i, word in enumerate(WORDS * 2):
                name = f"{pack}/{i}.png"
                buffer = io.BytesIO()
                drawing(word, colour, i).save(buffer, "PNG")
                archive.writestr(name, buffer.getvalue())
                rows.append([name, pack, family, "item", word, f"id_{word}_{i // 8}", 24, 24, "CC0", "x"])
        text = io.StringIO()
        csv.writer(text).writerows([list(COLUMNS), *rows])
        archive.writestr("manifest.csv", text.getvalue())
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("pool")
    return build_corpus(make_pool(folder / "pool.zip"), [], cache=folder / "cache")


def tiny_table() -> TextTable:
    rng = np.random.default_rng(1)
    words = [*WORDS, "art", "style", "object", "class"]
    return TextTable(
        {w: i for i, w in enumerate(words)},
        rng.normal(size=(len(words), 128)).astype(np.float32),
        np.zeros(128, np.float32),
        ("ball", "box"),
    )


# What is held out


def test_whole_families_and_tilesets_are_held_out(corpus: Corpus) -> None:
    held = set(corpus.pack[corpus.split == "held"].tolist())
    assert held == {"cdda/HoderTileset", "angband/old", "wesnoth/items"}
    assert (corpus.key != "").tolist() == (corpus.family == "cdda").tolist()
    assert corpus.size.tolist() == [[24, 24]] * len(corpus)


def test_a_corpus_is_read_once(corpus: Corpus, tmp_path: Path) -> None:
    corpus.save(tmp_path / "kept")
    again = build_corpus(tmp_path / "not there.zip", [], cache=tmp_path / "kept")
    assert (again.pixels == corpus.pixels).all()
    assert again.words.tolist() == corpus.words.tolist()


@pytest.mark.parametrize("family", sorted(data.NEVER))
def test_what_the_encoder_is_judged_on_is_refused(tmp_path: Path, family: str) -> None:
    path = make_pool(tmp_path / "bad.zip", {f"{family}/x": (family, (1, 2, 3))})
    with pytest.raises(ManifestError, match=family):
        build_corpus(path, [])


def test_an_empty_corpus_and_a_zip_without_manifest_are_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="empty"):
        build_corpus(None, [])
    with zipfile.ZipFile(tmp_path / "plain.zip", "w") as archive:
        archive.writestr("x.txt", "x")
    with pytest.raises(ManifestError, match=r"plain\.zip"):
        build_corpus(tmp_path / "plain.zip", [])


def test_codepoints_are_held_out_by_hash_alone() -> None:
    found = [f"{0x1F300 + i:x}" for i in range(800) if held_out_codepoint(f"{0x1F300 + i:x}")]
    assert 150 < len(found) < 250
    assert all(held_out_codepoint(codepoint) for codepoint in found)


def test_emoji_packages(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py")
    points = [f"{0x1F300 + i:x}" for i in range(40)]
    body = '<rect width="20" height="30" x="4" y="1" fill="currentColor"/>'
    for prefix in ("noto", "openmoji"):
        folder = tmp_path / prefix
        folder.mkdir()
        names = [f"thing-{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(40)]
        icons = {name: {"body": body} for name in [*names, "wave-light-skin-tone", "unknown-thing"]}
        icons[names[0]]["body"] = "<rect width='"  # damaged: left out
        (folder / "icons.json").write_text(json.dumps({"prefix": prefix, "icons": icons, "width": 32, "height": 32}))
        (folder / "info.json").write_text(json.dumps({"prefix": prefix}))
        (folder / "chars.json").write_text(json.dumps(dict(zip(points, names, strict=True))))
    made = build_corpus(None, [tmp_path / "noto", tmp_path / "openmoji"])
    assert len(made) == 2 * 39
    held = np.array([held_out_codepoint(k) for k in made.key.tolist()])
    mine = made.pack == "emoji/noto"
    assert set(made.split[mine & held].tolist()) == {"none"}
    assert set(made.split[mine & ~held].tolist()) == {"train"}
    assert set(made.split[~mine & held].tolist()) == {"held"}
    assert set(made.split[~mine & ~held].tolist()) == {"none"}


def _icon_set(folder: Path, prefix: str, names: list[str]) -> Path:
    folder.mkdir()
    icons = {name: {"body": '<circle cx="16" cy="16" r="9" fill="red"/>'} for name in names}
    (folder / "icons.json").write_text(json.dumps({"prefix": prefix, "icons": icons, "width": 32, "height": 32}))
    (folder / "info.json").write_text(json.dumps({"prefix": prefix}))
    return folder


def test_an_icon_set_that_draws_everything_twice_is_two_styles_of_one_thing(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py")
    twice = _icon_set(tmp_path / "a", "streamline-flex-color", ["camera-3", "camera-3-flat", "flat"])
    once = _icon_set(tmp_path / "b", "streamline-cyber-color", ["campfire-2"])
    made = build_corpus(None, [twice, once])
    rows = list(zip(made.pack.tolist(), made.key.tolist(), made.words.tolist(), strict=True))
    assert rows == [
        ("streamline-flex-color/streamline-flex-color", "camera-3", "camera"),
        ("streamline-flex-color/streamline-flex-color-flat", "camera-3", "camera"),
        ("streamline-flex-color/streamline-flex-color", "flat", "flat"),
        ("streamline-cyber-color/streamline-cyber-color", "", "campfire"),
    ]
    assert set(made.split.tolist()) == {"train"}


def _theme(root: Path, name: str, files: dict[str, int]) -> Path:
    for path, side in files.items():
        file = root / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGBA", (side, side), (200, 20, 20, 255)).resize((side, side)).save(file)
    return root / name


def test_icon_themes_give_one_picture_for_each_name_that_three_of_them_draw(tmp_path: Path) -> None:
    shared = {"48x48/apps/camera.png": 48, "16x16/apps/camera.png": 16, "32/places/folder.png": 32}
    themes = [
        _theme(tmp_path, "One", {**shared, "48x48/apps/alone.png": 48, "48x48/apps/x-symbolic.png": 48}),
        _theme(tmp_path, "Two", {"devices/22/camera.png": 22, "places/24/folder.png": 24, "128x128/apps/big.png": 128}),
        _theme(tmp_path, "Three", {"24x24/apps/camera.png": 24, "animations/24/folder.png": 24}),
    ]
    (themes[2] / "24x24/apps/broken.png").write_bytes(b"no picture")
    (themes[2] / "24x24/apps/folder.png").symlink_to(themes[0] / "32/places/folder.png")
    made = build_corpus(None, [], themes)
    rows = sorted(zip(made.pack.tolist(), made.key.tolist(), strict=True))
    assert rows == [("themes/one", "camera"), ("themes/three", "camera"), ("themes/two", "camera")]
    assert set(made.words.tolist()) == {""}
    assert made.size[made.pack == "themes/one"].max() <= 48


# Restylings and damage


@pytest.mark.parametrize("heavy", [True, False])
def test_a_restyling_is_repeatable_and_canonical(heavy: bool) -> None:
    picture = np.array(drawing("star", (200, 90, 30), 1))
    seen = set()
    for seed in range(120):
        one = restyle.draw(np.random.default_rng(seed), damage=heavy)
        seen.add(one.kind)
        out, again = one(picture), one(picture)
        assert (out == again).all()
        assert out.dtype == np.uint8
        assert out.shape[2] == 4
        assert max(out.shape) <= 64
        assert not out[out[..., 3] == 0].any()
        assert out[..., 3].any()
    assert len(seen) > 8


@pytest.mark.parametrize("kind", list(damage.DAMAGE))
def test_damage_changes_the_picture_and_keeps_its_outline(kind: str) -> None:
    picture = np.array(drawing("ring", (180, 90, 40), 0))
    picture[picture[..., 3] == 0] = 0
    out = damage.DAMAGE[kind](picture, np.random.default_rng(0))
    small = out[:: out.shape[0] // 24, :: out.shape[1] // 24][:24, :24]
    assert (small != picture).any()
    assert not out[out[..., 3] == 0].any()
    overlap = ((small[..., 3] > 127) & (picture[..., 3] > 127)).sum() / (picture[..., 3] > 127).sum()
    assert overlap > 0.8


def test_a_primitive_uses_colours_of_the_picture() -> None:
    picture = np.array(drawing("box", (180, 90, 40), 0))
    out = damage.primitive(picture, np.random.default_rng(3))
    known = {tuple(p) for p in picture[picture[..., 3] > 0][:, :3].tolist()}
    assert {tuple(p) for p in out[out[..., 3] > 0][:, :3].tolist()} <= known


# Batches and losses


def test_a_batch_pairs_packs_and_follows_from_its_step(corpus: Corpus) -> None:
    sampler = Sampler(corpus.take(corpus.split == "train"), seed=3, groups=8)
    batch, again = sampler.batch(5), sampler.batch(5)
    assert (batch.canvas == again.canvas).all()
    assert (sampler.batch(6).item != batch.item).any()
    assert batch.canvas.shape == (8 * 12, 64, 64, 4)
    for group in range(8):
        mine = batch.group == group
        assert len(set(batch.style[mine].tolist())) == 2
    packs = {str(p) for p in sampler.packs}
    assert packs == {"north/main", "south/main", "cdda/One", "cdda/Two"}


def test_grounds_are_windows_of_opaque_pictures(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    count = 40
    pixels = np.zeros((count, 64, 64, 4), np.uint8)
    pixels[:, :32, :32] = rng.integers(0, 256, (count, 32, 32, 4))
    pixels[: 3 * count // 4, :32, :32, 3] = 255
    made = Corpus(
        pixels,
        np.full((count, 2), 32, np.int16),
        *(np.array(column) for column in zip(
            *((f"{family}/a", family, "", f"word {i}", "block", "train")
              for i, family in ((i, ("north", "south", "east", "west")[i * 4 // count]) for i in range(count))),
            strict=True,
        )),
    )  # fmt: skip
    sampler = Sampler(made, groups=1)
    assert [str(sampler.packs[pack]) for pack, _ in sampler._grounds] == ["east/a", "north/a", "south/a"]
    sides = sampler._two_grounds(np.random.default_rng(1))
    assert [len(rows) for rows, _, _ in sides] == [6, 6]
    assert len({str(made.pack[row]) for rows, _, _ in sides for row in rows}) == 2


def test_the_rate_is_level_until_it_falls_whatever_the_length(corpus: Corpus) -> None:
    pytest.importorskip("torch")
    from assetscore.encoders.lite.train import Recipe, Run

    rates: dict[int, list[float]] = {}
    for steps in (6, 10):
        run = Run(
            corpus.take(corpus.split == "train"),
            tiny_table(),
            Recipe(steps, groups=2, warmup=2, phrases=16, level=0.5),
            None,
        )
        batch, rates[steps] = run.sampler.batch(0), []
        for _ in range(steps):
            run.advance(batch)
            rates[steps].append(run.optimiser.param_groups[0]["lr"] / Recipe.rate)
    assert rates[6][:4] == rates[10][:4] == [0.5, 1, 1, 1]
    assert all(a > b for a, b in zip(rates[10][5:], rates[10][6:], strict=False))
    assert rates[10][-1] < 0.1


def test_nothing_is_dropped_outside_training(corpus: Corpus) -> None:
    torch = pytest.importorskip("torch")
    from assetscore.encoders.lite.model import LiteNet

    net = LiteNet()
    statistics, layout = torch.randn(4, net.statistics), torch.randn(4, len(net.object_centre))
    assert not net.heads(statistics, layout).style.equal(net.heads(statistics, layout).style)
    net.eval()
    assert net.heads(statistics, layout).style.equal(net.heads(statistics, layout).style)


def test_a_recoloured_picture_is_a_weaker_contrast_than_a_blurred_one() -> None:
    torch = pytest.importorskip("torch")
    from assetscore.encoders.lite.losses import HARD, WEAK, style_masks

    kinds = torch.tensor([0, restyle.KINDS.index("colour"), restyle.KINDS.index("blur")])
    zero, own = torch.zeros(3, dtype=torch.long), torch.arange(3)
    positive, weight = style_masks(own, zero, zero, kinds, zero, zero, zero)
    assert not positive.any()
    assert weight[0, 1] == WEAK
    assert weight[0, 2] == HARD


def test_only_training_rows_can_be_sampled(corpus: Corpus) -> None:
    with pytest.raises(ValueError, match="training part"):
        Sampler(corpus)


def test_contrast_equals_a_plain_loop() -> None:
    torch = pytest.importorskip("torch")
    from assetscore.encoders.lite.losses import contrast

    generator = torch.Generator().manual_seed(0)
    vectors = torch.nn.functional.normalize(torch.randn(7, 5, generator=generator), dim=1)
    positive = torch.rand(7, 7, generator=generator) < 0.3
    positive = positive | positive.T
    weight = torch.randint(0, 4, (7, 7), generator=generator).float()
    rows = []
    for i in range(7):
        others = [j for j in range(7) if j != i]
        terms = {j: float(np.exp(float(vectors[i] @ vectors[j]) / 0.1)) for j in others}
        total = sum(terms[j] * (1.0 if positive[i, j] else float(weight[i, j])) for j in others)
        mine = [-np.log(terms[j] / total) for j in others if positive[i, j]]
        if mine:
            rows.append(np.mean(mine))
    assert float(contrast(vectors, positive, weight)) == pytest.approx(np.mean(rows), rel=1e-4)


# Evaluation


def test_auroc_equals_counting_pairs() -> None:
    rng = np.random.default_rng(0)
    good, bad = rng.integers(0, 6, 30).astype(float), rng.integers(0, 5, 40).astype(float)
    pairs = [1.0 if g > b else 0.5 if g == b else 0.0 for g in good for b in bad]
    assert evaluate.auroc(good, bad) == pytest.approx(np.mean(pairs))
    low, high = evaluate.bootstrap(good, bad)
    assert low < np.mean(pairs) < high
    assert np.isnan(evaluate.auroc(good, bad[:0]))


def test_triplets_are_what_they_say(corpus: Corpus) -> None:
    part = corpus.take((corpus.split == "train") & (corpus.family != "cdda"))
    rows = evaluate.triplets(part, 200)
    assert len(rows) == 200
    for a1, a2, b1, b2 in rows.tolist():
        assert part.pack[a1] == part.pack[a2] != part.pack[b1] == part.pack[b2]
        assert part.words[a1] == part.words[b1]
        assert part.words[a1] not in (part.words[a2], part.words[b2])
    assert (evaluate.triplets(part, 200) == rows).all()


def test_an_encoder_that_ignores_the_factor_is_at_one_half(corpus: Corpus) -> None:
    from assetscore.encoders import get_encoder

    row = evaluate.senses_table(get_encoder("pixelstats"), corpus, count=300)["families"]
    assert row["mean"] == pytest.approx(0.5, abs=0.02)
    assert row["style"] == pytest.approx(1 - row["object"], abs=0.03)


# The whole recipe


@pytest.mark.slow
def test_the_recipe_runs_repeats_itself_and_learns(corpus: Corpus, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from assetscore.encoders.lite.export import export
    from assetscore.encoders.lite.train import Recipe, Run, train

    table = tiny_table()
    recipe = Recipe(steps=3, finish=2, groups=3, warmup=1, phrases=16)
    files = []
    for name in ("one", "two"):
        run = train(corpus, table, recipe, None, tmp_path / f"{name}.pt")
        files.append(export(run.average, table, tmp_path / name))
    assert files[0].read_bytes() == files[1].read_bytes()

    # Stopped after two steps of what was to be two, and taken up again as three: the same weights.
    train(corpus, table, Recipe(2, finish=0, groups=3, warmup=1, phrases=16), None, tmp_path / "half.pt")
    state = torch.load(tmp_path / "half.pt", weights_only=True)
    assert state["step"] == 2
    resumed = train(corpus, table, recipe, None, tmp_path / "half.pt")
    assert resumed.step == 5
    assert export(resumed.average, table, tmp_path / "half").read_bytes() == files[0].read_bytes()

    # Killed while it finished: the same again.
    killed = Run(corpus.take(corpus.split == "train"), table, recipe, None)
    for step in range(4):
        killed.advance(killed.sampler.batch(step))
    killed.save(tmp_path / "killed.pt")
    resumed = train(corpus, table, recipe, None, tmp_path / "killed.pt")
    assert export(resumed.average, table, tmp_path / "killed").read_bytes() == files[0].read_bytes()

    encoder = Lite(files[0])
    vectors = encoder.embed([drawing(w, (9, 99, 199), 0) for w in WORDS], ["art style", "object class"])
    assert np.isfinite(vectors["art style"]).all()
    assert vectors["object class"].shape == (8, 256)

    run = Run(corpus.take(corpus.split == "train"), table, Recipe(steps=40, groups=3, warmup=2, phrases=16), None)
    losses = [sum(run.advance(run.sampler.batch(step % 2)).values()) for step in range(22)]
    assert np.mean(losses[-4:]) < 0.8 * np.mean(losses[:2])


def test_a_run_ends_with_the_heads_for_objects_alone(corpus: Corpus) -> None:
    pytest.importorskip("torch")
    from assetscore.encoders.lite.train import Recipe, Run

    recipe = Recipe(2, finish=2, groups=2, warmup=1, phrases=16)
    run = Run(corpus.take(corpus.split == "train"), tiny_table(), recipe, None)
    for step in range(2):
        run.advance(run.sampler.batch(step))
    assert run.net.dropped < 0.5
    before = {name: value.clone() for name, value in run.average.items()}
    for step in range(2, 4):
        run.advance(run.sampler.batch(step))
    assert run.net.dropped == recipe.finish_dropped
    for weights in (run.net.state_dict(), run.average):
        changed = {name.split(".")[0] for name, value in weights.items() if not value.equal(before[name])}
        assert changed == {"hidden", "object", "text", "words"}


def test_the_early_layers_and_depthwise_weights_stay_as_they_are(corpus: Corpus) -> None:
    pytest.importorskip("torch")
    from assetscore.encoders.lite.train import Recipe, Run

    run = Run(corpus.take(corpus.split == "train"), tiny_table(), Recipe(2, groups=2, warmup=1, phrases=16), None)
    before = {name: value.clone() for name, value in run.net.trunk.state_dict().items()}
    run.advance(run.sampler.batch(0))
    changed = {name for name, value in run.net.trunk.state_dict().items() if not value.equal(before[name])}
    assert changed
    assert not any(
        "depth" in name or name.startswith(("stem", "blocks.0.", "blocks.1.", "blocks.2.")) for name in changed
    )
