"""Device, precision, batches and fingerprints."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assetscore.encoders import _torch, get_encoder
from assetscore.encoders._torch import (
    choose_device,
    choose_dtype,
    require,
    run_in_batches,
    unit_rows,
    weights_digest,
)
from assetscore.errors import EncoderError, EncoderUnavailableError, UsageError


def test_auto_device_is_one_that_is_here() -> None:
    expected = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    assert choose_device("auto").type == expected


@pytest.mark.parametrize("device", ["gpu", "cpu:x", "", "cuda -1"])
def test_what_is_no_device_is_named(device: str) -> None:
    with pytest.raises(UsageError, match="device"):
        choose_device(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_an_absent_device_is_unavailable() -> None:
    with pytest.raises(EncoderUnavailableError, match="no CUDA device"):
        choose_device("cuda")


@pytest.mark.parametrize(("avx512", "amx", "expected"), [(0, 0, "float32"), (1, 0, "bfloat16"), (0, 1, "bfloat16")])
def test_auto_precision_on_cpu_is_bf16_only_where_the_processor_has_it(
    monkeypatch: pytest.MonkeyPatch, avx512: int, amx: int, expected: str
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: bool(avx512), raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: bool(amx), raising=False)
    assert choose_dtype("auto") is getattr(torch, expected)
    assert choose_dtype("auto", torch.device("cpu"), gpu="fp16") is getattr(torch, expected)
    assert choose_dtype("auto", torch.device("cuda"), gpu="fp16") is torch.float16


def test_precision_by_any_name() -> None:
    for given in ("bf16", "bfloat16", torch.bfloat16):
        assert choose_dtype(given) is torch.bfloat16
    for wrong in ("int8", "double", torch.float64, "half"):
        with pytest.raises(UsageError, match="dtype"):
            choose_dtype(wrong)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("x"), RuntimeError("MPS backend out of memory"), MemoryError()]
)
def test_out_of_memory_halves_the_batch_and_goes_on(error: Exception) -> None:
    sizes = []

    def forward(batch: list[int]) -> np.ndarray:
        sizes.append(len(batch))
        if len(batch) > 3:
            raise error
        assert torch.is_inference_mode_enabled()
        return np.array([[item, item**2] for item in batch], np.float32)

    rows = run_in_batches(list(range(11)), 12, forward, 2)
    assert rows.tolist() == [[item, item**2] for item in range(11)]
    assert sizes == [11, 5, 2, 2, 2, 2, 2, 1]


def test_an_image_too_large_even_alone_is_a_row_of_nan() -> None:
    def forward(batch: list[int]) -> np.ndarray:
        if 3 in batch:
            raise torch.OutOfMemoryError("out of memory")
        return np.array([[item] for item in batch], np.float32)

    rows = run_in_batches(list(range(6)), 4, forward, 1)
    assert np.isnan(rows[3, 0])
    assert rows[[0, 1, 2, 4, 5], 0].tolist() == [0, 1, 2, 4, 5]


def test_other_errors_and_wrong_shapes_are_not_swallowed() -> None:
    def broken(batch: list[int]) -> np.ndarray:
        raise RuntimeError("shape mismatch")

    with pytest.raises(RuntimeError, match="shape mismatch"):
        run_in_batches([1, 2], 2, broken, 1)
    with pytest.raises(EncoderError, match="shape"):
        run_in_batches([1, 2], 2, lambda batch: np.zeros((len(batch), 3), np.float32), 2)
    with pytest.raises(UsageError, match="batch_size"):
        run_in_batches([1, 2], 0, broken, 1)


def test_no_items_give_no_rows() -> None:
    assert run_in_batches([], 4, lambda batch: np.zeros((0, 2), np.float32), 2).shape == (0, 2)


def test_unit_rows_marks_what_has_no_direction() -> None:
    rows = unit_rows(np.array([[3.0, 4], [0, 0], [np.inf, 1], [np.nan, 1]], np.float32))
    assert rows[0].tolist() == pytest.approx([0.6, 0.8])
    assert np.isnan(rows[1:]).all()


def test_the_weights_digest_sees_names_values_types_and_not_the_order() -> None:
    state = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.zeros(2, dtype=torch.bfloat16), "c": torch.tensor(1)}
    digest = weights_digest(state)
    assert weights_digest(dict(reversed(state.items()))) == digest
    assert weights_digest({**state, "a": state["a"].T.contiguous().T}) == digest
    changed = [
        {**state, "a": state["a"].reshape(3, 2)},
        {**state, "a": state["a"] + 1e-6},
        {**state, "b": state["b"].to(torch.float16)},
        {"z": state["a"], "b": state["b"], "c": state["c"]},
    ]
    assert digest not in {weights_digest(other) for other in changed}


def test_a_missing_package_is_named_with_its_install_line() -> None:
    with pytest.raises(EncoderUnavailableError, match=r'needs not_there: pip install "assetscore\[extra\]"'):
        require(("numpy", "not_there"), "extra", "name")
    require(("numpy",), None, "name")


def test_fingerprints_depend_on_every_part() -> None:
    base = _torch.fingerprint("x", a=1, b="c")
    assert base == _torch.fingerprint("x", b="c", a=1)
    others = [_torch.fingerprint("y", a=1, b="c"), _torch.fingerprint("x", a=2, b="c"), _torch.fingerprint("x", a=1)]
    assert base not in others


@pytest.mark.parametrize("package", ["tpips", "transformers", "peft"])
def test_tpips_without_its_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    found = _torch.find_spec
    monkeypatch.setattr(_torch, "find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(EncoderUnavailableError, match=rf'needs {package}: pip install "assetscore\[tpips\]"'):
        get_encoder("tpips", device="cpu")
