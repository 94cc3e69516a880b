"""Joint keys among three parties of one process, each a task: made, used, decrypted with, passed on; and ended by whoever cancels."""

from __future__ import annotations

import asyncio
import socket
import time

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import errors


def meeting(directory, parties=3):
    """Identities and the list of parties."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(parties)]
    lines = [
        f"127.0.0.1:{each.getsockname()[1]} {sm.parties.identity(directory / f'{number}.identity')}\n"
        for number, each in enumerate(sockets)
    ]
    for each in sockets:
        each.close()
    (directory / "hosts").write_text("".join(lines))


def me(directory, number, timeout=60.0):
    return {"hosts": directory / "hosts", "identity": directory / f"{number}.identity", "timeout": timeout, "insecure": True}


def make(directory, plan):
    meeting(directory)

    async def all_of_them():
        calls = [sm.parties.keygen(plan, directory / str(i), **me(directory, i)) for i in range(3)]
        return await asyncio.gather(*calls)

    return asyncio.run(all_of_them())


def opened(directory, number, plan):
    """A context with what a party's directory has for everybody."""
    context, own = sm.Context(plan, insecure=True), directory / str(number)
    context.add_keys(sm.EnvelopeKey.load(own / "envelope.key", context), sm.EvaluationKeys.load(own / "eval.keys", context))
    return context, sm.PublicKey.load(own / "public.key", context)


def encrypted(directory, number, plan, array, name):
    """An array that a party encrypts, in a file."""
    context, public = opened(directory, number, plan)
    context.encrypt(array, public).save(directory / name)


def together(directory, members, file, **more):
    async def all_of_them():
        calls = [
            sm.parties.decrypt(directory / str(i), directory / file, members=members, **me(directory, i), **more)
            for i in members
        ]
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("scheme", ["bgv", "bfv", "ckks"])
def test_three_parties_make_a_key_and_two_decrypt_what_a_server_computed(tmp_path, scheme):
    joint = sm.parties.Joint(3, threshold=2, decryptions=8)
    more = {"precision": 10} if scheme == "ckks" else {"bounds": 9}
    shapes = [(2, 3), (2, 3)]
    plan = sm.plan(lambda x, y: x * y + x, shapes, scheme=scheme, security="insecure", joint=joint, **more)
    made = make(tmp_path, plan)
    assert [each.party for each in made] == [0, 1, 2] and len({each.key_id for each in made}) == 1
    assert all(len(each.files) == 5 and each.bytes_sent > 0 for each in made)
    x, y = np.arange(-3, 3).reshape(2, 3), np.array([[5, -4, 3], [2, -1, 9]])
    if scheme == "ckks":
        x, y = x / 4, y / 9
    encrypted(tmp_path, 0, plan, x, "x.ct")
    encrypted(tmp_path, 1, plan, y, "y.ct")
    held, _ = opened(tmp_path, 0, plan)
    left, right = (sm.Tensor.load(tmp_path / name, held) for name in ("x.ct", "y.ct"))
    (left * right + left).save(tmp_path / "z.ct")
    (left - right).save(tmp_path / "w.ct")
    for shown in together(tmp_path, [0, 2], "z.ct"):
        assert shown.members == [0, 2] and shown.decryptions == 1 and shown.most_decryptions == 8
        assert shown.values.shape == (2, 3)
        assert np.abs(shown.values - (x * y + x)).max() <= shown.error_bound <= 2**-9
    again = together(tmp_path, [0, 2], "z.ct")
    assert "decrypted_before" in [error.kind for error in again]
    # To one receiver, who has a key of its own under the same plan.
    keys = sm.Context(plan, insecure=True).keygen()
    keys.save(tmp_path / "receiver")

    async def passing():
        calls = [
            sm.parties.pass_on(
                tmp_path / str(i), tmp_path / "w.ct", tmp_path / "receiver", tmp_path / f"{i}.ct", members=[1, 2], **me(tmp_path, i)
            )
            for i in (1, 2)
        ]
        return await asyncio.gather(*calls)

    assert all(passed.authenticated for passed in asyncio.run(passing()))
    secret = sm.SecretKey.load(tmp_path / "receiver" / "secret.key", keys.secret.context)
    found = secret.decrypt(sm.Tensor.load(tmp_path / "1.ct", secret.context))
    assert found.shape == (2, 3) and np.abs(found - (x - y)).max() < 2**-6


