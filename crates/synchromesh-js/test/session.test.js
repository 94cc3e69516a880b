// Round trips with the files of the command line: SYNCHROMESH_CLI is its program.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Column, Context, SecretKey, instructionSet, plan } from "synchromesh";

const program = process.env.SYNCHROMESH_CLI;
const folder = mkdtempSync(join(tmpdir(), "synchromesh-"));
const at = (name) => join(folder, name);
const file = (name) => new Uint8Array(readFileSync(at(name)));
// Without a profile of this machine, so that plans are the same everywhere.
const env = { ...process.env, XDG_DATA_HOME: folder };
const run = (...args) => execFileSync(program, args, { cwd: folder, encoding: "utf8", env });

before(() => assert.ok(program, "SYNCHROMESH_CLI names no program"));
after(() => rmSync(folder, { recursive: true }));

/** What `call` throws. */
function fault(call) {
    try {
        call();
    } catch (error) {
        assert.equal(error.name, "SynchromeshError");
        assert.ok(error instanceof Error && error.message.length > 0 && error.remedy.length > 0);
        return error;
    }
    assert.fail("nothing was thrown");
}

const schemes = {
    bfv: { wanted: { t: "65537" }, numbers: [1, -2, 3, 40, 5], array: BigInt64Array, near: 0 },
    bgv: { wanted: { t: "65537" }, numbers: [1, -2, 3, 40, 5], array: BigInt64Array, near: 0 },
    ckks: { wanted: { precision: 20 }, numbers: [0.5, -0.25, 0.125, 1, 0], array: Float64Array, near: 1e-4 },
};

for (const [scheme, { wanted, numbers, array, near }] of Object.entries(schemes)) {
    const same = (found, expected) => {
        assert.ok(found instanceof array, `${found.constructor.name}`);
        assert.equal(found.length, expected.length);
        expected.forEach((x, i) => assert.ok(Math.abs(Number(found[i]) - x) <= near, `${found[i]} for ${x}`));
    };
    const name = (what) => `${scheme}-${what}`;
    const column = (name, numbers) => writeFileSync(at(name), `x\n${numbers.join("\n")}\n`);
    const read = (name) => readFileSync(at(name), "utf8").trim().split("\n").slice(1).map(Number);
    let text;

    test(`${scheme}: what the command line wrote is read, computed on and decrypted`, () => {
        const options = Object.entries(wanted).flatMap(([option, value]) => [`--${option}`, `${value}`]);
        run("plan", "--scheme", scheme, "--depth", "1", "--rotations", "1", ...options, "--out", name("plan.json"));
        run("keygen", "--plan", name("plan.json"), "--out", name("keys"));
        column(name("x.csv"), numbers);
        run("encrypt", "--keys", name("keys"), "--in", name("x.csv"), "--out", name("x.ct"));
        text = readFileSync(at(name("plan.json")), "utf8");
        const context = new Context(text);
        assert.equal(context.scheme, scheme);
        // The same plan is made here, to the last digit.
        const described = { scheme, depth: 1, additions: 1, rotations: [1], ...wanted };
        assert.deepEqual(JSON.parse(plan(JSON.stringify(described))), JSON.parse(text));
        // Nothing vouches for the certificates before the envelope key is there.
        assert.equal(fault(() => context.readColumn(file(name("x.ct")))).kind, "unproven_certificate");
        context.readEnvelopeKey(file(`${name("keys")}/envelope.key`));
        const secret = context.readSecretKey(file(`${name("keys")}/secret.key`));
        const x = context.readColumn(file(name("x.ct")));
        assert.equal(x.rows, numbers.length);
        same(secret.decrypt(x), numbers);
        same(secret.decrypt(x.add(x).sub(x.neg())), numbers.map((v) => 3 * v));
        same(secret.decrypt(x.mulPlain(3).addPlain(numbers)), numbers.map((v) => 4 * v));
        assert.equal(fault(() => x.mul(x)).kind, "no_keys");
        context.useKeys(context.readEvaluationKeys(file(`${name("keys")}/eval.keys`)));
        same(secret.decrypt(x.mul(x).sub(x.square()).add(x.square())), numbers.map((v) => v * v));
        same(secret.decrypt(x.rotate(1)).slice(0, 4), numbers.slice(1));
        assert.ok(x.noiseBudget > 0 && x.noiseBudget > x.mul(x).noiseBudget);
    });

    test(`${scheme}: what the package wrote is read, computed on and decrypted by the command line`, () => {
        const context = new Context(text);
        const keys = context.generateKeys();
        mkdirSync(at(name("own")));
        for (const [path, key] of Object.entries({
            "secret.key": keys.secret, "public.key": keys.public, "eval.keys": keys.evaluation, "envelope.key": keys.envelope,
        })) {
            writeFileSync(at(`${name("own")}/${path}`), key.toFile());
        }
        writeFileSync(at(name("y.ct")), context.encrypt(keys.public, numbers, 1, "y").toFile());
        run("eval", "y*y + y", "--keys", name("own"), `y=${name("y.ct")}`, "--out", name("z.ct"));
        run("decrypt", "--keys", name("own"), "--in", name("z.ct"), "--out", name("z.csv"));
        const expected = numbers.map((v) => v * v + v);
        read(name("z.csv")).forEach((v, i) => assert.ok(Math.abs(v - expected[i]) <= near, `${v}`));
        same(keys.secret.decrypt(context.readColumn(file(name("z.ct")))), expected);
    });

    test(`${scheme}: what was altered, or is not what it should be, is refused`, () => {
        const context = new Context(text);
        context.readEnvelopeKey(file(`${name("keys")}/envelope.key`));
        const bytes = file(name("x.ct"));
        bytes[bytes.length >> 1] ^= 1;
        assert.equal(fault(() => context.readColumn(bytes)).kind, "body_corrupt");
        assert.equal(fault(() => context.readColumn(file(`${name("keys")}/public.key`))).kind, "session");
        assert.equal(fault(() => context.readColumn(file(name("z.ct")))).kind, "unproven_certificate");
        assert.equal(fault(() => context.readColumn(new Uint8Array())).kind, "not_a_container");
        const key = context.readPublicKey(file(`${name("keys")}/public.key`));
        for (const wrong of [[], "text", [null], [Number.NaN]]) {
            fault(() => context.encrypt(key, wrong));
        }
        const x = context.encrypt(key, numbers);
        assert.equal(fault(() => x.add(context.encrypt(key, [1]))).kind, "shape");
        assert.equal(fault(() => x.rotate(7)).kind, "no_keys");
    });
}

