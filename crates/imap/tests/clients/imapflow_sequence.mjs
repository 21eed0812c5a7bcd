// What ImapFlow (npm) does with a server: CONDSTORE, QRESYNC, COMPRESS and IDLE in one client.
import assert from "node:assert";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_PATH}/`);
const { ImapFlow } = require("imapflow");

const client = new ImapFlow({
  host: "127.0.0.1",
  port: Number(process.argv[2]),
  secure: false,
  doSTARTTLS: false,
  auth: { user: "ada", pass: "secret" },
  logger: false,
  qresync: true,
});
await client.connect();
const message = "Subject: one\r\nFrom: Ada <a@x.test>\r\n\r\nbody\r\n";
for (let count = 0; count < 5; count++) {
  const stored = await client.append("INBOX", message, ["\\Seen"]);
  assert.equal(stored.uid, count + 1);
}
const lock = await client.getMailboxLock("INBOX");
try {
  assert.equal(client.mailbox.exists, 5);
  assert.ok(client.mailbox.highestModseq > 0n);
  const seen = [];
  for await (const found of client.fetch("1:*", { envelope: true, flags: true, bodyStructure: true, source: true })) {
    assert.equal(found.source.toString(), message);
    assert.equal(found.envelope.subject, "one");
    seen.push(found.seq);
  }
  assert.deepEqual(seen, [1, 2, 3, 4, 5]);
  assert.deepEqual(await client.search({ seen: true }, { uid: true }), [1, 2, 3, 4, 5]);
  assert.ok(await client.messageFlagsAdd("2", ["\\Flagged", "$Work"]));
  const moved = await client.messageMove("1:2", "Trash");
  assert.equal(moved.uidMap.get(2), 2);
  assert.equal(client.mailbox.exists, 3);
  const { content } = await client.download("1");
  let length = 0;
  for await (const piece of content) length += piece.length;
  assert.equal(length, message.length);
  await client.messageDelete("1");
  assert.equal((await client.status("Trash", { messages: true, highestModseq: true })).messages, 2);
} finally {
  lock.release();
}
assert.ok((await client.list()).some((folder) => folder.specialUse === "\\Sent"));
await client.mailboxCreate(["Grün", "Blau"]);
await client.mailboxRename(["Grün", "Blau"], ["Grün", "Rot"]);
await client.mailboxDelete(["Grün", "Rot"]);
assert.ok(await client.getQuota("INBOX"));
await client.logout();
console.log("done");
