"""Reads images, a line of pixels from 0 to 1 each."""

import numpy as np
from model import PIXELS, enlarged, place

of = place()
pixels = np.loadtxt(of.pixels, ndmin=2)
if pixels.shape[1] == 64:
    pixels = enlarged(pixels)
assert pixels.shape[1] == PIXELS, f"images of {pixels.shape[1]} pixels"
of.input.parent.mkdir(parents=True, exist_ok=True)
np.save(of.input, pixels)
