"""The one decoder: the bytes of a PNG, GIF, JPEG or WebP file, told by content, to straight-alpha RGBA.

Pillow does the decompression. What it gets wrong or refuses is settled here: 16-bit samples are taken by their high
byte, and the transparent colour of grey and RGB files is honoured at every bit depth. What a file holds beside its
pixels is dropped before Pillow sees it: `containers`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

from .containers import MAX_PIXELS, PNG_SIGNATURE, clean_jpeg, clean_png
from .errors import ImageError, ImageTooLargeError, UnreadableImageError, UnsupportedTypeError

__all__ = ["check_array", "check_pil_mode", "decode", "rgba_of_array", "rgba_of_pil", "unsupported"]

_EXTENSIONS = {"PNG": (".png",), "GIF": (".gif",), "JPEG": (".jpg", ".jpeg"), "WEBP": (".webp",)}
_MODES = frozenset({"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"})


def decode(data: bytes, name: str) -> tuple[NDArray[np.uint8], list[str]]:
    """A file's bytes to (h, w, 4) uint8 and remarks on the file, in words.

    Raises:
        UnreadableImageError: not a complete PNG, GIF, JPEG or WebP; `name` and the reason are in the message.
        ImageTooLargeError: more than 2**24 pixels, found from the header.
    """
    if not data:
        raise UnreadableImageError(f"{name}: the file is empty (0 bytes)")
    if data.startswith(b"version https://git-lfs"):
        raise UnreadableImageError(f"{name}: a Git LFS pointer, not the image: run `git lfs pull` where it came from")
    kind = _kind(data)
    if kind is None:
        raise UnreadableImageError(f"{name}: no PNG, GIF, JPEG or WebP image")
    key: tuple[int, ...] | None = None
    if kind == "PNG":
        data, key = clean_png(data, name)
    elif kind == "JPEG":
        data = clean_jpeg(data, name)
    try:
        with _open(kind, data) as image:
            pixels = rgba_of_pil(image, name, key)
    except ImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageTooLargeError(f"{name}: {error}") from error
    except Exception as error:  # decoders raise nearly anything on damaged data: OSError, SyntaxError, struct.error ...
        raise UnreadableImageError(f"{name}: damaged image data: {error}") from error
    flags = []
    dot = name.rfind(".")
    extension = name[dot:].lower() if dot >= 0 else ""
    if extension in {e for known in _EXTENSIONS.values() for e in known} and extension not in _EXTENSIONS[kind]:
        flags.append(f"{kind} data in a file named {extension}")
    return pixels, flags


def rgba_of_pil(image: Image.Image, name: str, key: tuple[int, ...] | None = None) -> NDArray[np.uint8]:
    """A PIL image of any 8-bit, 16-bit or palette mode to (h, w, 4) uint8.

    Args:
        image: opened, maybe not yet loaded.
        name: for messages.
        key: the transparent grey or RGB value, in samples as Pillow gives them; default what `image` says.

    Raises:
        UnsupportedTypeError: the mode has no defined colours.
        UnreadableImageError: the pixels cannot be read: damaged, closed, an `info` that contradicts them.
        ImageTooLargeError: more than 2**24 pixels.
    """
    check_pil_mode(image)
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ImageTooLargeError(f"{name}: {width} x {height} pixels, at most {MAX_PIXELS} are decoded")
    if width == 0 or height == 0:
        raise UnreadableImageError(f"{name}: no pixels ({width} x {height})")
    try:
        image.load()
        return _rgba(image, _transparent(image) if key is None else key)
    except Exception as error:  # as in `decode`; of a closed image a ValueError or an AssertionError without words
        raise UnreadableImageError(f"{name}: {str(error) or type(error).__name__}") from error


def rgba_of_array(array: NDArray[Any]) -> NDArray[np.uint8]:
    """A uint8 array (h, w) grey, (h, w, 3) RGB or (h, w, 4) straight RGBA to (h, w, 4)."""
    check_array(array)
    if array.shape[0] * array.shape[1] > MAX_PIXELS:
        raise ImageTooLargeError(f"the given array: {array.shape[1]} x {array.shape[0]} pixels, at most {MAX_PIXELS}")
    if array.ndim == 2:
        array = np.repeat(array[..., None], 3, axis=-1)
    if array.shape[2] == 4:
        return np.array(array)
    return np.dstack([array, np.full(array.shape[:2], 255, np.uint8)])


def check_array(array: NDArray[Any]) -> None:
    """Raise an UnsupportedTypeError where the array is none that `rgba_of_array` takes."""
    shape = array.shape
    fits = array.ndim == 2 or (array.ndim == 3 and shape[2] in (3, 4))
    if array.dtype != np.uint8 or not fits or 0 in shape:
        raise unsupported(f"an array of {array.dtype} {shape}")


def check_pil_mode(image: Image.Image) -> None:
    """Raise an UnsupportedTypeError where the mode of the PIL image says nothing about colours: "F", "I" ..."""
    mode = image.mode
    if mode in _MODES or mode.startswith("I;16") or (mode == "I" and image.format == "PNG"):
        return
    raise unsupported(f"a PIL image of mode {mode!r}, which has no defined colours: convert it to RGBA first")


def unsupported(got: str) -> UnsupportedTypeError:
    """The error for what is no asset; `got` says in words what came."""
    return UnsupportedTypeError(
        f"asset must be a path, bytes, a PIL image or a uint8 array (h, w), (h, w, 3) or (h, w, 4), got {got}"
    )


def _kind(data: bytes) -> str | None:
    if data.startswith(PNG_SIGNATURE):
        return "PNG"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    return "WEBP" if data.startswith(b"RIFF") and data[8:12] == b"WEBP" else None


def _open(kind: str, data: bytes) -> ImageFile.ImageFile:
    """Pillow's own reader: `Image.open` warns of large sizes and of metadata, and silencing that is not thread-safe."""
    from PIL.GifImagePlugin import GifImageFile
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile
    from PIL.WebPImagePlugin import WebPImageFile

    readers: dict[str, Callable[[BytesIO], ImageFile.ImageFile]]
    readers = {"PNG": PngImageFile, "GIF": GifImageFile, "JPEG": JpegImageFile, "WEBP": WebPImageFile}
    return readers[kind](BytesIO(data))


