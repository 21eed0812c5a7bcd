import assert from "node:assert/strict";
import test from "node:test";
import { addressOf, answer, baseSubject, draftOf, emptyDraft, fieldsOf, forward, linked, nameOf, questionOf, quoted, recipientsOf, shortDate, speaksOfFile } from "../client/memo.ts";
import { AWAY, awayOf, withAway, type Scripts } from "../client/away.ts";
import type { Document } from "../shared/api.ts";

test("names and addresses are read as they are written", () => {
  assert.deepEqual(recipientsOf('Ada <a@x.test>, "Hopper, Grace" <g@x.test>; bob\n, <c,d@x.test>,'), ["Ada <a@x.test>", '"Hopper, Grace" <g@x.test>', "bob", "<c,d@x.test>"]);
  assert.deepEqual(recipientsOf(" ; ,, "), []);
  assert.equal(nameOf('"Hopper, Grace" <g@x.test>'), "Hopper, Grace");
  assert.equal(nameOf("<g@x.test>"), "<g@x.test>");
  assert.equal(nameOf("Bob Brown/Sales"), "Bob Brown/Sales");
  assert.equal(addressOf("Grace <g@x.test>"), "g@x.test");
});

const memo = (fields: object) => ({ _id: "m", _rev: "1-x", ...fields }) as Document;
const TOLD = memo({ From: "Grace <g@x.test>", SendTo: ["ada@x.test", "Bob <b@x.test>"], CopyTo: ["ada", "carl"], Subject: "Re: AW: Plan", Body: "one\n> two\n", $MessageID: "<2@x>", References: ["<0@x>", "<1@x>"] });

test("an answer goes to whom it should, quotes, and names its conversation", () => {
  const one = answer(TOLD, "d", ["ada"], false, "Grace wrote:");
  assert.deepEqual([one.to, one.copy, one.subject, one.inReplyTo, one.references], ["Grace <g@x.test>", "", "Re: Plan", "<2@x>", ["<0@x>", "<1@x>", "<2@x>"]]);
  assert.equal(one.body, "\n\nGrace wrote:\n> one\n>> two\n");
  const all = answer(TOLD, "d", ["ada", "ada@x.test"], true, "");
  assert.deepEqual([all.to, all.copy], ["Grace <g@x.test>, Bob <b@x.test>", "carl"]);
  // To one's own memo one answers those whom it went to; where it says so, to another address.
  assert.equal(answer(memo({ From: "ada", SendTo: "bob" }), "d", ["ada"], false, "").to, "bob");
  assert.equal(answer(memo({ From: "list@x.test", ReplyTo: "owner@x.test" }), "d", ["ada"], false, "").to, "owner@x.test");
  const long = answer(memo({ From: "g", References: Array.from({ length: 500 }, (_, n) => `<${n}@x>`), $MessageID: "<last@x>" }), "d", [], false, "");
  assert.deepEqual([long.references.length, long.references[0], long.references.at(-1)], [50, "<0@x>", "<last@x>"]);
});