@pytest.mark.parametrize("scheme", ["bgv", "bfv", "ckks"])
def test_a_tensor_without_levels_is_made_fresh_and_goes_on(tmp_path, scheme):
    joint = sm.parties.Joint(3, threshold=2, decryptions=8)
    more = {"precision": 10} if scheme == "ckks" else {"bounds": 3}
    # What hides a message of CKKS takes room: it is made fresh a level above the lowest.
    computed = (lambda x, y: x * y * y) if scheme == "ckks" else (lambda x, y: x * y)
    plan = sm.plan(computed, [(2, 3)] * 2, scheme=scheme, security="insecure", joint=joint, **more)
    make(tmp_path, plan)
    x, y = np.arange(-3, 3).reshape(2, 3), np.array([[3, -2, 3], [2, -1, 1]])
    if scheme == "ckks":
        x, y = x / 4, y / 3
    encrypted(tmp_path, 0, plan, x, "x.ct")
    encrypted(tmp_path, 1, plan, y, "y.ct")
    held, _ = opened(tmp_path, 2, plan)
    left, right = (sm.Tensor.load(tmp_path / name, held) for name in ("x.ct", "y.ct"))
    (left * right).save(tmp_path / "z.ct")

    async def refreshing():
        calls = [
            sm.parties.refresh(tmp_path / str(i), tmp_path / "z.ct", tmp_path / f"{i}.ct", members=[0, 1], **me(tmp_path, i))
            for i in (0, 1)
        ]
        return await asyncio.gather(*calls)

    made = asyncio.run(refreshing())
    assert all(each.level > 0 and each.members == [0, 1] and each.decryptions == 1 for each in made)
    assert (tmp_path / "0.ct").read_bytes() == (tmp_path / "1.ct").read_bytes()
    fresh = sm.Tensor.load(tmp_path / "1.ct", held)
    (fresh * right).save(tmp_path / "w.ct")
    before = sm.Tensor.load(tmp_path / "z.ct", held)
    assert fresh.level > before.level if scheme == "ckks" else fresh.noise_budget > before.noise_budget + 8
    for shown in together(tmp_path, [1, 2], "w.ct"):
        assert shown.values.shape == (2, 3)
        assert np.abs(shown.values - x * y * y).max() <= shown.error_bound <= 2**-8


@pytest.mark.parametrize("scheme", ["bgv", "bfv", "ckks"])
def test_three_who_prove_their_shares_make_a_key_and_decrypt(tmp_path, scheme):
    threshold, members = (2, [2, 0]) if scheme == "bfv" else (None, [0, 1, 2])
    joint = sm.parties.Joint(3, threshold=threshold, decryptions=4, proofs=True)
    more = {"precision": 10} if scheme == "ckks" else {"bounds": 9}
    plan = sm.plan(lambda x: x * x + x, [(2, 3)], scheme=scheme, security="insecure", joint=joint, **more)
    plain = sm.plan(
        lambda x: x * x + x, [(2, 3)], scheme=scheme, security="insecure", joint=sm.parties.Joint(3, decryptions=4), **more
    )
    made = make(tmp_path, plan)
    x = np.array([[5, -4, 3], [2, -1, 9]]) / (9 if scheme == "ckks" else 1)
    encrypted(tmp_path, 1, plan, x if scheme == "ckks" else x.astype(int), "x.ct")
    held, _ = opened(tmp_path, 0, plan)
    each = sm.Tensor.load(tmp_path / "x.ct", held)
    (each * each + each).save(tmp_path / "z.ct")
    for shown in together(tmp_path, members, "z.ct"):
        assert np.abs(shown.values - (x * x + x)).max() <= shown.error_bound <= 2**-9
    # Proofs go with the shares, and certificates are for the worst that they let through.
    assert plan != plain and all(part.bytes_sent > 0 for part in made)
    with pytest.raises(errors.ParamsError, match="let all 64 decrypt"):
        sm.plan(scheme=scheme, depth=1, joint=sm.parties.Joint(64, threshold=32, proofs=True))
    # Nobody has a proof of other holders' shares.
    with pytest.raises(errors.SynchromeshError, match="proof of their shares") as caught:
        asyncio.run(sm.parties.reshare(tmp_path / "0", tmp_path / "new", new_hosts=tmp_path / "hosts", **me(tmp_path, 0)))
    assert caught.value.kind == "joint_key" and not (tmp_path / "new").exists()


