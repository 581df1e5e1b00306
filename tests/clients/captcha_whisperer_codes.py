"""captcha-whisperer: read codes drawn with Pillow's built-in font."""
from captcha_whisperer import INPUT_HEIGHT, INPUT_WIDTH, CaptchaRecognizer
import numpy as np
from PIL import Image, ImageDraw, ImageFont

recognizer, images = CaptchaRecognizer(), []
TEXTS = ("7K3D", "AB42", "X9QM", "2026", "GOOD", "ZZ01")
for text in TEXTS:
    image = Image.new("RGB", (INPUT_WIDTH, INPUT_HEIGHT), "white")
    draw = ImageDraw.Draw(image)
    for i, letter in enumerate(text):
        draw.text((12 + i * INPUT_WIDTH // 5, INPUT_HEIGHT // 5), letter, fill=(20, 20, 40 * i), font=ImageFont.load_default(INPUT_HEIGHT // 2))
    images.append(np.asarray(image))
for count in (1, 5):
    found = recognizer.recognize_arrays(images[:count])
    print(count, [(text, one["text"], f"{one['confidence']:.2f}") for text, one in zip(TEXTS, found)])
