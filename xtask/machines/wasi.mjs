// Runs a WASI program, such as cargo's test programs, in Node: node wasi.mjs PROGRAM [ARGUMENTS].
import { readFile } from "node:fs/promises";
import { setFlagsFromString } from "node:v8";
import { WASI } from "node:wasi";

// A call of WASI that V8 has compiled finds the memory where it was before it grew, and Node dies of it
// (github.com/nodejs/node/issues/53087).
setFlagsFromString("--no-turbo-fast-api-calls");

const args = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args, env: process.env, preopens: { "/": "/" }, returnOnExit: true });
const { instance } = await WebAssembly.instantiate(await readFile(args[0]), wasi.getImportObject());
process.exitCode = wasi.start(instance);
