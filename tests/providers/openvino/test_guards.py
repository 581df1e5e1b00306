"""What OpenVINO answers wrongly and without a word: NaN, indices out of range, division by zero. Such a run goes to the CPU."""

import warnings

import numpy as np
import ov
import pytest
from onnx import TensorProto, helper
from ov import CPU, NAME, model, value

FLOAT, INT64, INT32, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL
NAN, INF = np.float32(np.nan), np.float32(np.inf)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], name=output, **attributes)


class Pair:
    """The same model on OpenVINO, which must have all of it, and on the CPU."""

    def __init__(self, *arguments, options=None, whole=True, **named):
        made = model(*arguments, **named)
        self.session = ov.session(made, options)
        self.cpu = ov.session(made, providers=[CPU])
        if whole:
            assert set(ov.placed(self.session).values()) == {NAME}, ov.refusals(self.session)

    def agree(self, feed):
        got, want = self.session.run(None, feed), self.cpu.run(None, feed)
        for a, b in zip(got, want, strict=True):
            assert a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True)
        return want

    def stays(self, **feed):
        """OpenVINO runs it."""
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*failed while running")
            return self.agree(feed)

    def falls_back(self, match, **feed):
        with pytest.warns(UserWarning, match=match):
            return self.agree(feed)

    def fails(self, match, **feed):
        """OpenVINO refuses to run it, and it is an error on the CPU as well."""
        with pytest.raises(Exception) as mine, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.session.run(None, feed)
        with pytest.raises(Exception) as plain:
            self.cpu.run(None, feed)
        assert match in str(plain.value) and match in str(mine.value)
        assert self.session.get_providers()[0] == NAME


def conv_net(**named):
    w = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [node("Conv", "x w", "c"), node("Relu", "c", "r"), node("GlobalAveragePool", "r", "y")]
    return Pair(nodes, [value("x", FLOAT, ["N", 3, 8, 8])], [value("y", FLOAT, None)], {"w": w}, **named)


@pytest.mark.parametrize("options", [{}, {"disable_dynamic_shapes": True}])
def test_nan_in_an_input(options):
    image = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)
    for bad, what in ((NAN, "NaN"), (-INF, "an infinity")):
        net = conv_net(options=options)
        net.stays(x=image)
        spoilt = image.copy()
        spoilt[1, 2, 3, 4] = bad
        (y,) = net.falls_back(f"value 'x' holds {what} at element 348.*Relu node 'r'", x=spoilt)
        assert np.isnan(y[1]).any() == np.isnan(bad) and not np.isnan(y[0]).any()
        net.stays(x=image)


def test_nan_is_free_where_nothing_loses_it():
    net = Pair([node("Sigmoid", "x", "s"), node("Mul", "s x", "y")], [value("x", FLOAT, ["N"])], [value("y", FLOAT, ["N"])])
    net.stays(x=np.array([1, NAN, INF, -2], np.float32))


def test_half_precision():
    kind = TensorProto.FLOAT16
    net = Pair([node("Relu", "x", "r"), node("Add", "r r", "y")], [value("x", kind, ["N"])], [value("y", kind, ["N"])])
    net.stays(x=np.array([1, -2], np.float16))
    net.falls_back("holds a value that is not finite at element 1", x=np.array([1, np.nan], np.float16))


def test_option_keep_nan():
    net = conv_net(options={"keep_nan": True}, whole=False)
    assert ov.placed(net.session)["r"] == CPU
    reason, text = ov.refusals(net.session)["r"]
    assert reason == "user option" and "keep_nan" in text
    net.stays(x=np.full((1, 3, 8, 8), NAN))


def scaled():
    """(x - min) / (max - min): 0 / 0 when all are the same."""
    nodes = [
        node("ReduceMax", "x", "high"), node("ReduceMin", "x", "low"), node("Sub", "high low", "span"),
        node("Sub", "x low", "above"), node("Div", "above span", "d"), node("Relu", "d", "y"),
    ]  # fmt: skip
    return nodes, [value("x", FLOAT, ["N", 4])], [value("y", FLOAT, ["N", 4])]


def test_nan_made_inside(tmp_path):
    flat = np.full((2, 4), 3, np.float32)
    # Compiled, and out of the cache.
    for _ in range(2):
        net = Pair(*scaled(), options={"cache_dir": tmp_path})
        net.stays(x=np.arange(8, dtype=np.float32).reshape(2, 4))
        assert np.isnan(net.falls_back("value 'span' holds 0 in Div node 'd'.*Relu node 'y'", x=flat)[0]).all()
        net.stays(x=np.arange(8, dtype=np.float32).reshape(2, 4))


