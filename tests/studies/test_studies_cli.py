"""The commands, as they are typed: results on stdout, remarks on stderr, exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from dataclasses import replace

import numpy as np
import pytest
import typer
from PIL import Image

from assetscore import cli
from assetscore.studies.cli import register
from assetscore.studies.rating.store import Store
from assetscore.studies.votes import Vote, read_votes, write_votes
from assetscore.table import ResultTable

from .planted import art, planted

if "sweep" not in {command.name for command in cli.app.registered_commands}:
    register(cli.app)


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = 0
        try:
            cli.main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A saved study: profile, results of two encoders and two builds, votes."""
    folder = tmp_path_factory.mktemp("files")
    profile, table, _ = planted()
    profile.save(folder / "profile")
    table.write(folder / "results.csv")
    rng = np.random.default_rng(3)
    noisy = tuple(
        replace(r, encoder="other:1", both_pass=None if r.both_pass is None else bool(rng.random() < 0.5),
                style_s=None if r.style_s is None else r.style_s + rng.normal(scale=0.3))
        for r in table
    )  # fmt: skip
    ResultTable(noisy).write(folder / "other.csv")
    better = tuple(
        replace(r, style_pass=True, sem_pass=True, both_pass=True) if r.group == "poor" else r for r in table
    )
    ResultTable(better).write(folder / "better.csv")
    votes = [
        Vote(r.asset_id, f"r{i}", q, "yes" if (s or 0) + rng.normal(scale=0.05) > 0.8 else "no")
        for r in table
        for q, s in (("style", r.style_s), ("object", r.sem_s))
        for i in range(3)
    ]
    write_votes(folder / "votes.csv", votes)
    return folder


def test_sweep_prints_both_tables(run, files):
    code, out, _ = run("sweep", files / "results.csv", "--profile", files / "profile", "--votes", files / "votes.csv")
    assert code == 0
    assert re.search(r"^0\.15 .*<- used$", out, re.M)
    assert re.search(r"^5 +0\.\d\d +1\.000 +1\.00 .*<- used$", out, re.M)
    code, out, _ = run(
        "sweep", files / "results.csv", "--profile", files / "profile", "--json", "--alpha", "0.1", "--k", "3"
    )
    read = json.loads(out)
    assert {(cell["alpha"], cell["k"]) for cell in read["cells"]} == {(0.1, 3), (0.1, 5), (0.15, 3), (0.15, 5)}
    code, out, _ = run("sweep", files / "results.csv", "--profile", files / "profile", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out.split("\n\n")[1])))
    assert [row["k"] for row in rows] == ["1", "3", "5", "10", "20"]


def test_sweep_of_a_profile_alone(run, files):
    code, out, _ = run("sweep", "--profile", files / "profile", "--json")
    assert code == 0
    assert json.loads(out)["assets"] == 0


