"""Files, bytes, pickles: what goes out comes back, secrets stay with their owner, damage is named."""

from __future__ import annotations

import gc
import os
import pickle
import stat
import struct
import subprocess

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import _layout, _wire, errors


def test_a_session_through_files(each, tmp_path):
    x = each.numbers(30)
    each.keys.save(tmp_path / "keys")
    each.encrypt(x).save(tmp_path / "x.ct")
    for name in ("envelope.key", "secret.key"):
        assert stat.S_IMODE(os.stat(tmp_path / "keys" / name).st_mode) == 0o600
    server = sm.EvaluationKeys.load(tmp_path / "keys/eval.keys")
    context = server.context.add_keys(server, sm.EnvelopeKey.load(tmp_path / "keys/envelope.key"))
    y = sm.Tensor.load(tmp_path / "x.ct", context)
    (y * y + 1).save(tmp_path / "y.ct")

    secret = sm.SecretKey.load(tmp_path / "keys/secret.key")
    z = sm.Tensor.load(tmp_path / "y.ct", secret.context)
    assert np.abs(secret.decrypt(z) - (x * x + 1)).max() < 1e-3
    with pytest.raises(errors.FileError):
        each.keys.save(tmp_path / "keys")


SEALED = 2 * 32


def blake3(data):
    return pytest.importorskip("blake3").blake3(data)


