// The page: keys and numbers stay here, ciphertexts and evaluation keys go to the server.
import init, { Context, instructionSet } from "../dist/web/synchromesh.js";

const at = (id) => document.getElementById(id);

/** Adds a line to what has been done. */
function say(text) {
    const line = document.createElement("li");
    line.textContent = text;
    at("steps").append(line);
}

const size = (bytes) => (bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`);

/** What the server makes of the files of a session, without the secret key. */
async function computed(files, expression) {
    const form = new FormData();
    form.append("expression", expression);
    for (const [name, bytes] of Object.entries(files)) {
        form.append("file", new Blob([bytes]), name);
    }
    const response = await fetch("../compute", { method: "POST", body: form });
    if (!response.ok) {
        throw new Error(await response.text());
    }
    return new Uint8Array(await response.arrayBuffer());
}

async function run(context, keys) {
    const numbers = at("numbers").value.split(/[\s,]+/).filter((text) => text).map(Number);
    const column = context.encrypt(keys.public, numbers);
    const files = {
        "eval.keys": keys.evaluation.toFile(),
        "envelope.key": keys.envelope.toFile(),
        "x.ct": column.toFile(),
    };
    column.free();
    const sent = Object.values(files).reduce((sum, bytes) => sum + bytes.length, 0);
    say(`${numbers.length} numbers encrypted; ${size(sent)} go to the server`);
    const start = performance.now();
    const result = context.readColumn(await computed(files, at("expression").value));
    say(`the server answered after ${Math.round(performance.now() - start)} ms`);
    const values = keys.secret.decrypt(result).slice(0, numbers.length);
    say(`decrypted here; the noise could have grown by ${Math.floor(result.noiseBudget)} bits more`);
    result.free();
    const rows = numbers.map((x, i) => {
        const row = document.createElement("tr");
        row.append(...[x, values[i]].map((value) => Object.assign(document.createElement("td"), { textContent: value })));
        return row;
    });
    at("results").tBodies[0].replaceChildren(...rows);
    at("results").hidden = false;
}

async function begin() {
    await init();
    const context = new Context(await (await fetch("../plan.json")).text());
    const start = performance.now();
    const keys = context.generateKeys();
    say(`keys made in ${Math.round(performance.now() - start)} ms (${context.scheme}, ${instructionSet()})`);
    at("compute").disabled = false;
    at("form").addEventListener("submit", async (event) => {
        event.preventDefault();
        at("error").hidden = true;
        at("compute").disabled = true;
        await run(context, keys).catch(fail);
        at("compute").disabled = false;
    });
}

function fail(error) {
    at("error").textContent = error.remedy ? `${error.message}: ${error.remedy}` : error.message;
    at("error").hidden = false;
}

begin().catch(fail);