def test_sweep_draws_its_figures(run, files, tmp_path):
    pytest.importorskip("matplotlib")
    arguments = ("sweep", files / "results.csv", "--profile", files / "profile", "--votes", files / "votes.csv")
    code, _, err = run(*arguments, "--plot", tmp_path / "figures")
    assert code == 0
    assert "alpha.png" in err
    for name in ("alpha.png", "k.png"):
        assert Image.open(tmp_path / "figures" / name).size[0] > 800


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sweep", "--votes", "votes.csv", "--profile", "profile"), "votes need results"),
        (("sweep", "results.csv", "--profile", "profile", "--k", "21"), "between 1 and 20"),
        (("sweep", "results.csv", "--profile", "profile", "--alpha", "2"), "alpha"),
        (("sweep", "results.csv", "--profile", "profile", "--format", "pdf"), "format must be"),
        (("sweep", "other.csv", "--profile", "profile"), "other:1"),
        (("agree", "results.csv", "results.csv"), "line 1: column 'asset' is missing"),
        (("agree", "votes.csv"), ""),
        (("agree", "votes.csv", "none.csv"), "none.csv"),
        (("compare", "results.csv"), "two results"),
        (("compare", "results.csv", "better.csv", "--measure", "beauty"), "measure must be"),
        (("compare", "results.csv", "better.csv", "--aim", "beauty"), "no measure 'beauty'"),
        (("compare", "results.csv", "better.csv", "--by", "groop"), "by must be one of group, task"),
        (("compare", "results.csv", "other.csv", "--by", "groop"), "by must be one of group, task"),
        (("compare", "results.csv", "better.csv", "--aim", "pass_both", "--by", "groop"), "by must be one of"),
        (("compare", "results.csv", "other.csv", "--aim", "pass_both"), "different encoders"),
        (("compare", "results.csv", "better.csv", "--aim", "pass_both", "--page", "p.html"), "--page"),
        (("compare", "results.csv", "other.csv", "--page", "p.html"), "--page"),
        (("compare", "results.csv", "better.csv", "--aim", "pass_both", "--gain", "nan"), "gain and loss"),
        (("study", "make", "results.csv", "new", "--profile", "profile", "--seed", "-1"), "--seed"),
        (("study", "export", "."), "nobody has rated"),
        (("study", "serve", "none"), "no such study folder"),
        (("study", "coherence", "profile", "--encoder", "none"), "not known"),
    ],
)
def test_wrong_use_is_exit_code_2_and_one_line(run, files, monkeypatch, arguments, says):
    monkeypatch.chdir(files)
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert says in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "command",
    [
        ("agree", "votes.csv", "results.csv"),
        ("compare", "results.csv", "better.csv"),
        ("compare", "results.csv", "other.csv"),
        ("compare", "results.csv", "better.csv", "--aim", "pass_both"),
    ],
    ids=["agree", "builds", "encoders", "best"],
)
@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("seed", ("-1", "1.5", "x", "")),
        ("resamples", ("-1", "0", "99999999999", "2.5", "nan")),
        ("level", ("-1", "0", "1", "95", "nan", "inf", "x")),
    ],
)
def test_a_setting_of_the_intervals_that_cannot_be_used_is_named(run, files, monkeypatch, command, option, values):
    """Whatever the command makes of it, and never as a traceback."""
    monkeypatch.chdir(files)
    for value in values:
        code, out, err = run(*command, f"--{option}={value}")
        assert (code, out) == (2, "")
        assert re.search(rf"(^|\W){option}\b", err)
        assert "Traceback" not in err


@pytest.mark.parametrize(
    ("option", "values"),
    [("alpha", ("0", "1", "-0.1", "nan", "x")), ("k", ("0", "-1", "21", "2.5")), ("base-alpha", ("0", "2", "nan")),
     ("base-k", ("0", "21", "1.5"))],
)  # fmt: skip
def test_a_setting_of_the_sweep_that_cannot_be_used_is_named(run, files, monkeypatch, option, values):
    monkeypatch.chdir(files)
    for value in values:
        code, out, err = run("sweep", "results.csv", "--profile", "profile", f"--{option}={value}")
        assert (code, out) == (2, "")
        assert option.removeprefix("base-") in err
        assert "Traceback" not in err


def test_a_huge_seed_is_a_seed(run, files):
    assert run("agree", files / "votes.csv", files / "results.csv", "--seed", 10**30, "--resamples", 50)[0] == 0


def test_agree_prints_table_14_and_the_paired_comparison(run, files):
    code, out, err = run("agree", files / "votes.csv", files / "results.csv", files / "other.csv", "--resamples", 200)
    assert code == 0
    assert re.search(r"projection:test +style +0\.9\d \[0\.\d\d, 1?\.?0?\.?\d+", out)
    assert re.search(r"^question +raters +answers", out, re.M)
    assert re.search(
        r"^style: AUROC of results\.csv minus other\.csv, \d+ assets .*: 0\.\d+ \[.*DeLong p = ", out, re.M
    )
    assert out.startswith("Scores and verdicts against the raters' majority, 95 % intervals\n")
    assert re.search(r"style: assets with a majority but no score: \d+\n", err)
    code, out, _ = run(
        "agree", files / "votes.csv", files / "results.csv", files / "other.csv", "--json", "--resamples", 50
    )
    read = json.loads(out)
    assert [part["question"] for part in read["results"][0]["questions"]] == ["style", "object"]
    assert read["paired"][0]["difference"]["value"] > 0
    code, out, _ = run("agree", files / "votes.csv", files / "results.csv", "--format", "markdown", "--resamples", 50)
    assert out.startswith("| encoder | question | AUROC |")
    assert "intervals\n" not in out