def forged(data, sealed):
    """``data`` with tiny certificates in all its ciphertexts, and every checksum made anew that needs no key."""
    out = bytearray(data)
    mark, at = b"\x89SMESH\r\n", -1
    while (at := out.find(mark, at + 1)) >= 0:
        (kind,), (length,) = struct.unpack_from("<H", out, at + 10), struct.unpack_from("<Q", out, at + 64)
        if kind == 5:
            struct.pack_into("<ii", out, at + 76 + 4, -(50 << 10), -(50 << 10))
            end = at + 76 + length
            out[end : end + 32] = blake3(bytes(out[at:end])).digest()
    end = len(out) - (SEALED if sealed else SEALED // 2)
    out[end : end + 32] = blake3(bytes(out[:end])).digest()
    return bytes(out)


def stripped(data):
    """A sealed file without its authentication code, as one that was written without an envelope key."""
    out = bytearray(data[: -SEALED // 2])
    struct.pack_into("<H", out, 8, 1)
    return forged(out, sealed=False)


def doubted(each, data):
    """Fails unless nothing is done with ``data``, which nobody vouches for, without the user's word."""
    with pytest.raises(errors.NoiseError) as caught:
        each.keys.secret.decrypt(each.context.read(data))
    assert caught.value.kind == "unknown_noise"
    told = each.context.read(data, trust_certificate=True)
    each.keys.secret.decrypt(told)
    # What is computed from it is not vouched for either.
    with pytest.raises(errors.NoiseError):
        each.keys.secret.decrypt(each.context.read((told + told).to_bytes()))


def test_forged_certificates_are_not_believed(each):
    """The attack: eight bytes of a file changed, all plain checksums right."""
    x = each.numbers(3)
    data = each.encrypt(x).to_bytes()
    each.check(each.context.read(data), x)
    with pytest.raises(errors.DecodeError) as caught:
        each.context.read(forged(data, sealed=True))
    assert caught.value.kind == "not_authentic"
    doubted(each, stripped(data))
    # Results are authenticated as what they were computed from.
    each.check(each.context.read((each.context.read(data) * 2).to_bytes()), 2 * x)


def test_files_of_whoever_has_no_envelope_key(each, tmp_path):
    x = each.numbers(3)
    each.keys.save(tmp_path)
    stranger = sm.PublicKey.load(tmp_path / "public.key", sm.Context(each.context.plan, insecure=True))
    doubted(each, stranger.context.encrypt(x, stranger).to_bytes())
    with pytest.raises(errors.NoiseError):
        sm.SecretKey.load(tmp_path / "secret.key", stranger.context).decrypt(
            stranger.context.read(each.encrypt(x).to_bytes())
        )
    # Keys are bound to the envelope key too.
    other = stranger.context.keygen()
    stranger.context.add_keys(sm.EnvelopeKey.load(tmp_path / "envelope.key", stranger.context))
    with pytest.raises(errors.DecodeError) as caught:
        sm.PublicKey.from_bytes(swapped(each.keys.public.to_bytes()), stranger.context)
    assert caught.value.kind == "not_authentic"
    assert sm.PublicKey.from_bytes(other.public.to_bytes(), stranger.context).key_id == other.public.key_id


def swapped(data):
    """A public key with another seed, its checksums made anew."""
    out = bytearray(data)
    at = out.find(b"\x89SMESH\r\n")
    (length,) = struct.unpack_from("<Q", out, at + 64)
    out[at + 76] ^= 1
    end = at + 76 + length
    out[end : end + 32] = blake3(bytes(out[at:end])).digest()
    out[-SEALED:-32] = blake3(bytes(out[:-SEALED])).digest()
    return bytes(out)


def test_files_of_insecure_plans_need_the_word(tmp_path):
    plan = sm.plan(scheme="bgv", depth=0, additions=3, security="insecure")
    context = sm.Context(plan, insecure=True)
    context.keygen().save(tmp_path)
    del context
    gc.collect()
    for load, name in ((sm.SecretKey.load, "secret.key"), (sm.EvaluationKeys.load, "eval.keys")):
        with pytest.raises(errors.InsecureError):
            load(tmp_path / name)
        load(tmp_path / name, sm.Context(plan, insecure=True))
        gc.collect()


def test_layouts_survive_files(each):
    x = each.numbers(4, 8)
    a = each.encrypt(x)
    for tensor, expected in [(a, x), (a.T, x.T), (a[1:3, ::2], x[1:3, ::2]), (a.sum(axis=1), x.sum(axis=1))]:
        each.check(each.context.read(tensor.to_bytes(), trust_certificate=True), expected)


def test_pickles_with_buffers_out_of_band(each):
    x = each.numbers(2 * each.context.slots)
    a = each.encrypt(x)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(a, protocol))
        assert again.context is a.context
        each.check(again, x)
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(a, 5, buffer_callback=buffers.append)
    assert len(buffers) == 2 and len(data) < sum(b.raw().nbytes for b in buffers) / 2
    each.check(pickle.loads(data, buffers=[b.raw() for b in buffers]), x)
    keys = pickle.loads(pickle.dumps(each.keys.evaluation, 5))
    assert (keys.key_id, len(keys)) == (each.keys.evaluation.key_id, len(each.keys.evaluation))
    assert pickle.loads(pickle.dumps(each.keys.public)).key_id == each.keys.public.key_id
    assert pickle.loads(pickle.dumps(each.context.plan)) == each.context.plan


def test_secret_keys_are_neither_pickled_nor_shown(each):
    with pytest.raises(pickle.PicklingError, match="save"):
        pickle.dumps(each.keys.secret)
    with pytest.raises(pickle.PicklingError, match="save"):
        pickle.dumps(each.keys.envelope)
    for thing in (*each.keys, each.context, each.encrypt(each.numbers(2)), each.context.plan):
        assert len(repr(thing)) < 300
    names = {n for n in dir(each.keys.secret._native) if not n.startswith("__")}
    assert names == {"context", "key_id", "decrypt", "save", "load", "to"}


def test_damaged_bytes_are_named(each):
    data = bytearray(each.encrypt(each.numbers(3)).to_bytes())
    rng = np.random.default_rng(1)
    for place in rng.integers(0, len(data), 60):
        wrong = bytearray(data)
        wrong[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(errors.DecodeError):
            each.context.read(wrong, trust_certificate=True)
    for cut in (0, 1, 40, len(data) - 1):
        with pytest.raises(errors.DecodeError):
            each.context.read(data[:cut])
    with pytest.raises(errors.DecodeError):
        sm.PublicKey.from_bytes(data)


@pytest.mark.skipif("SYNCHROMESH_CLI" not in os.environ, reason="SYNCHROMESH_CLI names no command line")
def test_the_command_line_reads_and_writes_the_same_files(tmp_path):
    def run(*args: str) -> None:
        subprocess.run([os.environ["SYNCHROMESH_CLI"], *args], check=True, cwd=tmp_path, capture_output=True)

    plan = sm.plan(scheme="bgv", depth=1, security=128)
    plan.save(tmp_path / "plan.json")
    run("keygen", "--plan", "plan.json", "--out", "keys")
    public = sm.PublicKey.load(tmp_path / "keys/public.key")
    x = np.arange(10)
    public.context.encrypt(x, public).save(tmp_path / "x.ct")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run("eval", "x*x + 3", "--keys", "keys", "x=x.ct", "--out", "y.ct")
    assert b"--trust-certificate" in caught.value.stderr
    public.context.add_keys(sm.EnvelopeKey.load(tmp_path / "keys/envelope.key"))
    public.context.encrypt(x, public).save(tmp_path / "x.ct")
    run("eval", "x*x + 3", "--keys", "keys", "x=x.ct", "--out", "y.ct")
    secret = sm.SecretKey.load(tmp_path / "keys/secret.key")
    y = sm.Tensor.load(tmp_path / "y.ct", secret.context)
    assert secret.decrypt(y).tolist() == (x * x + 3).tolist()
    (y + 1).save(tmp_path / "z.ct")
    run("decrypt", "--keys", "keys", "--in", "z.ct", "--out", "z.csv")
    lines = (tmp_path / "z.csv").read_text().split()
    assert [int(v) for v in lines[1:]] == (x * x + 4).tolist()


def test_a_description_nested_too_deep_is_unreadable():
    for data in (b"[" * 200_000, b'{"shape": ' + b"[" * 200_000, b'{"a":' * 200_000):
        with pytest.raises(errors.DecodeError):
            _wire.Head.read(data, 3, 1, _layout.Slots(16, 8), True)


def test_a_key_is_replaced_by_a_key_only(each, tmp_path):
    each.keys.save(tmp_path)
    before = (tmp_path / "secret.key").read_bytes()
    for name in ("secret.key", "public.key", "eval.keys"):
        with pytest.raises(errors.FileError) as caught:
            each.encrypt(each.numbers(3)).save(tmp_path / name)
        assert caught.value.kind == "file_is_a_key"
    assert (tmp_path / "secret.key").read_bytes() == before
    each.keys.save(tmp_path, replace=True)


def test_keys_are_saved_together_or_not_at_all(each, tmp_path):
    folder = tmp_path / "keys"
    folder.mkdir()
    (folder / "public.key").write_bytes(b"something else")
    with pytest.raises(errors.FileError) as caught:
        each.keys.save(folder)
    assert caught.value.kind == "file_exists"
    assert [file.name for file in folder.iterdir()] == ["public.key"]
    (folder / "public.key").unlink()
    each.keys.save(folder)
    assert sorted(file.name for file in folder.iterdir()) == ["envelope.key", "eval.keys", "public.key", "secret.key"]


def test_keys_are_extended_under_their_secret_key(each, tmp_path):
    plan = sm.plan(scheme=each.context.scheme, depth=1, rotations=[1], security="insecure")
    more = sm.plan(scheme=each.context.scheme, depth=1, rotations=[1, 5], swap=True, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    x = each.numbers(40)
    a = context.encrypt(x)
    with pytest.raises(errors.MissingKeyError, match="extend"):
        a.rotate(5)
    extended = keys.extend(more)
    assert len(extended.evaluation) == len(keys.evaluation) + 2 and extended.secret is keys.secret
    wanted = [np.roll(np.pad(x, (0, context.row - 40)), -k)[:40] for k in (1, 5, 7)]
    for k, expected in zip((1, 5), wanted):
        assert np.abs(keys.secret.decrypt(a.rotate(k)) - expected).max() < 1e-3
    a.conjugate() if context.scheme == "ckks" else a.swap_rows()
    extended.save(tmp_path / "keys")
    again = sm.Keys.load(tmp_path / "keys", sm.Context(plan, insecure=True))
    last = again.extend([7])
    assert len(last.evaluation) == len(extended.evaluation) + 1
    b = last.secret.context.read(a.to_bytes())
    for k, expected in zip((1, 5, 7), wanted):
        assert np.abs(last.secret.decrypt(b.rotate(k)) - expected).max() < 1e-3
    other = sm.plan(scheme=each.context.scheme, depth=3, rotations=[9], security="insecure")
    with pytest.raises(errors.MismatchError, match="rotations alone"):
        keys.extend(other)
    with pytest.raises(errors.DTypeError):
        keys.extend("all")
    foreign = sm.Context(plan, insecure=True).keygen()
    with pytest.raises(errors.SynchromeshError) as caught:
        keys._replace(secret=foreign.secret).extend([3])
    assert caught.value.kind == "keys_differ"


def test_keys_under_two_secret_keys_are_extended(exact):
    plan = sm.plan(scheme=exact.context.scheme, depth=2, rotations=[1], leading_levels=1, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    keys.extend([3])
    a = context.encrypt(np.arange(40))
    for k in (1, 3):
        for x in (a, a.at_level(0)):
            assert (keys.secret.decrypt(x.rotate(k))[:30] == np.arange(k, k + 30)).all()


def test_tensors_go_under_a_new_secret_key(each, tmp_path):
    plan = sm.plan(scheme=each.context.scheme, depth=2, rotations=[1], security="insecure")
    context = sm.Context(plan, insecure=True)
    old = context.keygen()
    x = each.numbers(40)
    a = context.encrypt(x)
    new = context.keygen()
    with pytest.raises(errors.MissingKeyError, match="receive"):
        a.rekey(new.evaluation)
    received = new.receive(old.secret)
    assert len(received.evaluation) == len(new.evaluation) + 1
    received.save(tmp_path / "keys")
    loaded = sm.Keys.load(tmp_path / "keys", context)
    for keys in (received, loaded):
        b = a.rekey(keys.evaluation)
        for found, expected in ((b, x), (b * b, x * x), (b.rotate(1)[:39], x[1:])):
            assert np.abs(new.secret.decrypt(found) - expected).max() < 1e-3
        with pytest.raises(errors.SynchromeshError) as caught:
            old.secret.decrypt(b)
        assert caught.value.kind == "keys_differ"
    with pytest.raises(errors.SynchromeshError) as caught:
        a + b
    assert caught.value.kind == "keys_differ"
    other = sm.Context(sm.plan(scheme=each.context.scheme, depth=3, security="insecure"), insecure=True).keygen()
    for wrong in (lambda: new.receive(other.secret), lambda: a.rekey(other.evaluation)):
        with pytest.raises(errors.SynchromeshError) as caught:
            wrong()
        assert caught.value.kind == "params_differ"
    with pytest.raises(errors.SynchromeshError) as caught:
        sm.plan(lambda x: x.rekey(new.evaluation), [(4,)], scheme=each.context.scheme, security="insecure")
    assert caught.value.kind == "dry_run"
