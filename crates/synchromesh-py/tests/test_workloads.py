"""The stages of workloads that others defined, each its own process, on a few samples, laid out as their harnesses do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

WORKLOADS = Path(__file__).resolve().parents[3] / "workloads"


@pytest.fixture
def checkout(tmp_path: Path):
    """A checkout of a harness that a submission was laid over, and how its stages are run."""
    pytest.importorskip("sklearn")
    shutil.copytree(WORKLOADS / "ml-inference", tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("build"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": path}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)

    return tmp_path, run


def test_labels_of_encrypted_images_are_those_of_images(checkout):
    root, run = checkout
    run("scripts/build_task.sh")
    for number, (name, count) in enumerate([("single", 1), ("small", 7)]):
        run("python3", "draw.py", name, str(count))
        io = root / "io" / name

        def stage(program: str) -> None:
            run(f"submission/build/{program}", str(number))  # noqa: B023

        stage("client_key_generation")
        run("submission/build/server_preprocess_model")
        stage("client_preprocess_input")
        stage("client_encode_encrypt_input")
        # The server has no secret, and no image.
        for kept in ("secret_key", "intermediate"):
            (io / kept).rename(root / kept)
        stage("server_encrypted_compute")
        for kept in ("secret_key", "intermediate"):
            (root / kept).rename(io / kept)
        stage("client_decrypt_decode")
        stage("client_postprocess")
        weights = np.load(root / "submission" / "build" / "model.npz")
        pixels = np.load(io / "intermediate" / "pixels.npy")
        assert pixels.shape == (count, 784)
        hidden = (pixels @ weights["0.weight"].T + weights["0.bias"]) ** 2
        scores = hidden @ weights["2.weight"].T + weights["2.bias"]
        found = np.load(io / "intermediate" / "scores.npy")
        assert np.abs(found - scores).max() < 2**-3
        labels = (io / "encrypted_model_predictions.txt").read_text().split()
        assert labels == [str(label) for label in scores.argmax(axis=1)]
        expected = (root / "datasets" / name / "intermediate" / "test_labels.txt").read_text().split()
        assert sum(a == b for a, b in zip(labels, expected)) >= count - 1
    assert {path.name for path in (root / "io" / "small" / "public_keys").iterdir()} == {"eval.keys"}


def test_lines_of_eight_by_eight_are_enlarged(checkout):
    root, run = checkout
    pixels = root / "datasets" / "small" / "intermediate" / "test_pixels.txt"
    pixels.parent.mkdir(parents=True)
    np.savetxt(pixels, np.random.default_rng(1).uniform(0, 1, (3, 64)))
    run("python3", "submission/client_preprocess_input.py", "1")
    found = np.load(root / "io" / "small" / "intermediate" / "pixels.npy").reshape(3, 28, 28)
    assert np.array_equal(found[:, 2:26:3, 2:26:3].reshape(3, 64), np.loadtxt(pixels))
    np.savetxt(pixels, np.zeros((3, 50)))
    with pytest.raises(subprocess.CalledProcessError) as refused:
        run("python3", "submission/client_preprocess_input.py", "1")
    assert "images of 50 pixels" in refused.value.stderr
