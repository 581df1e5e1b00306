#!/usr/bin/env python3
"""Reads lines of text with Epona and the PP-OCRv6 recogniser of the package rapidocr.

    scripts/demo.py                  lines that it draws itself
    scripts/demo.py picture.png      lines of a picture: dark text on a light ground, or the other way round

Prints the text, which provider runs how many nodes, and the latency; then does one line over again with the `epona`
program, through numpy files.
"""

import argparse
import collections
import importlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

MODEL = "PP-OCRv6_rec_small"
ROOT = Path(__file__).resolve().parent.parent
HEIGHT, LEAST_WIDTH = 48, 320
REPEATS = 10
LINES = [
    "Epona runs ONNX models on whatever is there.",
    "The quick brown fox jumps over the lazy dog",
    "Invoice No. 2026-0417: 3 x 19.95 = 59.85 EUR",
    "reply-to: someone@example.org (24 h)",
]


def draw_line(text):
    font = ImageFont.load_default(size=36)
    left, top, right, bottom = font.getbbox(text)
    image = Image.new("RGB", (right - left + 24, bottom - top + 16), "white")
    ImageDraw.Draw(image).text((12 - left, 8 - top), text, font=font, fill=(25, 25, 45))
    return image


def cut_lines(image):
    """Splits a picture at its empty rows. The ground is the colour of most pixels."""
    grey = np.asarray(image.convert("L"), np.int16)
    inked = (np.abs(grey - np.median(grey)) > 60).any(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inked, [False]]).astype(np.int8)))
    lines = []
    for top, bottom in zip(edges[::2], edges[1::2], strict=True):
        if bottom - top >= 6:
            margin = max(2, (bottom - top) // 4)
            lines.append(image.crop((0, max(0, top - margin), image.width, min(image.height, bottom + margin))))
    return lines or [image]


def to_tensor(image):
    """What the recogniser was trained on: BGR, 48 rows, values -1..1, zeros right of a short line."""
    width = max(1, round(HEIGHT * image.width / image.height))
    pixels = np.asarray(image.convert("RGB").resize((width, HEIGHT), Image.Resampling.BILINEAR), np.float32)
    tensor = np.zeros((1, 3, HEIGHT, max(width, LEAST_WIDTH)), np.float32)
    tensor[0, :, :, :width] = (pixels[:, :, ::-1].transpose(2, 0, 1) / 255 - 0.5) / 0.5
    return tensor


def decode(scores, characters):
    """Best class of every column; repeats count once and class 0 separates."""
    best = scores[0].argmax(axis=1)
    kept = [i for i, c in enumerate(best) if c != 0 and (i == 0 or c != best[i - 1])]
    text = "".join(characters[best[i]] for i in kept)
    return text, float(np.mean(scores[0, kept, best[kept]])) if kept else 0.0


def character_list(session):
    """Class 0 is the blank, the last one the space; those between come with the model."""
    return ["", *session.get_modelmeta().custom_metadata_map["character"].split("\n"), " "]


def nodes_by_provider(session):
    if hasattr(session, "get_placement"):
        nodes = session.get_placement().nodes
        return collections.Counter(node["provider"] or "folded or removed before it runs" for node in nodes)
    counts = collections.Counter()
    for part in session.get_provider_graph_assignment_info():
        counts[part.ep_name] += len(part.get_nodes())
    return counts


def open_model(runtime, path):
    options = runtime.SessionOptions()
    if not hasattr(runtime.InferenceSession, "get_placement"):
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    start = time.perf_counter()
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session, time.perf_counter() - start


def read_lines(session, images, characters):
    for number, image in enumerate(images, 1):
        tensor = to_tensor(image)
        scores = session.run(None, {"x": tensor})[0]
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            session.run(None, {"x": tensor})
            times.append(time.perf_counter() - start)
        text, confidence = decode(scores, characters)
        milliseconds = 1e3 * statistics.median(times)
        print(f"  {number}. {text}\n     {confidence:.0%} sure, width {tensor.shape[3]}, {milliseconds:.1f} ms")
        yield text


def read_with_program(program, path, image, characters):
    with tempfile.TemporaryDirectory() as folder:
        line, out = Path(folder) / "line.npy", Path(folder) / "out"
        np.save(line, to_tensor(image))
        command = [program, "run", str(path), "--input", f"x={line}", "--save", str(out)]
        print("$ " + " ".join(command), flush=True)
        subprocess.run(command, check=True)
        saved = sorted(out.rglob("*.npy"))
        return decode(np.load(saved[0]), characters)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", nargs="?", help="a picture of one or more lines of text")
    parser.add_argument("--runtime", default=os.environ.get("EPONA_TEST_MODULE", "epona"), help="module that runs it")
    arguments = parser.parse_args()
    path = Path(os.environ.get("EPONA_MODELS") or ROOT / "models") / f"{MODEL}.onnx"
    subprocess.run([sys.executable, str(ROOT / "scripts" / "models.py"), "--only", MODEL], check=True)
    if arguments.image:
        images, expected = cut_lines(Image.open(arguments.image).convert("RGB")), None
    else:
        images, expected = [draw_line(text) for text in LINES], LINES

    runtime = importlib.import_module(arguments.runtime)
    session, seconds = open_model(runtime, path)
    print(f"{arguments.runtime} {runtime.__version__}: {path.name} ready in {1e3 * seconds:.0f} ms")
    for provider, count in nodes_by_provider(session).items():
        print(f"  {provider}: {count} nodes")
    characters = character_list(session)
    texts = list(read_lines(session, images, characters))

    program = Path(sys.executable).with_name("epona")
    program = str(program) if program.exists() else shutil.which("epona")
    if program:
        text = read_with_program(program, path, images[0], characters)
        print(f"  {text}")
        if text != texts[0]:
            raise SystemExit(f"the program reads {text!r}, the module {texts[0]!r}")
    elif arguments.runtime == "epona":
        raise SystemExit("the `epona` program is not installed beside this Python")
    if expected and texts != expected:
        wrong = [f"{want!r} was read as {got!r}" for want, got in zip(expected, texts, strict=True) if want != got]
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