def _transparent(image: Image.Image) -> tuple[int, ...] | None:
    """The transparent value that a PIL image names; a palette's alphas (bytes) are Pillow's to apply."""
    told = image.info.get("transparency")
    if told is None or isinstance(told, bytes) or image.mode not in ("1", "L", "RGB", "I", "I;16"):
        return None
    values = told if isinstance(told, (tuple, list)) else (told,)
    try:
        key = tuple(operator.index(value) for value in values)
    except TypeError:
        key = ()
    if len(key) != (3 if image.mode == "RGB" else 1):
        raise ValueError(f"its info['transparency'] does not fit the mode {image.mode}: {told!r}"[:200])
    return key


def _rgba(image: Image.Image, key: tuple[int, ...] | None) -> NDArray[np.uint8]:
    """A loaded image of a defined mode to (h, w, 4)."""
    mode = image.mode
    if mode.startswith("I"):  # 16-bit grey; "I" before Pillow 11
        samples = np.asarray(image).astype(np.int64).clip(0, 65535)
        alpha = np.full(samples.shape, 255) if key is None else np.where(samples == key[0], 0, 255)
        grey = samples >> 8
        return np.stack([grey, grey, grey, alpha], axis=-1).astype(np.uint8)
    if mode in ("1", "L", "RGB"):
        pixels = np.asarray(image.convert("L" if mode == "1" else mode))
        if pixels.ndim == 2:
            pixels = np.repeat(pixels[..., None], 3, axis=-1)
        alpha = np.full(pixels.shape[:2], 255, np.uint8)
        if key is not None:
            alpha[(pixels == np.array(key)).all(axis=-1)] = 0
        return np.dstack([pixels, alpha])
    between = {"La": "LA", "RGBX": "RGB", "CMYK": "RGB", "YCbCr": "RGB", "LAB": "RGB", "HSV": "RGB"}.get(mode)
    if mode == "RGBA":
        return np.array(image)
    return np.array((image.convert(between) if between else image).convert("RGBA"))