def test_agree_says_why_there_is_no_number(run, files, tmp_path):
    write_votes(tmp_path / "one.csv", [Vote(f"a{i}", "ana", "style", "yes") for i in range(5)])
    code, out, _ = run("agree", tmp_path / "one.csv", files / "results.csv", "--resamples", 50)
    assert code == 0
    assert re.search(r"^\(\d\) one rater only", out, re.M)
    assert re.search(r"^\(\d\) both classes are needed", out, re.M)
    assert " - (1)" in out


def test_compare_two_builds(run, files, tmp_path):
    code, out, err = run("compare", files / "results.csv", files / "better.csv", "--page", tmp_path / "page.html")
    assert code == 0
    assert re.search(r"^assets: \d+ changed, 0 gained, 0 lost, \d+ same$", out, re.M)
    assert re.search(r"^pass_both over 3 groups: mean change 0\.\d+ .*1 higher, 0 lower, 2 equal", out, re.M)
    decided = re.search(r"^shares of the assets with a verdict \((\d+) before, (\d+) after\):$", out, re.M)
    rows = ResultTable.read(files / "results.csv")
    assert decided.groups() == (str(sum(r.both_pass is not None for r in rows)),) * 2
    assert "page.html" in err
    assert "<article>" in (tmp_path / "page.html").read_text()
    code, out, _ = run("compare", files / "results.csv", files / "better.csv", "--json", "--resamples", 100)
    assert json.loads(out)["tasks"]["result"]["wins"] == 1


def test_compare_says_what_it_cannot_compare(run, files, tmp_path):
    """One group in common, none, a group without a partner, and no verdict on one side: each is said, none ends it."""
    table = ResultTable.read(files / "results.csv")
    renamed = {"good": ("good",), "none": (), "more": ("good", "fair")}
    for name, kept in renamed.items():
        rows = tuple(r if r.group in kept else replace(r, group="else") for r in table)
        ResultTable(rows).write(tmp_path / f"{name}.csv")
    ResultTable(tuple(replace(r, status="uncalibrated", both_pass=None) for r in table)).write(tmp_path / "never.csv")
    said = {
        "good": "no comparison over groups: 1 in common, at least two are needed",
        "none": "no comparison over groups: 0 in common, at least two are needed",
        "more": "left out, groups that have a number in results.csv alone: 1 (poor)",
        "never": "no comparison over groups: no group has a number for pass_both in both",
    }
    for name, words in said.items():
        code, out, err = run("compare", files / "results.csv", tmp_path / f"{name}.csv")
        assert code == 0
        assert words in err
        assert out.startswith("assets: ")
    tasks = json.loads(run("compare", files / "results.csv", tmp_path / "none.csv", "--json")[1])["tasks"]
    assert tasks == {"reason": said["none"]}


def test_compare_says_that_thresholds_differ(run, files, tmp_path):
    from assetscore.profile import Profile

    table = ResultTable.read(files / "results.csv")
    table.rethreshold(alpha=0.25, profile=Profile.load(files / "profile")).write(tmp_path / "strict.csv")
    code, _, err = run("compare", files / "results.csv", tmp_path / "strict.csv")
    assert code == 0
    assert "style thresholds differ for" in err
    assert "another alpha, k or rule" in err


def test_compare_two_encoders(run, files):
    code, out, _ = run("compare", files / "results.csv", files / "other.csv")
    assert code == 0
    assert "are 3 groups in the same order by pass_both?" in out
    assert re.search(r"Spearman .*\d|no number: ", out)
    assert re.search(r"^best under results.csv: \w+", out, re.M)
    assert json.loads(run("compare", files / "results.csv", files / "other.csv", "--json")[1])["kind"] == "encoders"


def test_compare_keeps_the_best(run, files):
    builds = [files / name for name in ("results.csv", "results.csv", "better.csv", "results.csv")]
    code, out, _ = run("compare", *builds, "--aim", "pass_both")
    assert code == 0
    assert out.splitlines()[-1] == "keep better.csv"
    assert json.loads(run("compare", *builds, "--aim", "pass_both", "--json")[1])["best"] == 2


def test_compare_keeps_no_build_without_a_number(run, files, tmp_path):
    table = ResultTable.read(files / "results.csv")
    ResultTable(tuple(replace(r, status="empty", both_pass=None) for r in table)).write(tmp_path / "never.csv")
    never, builds = tmp_path / "never.csv", (tmp_path / "never.csv", files / "results.csv")
    out = run("compare", *builds, "--aim", "pass_both")[1]
    assert "the first build with a number for pass_both" in out
    assert out.splitlines()[-1] == "keep results.csv"
    out = run("compare", never, never, "--aim", "pass_both")[1]
    assert out.splitlines()[-1] == "keep never.csv  (no build has a number for pass_both, so the first is kept)"
    read = json.loads(run("compare", never, never, "--aim", "pass_both", "--json")[1])
    assert read["builds"][0]["pass_both"] is None
    assert "no build has a number" in read["reason"]


