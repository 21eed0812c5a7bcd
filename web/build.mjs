// Builds the console into a folder: files whose names change with their contents, each compressed beforehand, and pages.tsv,
// the list of them that the server reads.
//
//   node build.mjs FOLDER

import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const folder = path.resolve(process.argv[2] ?? path.join(here, "dist"));
const KINDS = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".svg": "image/svg+xml",
};

const built = await build({
  absWorkingDir: here,
  entryPoints: { console: "console/main.tsx", style: "console/style.css" },
  bundle: true,
  format: "esm",
  splitting: true,
  minify: true,
  target: ["es2022", "chrome120", "firefox120", "safari17.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  entryNames: "[name]-[hash]",
  chunkNames: "part-[hash]",
  outdir: "out",
  write: false,
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});

const tag = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 20);
const files = built.outputFiles.map((file) => ({
  name: path.basename(file.path),
  bytes: Buffer.from(file.contents),
  keeps: "immutable",
}));
const named = (start, end) => files.find((file) => file.name.startsWith(start) && file.name.endsWith(end)).name;
const icon = await readFile(path.join(here, "console/icon.svg"));
const iconName = `icon-${tag(icon).slice(0, 8)}.svg`;
files.push({ name: iconName, bytes: icon, keeps: "immutable" });
const html = (await readFile(path.join(here, "console/index.html"), "utf8"))
  .replace("%SCRIPT%", named("console-", ".js"))
  .replace("%STYLE%", named("style-", ".css"))
  .replace("%ICON%", iconName);
files.push({ name: "index.html", bytes: Buffer.from(html), keeps: "changing" });

await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
const list = [];
let first = 0;
for (const { name, bytes, keeps } of files.sort((a, b) => (a.name < b.name ? -1 : 1))) {
  await writeFile(path.join(folder, name), bytes);
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  await writeFile(path.join(folder, `${name}.br`), brotli);
  await writeFile(path.join(folder, `${name}.gz`), gzipSync(bytes, { level: 9 }));
  list.push([name, KINDS[path.extname(name)], tag(bytes), keeps].join("\t") + "\n");
  if (!name.startsWith("part-")) first += brotli.length;
}
await writeFile(path.join(folder, "pages.tsv"), list.join(""));
// Parts that the first page loads at once count too.
const output = Object.values(built.metafile.outputs).find((found) => found.entryPoint === "console/main.tsx");
for (const { path: part, kind } of output.imports) {
  if (kind !== "import-statement") continue;
  const bytes = files.find((file) => file.name === path.basename(part)).bytes;
  first += brotliCompressSync(bytes).length;
}
console.log(`web: ${files.length} files, the first page takes ${(first / 1024).toFixed(1)} KB compressed`);
