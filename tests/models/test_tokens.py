"""Decoders with a cache: 200 greedy steps from an empty cache give the peer's tokens."""

import engines
import numpy as np
from model_builders import catalog, inputs
from references import References

STEPS = 200
FIRST_TOKEN = 11


def greedy(session, name):
    caches = inputs.empty_caches(name)
    token, tokens = FIRST_TOKEN, []
    for position in range(STEPS):
        ids = np.array([[token]], np.int64)
        logits, *present = session.run(None, inputs.decoder_feed(name, ids, position, caches))
        caches = list(zip(present[::2], present[1::2], strict=True))
        token = int(logits[0, -1].argmax())
        tokens.append(token)
    return tokens


def test_tokens(decoder):
    known = References(catalog.BY_NAME[decoder])
    ours = greedy(engines.tested(known.source(), "all", 2), decoder)
    # int4: the peer rounds activations to int8, which the model allows and does not demand; either answer is right.
    variants = ("optimised", "float_twin") if known.model.kind == "int4" else ("optimised",)
    agreed = {}
    for variant in variants:
        theirs = known.cached(
            f"greedy {variant} {STEPS} {FIRST_TOKEN}",
            lambda variant=variant: [np.array(greedy(known.session(variant), decoder))],
        )[0].tolist()
        if ours == theirs:
            return
        agreed[variant] = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    raise AssertionError(f"tokens differ; the first {agreed} agree")
