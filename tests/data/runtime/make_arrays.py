"""Writes the .npz files of this folder (numpy 2). They are committed; run it again only to change them."""
import pathlib

import numpy as np

here = pathlib.Path(__file__).parent
arrays = {
    "ids": np.array([[1, -2, 3], [4, 5, 600000000000]], np.int64),
    "a/b.c": np.array([0.5, -1.5], np.float32),
    "big_endian": np.array([1, -2, 70000], ">i4"),
    "column_major": np.asfortranarray(np.arange(24, dtype=np.uint16).reshape(2, 3, 4)),
    "scalar": np.float64(2.25),
    "flags": np.array([True, False, True]),
    "empty": np.zeros((0, 4), np.float16),
}
np.savez(here / "arrays.npz", **arrays)
np.savez_compressed(here / "arrays_deflated.npz", **arrays)
np.savez(here / "objects.npz", things=np.array([{}, None], object))
np.savez(here / "affine_inputs.npz", x=np.arange(15, dtype=np.float32).reshape(5, 3))
np.savez(here / "signed_inputs.npz", x=np.array([[1, 4, 9, 16], [1, 4, -9, 16]], np.float32))
np.savez(here / "no_rows.npz", x=np.zeros((0, 4), np.float32))
np.savez(here / "no_numbers.npz", x=np.array([[np.nan, np.inf, np.nan, -np.inf], [np.nan] * 4], np.float32))
np.savez(here / "infinite_inputs.npz", x=np.array([[1, np.inf, 9, 16], [np.inf, 4, 9, 16]], np.float32))
np.savez(here / "contradicting_inputs.npz", input_ids=np.zeros((2, 4), np.int64), attention_mask=np.ones((3, 4), np.int64))