BEST, ORDER, BUILDS = ("--aim", "pass_both"), ("other.csv",), ("better.csv",)


@pytest.mark.parametrize(
    ("second", "extra", "option", "value", "says"),
    [
        *((BUILDS, BEST, o, v, "--aim") for o, v in [("by", "group"), ("measure", "custom"), ("level", "0.9")]),
        *((BUILDS, BEST, o, v, "--aim") for o, v in [("seed", "0"), ("resamples", "100")]),
        *((BUILDS, (), o, v, "without --aim") for o, v in [("gain", "0.2"), ("loss", "0.05"), ("patience", "3")]),
        *((ORDER, (), o, v, "without --aim") for o, v in [("gain", "0.2"), ("loss", "0.05"), ("patience", "3")]),
        *((ORDER, (), o, v, "no interval") for o, v in [("level", "0.9"), ("seed", "0"), ("resamples", "100")]),
    ],
)
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_an_option_without_effect_is_refused(run, files, monkeypatch, second, extra, option, value, says, as_json):
    """Even with its default as the value: whoever types it expects something of it."""
    monkeypatch.chdir(files)
    code, out, err = run("compare", "results.csv", *second, *extra, f"--{option}", value, *as_json)
    assert (code, out) == (2, "")
    assert f"--{option} has no effect here" in err
    assert says in err


def test_the_options_of_compare_are_all_sorted():
    """A new option must be said to work everywhere, or be refused where it does not."""
    command = typer.main.get_command(cli.app).commands["compare"]
    everywhere = {"results", "as_json"}
    some = {"page", "aim", "by", "measure", "level", "seed", "resamples", "gain", "loss", "patience"}
    assert {parameter.name for parameter in command.params} == everywhere | some


def test_keeping_the_best_says_that_thresholds_differ(run, files, tmp_path):
    from assetscore.profile import Profile

    table = ResultTable.read(files / "results.csv")
    table.rethreshold(alpha=0.05, profile=Profile.load(files / "profile")).write(tmp_path / "loose.csv")
    builds = [files / "results.csv", files / "better.csv", tmp_path / "loose.csv"]
    code, _, err = run("compare", *builds, "--aim", "pass_both")
    assert code == 0
    assert "build 2 was judged with another alpha, k or rule than build 0" in err
    assert "build 1" not in err
    assert len(json.loads(run("compare", *builds, "--aim", "pass_both", "--json")[1])["remarks"]) == 1


def test_compare_of_another_k_claims_no_other_picture(run, files, tmp_path):
    from assetscore.profile import Profile

    table = ResultTable.read(files / "results.csv")
    table.rethreshold(k=10, profile=Profile.load(files / "profile")).write(tmp_path / "ten.csv")
    code, out, err = run("compare", files / "results.csv", tmp_path / "ten.csv")
    assert code == 0
    assert "picture" not in out
    assert "another alpha, k or rule" in err


@pytest.mark.parametrize("format", ["text", "csv"])
def test_one_encoders_results_are_told_apart_by_their_files(run, files, tmp_path, format):
    from assetscore.profile import Profile

    table = ResultTable.read(files / "results.csv")
    table.rethreshold(k=10, profile=Profile.load(files / "profile")).write(tmp_path / "ten.csv")
    given = ("agree", files / "votes.csv", files / "results.csv", tmp_path / "ten.csv")
    code, out, err = run(*given, "--resamples", 50, "--format", format)
    assert code == 0
    for name in ("results.csv", "ten.csv"):
        assert len(re.findall(rf'^"?projection:test, {re.escape(name)}"?,? ', out.replace('",', '", '), re.M)) == 2
        assert f"projection:test, {name}, style: assets with a majority but no score" in err


