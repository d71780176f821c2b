"""Names that say everything: options behind a question mark, and back, so that a profile finds its encoder again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote

from ..errors import UsageError
from .base import Encoder

__all__ = ["by_name", "compose"]

E = TypeVar("E", bound=Encoder)

NOT_THE_NUMBERS = ("device", "batch_size")
"""Options that do not change what comes out: no part of a name."""


def by_name(make: Callable[..., E], stem: str, argument: str, options: Mapping[str, Any]) -> E:
    """What `get_encoder("stem:argument?option=value", **options)` stands for, named so that it can be made again.

    Args:
        make: the encoder's class. `argument` is its first parameter; its others, by keyword, are the options.
        stem: the registered name.
        argument: what stood behind the colon.
        options: as keywords; these win over those in the name.

    Raises:
        UsageError: the name holds an option that the encoder has not, or a value that it cannot be.
    """
    given, _, query = argument.partition("?")
    parameters = inspect.signature(make).parameters
    named = {key: read(stem, key, text, parameters) for key, text in parse_qsl(query, keep_blank_values=True)}
    merged = {**named, **options}
    encoder = make(given, **merged) if given else make(**merged)
    encoder.name = compose(stem, given, merged, parameters)
    return encoder


def read(stem: str, key: str, text: str, parameters: Mapping[str, inspect.Parameter]) -> str | int | bool:
    """An option's text as the type that the encoder declares for it."""
    allowed = [name for name, parameter in parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    if key not in allowed:
        raise UsageError(f"{stem} has no option {key!r}; it has: {', '.join(allowed)}")
    kind = str(parameters[key].annotation).split()[0]  # annotations are texts here: "int | None"
    if kind == "bool":
        if text.lower() not in ("0", "1", "true", "false"):
            raise UsageError(f"{key} must be true or false, got {text!r}")
        return text.lower() in ("1", "true")
    if kind == "int":
        if not text.lstrip("-").isdecimal():
            raise UsageError(f"{key} must be a whole number, got {text!r}")
        return int(text)
    return text


def compose(stem: str, given: str, options: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]) -> str:
    """The name of an encoder with these options; what is as by default, or changes no number, is left out.

    >>> def encoder(weights=None, *, matte: int = 128, crop: bool = False, device="auto"): ...
    >>> compose("csd", "a.pt", {"matte": 0, "crop": True, "device": "cpu"}, inspect.signature(encoder).parameters)
    'csd:a.pt?crop=true&matte=0'
    """
    first = next(iter(parameters))
    given = given or str(options.get(first) or "")
    shown = {
        key: str(value).lower() if isinstance(value, bool) else str(value).removeprefix("torch.")
        for key, value in options.items()
        if key not in (first, *NOT_THE_NUMBERS) and value != parameters[key].default and not isinstance(value, Mapping)
    }
    query = "&".join(f"{key}={quote(text, safe='/:')}" for key, text in sorted(shown.items()))
    return stem + (f":{given}" if given or query else "") + (f"?{query}" if query else "")
