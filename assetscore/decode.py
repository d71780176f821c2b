"""The one decoder: the bytes of a PNG, GIF, JPEG or WebP file, told by content, to straight-alpha RGBA.

Pillow does the decompression. What it gets wrong or refuses is settled here: 16-bit samples are taken by their high
byte, the transparent colour of grey and RGB files is honoured at every bit depth, and PNG chunks that do not change
pixels are dropped before Pillow sees them, since games load files whose text or colour profile is damaged (and nothing
is to be gained from decompressing a stranger's comment).
"""

from __future__ import annotations

import struct
import warnings
import zlib
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from .errors import ImageError, ImageTooLargeError, UnreadableImageError, UnsupportedTypeError

__all__ = ["decode", "rgba_of_array", "rgba_of_pil"]

MAX_PIXELS = 2**25
"""About 5,800 x 5,800: 128 MiB as RGBA."""

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PIXEL_CHUNKS = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}
_EXTENSIONS = {"PNG": (".png",), "GIF": (".gif",), "JPEG": (".jpg", ".jpeg"), "WEBP": (".webp",)}


def decode(data: bytes, name: str) -> tuple[NDArray[np.uint8], list[str]]:
    """A file's bytes to (h, w, 4) uint8 and remarks on the file, in words.

    Raises:
        UnreadableImageError: not a complete PNG, GIF, JPEG or WebP; `name` and the reason are in the message.
        ImageTooLargeError: more than 2**25 pixels, found from the header.
    """
    if not data:
        raise UnreadableImageError(f"{name}: the file is empty (0 bytes)")
    key: tuple[int, ...] | None = None
    if data.startswith(PNG_SIGNATURE):
        data, key = _clean_png(data, name)
    elif data.startswith(b"version https://git-lfs"):
        raise UnreadableImageError(f"{name}: a Git LFS pointer, not the image: run `git lfs pull` where it came from")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's remarks on size and metadata: both are settled here
            with Image.open(BytesIO(data), formats=("PNG", "GIF", "JPEG", "WEBP")) as image:
                kind = "JPEG" if image.format == "MPO" else str(image.format)
                pixels = rgba_of_pil(image, name, key)
    except ImageError:
        raise
    except Image.DecompressionBombError as error:
        raise ImageTooLargeError(f"{name}: {error}") from error
    except UnidentifiedImageError as error:
        raise UnreadableImageError(f"{name}: no PNG, GIF, JPEG or WebP image") from error
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
    """
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ImageTooLargeError(f"{name}: {width} x {height} pixels, at most {MAX_PIXELS} are decoded")
    if width == 0 or height == 0:
        raise UnreadableImageError(f"{name}: no pixels ({width} x {height})")
    try:
        image.load()
    except OSError as error:
        raise UnreadableImageError(f"{name}: {error}") from error
    mode = image.mode
    if key is None and (told := image.info.get("transparency")) is not None and not isinstance(told, bytes):
        key = tuple(told) if isinstance(told, tuple) else (int(told),)
    if mode.startswith("I;16") or (mode == "I" and image.format == "PNG"):  # "I": 16-bit grey before Pillow 11
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
    if mode in ("P", "PA", "LA", "La", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV", "RGBA"):
        if mode in ("CMYK", "YCbCr", "LAB", "HSV", "RGBX"):
            image = image.convert("RGB")
        return np.array(image.convert("RGBA"))
    raise UnsupportedTypeError(f"{name}: a PIL image of mode {mode!r} has no defined colours; convert it to RGBA first")


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
        raise UnsupportedTypeError(
            "an array must be uint8 of shape (h, w), (h, w, 3) or (h, w, 4) with pixels in it, "
            f"got {array.dtype} {shape}"
        )


def _clean_png(data: bytes, name: str) -> tuple[bytes, tuple[int, ...] | None]:
    """The PNG with only the chunks that make pixels, and the transparent value of a grey or RGB one.

    That value is read here, since Pillow scales samples of less than 8 bits but not always the value. It comes as 8-bit
    samples; of 16-bit RGB the high bytes; of 16-bit grey, which Pillow keeps, all bits.
    A wrong checksum is an error in the header, the palette and the pixels, and is mended in the rest.
    """
    kept = [PNG_SIGNATURE]
    position, depth, colour_type = len(PNG_SIGNATURE), 8, -1
    key: tuple[int, ...] | None = None
    while True:
        if position + 12 > len(data):
            raise UnreadableImageError(f"{name}: truncated PNG: it ends at byte {len(data)} before its IEND chunk")
        (length,) = struct.unpack_from(">I", data, position)
        kind = data[position + 4 : position + 8]
        end = position + 12 + length
        if end > len(data):
            raise UnreadableImageError(f"{name}: truncated PNG: its {kind!r} chunk ends after byte {len(data)}")
        body = data[position + 8 : end - 4]
        if kind == b"tRNS" and colour_type in (0, 2):
            samples = struct.unpack(f">{length // 2}H", body[: length // 2 * 2])
            if len(samples) != (1 if colour_type == 0 else 3):
                raise UnreadableImageError(f"{name}: damaged PNG: a tRNS chunk of {length} bytes")
            if depth == 16:
                key = samples if colour_type == 0 else tuple(sample >> 8 for sample in samples)
            else:
                key = tuple(sample * 255 // (2**depth - 1) for sample in samples)
        elif kind in _PIXEL_CHUNKS:
            checksum = zlib.crc32(kind + body)
            if kind != b"tRNS" and data[end - 4 : end] != struct.pack(">I", checksum):
                raise UnreadableImageError(f"{name}: damaged PNG: wrong checksum in its {kind.decode()} chunk")
            kept.append(struct.pack(">I", length) + kind + body + struct.pack(">I", checksum))
        if kind == b"IHDR":
            if length != 13:
                raise UnreadableImageError(f"{name}: damaged PNG: a header of {length} bytes")
            width, height, depth, colour_type = struct.unpack_from(">IIBB", body)
            if width * height > MAX_PIXELS:
                raise ImageTooLargeError(f"{name}: {width} x {height} pixels, at most {MAX_PIXELS} are decoded")
            if depth not in (1, 2, 4, 8, 16):
                raise UnreadableImageError(f"{name}: damaged PNG: samples of {depth} bits")
        if kind == b"IEND":
            return b"".join(kept), key
        position = end