@pytest.mark.parametrize(
    ("op", "bad", "match"),
    [("Log", -1, "not positive"), ("Log", 0, "not positive"), ("Sqrt", -1, "negative"), ("Acos", 2, "NaN"), ("Reciprocal", 0, "holds 0")],
)
def test_operand_that_makes_nan(op, bad, match):
    nodes = [node("Add", "x one", "a"), node(op, "a", "s"), node("Clip", "s low", "y")]
    weights = {"one": np.float32(1), "low": np.float32(-1e9)}
    net = Pair(nodes, [value("x", FLOAT, ["N"])], [value("y", FLOAT, ["N"])], weights)
    net.stays(x=np.array([-0.5, -0.25], np.float32))
    net.falls_back(match, x=np.array([-0.5, bad - 1], np.float32))


def test_power_of_a_negative_number():
    nodes = [node("Sub", "x one", "b"), node("Pow", "b e", "p"), node("Relu", "p", "y")]
    for exponent, bad in ((0.5, True), (2, False), (3, False), (-2, False)):
        weights = {"one": np.float32(1), "e": np.float32(exponent)}
        net = Pair(nodes, [value("x", FLOAT, ["N"])], [value("y", FLOAT, ["N"])], weights)
        net.stays(x=np.array([1.5, 3], np.float32))
        if bad:
            net.falls_back("negative number in Pow node 'p'", x=np.array([1.5, -3], np.float32))
        else:
            net.stays(x=np.array([1.5, -3], np.float32))




def test_normalisation_needs_no_guard():
    """Sqrt(mean(d * d) + eps) is positive whatever comes in, and so no run with finite inputs fails."""
    nodes = [
        node("ReduceMean", "x", "m", axes=[-1]), node("Sub", "x m", "d"), node("Pow", "d two", "p"),
        node("ReduceMean", "p", "v", axes=[-1]), node("Add", "v eps", "e"), node("Sqrt", "e", "s"),
        node("Div", "d s", "n"), node("Relu", "n", "y"),
    ]  # fmt: skip
    weights = {"two": np.float32(2), "eps": np.float32(1e-12)}
    net = Pair(nodes, [value("x", FLOAT, ["N", 4])], [value("y", FLOAT, ["N", 4])], weights, opset=17)
    net.stays(x=np.full((2, 4), 3, np.float32))


def test_what_where_drops_does_no_harm():
    nodes = [
        node("Greater", "x zero", "good"), node("Log", "x", "l"), node("Mul", "l two", "t"),
        node("Where", "good t zero", "w"), node("Relu", "w", "y"),
    ]  # fmt: skip
    weights = {"zero": np.float32(0), "two": np.float32(2)}
    net = Pair(nodes, [value("x", FLOAT, ["N"])], [value("y", FLOAT, ["N"])], weights)
    net.stays(x=np.array([-1, 0, 1, 2], np.float32))


def attention(mask_from_input):
    random = np.random.default_rng(2)
    weights = {"w": random.standard_normal((8, 8)).astype(np.float32), "inf": -INF, "zero": np.float32(0)}
    nodes = [
        node("MatMul", "x w", "k"), node("Transpose", "k", "kt", perm=[0, 2, 1]), node("MatMul", "x kt", "scores"),
        *([] if mask_from_input else [node("Where", "keep zero inf", "mask")]),
        node("Unsqueeze", "mask axis", "wide"), node("Add", "scores wide", "sum"), node("Softmax", "sum", "p", axis=-1),
        node("MatMul", "p x", "c"), node("Relu", "c", "y"),
    ]  # fmt: skip
    weights["axis"] = np.array([0])
    mask = value("mask", FLOAT, ["S", "S"]) if mask_from_input else value("keep", BOOL, ["S", "S"])
    return nodes, [value("x", FLOAT, ["N", "S", 8]), mask], [value("y", FLOAT, ["N", "S", 8])], weights


@pytest.mark.parametrize("mask_from_input", [True, False])
def test_attention_masks(mask_from_input):
    net = Pair(*attention(mask_from_input))
    x = np.random.default_rng(3).standard_normal((2, 5, 8)).astype(np.float32)
    causal = np.tril(np.ones((5, 5), bool))
    blind = causal.copy()
    blind[3] = False

    def feed(keep):
        return {"x": x, "mask": np.where(keep, 0, -INF).astype(np.float32)} if mask_from_input else {"x": x, "keep": keep}

    net.stays(**feed(causal))
    match = "value 'mask' holds nothing but negative infinities from element 15" if mask_from_input else "value 'c' holds NaN"
    (y,) = net.falls_back(match, **feed(blind))
    assert np.isnan(y[:, 3]).all() and not np.isnan(y[:, 2]).any()


