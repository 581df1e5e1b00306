"""How far two answers are apart, and how far they may be."""

import numpy as np

# Largest difference as a share of the largest magnitude of the expected output.
TOLERANCE = {"fp32": 1e-4, "classic": 1e-4, "fp16": 2e-3, "qdq": 2e-2, "qoperator": 2e-2, "dynamic": 5e-2, "int4": 5e-2}


def check_form(got, expected):
    """Types, shapes, and exact equality of everything that is not floating point."""
    assert len(got) == len(expected), f"{len(got)} outputs, expected {len(expected)}"
    for index, (g, e) in enumerate(zip(got, expected, strict=True)):
        assert g.dtype == e.dtype, f"output {index}: type {g.dtype}, expected {e.dtype}"
        assert g.shape == e.shape, f"output {index}: shape {g.shape}, expected {e.shape}"
        if e.dtype.kind != "f":
            wrong = np.count_nonzero(g != e)
            assert wrong == 0, f"output {index}: {wrong} of {e.size} {e.dtype} values differ"
        else:
            assert np.array_equal(np.isfinite(g), np.isfinite(e)), f"output {index}: infinities or NaN differ"


def largest(got, expected):
    """Largest difference of any floating-point output, as a share of that output's largest magnitude."""
    shares = [0.0]
    for g, e in zip(got, expected, strict=True):
        if e.dtype.kind == "f" and e.size:
            finite = np.isfinite(e)
            difference = np.abs(g[finite].astype(np.float64) - e[finite])
            magnitude = np.abs(e[finite]).max(initial=0.0)
            shares.append(float(difference.max(initial=0.0) / (magnitude or 1.0)))
    return max(shares)


def euclidean(pairs):
    """Per output, over all cases: the length of the difference as a share of the length of the expected values.

    pairs: one (got, expected) a case, each a list of outputs.
    """
    shares = []
    for outputs in zip(*([*zip(got, expected, strict=True)] for got, expected in pairs), strict=True):
        difference = sum(np.sum((g.astype(np.float64) - e) ** 2) for g, e in outputs)
        length = sum(np.sum(e.astype(np.float64) ** 2) for _, e in outputs)
        shares.append(float(np.sqrt(difference / (length or 1.0))))
    return shares