def test_a_key_is_handed_on_and_its_new_holders_decrypt_what_was_encrypted_before(tmp_path):
    plan = sm.plan(lambda x: 2 * x, [4], scheme="bgv", security="insecure", bounds=9, joint=sm.parties.Joint(3, threshold=2))
    made = make(tmp_path, plan)
    x = np.array([3, -4, 5, 9])
    for name in ("x.ct", "y.ct"):
        encrypted(tmp_path, 1, plan, x, name)
    assert all((shown.values == x).all() for shown in together(tmp_path, [0, 1], "y.ct"))
    # One of the old holders stays, as the last of three, and two come.
    (tmp_path / "come").mkdir()
    meeting(tmp_path / "come", parties=2)
    stays = (tmp_path / "hosts").read_text().splitlines()[2]
    (tmp_path / "new-hosts").write_text((tmp_path / "come" / "hosts").read_text() + stays + "\n")
    identities = [tmp_path / "come" / "0.identity", tmp_path / "come" / "1.identity", tmp_path / "2.identity"]
    (tmp_path / "copy").mkdir()
    for name in ("public.key", "eval.keys", "envelope.key"):
        (tmp_path / "copy" / name).write_bytes((tmp_path / "2" / name).read_bytes())

    async def handing():
        def hand(keys, out, identity):
            how = {**me(tmp_path, 0), "identity": identity, "members": [0, 2], "threshold": 3}
            return sm.parties.reshare(tmp_path / keys, tmp_path / out, new_hosts=tmp_path / "new-hosts", **how)

        return await asyncio.gather(
            hand("0", "nowhere", tmp_path / "0.identity"),
            hand("copy", "new-0", identities[0]),
            hand("copy", "new-1", identities[1]),
            hand("2", "new-2", identities[2]),
        )

    done = asyncio.run(handing())
    assert [each.party for each in done] == [None, 0, 1, 2]
    assert all((each.parties, each.threshold, each.givers) == (3, 3, [0, 2]) for each in done)
    assert {each.key_id for each in done} == {made[0].key_id}
    assert [len(each.delete) for each in done] == [2, 0, 0, 2] and [len(each.files) for each in done] == [0, 5, 5, 5]
    assert not (tmp_path / "nowhere").exists()

    async def decrypting(file, members):
        calls = [
            sm.parties.decrypt(
                tmp_path / f"new-{i}",
                tmp_path / file,
                members=members,
                **{**me(tmp_path, 0), "hosts": tmp_path / "new-hosts", "identity": identities[i]},
            )
            for i in members
        ]
        return await asyncio.gather(*calls, return_exceptions=True)

    for shown in asyncio.run(decrypting("x.ct", [0, 1, 2])):
        assert (shown.values == x).all() and shown.decryptions == 3
    before = asyncio.run(decrypting("y.ct", [0, 1, 2]))
    assert "decrypted_before" in [error.kind for error in before]
    few = asyncio.run(decrypting("x.ct", [0, 1]))
    assert {error.kind for error in few} == {"too_few_parties"}


def test_whoever_cancels_leaves_at_once_and_nothing_is_written(tmp_path):
    plan = sm.plan(scheme="bgv", depth=1, security="insecure", joint=sm.parties.Joint(3))
    meeting(tmp_path)

    async def impatient():
        ticks = 0
        task = asyncio.create_task(sm.parties.keygen(plan, tmp_path / "0", **me(tmp_path, 0)))
        for _ in range(10):
            # The loop goes on while the party waits for the others.
            await asyncio.sleep(0.02)
            ticks += 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ticks

    began = time.monotonic()
    assert asyncio.run(impatient()) == 10
    assert time.monotonic() - began < 30, "the timeout was 60"
    assert not list((tmp_path / "0").iterdir())
    with pytest.raises(errors.SynchromeshError) as caught:
        asyncio.run(sm.parties.keygen(plan, tmp_path / "0", **me(tmp_path, 0, timeout=0.2)))
    assert caught.value.kind == "abort" and "parties 1 and 2" in str(caught.value)


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(errors.InputError):
        sm.plan(scheme="bgv", depth=1, joint=sm.parties.Joint(3, threshold=4))
    with pytest.raises(errors.DTypeError):
        sm.plan(scheme="bgv", depth=1, joint=3)
    meeting(tmp_path)
    alone = sm.plan(scheme="bgv", depth=1, security="insecure")
    with pytest.raises(errors.SynchromeshError) as caught:
        asyncio.run(sm.parties.keygen(alone, tmp_path / "0", **me(tmp_path, 0)))
    assert caught.value.kind == "not_a_joint_plan"
    weak = sm.plan(scheme="bgv", depth=1, security="insecure", joint=sm.parties.Joint(3))
    with pytest.raises(errors.SynchromeshError) as caught:
        asyncio.run(sm.parties.keygen(weak, tmp_path / "0", **{**me(tmp_path, 0), "insecure": False}))
    assert caught.value.kind == "below_floor"
    for timeout in (0, -1, float("nan"), "soon"):
        with pytest.raises(errors.InputError):
            asyncio.run(sm.parties.keygen(weak, tmp_path / "0", **me(tmp_path, 0, timeout=timeout)))
