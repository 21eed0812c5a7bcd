// Builds the console and the client into a folder: files whose names change with their contents, each compressed beforehand, and pages.tsv,
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
  entryPoints: { console: "console/main.tsx", style: "shared/style.css", client: "client/main.tsx", mail: "client/mail.css" },
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
/** The page that opens a program, with the names of its files. */
async function opener(source, name, script, styles) {
  const links = styles.map((style) => `<link rel="stylesheet" href="${named(style, ".css")}">`).join("\n");
  const html = (await readFile(path.join(here, source), "utf8"))
    .replace("%SCRIPT%", named(script, ".js"))
    .replace("%STYLES%", links)
    .replace("%ICON%", iconName);
  files.push({ name, bytes: Buffer.from(html), keeps: "changing" });
}
await opener("console/index.html", "index.html", "console-", ["style-"]);
await opener("client/app.html", "app.html", "client-", ["style-", "mail-"]);

await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
const list = [];
const lengths = new Map();
for (const { name, bytes, keeps } of files.sort((a, b) => (a.name < b.name ? -1 : 1))) {
  await writeFile(path.join(folder, name), bytes);
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  await writeFile(path.join(folder, `${name}.br`), brotli);
  await writeFile(path.join(folder, `${name}.gz`), gzipSync(bytes, { level: 9 }));
  list.push([name, KINDS[path.extname(name)], tag(bytes), keeps].join("\t") + "\n");
  lengths.set(name, brotli.length);
}
await writeFile(path.join(folder, "pages.tsv"), list.join(""));

/** Bytes of what a program's first page takes: its files, and the parts that its script imports at once. */
function first(entry, own) {
  const scripts = new Set();
  const add = (output) => {
    for (const { path: part, kind } of built.metafile.outputs[output]?.imports ?? []) {
      if (kind !== "import-statement" || scripts.has(part)) continue;
      scripts.add(part);
      add(part);
    }
  };
  const [output] = Object.entries(built.metafile.outputs).find(([, found]) => found.entryPoint === entry);
  scripts.add(output);
  add(output);
  const names = [...[...scripts].map((script) => path.basename(script)), ...own];
  return (names.reduce((sum, name) => sum + lengths.get(name), 0) / 1024).toFixed(1);
}
const style = named("style-", ".css");
console.log(
  `web: ${files.length} files; the first page of the console takes ${first("console/main.tsx", ["index.html", style])} KB compressed,` +
    ` that of the client ${first("client/main.tsx", ["app.html", style, named("mail-", ".css")])} KB`,
);
