"""Profile: a reference set embedded by one encoder under some factors, calibrated, and saved as one folder."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .calibrated import Calibration, calibrate
from .calibration import Rule
from .config import DEFAULT_ENCODER, TOP, Config
from .embedding import condition, embed_references
from .encoders.base import Encoder, TwoStageEncoder, get_encoder
from .errors import EmbeddingError, ProfileMismatchError, ReferenceSetError, UnknownCategoryError, UsageError
from .factors import OBJECT, STYLE, check_factors
from .images import Texture
from .neighbours import Neighbours, knn_mean, lpips_rows
from .references import Reference, ReferenceSet
from .text import counted
from .vectors import cached_vectors

__all__ = ["Profile"]

log = logging.getLogger(__name__)

Vectors = NDArray[np.float32]
_MEMORY = 32
"""Requests whose vectors are kept in memory: each is a category's references under one factor."""


class Profile:
    """What assets are scored against. Build it once (`build`), save it, load it; it does not change what it promises.

    A new factor is embedded and calibrated when it is first asked for: with a two-stage encoder from the features kept
    here, without an image pass; with a one-stage encoder from the reference pictures, which is slow, so the result goes
    to the user's cache.

    Attributes:
        name: for people, and for the user's data folder.
        references: the ReferenceSet.
        config: k, alpha, rule, families.
        factors: what it was built for; the first one is the style factor.
        encoder_name, encoder_fingerprint, metric, conditional, batch_noise: of the encoder it was built with.
    """

    def __init__(
        self,
        references: ReferenceSet,
        encoder: Encoder | None,
        config: Config,
        factors: Sequence[str],
        *,
        name: str = "",
        meta: dict[str, Any] | None = None,
        features: dict[str, Vectors] | None = None,
        vectors: dict[tuple[str, str], Vectors] | None = None,
    ) -> None:
        self.references = references
        self.config = config
        self.factors = check_factors(factors)
        self.name = name or references.name
        described = meta if encoder is None else _describe(encoder)
        if described is None:
            raise TypeError("a profile needs its encoder or a description of it")
        self.encoder_name: str = described["name"]
        self.encoder_fingerprint: str = described["fingerprint"]
        self.metric: str = described["metric"]
        self.conditional: bool = described["conditional"]
        self.batch_noise: float = described["batch_noise"]
        self._encoder = encoder
        self._features = features or {}
        self._vectors = vectors or {}
        self._calibrations: dict[tuple[str, str], Calibration] = {}
        self._start_locks()

    def _start_locks(self) -> None:
        self._lock = RLock()
        self._making: dict[tuple[str, str], RLock] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the locks, which stay with their process: a profile may be sent to worker processes."""
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_making")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start_locks()

    @classmethod
    def build(
        cls,
        references: ReferenceSet,
        encoder: str | Encoder = DEFAULT_ENCODER,
        factors: Sequence[str] = (STYLE, OBJECT),
        k: int = Config.k,
        alpha: float = Config.alpha,
        *,
        rule: Rule = Config.rule,
        families: bool = Config.families,
        name: str = "",
        progress: Callable[[int, int], None] | None = None,
    ) -> Profile:
        """Embed and calibrate a reference set.

        Args:
            references: the game's own textures.
            encoder: a name for `get_encoder`, or an Encoder.
            factors: the style factor, then the semantic one, then any others to prepare. An encoder that ignores
                factors gets the first only.
            k, alpha, rule, families: see `Config`.
            name: default the reference set's.
            progress: called with (references done, all of them).

        References for which the encoder gives nothing finite are moved to `references.skipped`.
        """
        encoder = get_encoder(encoder)
        config = Config(k=k, alpha=alpha, rule=rule, families=families)
        if not factors:
            raise UsageError("a profile needs at least its style factor, got no factors")
        factors = check_factors(factors)
        if not encoder.conditional:
            factors = factors[:1]
        if 0 < encoder.rerank_top < config.k:
            raise UsageError(
                f"k = {config.k} needs an encoder that compares at least as many again, not {encoder.rerank_top}"
            )
        parts, all_features = embed_references(encoder, [r.texture for r in references], factors, progress)
        bad = ~np.logical_and.reduce([np.isfinite(part).all(axis=1) for part in parts.values()])
        if bad.any():
            dropped = {r.id for r, is_bad in zip(references, bad, strict=True) if is_bad}
            log.warning("%d references gave no finite embedding and were left out", len(dropped))
            references = replace(
                references,
                references=tuple(r for r in references if r.id not in dropped),
                skipped=(*references.skipped, *((id, f"{encoder.name} gave nothing finite") for id in sorted(dropped))),
            )
            if not references.references:
                raise ReferenceSetError(f"{references.name}: {encoder.name} gave nothing finite for any reference")
            parts = {factor: part[~bad] for factor, part in parts.items()}
            all_features = None if all_features is None else all_features[~bad]
        features: dict[str, Vectors] = {}
        vectors: dict[tuple[str, str], Vectors] = {}
        for category, rows in _rows_by_category(references).items():
            if all_features is not None:
                features[category] = all_features[rows]
            for factor, part in parts.items():
                vectors[category, factor] = part[rows]
        profile = cls(references, encoder, config, factors, name=name, features=features, vectors=vectors)
        for category in references.categories:
            for factor in factors:
                profile.calibration(category, factor)
        return profile

    @property
    def encoder(self) -> Encoder:
        """The encoder, made when first needed.

        Raises:
            ProfileMismatchError: what is installed here computes other numbers than the profile was built with.
        """
        with self._lock:
            if self._encoder is None:
                self.use_encoder(get_encoder(self.encoder_name))
            assert self._encoder is not None
            return self._encoder

    def use_encoder(self, encoder: Encoder) -> None:
        """Score with this encoder, whose fingerprint must be the one the profile was built with."""
        if encoder.fingerprint != self.encoder_fingerprint:
            raise ProfileMismatchError(
                f"profile {self.name!r} was built with encoder {self.encoder_fingerprint}, "
                f"got encoder {encoder.fingerprint}: scores would mean nothing; build the profile again"
            )
        for attribute in ("metric", "conditional"):
            ours, theirs = getattr(self, attribute), getattr(encoder, attribute)
            if ours != theirs:
                raise ProfileMismatchError(
                    f"profile {self.name!r} says {attribute} {ours!r} of encoder {encoder.fingerprint}, "
                    f"which is {theirs!r}"
                )
        self._encoder = encoder

    @property
    def style_factor(self) -> str:
        return self.factors[0]

    @property
    def semantic_factor(self) -> str | None:
        """The factor of the semantic check where there is no request; None for an encoder that ignores factors."""
        if not self.conditional:
            return None
        return self.factors[1] if len(self.factors) > 1 else OBJECT

    @property
    def categories(self) -> dict[str, int]:
        """How many textures each category holds."""
        return self.references.categories

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over encoder, references and config: scores with equal fingerprints can be compared."""
        parts = (self.encoder_fingerprint, self.references.fingerprint, self.config.fingerprint)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @cached_property
    def by_category(self) -> dict[str, tuple[Reference, ...]]:
        return {category: self.references.of(category) for category in self.categories}

    @cached_property
    def _by_id(self) -> dict[str, Reference]:
        return {reference.id: reference for reference in self.references}

    def texture(self, reference_id: str) -> Texture | None:
        """The picture of a reference, by its id."""
        reference = self._by_id.get(reference_id)
        return None if reference is None else reference.texture

    @cached_property
    def known(self) -> dict[str, str]:
        """Content and native hash of every reference, to its id: what an asset must not be equal to."""
        hashes: dict[str, str] = {}
        for reference in self.references:
            hashes.setdefault(reference.texture.content_hash, reference.id)
            hashes.setdefault(reference.texture.native_hash, reference.id)
        return hashes

    def check_category(self, category: str) -> str:
        """The category, or an UnknownCategoryError that names the known ones."""
        if not isinstance(category, str) or category not in self.categories:
            raise UnknownCategoryError(
                f"category {category!r} is not in profile {self.name!r}; known are: {', '.join(self.categories)}"
            )
        return category

    def groups(self, category: str) -> NDArray[np.int64]:
        """(n,) the group of each reference of a category: those with equal numbers never serve each other."""
        labels = [reference.group(self.config.families) for reference in self.by_category[category]]
        return np.unique(labels, return_inverse=True)[1].astype(np.int64).reshape(-1)

    def vectors(self, category: str, factor: str) -> Vectors:
        """(n, d) vectors of a category's references under a factor, in the order of `by_category`.

        Raises:
            EmbeddingError: the encoder gives nothing finite for a reference under this factor.
        """
        self.check_category(category)
        key = (category, factor)
        with self._made_once(key):
            if key not in self._vectors:
                made = self._embed_category(category, factor)
                with self._lock:
                    _make_room(self._vectors, self.factors)
                    self._vectors[key] = made
            return self._vectors[key]

    def calibration(self, category: str, factor: str) -> Calibration:
        """The leave-one-out similarities of a category under a factor, computed when first asked for."""
        self.check_category(category)
        key = (category, factor)
        known = self._calibrations.get(key)
        if known is not None:
            return known
        with self._made_once(key):
            if key not in self._calibrations:
                made = self._calibrate(category, factor)
                with self._lock:
                    _make_room(self._calibrations, self.factors)
                    self._calibrations[key] = made
            return self._calibrations[key]

    def nearest(self, category: str, factor: str, queries: Vectors, textures: Sequence[Texture], k: int) -> Neighbours:
        """The k nearest references of pictures that are none, in the order of `by_category`.

        Args:
            queries: (q, d) vectors of the pictures under the factor.
            textures: the q pictures, for an encoder that compares the nearest ones again, pair by pair.
        """
        rows = self.search_rows(self.vectors(category, factor), query=False)
        found = knn_mean(self.search_rows(queries, query=True), rows, k)
        rerank = self._reranker(category, factor, textures)
        return found if rerank is None else rerank(found)

    def _calibrate(self, category: str, factor: str) -> Calibration:
        vectors = self.vectors(category, factor)
        queries, rows = self.search_rows(vectors, query=True), self.search_rows(vectors, query=False)
        rerank = self._reranker(category, factor, [reference.texture for reference in self.by_category[category]])
        most = TOP if rerank is None else min(TOP, self.encoder.rerank_top)
        return calibrate(category, factor, queries, rows, self.groups(category), most=most, rerank=rerank)

    def _reranker(
        self, category: str, factor: str, textures: Sequence[Texture]
    ) -> Callable[[Neighbours], Neighbours] | None:
        if self._encoder is None or not self._encoder.rerank_top:
            return None
        encoder = self._encoder

        def rerank(found: Neighbours) -> Neighbours:
            from .encoders.tpips_rerank import rerank_neighbours

            candidates = [reference.texture for reference in self.by_category[category]]
            ids, similarities = rerank_neighbours(encoder, textures, found.ids, candidates, factor)
            return Neighbours(similarities.mean(axis=1), ids, similarities)

        return rerank

    @contextmanager
    def _made_once(self, key: tuple[str, str]) -> Iterator[None]:
        """Two threads never embed the same references; one that asks for other ones is not held up."""
        with self._lock:
            lock = self._making.setdefault(key, RLock())
        with lock:
            yield

    def search_rows(self, vectors: Vectors, *, query: bool) -> Vectors:
        """Rows whose inner product is the similarity under the encoder's metric."""
        return lpips_rows(vectors, query=query) if self.metric == "lpips" else vectors

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write one folder; see `store.save`."""
        from .store import save

        save(self, Path(folder))

    @classmethod
    def load(cls, profile: str | os.PathLike[str], encoder: str | Encoder | None = None) -> Profile:
        """Load a folder that `save` wrote, or a profile by name; see `store.load`."""
        from .store import load

        loaded = load(profile)
        if encoder is not None:
            loaded.use_encoder(get_encoder(encoder))
        return loaded

    def __repr__(self) -> str:
        encoder = f"encoder {self.encoder_name[:60]}"
        return f"<Profile {self.name[:60]!r}: {counted(self.categories)}; {encoder}; {self.fingerprint[:12]}>"

    def _embed_category(self, category: str, factor: str) -> Vectors:
        def embed() -> Vectors:
            textures = [reference.texture for reference in self.by_category[category]]
            return embed_references(self.encoder, textures, (factor,))[0][factor]

        rows = len(self.by_category[category])
        if category in self._features:
            encoder = self.encoder
            if not isinstance(encoder, TwoStageEncoder):
                raise ProfileMismatchError(f"profile {self.name!r} holds features, which {encoder.name} cannot use")
            vectors = condition(encoder, self._features[category], (factor,))[factor]
        else:
            parts = (self.encoder_fingerprint, self.references.fingerprint, category, factor)
            vectors = cached_vectors(parts, rows, embed)
        bad = ~np.isfinite(vectors).all(axis=1)
        if bad.any():
            raise EmbeddingError(
                f"{self.encoder_name} gives nothing finite for {int(bad.sum())} references of {category!r} "
                f"under {factor!r}"
            )
        return vectors


def _describe(encoder: Encoder) -> dict[str, Any]:
    return {
        "name": encoder.name,
        "fingerprint": encoder.fingerprint,
        "metric": encoder.metric,
        "conditional": encoder.conditional,
        "batch_noise": encoder.batch_noise,
    }


def _rows_by_category(references: ReferenceSet) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row, reference in enumerate(references):
        rows.setdefault(reference.category, []).append(row)
    return rows


def _make_room(cache: dict[tuple[str, str], Any], keep: Sequence[str]) -> None:
    """Drop the oldest request's entry once too many are held; the profile's own factors always stay."""
    asked = [key for key in cache if key[1] not in keep]
    if len(asked) >= _MEMORY:
        del cache[asked[0]]
