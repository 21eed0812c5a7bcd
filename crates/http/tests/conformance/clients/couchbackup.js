// Backs a database up and restores it with couchbackup, and compares both: every leaf, its body and its attachments.
import assert from "node:assert/strict";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import couchbackup from "@cloudant/couchbackup";

const server = process.env.SERVER;
const basic = `Basic ${Buffer.from(`admin:${process.env.PASSWORD}`).toString("base64")}`;
const url = (name) => `${server.replace("://", `://admin:${process.env.PASSWORD}@`)}/${name}`;

async function ask(method, path, body) {
  const headers = { Authorization: basic, "Content-Type": "application/json", Accept: "application/json" };
  const answer = await fetch(`${server}${path}`, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await (answer.ok ? "" : answer.text())}`);
  return answer.json();
}

async function everything(name) {
  const changes = await ask("GET", `/${name}/_changes?style=all_docs`);
  const all = new Map();
  for (const { id } of changes.results) {
    const leaves = await ask("GET", `/${name}/${encodeURIComponent(id)}?open_revs=all&revs=true&attachments=true`);
    all.set(id, leaves.map((leaf) => leaf.ok).sort((one, other) => one._rev.localeCompare(other._rev)));
  }
  return [...all].sort(([one], [other]) => one.localeCompare(other));
}

for (const name of ["backed-up", "restored"]) await ask("PUT", `/${name}`);
const docs = Array.from({ length: 1200 }, (_, number) => ({ _id: `doc-${number}`, number, text: "x".repeat(number % 300) }));
for (let at = 0; at < 60; at++) {
  docs[at]._attachments = { "a.txt": { content_type: "text/plain", data: Buffer.from(`attached ${at}`).toString("base64") } };
}
await ask("POST", "/backed-up/_bulk_docs", { docs });
const conflicts = Array.from({ length: 40 }, (_, number) => ({ _id: `doc-${number}`, _rev: `1-${"f".repeat(31)}${number % 10}`, other: number }));
await ask("POST", "/backed-up/_bulk_docs", { docs: conflicts, new_edits: false });
const gone = await ask("GET", "/backed-up/doc-700");
await ask("DELETE", `/backed-up/doc-700?rev=${gone._rev}`);

const folder = mkdtempSync(join(tmpdir(), "couchbackup-"));
try {
  const file = join(folder, "backup.txt");
  const run = (work) => new Promise((resolve, reject) => work((error, done) => (error ? reject(error) : resolve(done))));
  const options = { attachments: true, parallelism: 2, log: join(folder, "log") };
  await run((done) => couchbackup.backup(url("backed-up"), createWriteStream(file), options, done));
  await run((done) => couchbackup.restore(createReadStream(file), url("restored"), { attachments: true, parallelism: 2 }, done));
} finally {
  rmSync(folder, { recursive: true });
}
assert.deepEqual(await everything("restored"), await everything("backed-up"));
console.log("couchbackup: what was restored is what was backed up");
