"""nudenet: its detector (YOLOv8) over drawn faces; raw scores too, since nothing indecent is at hand."""
import cv2
import numpy as np
from nudenet import NudeDetector
from nudenet.nudenet import _read_image
from PIL import Image, ImageDraw

detector = NudeDetector()
for size in (320, 480):
    image = Image.new("RGB", (size, size), (200, 220, 240))
    draw = ImageDraw.Draw(image)
    c = size // 2
    draw.ellipse((c - 80, c - 100, c + 80, c + 100), fill=(224, 172, 140))
    for dx in (-30, 30):
        draw.ellipse((c + dx - 14, c - 34, c + dx + 14, c - 16), fill="white")
        draw.ellipse((c + dx - 7, c - 32, c + dx + 7, c - 18), fill=(60, 30, 20))
    draw.polygon([(c, c - 10), (c - 12, c + 24), (c + 12, c + 24)], fill=(205, 150, 120))
    draw.arc((c - 36, c + 20, c + 36, c + 66), 20, 160, fill=(150, 40, 40), width=8)
    draw.pieslice((c - 86, c - 130, c + 86, c + 10), 180, 360, fill=(40, 25, 15))
    array = cv2.cvtColor(np.asarray(image), cv2.COLOR_RGB2BGR)
    for found in detector.detect(array):
        print(size, found["class"], [int(round(v / 4) * 4) for v in found["box"]], f"{found['score']:.2f}")
    scores = detector.onnx_session.run(None, {detector.input_name: _read_image(array, 320)[0]})[0][0, 4:]
    print(size, scores.shape, [f"{v:.2f}" for v in scores.max(1)])
