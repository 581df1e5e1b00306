"""silero-vad in its ONNX mode: both opsets, the streaming iterator, and the batched front-end."""
import os
import wave

import numpy as np
import torch
from silero_vad import VADIterator, get_speech_timestamps, get_speech_timestamps_sequence, load_silero_vad

D = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


def read(name):
    with wave.open(os.path.join(D, name)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


for opset in (15, 16):
    model = load_silero_vad(onnx=True, opset_version=opset)
    for name in ("speech.wav", "speech_noisy.wav", "jarvis.wav"):
        stamps = get_speech_timestamps(torch.from_numpy(read(name)), model)
        print(opset, name, [(round(s["start"] / 16000, 1), round(s["end"] / 16000, 1)) for s in stamps])
model = load_silero_vad(onnx=True)
half = torch.from_numpy(read("speech.wav")[::2].copy())
print("8 kHz", [(round(s["start"] / 8000, 1), round(s["end"] / 8000, 1)) for s in get_speech_timestamps(half, model, sampling_rate=8000)])
iterator, events = VADIterator(model), []
x = torch.from_numpy(read("speech.wav"))
for i in range(0, len(x) - 511, 512):
    if event := iterator(x[i : i + 512], return_seconds=True):
        events.append({k: float(v) for k, v in event.items()})
print("stream", events)
sequence = load_silero_vad(sequence=True)
stamps = get_speech_timestamps_sequence(read("speech.wav"), sequence)
print("sequence", [(round(s["start"] / 16000, 1), round(s["end"] / 16000, 1)) for s in stamps])
