// The page in a browser, with the server and the command line: the secret key does not leave it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const browser = process.env.CHROMIUM ?? "/usr/bin/chromium";
const skip = existsSync(browser) ? false : `no ${browser}: apt-get install chromium`;
const profile = mkdtempSync(join(tmpdir(), "synchromesh-profile-"));
let server, address, context;

before(async () => {
    if (skip) return;
    const { chromium } = await import("playwright-core");
    const script = fileURLToPath(new URL("../page/server.mjs", import.meta.url));
    server = spawn(process.execPath, [script, "0"], { stdio: ["ignore", "pipe", "inherit"] });
    [address] = await once(server.stdout.setEncoding("utf8"), "data");
    const quiet = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update"];
    context = await chromium.launchPersistentContext(profile, {
        executablePath: browser,
        headless: true,
        args: ["--no-sandbox", "--disable-gpu", "--disable-sync", ...quiet],
    });
});

after(async () => {
    await context?.close();
    server?.kill();
    rmSync(profile, { recursive: true, force: true });
});

test("numbers are encrypted here, computed on there and decrypted here", { skip }, async () => {
    const page = await context.newPage();
    const posts = [];
    page.on("request", (request) => {
        assert.equal(new URL(request.url()).origin, new URL(address.trim()).origin);
        if (request.method() === "POST") posts.push(request.url());
    });
    // Every file says what it is, in the two bytes after ten: 1 is a secret key.
    await page.addInitScript(() => {
        const own = window.fetch;
        window.kinds = [];
        window.fetch = async (url, options) => {
            for (const file of options?.body?.getAll("file") ?? []) {
                window.kinds.push(new DataView(await file.arrayBuffer()).getUint16(10, true));
            }
            return own(url, options);
        };
    });
    /** Waits for it, or for the page to say what is wrong. */
    const shown = async (selector) => {
        await page.waitForSelector(`${selector}, #error:not([hidden])`, { timeout: 60_000 });
        assert.equal(await page.textContent("#error"), "");
    };
    await page.goto(address.trim());
    await shown("#compute:enabled");
    await page.click("#compute");
    await shown("#results:not([hidden])");
    const rows = await page.$$eval("#results tbody tr", (rows) => rows.map((row) => row.innerText.split(/\s+/).map(Number)));
    assert.deepEqual(rows, [1, 2, 3, -4, 50].map((x) => [x, x * x + 3 * x]));
    if (process.env.SYNCHROMESH_SCREENSHOT) await page.screenshot({ path: process.env.SYNCHROMESH_SCREENSHOT });

    assert.equal(posts.length, 1);
    assert.deepEqual((await page.evaluate(() => window.kinds)).sort(), [3, 4, 5]);

    // What cannot be computed is said, with a remedy, and the page goes on.
    await page.fill("#expression", "x*x*x*x*x");
    await page.click("#compute");
    await page.waitForSelector("#error:not([hidden])", { timeout: 60_000 });
    assert.match(await page.textContent("#error"), /\w+: \w+/);
});
