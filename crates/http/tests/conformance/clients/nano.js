// What nano asks of a server, CouchDB's client for Node. Fails with the first answer that is not as CouchDB's.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import nano from "nano";

const url = new URL(process.env.SERVER);
url.username = "admin";
url.password = process.env.PASSWORD;
const server = nano({ url: url.href.replace(/\/$/, "") });

assert.equal((await server.info()).couchdb, "Welcome");
await server.db.create("nano");
assert.ok((await server.db.list()).includes("nano"));
assert.equal((await server.db.get("nano")).doc_count, 0);
await assert.rejects(server.db.create("nano"), { statusCode: 412 });
const db = server.use("nano");

const first = await db.insert({ kind: "first" }, "one");
assert.equal(first.ok, true);
assert.equal((await db.get("one")).kind, "first");
assert.match((await db.head("one")).etag, /^"1-/);
await assert.rejects(db.insert({ kind: "again" }, "one"), { statusCode: 409 });
const bulk = await db.bulk({ docs: Array.from({ length: 100 }, (_, number) => ({ _id: `n${number}`, number, kind: "many" })) });
assert.equal(bulk.length, 100);
assert.equal((await db.list({ limit: 3 })).rows.length, 3);
assert.equal((await db.fetch({ keys: ["one", "n7", "none"] })).rows[2].error, "not_found");
assert.equal((await db.fetchRevs({ keys: ["one"] })).rows[0].value.rev, first.rev);
await db.createIndex({ index: { fields: ["number"] }, name: "number" });
assert.equal((await db.find({ selector: { number: { $gte: 90 } }, limit: 50 })).docs.length, 10);

// Nano 11 sends COPY in lower case, which is another method (RFC 9110 §9.1), to CouchDB as well.
const second = await db.insert({ kind: "second" }, "two");
await db.destroy("two", second.rev);
await assert.rejects(db.get("two"), { statusCode: 404 });

const attached = await db.attachment.insert("one", "a b.txt", Buffer.from("attached"), "text/plain", { rev: first.rev });
assert.equal((await db.attachment.get("one", "a b.txt")).toString(), "attached");
await db.attachment.destroy("one", "a b.txt", { rev: attached.rev });
await db.multipart.insert({ kind: "multipart" }, [{ name: "m.txt", data: "in parts", content_type: "text/plain" }], "parts");
assert.equal((await db.attachment.get("parts", "m.txt")).toString(), "in parts");

await db.insert(
  {
    views: { kinds: { map: "function (doc) { emit(doc.kind, 1); }", reduce: "_sum" } },
    filters: { many: "function (doc) { return doc.kind === 'many'; }" },
    updates: { touch: "function (doc, req) { doc.touched = JSON.parse(req.body).by; return [doc, 'touched']; }" },
  },
  "_design/d",
);
const kinds = await db.view("d", "kinds", { group: true });
assert.equal(kinds.rows.find((row) => row.key === "many").value, 100);
await db.atomic("d", "touch", "n1", { by: "nano" });
assert.equal((await db.get("n1")).touched, "nano");
assert.equal((await db.changes({ filter: "d/many" })).results.length, 100);

const replicated = await server.db.replicate("nano", "nano-copy", { create_target: true });
assert.equal(replicated.ok, true);
assert.equal((await server.db.get("nano-copy")).doc_count, (await server.db.get("nano")).doc_count);
await server.db.destroy("nano-copy");
await server.db.destroy("nano");
console.log("nano: all answers are as CouchDB's");