test("a plan can be made, and a weak one is refused", () => {
    const made = plan(JSON.stringify({ scheme: "bfv", depth: 0, t: "257" }));
    assert.equal(new Context(made).scheme, "bfv");
    assert.equal(fault(() => new Context("{}")).kind, "format");
    assert.equal(fault(() => plan("{")).kind, "params");
    const weak = plan(JSON.stringify({ scheme: "bfv", depth: 2, t: "257", security: "insecure" }));
    assert.equal(fault(() => new Context(weak)).kind, "insecure");
    assert.equal(new Context(weak, true).scheme, "bfv");
});

test("columns longer than the slots take several ciphertexts", () => {
    const context = new Context(plan(JSON.stringify({ scheme: "bfv", depth: 0, t: "65537" })));
    const keys = context.generateKeys();
    const numbers = Array.from({ length: context.slots + 3 }, (_, i) => i % 100);
    const found = keys.secret.decrypt(context.encrypt(keys.public, numbers).addPlain(1));
    assert.deepEqual([...found], numbers.map((v) => BigInt(v + 1)));
});

test("large plaintext moduli have bigints", () => {
    // A prime that is 1 modulo 2^20.
    const t = (1n << 89n) + (19n << 20n) + 1n;
    const context = new Context(plan(JSON.stringify({ scheme: "bfv", depth: 0, t: `${t}` })));
    const keys = context.generateKeys();
    const numbers = [1n << 80n, -5n];
    assert.deepEqual(keys.secret.decrypt(context.encrypt(keys.public, numbers)).slice(0, 2), numbers);
});

test("randomness is of crypto.getRandomValues and of nowhere else", () => {
    const context = new Context(plan(JSON.stringify({ scheme: "bfv", depth: 0, t: "257" })));
    const own = crypto.getRandomValues;
    let asked = 0;
    crypto.getRandomValues = (array) => { asked += array.byteLength; return own.call(crypto, array); };
    try {
        context.generateKeys();
        assert.ok(asked >= 64, `${asked} bytes`);
        crypto.getRandomValues = () => { throw new Error("none today"); };
        assert.equal(fault(() => context.generateKeys()).kind, "entropy");
    } finally {
        crypto.getRandomValues = own;
    }
});

test("the classes are there, and the instruction set is named", () => {
    assert.ok([Column, Context, SecretKey].every((c) => typeof c === "function"));
    assert.equal(instructionSet(), "simd128");
});
