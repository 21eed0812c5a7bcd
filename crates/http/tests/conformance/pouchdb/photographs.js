// Pushes what a telephone has: 100 documents with a photograph each, which PouchDB sends in one request of 80 MB, and a film of
// 52 MB; then pulls them into another database. Fails with the first thing that is not as it was.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import PouchDB from "pouchdb-node";
import memory from "pouchdb-adapter-memory";

PouchDB.plugin(memory);

const options = { auth: { username: "admin", password: process.env.PASSWORD } };
const remote = new PouchDB(`${process.env.SERVER}/photographs`, options);
const here = new PouchDB("telephone", { adapter: "memory" });
const there = new PouchDB("desk", { adapter: "memory" });
const digest = (bytes) => createHash("md5").update(bytes).digest("base64");

const digests = new Map();
async function add(id, bytes) {
  digests.set(id, digest(bytes));
  await here.put({ _id: id, _attachments: { "it.jpg": { content_type: "image/jpeg", data: bytes.toString("base64") } } });
}
for (let number = 0; number < 100; number++) await add(`photograph ${number}`, randomBytes(600_000));
await add("film", randomBytes(52_000_000));

const pushed = await here.replicate.to(remote);
assert.deepEqual([pushed.ok, pushed.docs_written, pushed.doc_write_failures], [true, 101, 0]);
assert.equal((await remote.info()).doc_count, 101);
const pulled = await there.replicate.from(remote, { batch_size: 10 });
assert.deepEqual([pulled.ok, pulled.docs_written], [true, 101]);
for (const [id, expected] of digests) {
  assert.equal(digest(Buffer.from(await there.getAttachment(id, "it.jpg"))), expected, id);
}
await remote.destroy();
console.log("PouchDB: pushed 100 photographs and a film, and pulled them again");
process.exit(0);