@pytest.mark.parametrize("kind", [np.int64, np.int32])
@pytest.mark.parametrize("computed", [False, True])
def test_index_out_of_range(kind, computed):
    table = np.arange(20, dtype=np.float32).reshape(5, 4)
    nodes = [node("Add", "ids one", "i")] if computed else []
    nodes.append(node("Gather", "table i" if computed else "table ids", "y"))
    dtype = INT64 if kind == np.int64 else INT32
    weights = {"table": table, **({"one": kind(1)} if computed else {})}
    net = Pair(nodes, [value("ids", dtype, ["N", "S"])], [value("y", FLOAT, ["N", "S", 4])], weights)
    shift = 1 if computed else 0
    net.stays(ids=np.array([[0, 4, -5]], kind) - kind(shift))
    net.stays(ids=np.zeros((0, 3), kind))
    for bad in (5, -6, 10**6):
        net.fails("out of range", ids=np.array([[0, bad - shift]], kind))
    net.stays(ids=np.array([[1]], kind))


def test_index_within_what_is_known_needs_no_guard():
    """Positions cut out of a constant, as in BERT: a sequence that is too long fails in Slice or Add."""
    nodes = [
        node("Shape", "x", "shape"), node("Gather", "shape one", "count"), node("Unsqueeze", "count zero", "end"),
        node("Slice", "positions zero end", "p"), node("Gather", "table p", "g"), node("Add", "x g", "y"),
    ]  # fmt: skip
    weights = {
        "one": np.array(1), "zero": np.array([0]), "positions": np.arange(6), "table": np.arange(6, dtype=np.float32),
    }  # fmt: skip
    net = Pair(nodes, [value("x", FLOAT, ["N", "S"])], [value("y", FLOAT, ["N", "S"])], weights)
    net.stays(x=np.ones((2, 4), np.float32))


@pytest.mark.parametrize("computed", [False, True])
def test_coordinates_out_of_range(computed):
    nodes = [node("Mul", "i one", "j"), node("GatherND", "x j", "y")] if computed else [node("GatherND", "x i", "y")]
    weights = {"one": np.array([1, 1])} if computed else {}
    kinds = [value("x", FLOAT, ["A", "B", 2]), value("i", INT64, ["N", 2])]
    net = Pair(nodes, kinds, [value("y", FLOAT, ["N", 2])], weights, whole=not computed)
    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    net.stays(x=x, i=np.array([[0, 3], [2, -4]]))
    net.fails("out of range", x=x, i=np.array([[0, 3], [2, 4]]))


@pytest.mark.parametrize("op", ["Div", "Mod"])
@pytest.mark.parametrize("computed", [False, True])
def test_integer_divisor_of_zero(op, computed):
    nodes = [node("Abs", "b", "d")] if computed else []
    nodes += [node(op, "a d" if computed else "a b", "q"), node("Add", "q q", "y")]
    net = Pair(nodes, [value("a", INT64, ["N"]), value("b", INT64, ["N"])], [value("y", INT64, ["N"])])
    net.stays(a=np.array([7, 9]), b=np.array([2, 4]))
    net.falls_back("holds 0.*would divide", a=np.array([7, 9]), b=np.array([2, 0]))


def test_extreme_of_nothing():
    net = Pair([node("Neg", "x", "n"), node("ArgMax", "n", "y", axis=1)], [value("x", FLOAT, ["N", "S"])], [value("y", INT64, None)])
    net.stays(x=np.array([[1, 3, 2]], np.float32))
    with pytest.raises(Exception, match="ArgMax"):
        net.session.run(None, {"x": np.zeros((2, 0), np.float32)})


def test_body_with_something_to_guard_is_left():
    """Nobody could look at what a body computes."""
    index = node("Gather", "x i", "t")
    then = helper.make_graph([index], "then", [], [value("t", FLOAT, None)])
    other = helper.make_graph([node("Identity", "x", "e")], "else", [], [value("e", FLOAT, None)])
    choice = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other)
    kinds = [value("x", FLOAT, [4]), value("i", INT64, [2]), value("c", BOOL, [])]
    net = Pair([choice], kinds, [value("y", FLOAT, ["N"])], whole=False)
    reason, text = ov.refusals(net.session)["choice"]
    assert reason == "better on CPU" and "in its body" in text and "Gather" in text


@pytest.mark.parametrize("op", ["Clip", "Relu", "ReduceMax", "ReduceSum", "Mod"])
def test_integers_beyond_24_bits(op):
    """OpenVINO computes them in float32."""
    inputs = {"Clip": "a low high", "Mod": "a three"}.get(op, "a")
    weights = {"Clip": {"low": np.int32(-(2**30)), "high": np.int32(2**30)}, "Mod": {"three": np.int32(3)}}.get(op, {})
    net = Pair([node(op, inputs, "r"), node("Add", "r r", "y")], [value("a", INT32, ["N"])], [value("y", INT32, None)], weights)
    net.stays(a=np.array([5, 2**24 - 1, -3], np.int32))
    net.falls_back("24 bits", a=np.array([2**24 + 1, 2**25 + 3], np.int32))
