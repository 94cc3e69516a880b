"""The network, how it was trained, its plan, and where the stages keep what they exchange."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

import synchromesh as sm

NAMES = ("single", "small", "medium", "large")
PIXELS, HIDDEN, LABELS = 784, 64, 10
# Images that a server computes on at a time, and those that a plan is made for: their layout is the same.
CHUNK, PLANNED = 250, 5
# Trained once, by the first stage that needs it; public.
TRAINED = Path(__file__).resolve().parent / "build" / "model.npz"


class Place:
    """The folders of a size, from the root of the harness's checkout."""

    def __init__(self, size: str) -> None:
        name = NAMES[int(size)] if size.isdigit() else size
        self.single = name == NAMES[0]
        self.pixels = Path("datasets", name, "intermediate", "test_pixels.txt")
        self.io = Path("io", name)
        self.input = self.io / "intermediate" / "pixels.npy"
        self.scores = self.io / "intermediate" / "scores.npy"
        self.predictions = self.io / "encrypted_model_predictions.txt"
        self.secret = self.io / "secret_key" / "secret.key"
        self.evaluation = self.io / "public_keys" / "eval.keys"
        self.upload, self.download = self.io / "ciphertexts_upload", self.io / "ciphertexts_download"


def place() -> Place:
    """That of the stage's first argument."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SIZE, one of 0 to 3 or {', '.join(NAMES)}")
    return Place(sys.argv[1])


def network() -> sm.models.Model:
    """A dense layer, squares, a dense layer: scores of the ten labels."""
    layers = [sm.nn.Linear(), np.square, sm.nn.Linear()]
    return sm.nn.from_state_dict(layers, dict(np.load(trained())), (PIXELS,))


def plan(single: bool) -> sm.Plan:
    """Parameters and keys for one image, or for any number."""
    return sm.plan(network(), [(1 if single else PLANNED, PIXELS)], bounds=[(0.0, 1.0)], precision=3)


# Training, in the clear.


def trained() -> Path:
    """The file of the weights; made from MNIST where the harness has it, else from scikit-learn's digits."""
    if not TRAINED.exists():
        images, labels = mnist() or digits()
        TRAINED.parent.mkdir(exist_ok=True)
        unfinished = TRAINED.with_suffix(".part.npz")
        np.savez(unfinished, **fitted(images, labels))
        unfinished.replace(TRAINED)
    return TRAINED


def mnist() -> tuple[np.ndarray, np.ndarray] | None:
    """Training images and labels that the harness downloaded."""
    found = []
    for kind, header in (("images-idx3", 16), ("labels-idx1", 8)):
        files = sorted(path for folder in ("datasets", "harness") for path in Path(folder).rglob(f"train-{kind}-ubyte*"))
        if not files:
            return None
        data = gzip.decompress(files[0].read_bytes()) if files[0].suffix == ".gz" else files[0].read_bytes()
        found.append(np.frombuffer(data, dtype=np.uint8, offset=header))
    return found[0].reshape(-1, PIXELS).astype(np.float64) / 255, found[1].astype(np.int64)


def digits(held_out: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Four fifths of scikit-learn's 1797 digits, enlarged in three ways; or the others."""
    from sklearn.datasets import load_digits

    data = load_digits()
    chosen = np.random.default_rng(0).permutation(len(data.target))
    chosen = chosen[1437:] if held_out else chosen[:1437]
    images, labels = data.images[chosen] / 16.0, data.target[chosen]
    if held_out:
        return enlarged(images), labels
    nearest, between = np.arange(28) * 8 // 28, np.clip((np.arange(28) + 0.5) * 8 / 28 - 0.5, 0, 7)
    low = np.minimum(between.astype(int), 6)
    part = between - low
    rows = images[:, low] * (1 - part)[:, None] + images[:, low + 1] * part[:, None]
    smooth = rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part
    ways = [enlarged(images), images[:, nearest][:, :, nearest].reshape(-1, PIXELS), smooth.reshape(-1, PIXELS)]
    return np.concatenate(ways), np.tile(labels, 3)


def enlarged(images: np.ndarray) -> np.ndarray:
    """Images of 8 x 8 as 28 x 28: nine pixels for one, and a frame of zeros."""
    large = np.kron(images.reshape(-1, 8, 8), np.ones((1, 3, 3)))
    return np.pad(large, ((0, 0), (2, 2), (2, 2))).reshape(-1, PIXELS)


def fitted(images: np.ndarray, labels: np.ndarray, steps: int = 6000, batch: int = 128) -> dict[str, np.ndarray]:
    """Weights by Adam (Kingma and Ba, arXiv 1412.6980) on the cross entropy, images moved by up to a pixel or two."""
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=(PIXELS, HIDDEN)) * 0.04, np.zeros(HIDDEN), rng.normal(size=(HIDDEN, LABELS)) * 0.1, np.zeros(LABELS)]
    means, squares = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    for step in range(1, steps + 1):
        chosen = rng.integers(len(labels), size=batch)
        moved = np.roll(images[chosen].reshape(-1, 28, 28), rng.integers(-1, 2, size=2), axis=(1, 2)).reshape(-1, PIXELS)
        hidden = moved @ weights[0] + weights[1]
        scores = hidden**2 @ weights[2] + weights[3]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        shares[np.arange(batch), labels[chosen]] -= 1.0
        shares /= batch
        inner = 2.0 * hidden * (shares @ weights[2].T)
        decay = 3e-4
        slopes = [moved.T @ inner + decay * weights[0], inner.sum(axis=0), (hidden**2).T @ shares + decay * weights[2], shares.sum(axis=0)]
        rate = 2e-3 * (1.0 - step / steps)
        for k, slope in enumerate(slopes):
            means[k] += 0.1 * (slope - means[k])
            squares[k] += 0.001 * (slope**2 - squares[k])
            weights[k] -= rate * (means[k] / (1 - 0.9**step)) / (np.sqrt(squares[k] / (1 - 0.999**step)) + 1e-8)
    first, added, second, constants = weights
    return {"0.weight": first.T, "0.bias": added, "2.weight": second.T, "2.bias": constants}
