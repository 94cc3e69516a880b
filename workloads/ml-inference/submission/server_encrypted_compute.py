"""Computes the scores of all images; has no secret key."""

import shutil

import synchromesh as sm
from model import network, place

of = place()
scores = network()
evaluation = sm.EvaluationKeys.load(of.evaluation)
context = evaluation.context.add_keys(evaluation)
shutil.rmtree(of.download, ignore_errors=True)
of.download.mkdir(parents=True)
for path in sorted(of.upload.iterdir()):
    # Of nobody's harm but the client's, were its certificate false.
    images = sm.Tensor.load(path, context, trust_certificate=True)
    scores(images).save(of.download / path.name)
