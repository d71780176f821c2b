"""Where the answers are kept: one SQLite file, to which answers are only ever added.

An answer that a rater changes is a new row; the last one counts. Every answer is on the disk before the page moves on.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sqlite3
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...errors import ManifestError, UsageError
from ..votes import ANSWERS, QUESTIONS, Vote

__all__ = ["Rater", "Store", "rater_key"]

SCHEMA = 1
MAX_NAME = 60
"""Characters of a rater's name."""
_WAIT = 30.0
"""Seconds that a writer waits for another one."""
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE rater (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, started TEXT NOT NULL);
CREATE TABLE answer (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rater INTEGER NOT NULL REFERENCES rater (id),
    asset TEXT NOT NULL,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    given TEXT NOT NULL
);
CREATE INDEX answer_of ON answer (rater, asset, question, id);
"""


@dataclass(frozen=True)
class Rater:
    """Someone who rates: an id, and the name as it was typed first."""

    id: int
    name: str


def rater_key(name: str) -> str:
    """What makes two typed names the same rater: case, width and spaces do not count.

    Raises:
        UsageError: in words for the rater: nothing typed, too long, or characters that no name has.

    Example:
        >>> rater_key("  Ana  Maria ") == rater_key("ana maria")
        True
    """
    text = " ".join(unicodedata.normalize("NFKC", name).split())
    if not text:
        raise UsageError("Please type a name or a code.")
    if len(text) > MAX_NAME:
        raise UsageError(f"Please use at most {MAX_NAME} characters.")
    if any(unicodedata.category(character).startswith("C") for character in text):
        raise UsageError("Please use letters and digits only.")
    if text[0] in "=+-@":  # a spreadsheet would run it as a formula
        raise UsageError("Please begin with a letter or a digit.")
    return text.casefold()


class Store:
    """The answers of one study. Safe to use from many threads and from several processes at once."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        """Open the file, or make it.

        Raises:
            ManifestError: there is none and `create` is False, or it is no study's file.
        """
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise ManifestError(f"{self.path}: nobody has rated here yet, there is no such file")
        until = time.monotonic() + _WAIT
        while True:
            try:
                self.secret: str = self._prepare()
                return
            except sqlite3.DatabaseError as error:
                # SQLite does not wait for its turn to change the journal mode, whatever the time-out.
                if "locked" not in str(error) or time.monotonic() > until:
                    raise ManifestError(f"{self.path}: this is no file of answers: {error}") from error
                time.sleep(0.02)

    def _prepare(self) -> str:
        """Make the tables where there are none; the file's secret."""
        with self._open() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                self._create(connection)
            elif version != SCHEMA:
                raise ManifestError(f"{self.path}: answers of schema {version}; this version reads {SCHEMA}")
            return str(connection.execute("SELECT value FROM meta WHERE key = 'secret'").fetchone()[0])

    @staticmethod
    def _create(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA:
            return  # another process was faster
        for statement in _TABLES.split(";"):
            if statement.strip():
                connection.execute(statement)
        connection.execute("INSERT INTO meta VALUES ('secret', ?)", (secrets.token_hex(32),))
        connection.execute(f"PRAGMA user_version = {SCHEMA}")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for each piece of work, so that threads share nothing; commits or rolls back."""
        connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            yield connection
            if connection.in_transaction:
                connection.execute("COMMIT")
        finally:
            connection.close()

    def rater(self, name: str) -> Rater:
        """The rater of that name, new or known. UsageError for a name that cannot be used."""
        key, shown = rater_key(name), " ".join(unicodedata.normalize("NFKC", name).split())
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "INSERT OR IGNORE INTO rater (key, name, started) VALUES (?, ?, datetime('now'))", (key, shown)
            )
            return Rater(*connection.execute("SELECT id, name FROM rater WHERE key = ?", (key,)).fetchone())

    def rater_by_id(self, number: int) -> Rater | None:
        """The rater with that id, or None."""
        with self._open() as connection:
            row = connection.execute("SELECT id, name FROM rater WHERE id = ?", (number,)).fetchone()
        return Rater(*row) if row else None

    def record(self, rater: Rater, asset: str, answers: Mapping[str, str]) -> None:
        """Keep a rater's answers on one asset, all or none.

        Raises:
            UsageError: an unknown question or answer.
        """
        for question, answer in answers.items():
            if question not in QUESTIONS or answer not in ANSWERS:
                raise UsageError(f"no such question or answer: {question!r}, {answer!r}")
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT INTO answer (rater, asset, question, answer, given) VALUES (?, ?, ?, ?, datetime('now'))",
                [(rater.id, asset, question, answer) for question, answer in answers.items()],
            )

    def answered(self, rater: Rater) -> frozenset[str]:
        """The assets on which a rater has answered every question."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT asset FROM answer WHERE rater = ? GROUP BY asset HAVING count(DISTINCT question) = ?",
                (rater.id, len(QUESTIONS)),
            ).fetchall()
        return frozenset(row[0] for row in rows)

    def votes(self) -> list[Vote]:
        """The last answer of each rater to each question on each asset, by rater, then in the order given."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT asset, name, question, answer FROM answer JOIN rater ON rater.id = answer.rater "
                "WHERE answer.id IN (SELECT max(id) FROM answer GROUP BY rater, asset, question) "
                "ORDER BY rater.id, answer.id"
            ).fetchall()
        return [Vote(*row) for row in rows]

    def order(self, rater: Rater, assets: Iterable[str]) -> list[str]:
        """Assets in this rater's own random order: the same each time, whatever else is in the study."""
        return sorted(assets, key=lambda asset: self.token("order", str(rater.id), asset))

    def token(self, *parts: str) -> str:
        """A name for a web address that tells nothing about what it names."""
        message = "\0".join(parts).encode("utf-8", "surrogatepass")
        return hmac.new(self.secret.encode(), message, hashlib.sha256).hexdigest()[:24]
