"""ResultTable: one row an asset, as Parquet, CSV or JSON; judged again for another alpha or k from what it keeps."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from .errors import ManifestError, ProfileMismatchError, UsageError
from .folders import write_atomically
from .results import NOT_OWN, Score, Status
from .text import counted

if TYPE_CHECKING:
    from .calibration import Rule
    from .profile import Profile

__all__ = ["ResultTable", "Row"]


@dataclass(frozen=True)
class Row:
    """One asset's result, flat. None stands for what does not exist: no similarity, no threshold, no verdict.

    `group` is the model of a benchmark's submission, `task` what the submission answers; `use` is how the game shows
    the texture, where a mod was read. The last two are empty for plain files.
    """

    asset_id: str
    game: str = ""
    category: str = ""
    group: str = ""
    path: str = ""
    status: Status = "scored"
    reason: str = ""
    style_s: float | None = None
    style_tau: float | None = None
    style_margin: float | None = None
    style_p: float | None = None
    style_pass: bool | None = None
    sem_factor: str | None = None
    sem_s: float | None = None
    sem_tau: float | None = None
    sem_margin: float | None = None
    sem_p: float | None = None
    sem_pass: bool | None = None
    both_pass: bool | None = None
    borderline: bool = False
    grid: int = 1
    frames: int = 1
    nearest: tuple[str, ...] = ()
    top_style: tuple[float, ...] = field(default=(), repr=False)
    top_sem: tuple[float, ...] = field(default=(), repr=False)
    encoder: str = ""
    profile: str = ""
    task: str = ""
    use: str = ""
    flags: tuple[str, ...] = ()
    profile_fingerprint: str = ""

    @classmethod
    def from_score(cls, score: Score) -> Row:
        """The flat form of a Score."""
        style, semantic = score.style, score.semantic
        return cls(
            asset_id=score.asset_id,
            game=score.game,
            category=score.category,
            group=score.group,
            path=score.path,
            status=score.status,
            reason=score.reason,
            style_s=style.similarity,
            style_tau=style.threshold,
            style_margin=style.margin,
            style_p=style.p_value,
            style_pass=style.passed,
            sem_factor=None if semantic is None else semantic.factor,
            sem_s=None if semantic is None else semantic.similarity,
            sem_tau=None if semantic is None else semantic.threshold,
            sem_margin=None if semantic is None else semantic.margin,
            sem_p=None if semantic is None else semantic.p_value,
            sem_pass=None if semantic is None else semantic.passed,
            both_pass=score.passed,
            borderline=score.borderline,
            grid=score.grid,
            frames=score.frames,
            nearest=tuple(n.reference for n in style.neighbours),
            top_style=style.top,
            top_sem=() if semantic is None else semantic.top,
            encoder=score.encoder,
            profile=score.profile,
            task=score.task,
            use=score.use,
            flags=score.flags,
            profile_fingerprint=score.profile_fingerprint,
        )

    @property
    def custom(self) -> bool:
        """Own readable artwork."""
        return self.status not in NOT_OWN


COLUMNS = tuple(field_.name for field_ in fields(Row))
_LISTS = ("nearest", "top_style", "top_sem", "flags")
_FLOATS = tuple(f"{check}_{name}" for check in ("style", "sem") for name in ("s", "tau", "margin", "p"))
_LATER = ("task", "use", "flags", "profile_fingerprint")
"""Columns that older results lack."""
_BOOLS = ("style_pass", "sem_pass", "both_pass", "borderline")


@dataclass(frozen=True, repr=False)
class ResultTable:
    """Rows in the order of the assets.

    Attributes:
        rows: one `Row` an asset.
        profile: what they were scored with, where it is at hand; `rethreshold` needs it.
    """

    rows: tuple[Row, ...]
    profile: Profile | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_scores(cls, scores: Iterable[Score], profile: Profile | None = None) -> ResultTable:
        return cls(tuple(Row.from_score(score) for score in scores), profile)

    def __repr__(self) -> str:
        statuses = counted(Counter(row.status for row in self.rows), most=8) or "no rows"
        passed = sum(row.both_pass is True for row in self.rows)
        profiles = sorted({f"{row.profile[:40]} {row.profile_fingerprint[:12]}" for row in self.rows})
        by = "".join(f"; {profile}" for profile in profiles[:3]) + ("; ..." if len(profiles) > 3 else "")
        return f"<ResultTable of {len(self)}: {statuses}; {passed} passed{by}>"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def column(self, name: str) -> list[Any]:
        """One column's values, in row order."""
        if name not in COLUMNS:
            raise UsageError(f"column {name!r} is not known; known are: {', '.join(COLUMNS)}")
        return [getattr(row, name) for row in self.rows]

    def rethreshold(
        self,
        *,
        alpha: float | None = None,
        k: int | None = None,
        rule: Rule | None = None,
        profile: Profile | None = None,
    ) -> ResultTable:
        """The same assets judged for another alpha, k (up to 20) or rule, from the similarities the rows keep.

        Args:
            alpha, k, rule: None keeps the profile's own.
            profile: what the rows were scored with; default the table's.

        Raises:
            UsageError: no profile is at hand, or k is larger than the 20 similarities kept.
            ProfileMismatchError: the rows were made with another encoder or profile.
        """
        profile = profile or self.profile
        if profile is None:
            raise UsageError("rethreshold needs the profile the table was scored with: pass profile=")
        from .rejudge import rejudged

        config = profile.config.with_(alpha=alpha, k=k, rule=rule)
        rows = []
        for row in self.rows:
            check_row(row, profile)
            rows.append(rejudged(row, profile, config) if row.top_style else row)
        return replace(self, rows=tuple(rows), profile=profile)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Plain JSON types, one dictionary a row."""
        return [{**asdict(row), **{name: list(getattr(row, name)) for name in _LISTS}} for row in self.rows]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write as Parquet, CSV or JSON, by the ending; in CSV, lists are JSON texts and None is empty."""
        path = Path(path)
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            file = io.BytesIO()
            pq.write_table(self.to_arrow(), file)
            content = file.getvalue()
        elif path.suffix == ".csv":
            content = self.to_csv().encode("utf-8", "replace")
        elif path.suffix == ".json":
            content = (json.dumps(self.to_dicts(), indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        else:
            raise UsageError(f"results are written as .parquet, .csv or .json, got {path.name!r}")
        write_atomically(path, content)

    def to_arrow(self) -> Any:
        """The rows as a pyarrow Table. Half of a surrogate pair, from a file name in another encoding, becomes "?"."""
        import pyarrow as pa

        records = [{name: _encodable(value) for name, value in record.items()} for record in self.to_dicts()]
        return pa.Table.from_pylist(records, schema=_arrow_schema())

    def to_csv(self) -> str:
        """The rows as CSV text."""
        out = io.StringIO()
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\r\n")  # so that a lone \r or \n is quoted
        writer.writeheader()
        for values in self.to_dicts():
            writer.writerow({name: _csv_cell(value) for name, value in values.items()})
        return out.getvalue()

    @classmethod
    def read(cls, path: str | os.PathLike[str], profile: Profile | None = None) -> ResultTable:
        """Read what `write` wrote.

        Raises:
            ManifestError: a column is missing, or a value cannot be read; the line is named.
        """
        path = Path(path)
        if path.suffix not in (".parquet", ".csv", ".json"):
            raise UsageError(f"results are read from .parquet, .csv or .json, got {path.name!r}")
        try:
            records = _records(path)
        except (OSError, ValueError, RecursionError, csv.Error) as error:  # pyarrow's own are ValueErrors and OSErrors
            raise ManifestError(f"{path}: no results table: {error}") from error
        return cls(tuple(_read_row(record, line, path) for line, record in enumerate(records, 2)), profile)


def check_row(row: Row, profile: Any) -> None:
    """Raise a ProfileMismatchError where the row was scored with another encoder or profile than this one."""
    if row.encoder and row.encoder != profile.encoder_fingerprint:
        raise ProfileMismatchError(
            f"row {row.asset_id!r} was scored with encoder {row.encoder}, "
            f"profile {profile.name!r} holds {profile.encoder_fingerprint}"
        )
    fingerprint = getattr(profile, "fingerprint", "")  # saved calibrations have none
    if row.profile_fingerprint and fingerprint and row.profile_fingerprint != fingerprint:
        raise ProfileMismatchError(
            f"row {row.asset_id!r} was scored with profile {row.profile!r} ({row.profile_fingerprint[:12]}), "
            f"got {profile.name!r} ({fingerprint[:12]})"
        )


def _records(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        records: Any = pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            records = list(csv.DictReader(file))
    else:
        records = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise ValueError("expected a list of rows")
    return records


def _encodable(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) and not value.isascii() else value


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list):
        return json.dumps(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if not isinstance(value, float) else repr(value)


def _read_row(record: dict[str, Any], line: int, path: Path) -> Row:
    record = {**dict.fromkeys(_LATER, ""), **record}
    missing = [name for name in COLUMNS if name not in record]
    if missing:
        raise ManifestError(f"{path}: no results table: column {missing[0]!r} is missing")
    values: dict[str, Any] = {}
    try:
        for name in COLUMNS:
            value = record[name]
            if isinstance(value, str):
                value = _from_text(name, value)
            values[name] = _of_its_kind(name, value)
    except (ValueError, TypeError) as error:
        raise ManifestError(f"{path}, line {line}: column {name!r}: {error}") from error
    return Row(**values)


def _of_its_kind(name: str, value: Any) -> Any:
    """The value, or a ValueError where no Row can hold it in this column."""
    if name in _LISTS:
        kind = str if name in ("nearest", "flags") else (int, float)
        values = tuple(value or ())
        if not isinstance(value, (list, tuple, type(None))) or not all(isinstance(v, kind) for v in values):
            raise ValueError(f"cannot be {value!r}")
        return values
    if name in _FLOATS:
        fits = value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value))
    elif name in _BOOLS:
        fits = isinstance(value, bool) or (value is None and name != "borderline")
    elif name in ("grid", "frames"):
        fits = type(value) is int and value >= 1
    elif name == "status":
        fits = value in get_args(Status)
    else:
        fits = isinstance(value, str) or (value is None and name == "sem_factor")
    if not fits:
        raise ValueError(f"cannot be {value!r}")
    return value


def _from_text(name: str, text: str) -> Any:
    if name in _LISTS:
        return json.loads(text) if text else []
    if name in _FLOATS:
        return float(text) if text else None
    if name in _BOOLS:
        if text not in ("true", "false", ""):
            raise ValueError(f"expected true, false or nothing, got {text!r}")
        return None if text == "" else text == "true"
    if name in ("grid", "frames"):
        return int(text)
    return None if name == "sem_factor" and text == "" else text


def _arrow_schema() -> Any:
    import pyarrow as pa

    types: dict[str, Any] = dict.fromkeys(COLUMNS, pa.string())
    types |= dict.fromkeys(_FLOATS, pa.float64()) | dict.fromkeys(_BOOLS, pa.bool_())
    types |= {"grid": pa.int32(), "frames": pa.int32(), "nearest": pa.list_(pa.string())}
    types |= {"flags": pa.list_(pa.string())}
    types |= {"top_style": pa.list_(pa.float64()), "top_sem": pa.list_(pa.float64())}
    return pa.schema(list(types.items()))
