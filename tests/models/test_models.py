"""Every core model gives the peer's results: all optimisation levels, one and two threads, fixed and other shapes."""

import compare
import engines
import numpy as np
import pytest
from model_builders import catalog, inputs
from references import References

# Costly cases that add nothing at the lower levels: their smaller shapes run there.
ONLY_AT_FULL_LEVEL = {
    ("vit_b16", "batch2"),
    ("tumor_vgg16", "batch2"),
    ("resnet50", "batch2"),
    ("resnet50_bn", "batch2"),
    ("resnet50_qdq_u8s8", "batch2"),
    ("resnet50_qdq_s8s8", "batch2"),
    ("PP-OCRv6_det_small", "fixed"),
    ("ch_PP-OCRv4_det_infer", "fixed"),
    ("bert_base", "fixed"),
    ("bert_base_primln", "fixed"),
}

# The softmax of this model is nearly 0 or 1 for any input: its scores say more.
INNER_VALUES = {"tumor_vgg16": ["functional_1/dense_3_1/BiasAdd:0"]}

# Room above the peer's distance to the float model, for roundings that fall another way.
ROUNDING_SLACK = 1.1

# The largest of many quantisation errors is a matter of luck; what must not be worse is their Euclidean sum (below).
LARGEST_SLACK = 1.5

_references = {}


def references(model):
    """Those of the model at hand; the ones before are let go with their sessions."""
    if model.name not in _references:
        _references.clear()
        _references[model.name] = References(model)
    return _references[model.name]


def chosen_cases(name, level):
    cases = inputs.cases(name)
    if level != "all":
        cases = {case: feed for case, feed in cases.items() if (name, case) not in ONLY_AT_FULL_LEVEL}
    return cases


def check_near(kind, got, expected_of, variants):
    """Near one of the references. Two exact runs of the peer itself may be further apart than the tolerance, since a
    rounding to int8 that falls the other way travels through the net: then their distance is the limit."""
    limit, distances, computed = compare.TOLERANCE[kind], [], []
    for variant in variants:
        computed.append(expected_of(variant))
        compare.check_form(got, computed[-1])
        distances.append(compare.largest(got, computed[-1]))
        if distances[-1] <= limit:
            return
    if kind == "qdq":
        # Outputs are quantised themselves: three steps where the peer's runs are two apart must pass whatever the rounding.
        limit = max(limit, 1.6 * compare.largest(*computed))
    assert min(distances) <= limit, f"off by {min(distances):.2g} of the largest value; {limit:.2g} is allowed"


def check_no_further_than_peer(kind, results):
    """results: (got, float model's, peer's) of every case."""
    for got, exact, peers in results:
        compare.check_form(got, peers)
        tolerance, peer_off = compare.TOLERANCE[kind], compare.largest(peers, exact)
        # Where the peer is further from the float model than the tolerance it is no oracle for anyone else (its 8-bit
        # products saturate on AVX2): then the float model is, and the peer's own distance to it the limit.
        if peer_off <= tolerance:
            distance, limit, whom = compare.largest(got, peers), tolerance, "peer"
        else:
            distance, limit, whom = compare.largest(got, exact), LARGEST_SLACK * peer_off, "float model"
        assert distance <= limit, f"{distance:.3g} away from the {whom}, {limit:.3g} allowed"
    ours = compare.euclidean([(got, exact) for got, exact, _ in results])
    theirs = compare.euclidean([(peers, exact) for _, exact, peers in results])
    for index, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        limit = ROUNDING_SLACK * their + 1e-4
        assert our <= limit, f"output {index}: {our:.3g} away from the float model, the peer {their:.3g}"


def test_results(model, level, threads):
    known = references(model)
    session = engines.tested(known.source(), level, threads)
    feeds = chosen_cases(model.name, level)
    answers = {case: engines.run(session, feed) for case, feed in feeds.items()}
    if model.kind in ("dynamic", "int4"):
        check_no_further_than_peer(
            model.kind,
            [(answers[case], *(known.outputs(v, feed) for v in known.variants)) for case, feed in feeds.items()],
        )
    else:
        for case, feed in feeds.items():
            try:
                check_near(
                    model.kind, answers[case], lambda variant, feed=feed: known.outputs(variant, feed), known.variants
                )
            except AssertionError as error:
                raise AssertionError(f"case {case}: {error}") from None
    # Other shapes came in between: the first one again must give the same bits.
    case, feed = next(iter(feeds.items()))
    for first, again in zip(answers[case], engines.run(session, feed), strict=True):
        assert np.array_equal(first, again, equal_nan=first.dtype.kind == "f"), f"case {case}: a second run differs"


@pytest.mark.parametrize("level", ["disable", "all"])
@pytest.mark.parametrize("name", INNER_VALUES)
def test_inner_values(name, level):
    known = references(catalog.BY_NAME[name])
    inner = INNER_VALUES[name]
    session = engines.tested(known.source(inner), level, 2)
    feed = inputs.default_feed(name)
    got = engines.run(session, feed)
    check_near(known.model.kind, got, lambda variant: known.outputs(variant, feed, inner), known.variants)