def test_a_file_of_the_sweep_keeps_every_digit(run, files):
    out = run("sweep", files / "results.csv", "--profile", files / "profile", "--format", "csv")[1]
    by_k = list(csv.DictReader(io.StringIO(out.split("\n\n")[1])))
    swept = json.loads(run("sweep", files / "results.csv", "--profile", files / "profile", "--json")[1])
    cells = {str(cell["k"]): cell for cell in swept["cells"] if cell["alpha"] == swept["base"]["alpha"]}
    columns = {"pass": "pass_rate", "rank": "rank_correlation", "same": "same_verdict", "order": "group_order"}
    for line in by_k:
        for shown, name in columns.items():
            assert float(line[f"style {shown}"]) == pytest.approx(cells[line["k"]]["style"][name], abs=1e-6)
            assert float(line[f"sem {shown}"]) == pytest.approx(cells[line["k"]]["semantic"][name], abs=1e-6)


def test_make_names_what_a_killed_run_left(run, files, tmp_path):
    (tmp_path / ".study-0123456789abcdef").mkdir()
    rows = []
    for i in range(2):
        path = tmp_path / f"{i}.png"
        Image.fromarray(np.full((8, 8, 3), 90 + 60 * i, np.uint8)).save(path)
        rows.append(replace(ResultTable.read(files / "results.csv").rows[1], asset_id=f"{i}", path=str(path)))
    ResultTable(tuple(rows)).write(tmp_path / "r.csv")
    code, out, err = run("study", "make", tmp_path / "r.csv", tmp_path / "s", "--profile", files / "profile", "--json")
    assert code == 0
    assert f"unfinished study of a run that was killed, or that runs now; delete it if none does: {tmp_path}" in err
    assert json.loads(out)["unfinished"] == [str(tmp_path / ".study-0123456789abcdef")]


def test_results_of_one_name_are_told_apart(run, files, tmp_path):
    for folder, source in (("first", "results.csv"), ("second", "better.csv")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "results.csv").write_bytes((files / source).read_bytes())
    builds = [tmp_path / folder / "results.csv" for folder in ("first", "second")]
    out = run("compare", *builds, "--aim", "pass_both")[1]
    assert out.splitlines()[-1] == f"keep {builds[1]}"


def test_export(run, study_folder, tmp_path):
    store = Store(study_folder / "answers.sqlite")
    store.record(store.rater("Ana"), "asset-1", {"style": "yes", "object": "unsure"})
    code, out, err = run("study", "export", study_folder)
    assert (code, out) == (0, "asset,rater,question,answer\nasset-1,Ana,style,yes\nasset-1,Ana,object,unsure\n")
    assert "answers: 2, raters: 1" in err
    code, out, _ = run("study", "export", study_folder, "-o", tmp_path / "votes.csv")
    assert (code, out) == (0, "")
    assert len(read_votes(tmp_path / "votes.csv").votes) == 2
    assert json.loads(run("study", "export", study_folder, "--json")[1])[1]["answer"] == "unsure"


def test_make_a_study_serve_it_and_hold_the_votes_against_the_results(run, files, tmp_path):
    """The whole circle without a browser: results, folder, answers, votes, agreement."""
    pytest.importorskip("flask")
    from assetscore.studies.rating.app import create_app
    from assetscore.studies.rating.study import read_study

    table = ResultTable.read(files / "results.csv")
    rng = np.random.default_rng(0)
    rows = []
    for row in table:
        path = tmp_path / f"{row.asset_id} by a secret model.png"
        if row.status == "scored":
            Image.fromarray(art(rng, np.full((8, 8, 3), 128.0), 60)).save(path)
        rows.append(replace(row, path=str(path)))
    ResultTable(tuple(rows)).write(tmp_path / "results.csv")
    make = ("study", "make", tmp_path / "results.csv", tmp_path / "study", "--profile", files / "profile", "-n", 12)
    code, out, _ = run(*make)
    assert (code, out.startswith("textures: 12, groups: 3")) == (0, True)
    assert run(*make)[0] == 2, "a folder with something in it is not written over"
    study = read_study(tmp_path / "study")
    assert len(study.items) == 12
    assert {len(panel) for panel in study.panels.values()} == {24}
    assert "secret" not in (tmp_path / "study" / "manifest.csv").read_text()
    groups = [row.group for row in rows if row.asset_id in study.items]
    assert {groups.count(group) for group in groups} == {4}
    client = create_app(study, Store(tmp_path / "study" / "answers.sqlite")).test_client()
    client.post("/start", data={"name": "Ana"})
    for _ in range(12):
        page = client.get("/rate", follow_redirects=True).get_data(as_text=True)
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([0-9a-f]+)"', page))
        client.post("/rate", data={**hidden, "style": "yes", "object": "no"})
    assert run("study", "export", tmp_path / "study", "-o", tmp_path / "votes.csv")[0] == 0
    code, out, _ = run("agree", tmp_path / "votes.csv", tmp_path / "results.csv", "--json", "--resamples", 20)
    assert code == 0
    assert json.loads(out)["results"][0]["questions"][0]["accepted"] == 12