test("what is entered of an absence is a script, and is read out of it again", () => {
  const before: Scripts = { active: 'my "sorter" \\', scripts: { 'my "sorter" \\': "keep;" }, version: "v" };
  assert.equal(awayOf(before).on, false);
  const away = { on: true, from: "2026-12-20", until: "2027-01-06", subject: 'Away\r\n"; discard; #', text: 'I am "away" \\.\n.\nBack soon ${x}.' };
  const on = withAway(before, away);
  const text = on.scripts[AWAY]!;
  assert.equal(on.active, AWAY);
  assert.equal(on.scripts['my "sorter" \\'], "keep;");
  assert.match(text, /^# out of office: \{.*\}\nrequire /);
  assert.ok(text.includes('currentdate :value "ge" "date" "2026-12-20"') && text.includes(':subject "Away \\"; discard; #"'), text);
  assert.ok(text.includes('"I am \\"away\\" \\\\.\n.\nBack soon ${x}."'), text);
  assert.ok(text.endsWith('include :personal :optional "my \\"sorter\\" \\\\";\n'), text);
  assert.deepEqual(awayOf(on), { ...away, subject: 'Away "; discard; #' });
  // Later changes keep what sorts mail, and the end of the absence brings it back.
  const again = withAway(on, { ...away, from: "", until: "", subject: "" });
  assert.ok(again.scripts[AWAY]!.includes("\nvacation :days 7 \"I am") && again.scripts[AWAY]!.includes("include :personal"), again.scripts[AWAY]);
  const off = withAway(again, { ...awayOf(again), on: false });
  assert.equal(off.active, before.active);
  assert.equal(awayOf(off).text, away.text);
  assert.equal(withAway({ active: "", scripts: {}, version: "" }, { ...away, on: false }).active, "");
  assert.equal(awayOf({ active: AWAY, scripts: { [AWAY]: "# out of office: {" }, version: "" }).on, false);
});

test("a draft is the same once it was kept and read again", () => {
  const draft = { ...emptyDraft("d1"), to: "Ada <a@x.test>, bob", copy: "carl", subject: "S", body: "B", inReplyTo: "<1@x>", references: ["<1@x>"], rev: "1-x" };
  const fields = fieldsOf(draft, "Ada <ada@x.test>", "2026-11-27T00:00:00Z");
  assert.equal(fields["$MessageID"], "<d1@x.test>");
  assert.equal(fieldsOf(draft, "ada@evil>\r\nBcc: x", "")["$MessageID"], "<d1@scrinium.invalid>");
  assert.deepEqual(draftOf(memo({ ...fields, _id: "d1", _rev: "1-x", _attachments: { "a.txt": { length: 3 }, "message.eml": { length: 9 } } })), { ...draft, files: [{ name: "a.txt", length: 3 }] });
  assert.equal(forward(TOLD, "d", "head").subject, "Fwd: Plan");
});

test("addresses in a text are links and nothing else is", () => {
  const links = (text: string) => linked(text).flatMap((piece) => (typeof piece === "string" ? [] : [piece.href]));
  assert.deepEqual(links("See https://a.test/x?y=1. And (http://b.test/z), ok"), ["https://a.test/x?y=1", "http://b.test/z"]);
  assert.deepEqual(links("javascript:x() data:text/html,x file:///etc https:// xhttps://a.test"), []);
  for (const href of links('https://a.test/"onclick="x() https://a.test/<img src=x>')) assert.doesNotMatch(href, /["<>]/);
  const text = "a https://b.test/c, d https://e.test";
  assert.equal(linked(text).map((piece) => (typeof piece === "string" ? piece : piece.href)).join(""), text);
});

test("subjects, quotes, dates and forgotten files", () => {
  assert.equal(baseSubject("Re: AW: Fwd: WG: Re[2]: Plan: B"), "Plan: B");
  assert.equal(quoted("a\n> b\n\n"), "> a\n>> b");
  const now = new Date("2026-11-27T12:00:00");
  assert.equal(shortDate("2026-11-27T09:05:00", now, "en-GB"), "09:05");
  assert.equal(shortDate("2026-03-02T09:05:00", now, "en-GB"), "2 Mar");
  assert.equal(shortDate("2025-03-02T09:05:00", now, "en-GB"), "02/03/2025");
  assert.equal(shortDate("never", now, "en-GB"), "");
  assert.ok(speaksOfFile("The file is attached.") && speaksOfFile("anbei die Liste"));
  assert.ok(!speaksOfFile("I am attracted.\n> see the attachment"));
});

test("what somebody types becomes a question that the index understands", () => {
  assert.equal(questionOf("annual report"), "+annual* +report*");
  assert.equal(questionOf('from:ann subject:"two presses"'), '+From:ann* +Subject:"two presses"');
  assert.equal(questionOf("has:attachment"), "+$FileNames:*");
  assert.equal(questionOf("g@x-y.test"), "+g +x +y +test*");
  // What means something to the index's language does nothing here.
  assert.doesNotMatch(questionOf('a) OR (b [1 TO 2] c~ d^9 e\\ "f "'), /[()[\]~^\\]/);
  assert.equal(questionOf('*** "" ()'), "");
});
