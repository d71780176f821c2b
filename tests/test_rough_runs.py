"""Benchmark runs under what happens to them: other processes beside them, SIGKILL, full disks, damaged caches."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assetscore import Profile, ReferenceSet
from assetscore.encoders.pixelstats import PixelStats

from .conftest import sprite
from .makers_games import write_tree, zip_bytes
from .test_benchmark import mod

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")]

SUBMISSIONS = 12
PROMISED = ("results.parquet", "results.csv", "summary.csv", "report.html")
"""Equal byte for byte, however often a run was interrupted."""

Ask = Callable[..., list[int]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Runs several commands at once and gives their exit codes."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.forked"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )

    def ask(*jobs: dict[str, Any]) -> list[int]:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(jobs) + "\n")
        server.stdin.flush()
        codes: list[int] = json.loads(server.stdout.readline())
        return codes

    yield ask
    server.communicate(timeout=60)


@pytest.fixture(scope="module")
def whole(ask: Ask, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Submissions (ten mods, one broken, one empty), a profile, and what a run over them that nothing disturbs gives."""
    place = tmp_path_factory.mktemp("whole")
    for i in range(SUBMISSIONS - 2):
        mods = {f"task{i // 2}.jar": zip_bytes(mod(*range(3000 + 5 * i, 3005 + 5 * i)))}
        write_tree(place / "submissions" / f"model{i % 2}", mods)
    write_tree(place / "submissions" / "model0", {"broken.jar": b"PK\x03\x04", "empty/fabric.mod.json": b"{}"})
    refs = ReferenceSet.from_textures([(f"item/{i}", "item", sprite(i)) for i in range(30)], name="drawn")
    Profile.build(refs, PixelStats(), name="drawn").save(place / "drawn")
    assert ask(job_in(place, place)("out")) == [1], "the broken one fails"
    return place / "out"


def job_in(place: Path, whole: Path) -> Callable[..., dict[str, Any]]:
    def job(out: str, *, number: int = 0, **options: Any) -> dict[str, Any]:
        command = ["batch", "--submissions", str(whole / "submissions"), "--profile", str(whole / "drawn")]
        return {
            "arguments": [*command, "--out", str(place / out)],
            "home": str(place / "home"),
            "log": str(place / f"{out}{number}.log"),
            **options,
        }

    return job


@pytest.fixture
def job(whole: Path, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """One run over the submissions, into a folder of the test's own."""
    return job_in(tmp_path, whole.parent)


def parts(out: Path) -> int:
    return len(list((out / "parts").glob("*.parquet")))


def check_equal(first: Path, second: Path) -> None:
    for name in PROMISED:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    assert parts(second) == SUBMISSIONS
    left = sorted(path.name for path in second.rglob("*") if path.name.startswith("."))
    assert not left, "nothing half written is left"


def test_several_at_once(ask: Ask, job: Callable[..., dict[str, Any]], tmp_path: Path, whole: Path) -> None:
    """Three with folders of their own and two that share one, all on one cache that is not there yet."""
    jobs = [*(job(f"own{i}") for i in range(3)), *(job("shared", number=i) for i in range(2))]
    assert ask(*jobs) == [1] * 5
    for out in ("own0", "own1", "own2", "shared"):
        check_equal(whole, tmp_path / out)
    for started in jobs:
        log = Path(started["log"]).read_text()
        assert "damaged" not in log
        assert "not cached" not in log


def test_killed_again_and_again(ask: Ask, job: Callable[..., dict[str, Any]], tmp_path: Path, whole: Path) -> None:
    """SIGKILL at fifteen and more moments, some of them while results are written."""
    chance = random.Random(7)
    stopped: list[int] = []
    rounds = 0
    while len(stopped) < 15:
        out = f"out{rounds}"
        rounds += 1
        wait = 0.1
        while len(stopped) < 15 and ask(job(out, kill=wait)) == [-9]:
            stopped.append(parts(tmp_path / out))
            wait = 1.4 * wait + chance.uniform(0, 0.05)
        assert ask(job(out)) == [1]
        for name in (tmp_path / out).rglob(".*.tmp"):
            name.unlink()  # of the moment between writing a file and giving it its name
        check_equal(whole, tmp_path / out)
    assert len(set(stopped)) > 1, "at different moments"


@pytest.mark.parametrize("limit", [4_000, 20_000, 60_000])
def test_a_disk_that_is_full(
    limit: int, ask: Ask, job: Callable[..., dict[str, Any]], tmp_path: Path, whole: Path
) -> None:
    """The error names the file, what was there stays whole, and the next run goes on."""
    (out := tmp_path / "out").mkdir()
    (out / "results.csv").write_bytes(b"of an earlier run")
    assert ask(job("out", limit=limit, number=0)) == [2]
    error = Path(job("out", number=0)["log"]).read_text().strip().splitlines()[-1]
    assert error.startswith("assetscore: [Errno 27] File too large: '")
    assert str(out) in error
    assert (out / "results.csv").read_bytes() == b"of an earlier run" or "report.html" in error
    finished = parts(out)
    assert ask(job("out", number=1)) == [1]
    log = Path(job("out", number=1)["log"]).read_text()
    assert (f"{finished} of {SUBMISSIONS} submissions were scored before" in log) == (finished > 0)
    check_equal(whole, out)


CACHES: dict[str, Callable[[Path], object]] = {
    "rubbish": lambda path: path.write_bytes(b"rubbish" * 999),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link to nowhere": lambda path: (path.unlink(), path.symlink_to(path.parent / "no" / "where")),
    "another version": lambda path: (
        path.unlink(),
        sqlite3.connect(path).executescript("CREATE TABLE vectors (x)"),
    ),
}


@pytest.mark.parametrize("kind", CACHES)
def test_a_damaged_cache_costs_time_and_no_result(
    kind: str, ask: Ask, job: Callable[..., dict[str, Any]], tmp_path: Path, whole: Path
) -> None:
    shutil.copytree(whole.parent / "home", tmp_path / "home")
    CACHES[kind](tmp_path / "home" / "cache" / "embeddings.sqlite")
    assert ask(job("first"), job("second")) == [1, 1]
    for out in ("first", "second"):
        check_equal(whole, tmp_path / out)
        assert "Traceback" not in Path(job(out)["log"]).read_text()
