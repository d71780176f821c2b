"""What a user gets: names, a light import, a wheel with the data in it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import assetscore
from assetscore import errors

ROOT = Path(__file__).parents[1]

PUBLIC = [
    "AssetscoreError",
    "Config",
    "Encoder",
    "FactorScore",
    "Neighbour",
    "Profile",
    "ReferenceSet",
    "ResultTable",
    "Score",
    "Scorer",
    "Texture",
    "__version__",
    "get_encoder",
    "score",
]


def test_public_names() -> None:
    assert assetscore.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(assetscore, name) is not None
    assert set(PUBLIC) <= set(dir(assetscore))
    with pytest.raises(AttributeError, match="nothing_like_that"):
        assetscore.nothing_like_that  # noqa: B018


@pytest.mark.parametrize("module", ["assetscore", "assetscore.cli"])
def test_a_light_import(module: str) -> None:
    heavy = {"torch", "torchvision", "faiss", "numpy", "scipy", "PIL", "pyarrow", "open_clip", "jinja2", "rich.console"}
    code = f"import sys, {module}; print(*sorted(m for m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not heavy & set(loaded)


@pytest.mark.parametrize(
    "module", ["calibration", "neighbours", "images", "references", "results", "studies.agreement"]
)
def test_no_torch_below_the_encoders(module: str) -> None:
    code = f"import sys, assetscore.{module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "faiss"} & set(loaded)


def test_the_error_tree_in_the_docstring_is_the_tree() -> None:
    drawn: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    assert errors.__doc__ is not None
    for line in errors.__doc__.splitlines():
        name = line.strip(" │├└─").split(" ")[0]
        if not name.endswith("Error"):
            continue
        depth = line.index(name)
        stack = [(d, n) for d, n in stack if d < depth]
        drawn[name] = stack[-1][1] if stack else "Exception"
        stack.append((depth, name))
    real = {name: getattr(errors, name).__bases__[0].__name__ for name in errors.__all__}
    assert drawn == real


@pytest.mark.slow
def test_the_wheel_is_ready_to_use(tmp_path: Path) -> None:
    """Built, unpacked elsewhere and run there: the shipped profile and the demo come with it."""
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", tmp_path, ROOT]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip("hatchling is not installed: pip install hatchling")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert "assetscore/_data/calibration/dungeon-crawl/profile.json" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names if not name.startswith("assetscore-")} == {"assetscore"}
    code = (
        "import assetscore, numpy as np; print(assetscore.__file__); "
        "print(assetscore.score(np.eye(16, dtype=np.uint8) * 255, 'item').status)"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout.split()
    assert ran[0].startswith(str(tmp_path))
    assert ran[1] == "scored"


def test_nothing_that_must_not_be_shipped() -> None:
    """No weights of others, no game's art, no path of a machine, no host of a registry."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split(
        "\n"
    )
    if not tracked or tracked == [""]:
        pytest.skip("not a git checkout")
    for name in filter(None, tracked):
        assert not name.endswith((".jar", ".tmod", ".xnb", ".pt", ".pth", ".pkl")), name
        path = ROOT / name
        if (
            path.suffix in (".py", ".md", ".toml", ".json", ".yml", ".csv", "")
            and path.is_file()
            and name != "tests/test_package.py"
        ):
            text = path.read_text(encoding="utf-8", errors="replace")
            for bad in ("/" + "work/", "/" + "root/", "/" + "opt/venv", "pypi" + ".org", "registry.npmjs" + ".org"):
                assert bad not in text, (name, bad)
