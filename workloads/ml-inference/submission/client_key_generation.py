"""Plans for the network, which is public, and makes keys."""

import synchromesh as sm
from model import place, plan

to = place()
keys = sm.Context(plan(to.single)).keygen()
for key, path in ((keys.secret, to.secret), (keys.evaluation, to.evaluation)):
    path.parent.mkdir(parents=True, exist_ok=True)
    key.save(path, replace=True)