def test_a_study_needs_files_and_ids(run, files, tmp_path):
    command = ("study", "make", files / "results.csv", tmp_path / "study", "--profile", files / "profile")
    code, _, err = run(*command)
    assert code == 2
    assert "run this where the textures lie" in err


def test_coherence_lists_the_odd_one_first(run, tmp_path):
    rng = np.random.default_rng(0)
    centre = rng.uniform(40, 220, (8, 8, 3))
    (tmp_path / "set").mkdir()
    for i in range(8):
        Image.fromarray(art(rng, centre, 20)).save(tmp_path / "set" / f"{i}.png")
    Image.new("RGB", (8, 8), (255, 0, 255)).save(tmp_path / "set" / "odd.png")
    code, out, _ = run("study", "coherence", tmp_path / "set", "--page", tmp_path / "page.html")
    assert code == 0
    text = (tmp_path / "page.html").read_text()
    assert text.count("<figure") == text.count("data:image/png") == 9
    assert text.index("odd.png") < text.index("0.png")
    assert str(tmp_path) not in text
    assert out.splitlines()[2].endswith("odd.png")
    assert "z: robust standard deviations from the median" in out.splitlines()[1]
    (tmp_path / "set" / "broken.png").write_bytes(b"x")
    code, out, err = run("study", "coherence", tmp_path / "set", "--json")
    assert code == 1
    assert json.loads(out)["members"][0]["asset_id"] == "odd.png"
    assert "broken.png" in err
    assert run("study", "coherence", tmp_path)[0] == 1
    (tmp_path / "none").mkdir()
    assert run("study", "coherence", tmp_path / "none")[0] == 2


def seeded(command, path=()):
    """Every command with a --seed, by its words."""
    for name, sub in getattr(command, "commands", {}).items():
        yield from seeded(sub, (*path, name))
    if any("--seed" in parameter.opts for parameter in command.params):
        yield path


SEEDED = list(seeded(typer.main.get_command(cli.app)))


def test_the_commands_with_a_seed():
    assert {("agree",), ("compare",), ("study", "make")} <= set(SEEDED)


@pytest.mark.parametrize("seed", ["-1", "-99999999999999999999", "x", "1.5", ""])
@pytest.mark.parametrize("command", SEEDED, ids=" ".join)
def test_a_seed_that_is_none_is_refused_at_the_option(run, files, tmp_path, command, seed):
    arguments = {"agree": ["votes.csv", "results.csv"], "make": ["results.csv", tmp_path / "study"]}
    given = [files / a for a in arguments.get(command[-1], ["results.csv", "better.csv"])]
    code, out, err = run(*command, *given, "--seed", seed)
    assert (code, out) == (2, "")
    assert "--seed" in err
    assert "Traceback" not in err
    assert not (tmp_path / "study").exists()


SERVE = "import sys; from assetscore import cli\nfrom assetscore.studies.cli import register\n"
SERVE += "if 'sweep' not in {c.name for c in cli.app.registered_commands}: register(cli.app)\n"
SERVE += "cli.main(sys.argv[1:])\n"


def test_serve_until_interrupted(study_folder):
    pytest.importorskip("flask")
    pytest.importorskip("waitress")
    command = [sys.executable, "-c", SERVE, "study", "serve", str(study_folder), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=os.getcwd())
    text = ""
    while not text.endswith("}\n"):
        line = process.stdout.readline()
        assert line, process.stderr.read()
        text += line
    told = json.loads(text)
    assert told["url"].startswith("http://127.0.0.1:")
    assert told["textures"] == 6
    with urllib.request.urlopen(told["url"], timeout=10) as response:
        assert "Rating textures" in response.read().decode()
    second = [*command[:-3], "--port", told["url"].rsplit(":", 1)[1]]
    taken = subprocess.run(second, capture_output=True, text=True, timeout=60)
    assert taken.returncode == 2
    assert "cannot listen" in taken.stderr
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=15) == 0
    assert "Traceback" not in process.stderr.read()
