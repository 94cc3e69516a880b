"""Encrypts images, a file for each chunk of them."""

import shutil

import numpy as np

import synchromesh as sm
from model import CHUNK, place

of = place()
images = np.load(of.input)
secret = sm.SecretKey.load(of.secret)
shutil.rmtree(of.upload, ignore_errors=True)
of.upload.mkdir(parents=True)
for at, start in enumerate(range(0, len(images), CHUNK)):
    chunk = secret.context.encrypt(images[start : start + CHUNK], key=secret, bound=(0.0, 1.0))
    chunk.save(of.upload / f"{at:04}.ct")
