"""Factors: the texts that say in which respect two pictures are compared."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .errors import FactorError

__all__ = ["OBJECT", "STYLE", "check_factors", "words_of_id"]

STYLE = "art style"
OBJECT = "object class"
MAX_LENGTH = 1000
"""Characters. Longer texts are a mistake (a file's content, say), not a factor."""


def check_factors(factors: Sequence[str]) -> tuple[str, ...]:
    """The factors with white space tidied, or a FactorError naming the one that is no usable text.

    >>> check_factors([" ruby  sword "])
    ('ruby sword',)
    """
    if isinstance(factors, str):
        raise FactorError(f"factors must be a sequence of texts, got the single text {factors[:40]!r}")
    for factor in factors:
        if not isinstance(factor, str) or not factor.strip():
            raise FactorError(f"a factor must be a text with something in it, got {factor!r}")
        if len(factor) > MAX_LENGTH:
            raise FactorError(f"a factor has at most {MAX_LENGTH} characters, got {len(factor)}: {factor[:40]!r}...")
    return tuple(" ".join(factor.split()) for factor in factors)


def words_of_id(asset_id: str) -> str:
    """The words in an asset's id, as a request: the last part of its path, without ending and numbers.

    >>> words_of_id("examplemod:item/ruby_sword"), words_of_id("Items/SDMGBullet_2.png"), words_of_id("07.png")
    ('ruby sword', 'sdmg bullet', '')
    """
    name = re.split(r"[/\\:!]", asset_id.rstrip("/\\"))[-1]
    name = re.sub(r"\.[A-Za-z]{2,5}$", "", name)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return " ".join(re.findall(r"[^\W\d_]+", name)).lower()
