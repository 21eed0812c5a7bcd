// Two devices with PouchDB and the server that SERVER names, in live two-way sync: edits on all three at the same time, conflicts,
// deletions, attachments. In the end all three have the same leaves and the same winners.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import PouchDB from "pouchdb-node";
import memory from "pouchdb-adapter-memory";

PouchDB.plugin(memory);

const options = { auth: { username: "admin", password: process.env.PASSWORD } };
const remote = new PouchDB(`${process.env.SERVER}/live`, options);
const devices = ["left", "right"].map((name) => new PouchDB(name, { adapter: "memory" }));
await remote.info();
const errors = [];
const syncs = devices.map((device) => {
  const sync = device.sync(remote, { live: true, retry: true });
  sync.on("error", (error) => errors.push(error));
  sync.on("denied", (error) => errors.push(error));
  return sync;
});

const all = [...devices, remote];
for (let number = 0; number < 300; number++) {
  const document = { _id: `d${number}`, number, on: number % 3 };
  if (number % 10 === 0) {
    document._attachments = { "a.bin": { content_type: "a/b", data: Buffer.alloc(2000 + number, number).toString("base64") } };
  }
  await all[number % 3].put(document);
}

async function state(database) {
  const { rows } = await database.allDocs({ include_docs: true, conflicts: true, attachments: true });
  // What comes to PouchDB with its content is for it of the winner's generation, whatever `revpos` says.
  for (const { doc } of rows) for (const attachment of Object.values(doc._attachments ?? {})) delete attachment.revpos;
  return rows.map(({ doc }) => ({ ...doc, _conflicts: [...(doc._conflicts ?? [])].sort() }));
}

async function agree(count) {
  for (let attempt = 0; attempt < 300; attempt++) {
    const [first, ...others] = await Promise.all(all.map(state));
    if (first.length === count) {
      try {
        for (const other of others) assert.deepEqual(other, first);
        return first;
      } catch (error) {
        if (attempt === 299) throw error;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`they do not come to ${count} documents`);
}

await agree(300);
// The same documents on both devices at once: conflicts.
for (let number = 0; number < 60; number++) {
  const edits = devices.map(async (device, place) => {
    const document = await device.get(`d${number}`);
    await device.put({ ...document, edited: place });
  });
  // Whoever hears of the other's edit first has no conflict, but a refusal.
  await Promise.allSettled(edits);
}
for (let number = 200; number < 230; number++) {
  const document = await devices[number % 2].get(`d${number}`);
  await devices[number % 2].remove(document);
}
const settled = await agree(270);
assert.ok(settled.length === 270);
syncs.forEach((sync) => sync.cancel());
assert.deepEqual(errors, []);
console.log(`PouchDB: three databases agree on ${settled.length} documents`);
process.exit(0);
