// Bundles and runs the tests of web/ that need no browser, by Node's own test runner.

import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const tests = (await readdir(here)).filter((name) => name.endsWith(".test.ts")).map((name) => path.join(here, name));
const folder = await mkdtemp(path.join(tmpdir(), "scrinium-web-"));
try {
  await build({
    entryPoints: tests, bundle: true, outdir: folder, platform: "node", format: "esm", target: "node18",
    jsx: "automatic", jsxImportSource: "preact", outExtension: { ".js": ".mjs" }, logLevel: "warning",
  });
  const files = tests.map((test) => path.join(folder, path.basename(test).replace(/\.ts$/, ".mjs")));
  process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
