"""Draws images and labels as the harness does, from digits that the network was not trained on: draw.py SIZE COUNT"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "submission"))

import model
import numpy as np

size, count = sys.argv[1], int(sys.argv[2])
images, labels = model.digits(held_out=True)
rng = np.random.default_rng(7)
chosen = rng.permutation(len(labels))[:count] if count <= len(labels) else rng.integers(len(labels), size=count)
pixels = model.Place(size).pixels
pixels.parent.mkdir(parents=True, exist_ok=True)
np.savetxt(pixels, images[chosen], fmt="%.6f")
np.savetxt(pixels.with_name("test_labels.txt"), labels[chosen], fmt="%d")
