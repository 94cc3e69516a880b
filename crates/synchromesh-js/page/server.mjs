// Serves the page and computes with the command line on what the page sends: node page/server.mjs [PORT].
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const program = process.env.SYNCHROMESH_CLI ?? "synchromesh";
const root = fileURLToPath(new URL("..", import.meta.url));

/** Most bytes that a session may have. */
const LIMIT = 64 << 20;
/** What may be sent; a secret key is not among it. */
const FILES = new Set(["eval.keys", "envelope.key", "x.ct"]);
/** What is served. */
const FOLDERS = ["page", "dist/web"].map((folder) => join(root, folder));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };
const POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";

/** Calls `work` with a folder that is gone afterwards. */
async function inFolder(work) {
    const folder = await mkdtemp(join(tmpdir(), "synchromesh-page-"));
    try {
        return await work((name) => join(folder, name));
    } finally {
        await rm(folder, { recursive: true });
    }
}

/** One product after sums, on integers modulo 65537. */
const plan = await inFolder(async (at) => {
    await run(program, ["plan", "--scheme", "bfv", "--depth", "1", "--adds", "3", "--out", at("plan.json")]);
    return readFile(at("plan.json"));
});

async function body(request) {
    const parts = [];
    let length = 0;
    for await (const part of request) {
        length += part.length;
        if (length > LIMIT) {
            throw new Error(`a session has at most ${LIMIT} bytes`);
        }
        parts.push(part);
    }
    return Buffer.concat(parts);
}

/** What the command line makes of a session: the file of the result. */
async function compute(request) {
    const form = await new Response(await body(request), { headers: request.headers }).formData();
    return inFolder(async (at) => {
        for (const file of form.getAll("file")) {
            if (!FILES.has(file.name)) {
                throw new Error(`'${file.name}' has no place here`);
            }
            await writeFile(at(file.name), Buffer.from(await file.arrayBuffer()), { mode: 0o600 });
        }
        const expression = String(form.get("expression"));
        await run(program, ["--json", "eval", "--keys", at("."), "--out", at("z.ct"), "--", expression, `x=${at("x.ct")}`]);
        return readFile(at("z.ct"));
    });
}

/** What the command said, for people. */
function said(error) {
    try {
        const { message, remedy } = JSON.parse(error.stdout).error;
        return `${message}: ${remedy}`;
    } catch {
        return error.message;
    }
}

async function answer(request) {
    const path = new URL(request.url, "http://localhost").pathname;
    if (request.method === "POST" && path === "/compute") {
        return [200, "application/octet-stream", await compute(request)];
    }
    if (path === "/plan.json") {
        return [200, "application/json", plan];
    }
    const file = normalize(join(root, path === "/" ? "page/index.html" : path));
    if (request.method !== "GET" || !FOLDERS.some((folder) => file.startsWith(join(folder, "/")))) {
        return [404, "text/plain", "there is nothing here"];
    }
    return [200, TYPES[extname(file)] ?? "application/octet-stream", await readFile(file)];
}

const server = createServer((request, response) => {
    answer(request)
        .catch((error) => [400, "text/plain", said(error)])
        .then(([status, type, content]) => {
            response.writeHead(status, { "content-type": type, "content-security-policy": POLICY }).end(content);
        });
});
server.listen(Number(process.argv[2] ?? 8000), "127.0.0.1", () => {
    console.log(`http://127.0.0.1:${server.address().port}/page/index.html`);
});
