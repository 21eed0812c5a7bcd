import assert from "node:assert/strict";
import test from "node:test";
import { ask, ApiError, documentPath, pathOf, person, signIn } from "../shared/api.ts";
import { thinned, ticks } from "../shared/chart.tsx";
import { bytes, duration, fill } from "../shared/i18n.ts";
import { Chords, nameOf, type Binding } from "../shared/keys.ts";
import { hashOf, parsePlace } from "../shared/route.ts";
import { HEIGHT_MAX, Pages, scrollFor, windowOf } from "../shared/window.ts";

/** Numbers that look like chance, the same each time. */
function chance(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % below;
  };
}

test("whatever the length of a list, each of its rows can be scrolled to, and few are made", () => {
  const next = chance(7);
  for (let round = 0; round < 2000; round++) {
    const count = 1 + next([10, 1000, 80_000, 5_000_000][round % 4]!);
    const seen = 36 + next(2000);
    const row = next(count);
    const scrolled = scrollFor(row, count, 36, 0, seen) ?? 0;
    const shown = windowOf(count, 36, scrolled, seen);
    assert.ok(shown.first <= row && row < shown.last, `row ${row} of ${count}`);
    assert.ok(shown.last - shown.first <= seen / 36 + 26, `${shown.last - shown.first} rows are made`);
    assert.ok(shown.height <= HEIGHT_MAX);
    // The row lies within what is seen.
    const top = shown.offset + (row - shown.first) * 36 - scrolled;
    assert.ok(top >= -1 && top + 36 <= Math.max(seen, 36) + 1, `row ${row} of ${count} is at ${top} of ${seen}`);
  }
});

test("pages that were not used for longest go", () => {
  const pages = new Pages<number>(10, 3);
  for (const page of [0, 1, 2]) pages.put(page, [page * 10]);
  assert.ok(pages.has(0));
  pages.put(3, [30]);
  assert.equal(pages.row(10), undefined);
  assert.equal(pages.row(0), 0);
  assert.equal(pages.row(30), 30);
});

test("pages that are to be fetched again are shown as they were until then", () => {
  const pages = new Pages<string>(10);
  pages.put(0, ["before"]);
  pages.expire();
  assert.equal(pages.row(0), "before");
  assert.ok(!pages.has(0));
  pages.put(0, ["after"]);
  assert.equal(pages.row(0), "after");
  assert.ok(pages.has(0));
});

test("a place is read back from its address, whatever its names are", () => {
  const names = ["a/b", "%", "a b", "ä", "?x=1#y", "<script>", "_design/x", "\u202e"];
  for (const name of names) {
    const parameters = { find: name };
    assert.deepEqual(parsePlace(hashOf(["databases", name], parameters)), { segments: ["databases", name], parameters });
  }
  assert.deepEqual(parsePlace("#/%E0%A4%A"), { segments: ["%E0%A4%A"], parameters: {} });
  assert.deepEqual(parsePlace(""), { segments: [], parameters: {} });
});

test("paths name one database and one document", () => {
  assert.equal(pathOf("mail/ada", "a/b?c"), "mail%2Fada/a%2Fb%3Fc");
  assert.equal(documentPath("db", "_design/a/b"), "db/_design/a%2Fb");
  assert.equal(documentPath("db", "_local/x"), "db/_local/x");
  assert.equal(documentPath("db", "../x"), "db/..%2Fx");
});

test("texts count as the language does", () => {
  assert.equal(fill("{n|one document|{n} documents}", { n: 1 }, "en"), "one document");
  assert.equal(fill("{n|one document|{n} documents} of {name}", { n: 1200, name: "{n}" }, "en"), "1,200 documents of {n}");
  assert.equal(fill("{missing} {n|a|b}", {}, "de"), "{missing} {n|a|b}");
});

test("bytes and durations are read at a glance", () => {
  assert.equal(bytes(0), "0 B");
  assert.equal(bytes(1536), "1.5 KB");
  assert.equal(bytes(5 * 1024 ** 3), "5 GB");
  assert.equal(duration(0), "0 s");
  assert.equal(duration(3725), "1 h 2 min");
  assert.equal(duration(86_400 * 3 + 30), "3 d");
});

test("the steps of an axis reach the largest value", () => {
  for (const largest of [0.03, 1, 7, 10, 99, 12_345, 8e9]) {
    const steps = ticks(largest);
    assert.ok(steps.at(-1)! >= largest && steps.length <= 6, `${largest}: ${steps}`);
  }
  assert.deepEqual(ticks(0), [0, 1]);
});

test("thinning keeps the peak", () => {
  const points = Array.from({ length: 10_000 }, (_, time) => ({ time, value: time === 7777 ? 50 : 1 }));
  const few = thinned(points, 300);
  assert.equal(few.length, 300);
  assert.ok(few.some(({ value }) => value === 50));
});

test("single keys and chords do nothing while somebody types", () => {
  const ran: string[] = [];
  const known: Binding[] = ["g d", "j", "Ctrl+k", "Escape"].map((keys) => ({ keys, what: "", run: () => ran.push(keys) }));
  const chords = new Chords();
  for (const [name, typing] of [["g", false], ["d", false], ["j", true], ["Ctrl+k", true], ["g", true], ["d", false], ["g", false], ["x", false], ["j", false]] as const) {
    chords.press(name, typing, known)?.run();
  }
  assert.deepEqual(ran, ["g d", "Ctrl+k", "j"]);
  assert.equal(nameOf({ key: "k", ctrlKey: false, metaKey: true, altKey: false }), "Ctrl+k");
});

test("a request that finds its session ended goes on when its person has signed in again", async () => {
  const asked: string[] = [];
  let isOver = true;
  globalThis.fetch = (async (address: string, { method }: RequestInit) => {
    asked.push(`${method} ${new URL(address).pathname}`);
    const answer = (status: number, body: unknown) => new Response(JSON.stringify(body), { status });
    if (method === "POST") {
      isOver = false;
      return answer(200, { name: "ada", roles: [] });
    }
    return isOver ? answer(401, { error: "unauthorized", reason: "no" }) : answer(200, { rows: 3 });
  }) as typeof fetch;
  person.value = { name: "ada", roles: [] };
  const waiting = ask<{ rows: number }>("GET", "db/_all_docs");
  await new Promise((resolve) => setTimeout(resolve, 5));
  await signIn("ada", "secret");
  assert.deepEqual(await waiting, { rows: 3 });
  assert.deepEqual(asked, ["GET /db/_all_docs", "POST /_session", "GET /db/_all_docs"]);
});

test("an error says what was asked, and what is no JSON is one", async () => {
  person.value = null;
  for (const [status, text, error] of [[409, '{"error":"conflict","reason":"Document update conflict."}', "conflict"], [502, "<html>", "no_json"], [500, "null", "error"]] as const) {
    globalThis.fetch = (async () => new Response(text, { status, headers: { "x-couch-request-id": "abc" } })) as typeof fetch;
    await assert.rejects(ask("PUT", "db/x"), (found: unknown) => found instanceof ApiError && found.error === error && found.status === status && found.requestId === "abc");
  }
});
