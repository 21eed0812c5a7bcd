// Replicates between PouchDB and the server that SERVER names, both ways: documents, conflicts, deletions,
// attachments, live changes; queries by PouchDB's own Mango and the server's. Fails with the first thing that is not as it was.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import PouchDB from "pouchdb-node";
import memory from "pouchdb-adapter-memory";
import find from "pouchdb-find";

PouchDB.plugin(memory);
PouchDB.plugin(find);

const options = { auth: { username: "admin", password: process.env.PASSWORD } };
const remote = new PouchDB(`${process.env.SERVER}/round-trip`, options);
const here = new PouchDB("here", { adapter: "memory" });
const there = new PouchDB("there", { adapter: "memory" });

const text = async (database, id, name) => Buffer.from(await database.getAttachment(id, name)).toString();

async function waitFor(what, check) {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`still waiting for ${what}`);
}

const documents = Array.from({ length: 250 }, (_, number) => ({ _id: `d/${number} ü+&`, number, nested: { a: [1, null, "x"] } }));
await here.bulkDocs(documents);
await here.put({
  _id: "pictured",
  _attachments: {
    "a/b c.txt": { content_type: "text/plain", data: Buffer.from("attached").toString("base64") },
    "large.bin": { content_type: "application/octet-stream", data: Buffer.alloc(300_000, 7).toString("base64") },
  },
});
const gone = await here.put({ _id: "gone" });
await here.remove("gone", gone.rev);

const pushed = await here.replicate.to(remote);
assert.equal(pushed.ok, true);
assert.equal(pushed.doc_write_failures, 0);
assert.equal((await remote.info()).doc_count, 251);
assert.equal(await text(remote, "pictured", "a/b c.txt"), "attached");

const pulled = await there.replicate.from(remote);
assert.equal(pulled.ok, true);
assert.equal((await there.info()).doc_count, 251);
assert.deepEqual((await there.get("d/7 ü+&")).nested, { a: [1, null, "x"] });
assert.equal((await there.getAttachment("pictured", "large.bin")).length, 300_000);
await assert.rejects(there.get("gone"), { status: 404 });

// An edit on either side: a conflict that both know the same way.
const shared = await here.get("d/1 ü+&");
await here.put({ ...shared, by: "here" });
await there.put({ ...shared, by: "there" });
await here.replicate.to(remote);
await there.sync(remote);
await here.sync(remote);
const conflicts = { conflicts: true };
const seen = await Promise.all([here, there, remote].map((database) => database.get("d/1 ü+&", conflicts)));
assert.equal(seen[0]._conflicts.length, 1);
assert.deepEqual(seen[0], seen[1]);
assert.deepEqual(seen[0], seen[2]);

// A second push has nothing to do.
const again = await here.replicate.to(remote);
assert.equal(again.docs_written, 0);

// Live, both ways.
const live = here.sync(remote, { live: true, retry: false });
await remote.put({ _id: "from the server", x: 1 });
await waitFor("a document of the server", () => here.get("from the server").then(() => true, () => false));
await here.put({ _id: "from the client", x: 2 });
await waitFor("a document of the client", () => remote.get("from the client").then(() => true, () => false));
live.cancel();

// Changes, rows and bulk reads as applications use them.
const rows = await remote.allDocs({ startkey: "d/", endkey: "d/\ufff0", include_docs: true, limit: 10 });
assert.equal(rows.rows.length, 10);
assert.equal(rows.rows[0].doc._id, rows.rows[0].id);
const keyed = await remote.allDocs({ keys: ["pictured", "none", "gone"] });
assert.equal(keyed.rows[1].error, "not_found");
assert.equal(keyed.rows[2].value.deleted, true);
const changes = await remote.changes({ since: 0, include_docs: true, doc_ids: ["pictured"] });
assert.equal(changes.results.length, 1);
const several = await remote.bulkGet({ docs: [{ id: "pictured" }], attachments: true, binary: true });
assert.equal(several.results[0].docs[0].ok._attachments["a/b c.txt"].data.toString(), "attached");

// Queries: the server's answers are those of PouchDB over the same documents.
const index = { index: { fields: ["number"], ddoc: "numbers", name: "number" } };
for (const database of [here, remote]) {
  assert.equal((await database.createIndex(index)).result, "created");
  assert.equal((await database.createIndex(index)).result, "exists");
}
const queries = [
  { selector: { number: { $gte: 5, $lt: 9 } } },
  { selector: { number: { $gte: 100 } }, sort: [{ number: "desc" }], limit: 7, skip: 3, fields: ["_id", "number"] },
  { selector: { number: { $in: [3, 1, 900] } }, fields: ["number", "nested.a"], sort: ["number"] },
  { selector: { number: { $gte: 0 }, "nested.a": { $elemMatch: { $eq: "x" } }, $or: [{ number: 4 }, { number: 2 }] } },
  { selector: { _id: { $gte: "from the client", $lt: "q" } }, fields: ["_id"] },
];
for (const query of queries) {
  const [own, other] = await Promise.all([here, remote].map((database) => database.find(query)));
  assert.ok(own.docs.length > 0);
  assert.deepEqual(other.docs, own.docs, JSON.stringify(query));
}
const explained = await remote.explain(queries[0]);
assert.equal(explained.index.name, "number");
const listed = await remote.getIndexes();
assert.deepEqual(listed.indexes.map((found) => found.name), ["_all_docs", "number"]);
const bySelector = await remote.changes({ selector: { number: 7 } });
assert.deepEqual(bySelector.results.map((change) => change.id), ["d/7 ü+&"]);
await remote.deleteIndex(listed.indexes[1]);
assert.equal((await remote.getIndexes()).indexes.length, 1);
await remote.destroy();
console.log("PouchDB: replicated both ways, and found the same");
process.exit(0);
