// Measures the client and the console in a browser against a server that is running, and writes a line of JSON for each case. Run by the
// benchmark `web`.
//
//   node tests/measure.mjs http://localhost:5984 PASSWORD [CHROMIUM]

import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [, , base, password, executablePath = "/usr/bin/chromium"] = process.argv;
const setting = (name, usual) => Number(process.env[name] ?? usual);
const MEMOS = setting("SCRINIUM_MEMOS", 80_000);
const DOCUMENTS = setting("SCRINIUM_DOCUMENTS", 1_000_000);
const EVENTS = setting("SCRINIUM_EVENTS", 1_000);
const ROUNDS = setting("SCRINIUM_ROUNDS", 11);
const ADA = "a-long-one-for-ada";
/** 40 ms and 10 Mbit/s. */
const SHAPED = { offline: false, latency: 40, downloadThroughput: 1_250_000, uploadThroughput: 1_250_000 };
const AT_ONCE = 10_000;

const say = (name, values) => console.log(JSON.stringify({ case: name, values }));
const basic = (name, secret) => `Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}`;
const mail = `/${encodeURIComponent("mail/ada")}`;

async function ask(method, path, body, headers = {}) {
  const answer = await fetch(base + path, { method, headers: { authorization: basic("admin", password), "content-type": "application/json", ...headers }, body: typeof body === "object" ? JSON.stringify(body) : body });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text.slice(0, 300)}`);
  return answer.headers.get("content-type")?.includes("json") ? JSON.parse(text) : text;
}

const numbered = (word, number) => `${word} ${String(number).padStart(7, "0")}`;

async function bulk(path, count, make) {
  for (let first = 0; first < count; first += AT_ONCE) {
    await ask("POST", path, { docs: Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, index) => make(first + index)) });
  }
}

/** Memos with text as HTML that are opened, and archived, one after the other. */
const READ = ROUNDS * 4 + 4;

async function seed() {
  await ask("PUT", "/directory/person:ada", { Form: "Person", ShortName: "ada", FullName: ["ada"], password: ADA });
  await ask("PUT", `${mail}?owner=ada`);
  const columns = ["Date DeliveredDate", "From From", "Subject Subject", "Categories Categories", "To SendTo", "Flags $Flags", "Files $FileNames"].map((column) => ({ title: column.split(" ")[0], formula: column.split(" ")[1] }));
  columns[0].sort = "asc";
  for (const folder of ["Inbox", "Reading", "Archive"]) await ask("PUT", `${mail}/_folder/${folder}`, { columns });
  const at = (number) => new Date(Date.UTC(2016, 0, 1) + number * 3_600_000).toISOString();
  const memo = (number, more = {}) => ({ Form: "Memo", From: `Person ${number % 500} <p${number % 500}@elsewhere.example>`, SendTo: ["ada"], Subject: numbered("Memo", number), Body: "What was said. ".repeat(40), DeliveredDate: at(number), PostedDate: at(number), $MessageID: `<${number}@elsewhere.example>`, ...more });
  await bulk(`${mail}/_bulk_docs?folder=Inbox`, MEMOS, (number) => memo(number));
  for (let number = 0; number < READ; number++) {
    const html = `<h1>Report</h1>${"<p>Some <b>words</b> of a letter, with <a href='https://x.example/'>a link</a>.</p>".repeat(40)}`;
    const eml = `From: p@elsewhere.example\r\nTo: ada@acme.example\r\nSubject: ${numbered("Read", number)}\r\nMIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\n\r\n${html}\r\n`;
    await ask("PUT", `${mail}/read-${number}?folder=Reading`, memo(number, { Subject: numbered("Read", number), _attachments: { "message.eml": { content_type: "message/rfc822", data: Buffer.from(eml).toString("base64") } } }));
  }
  const own = { authorization: basic("ada", ADA), "content-type": "text/calendar" };
  await ask("PROPFIND", "/_dav/calendars/ada/", undefined, { ...own, depth: "1" });
  const put = (number) => ask("PUT", `/_dav/calendars/ada/calendar/e${number}.ics`, ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//bench//EN", "BEGIN:VEVENT", `UID:e${number}`, "DTSTAMP:20260101T000000Z", `DTSTART:202605${String((number % 31) + 1).padStart(2, "0")}T${String(6 + (number % 12)).padStart(2, "0")}0000Z`, "DURATION:PT30M", `SUMMARY:Event ${number}`, `LOCATION:Room ${number % 20}`, "END:VEVENT", "END:VCALENDAR", ""].join("\r\n"), own);
  for (let first = 0; first < EVENTS; first += 50) await Promise.all(Array.from({ length: Math.min(50, EVENTS - first) }, (_, index) => put(first + index)));
  await ask("PUT", "/large");
  await ask("PUT", "/large/_design/all", { language: "formula", views: { numbers: { columns: [{ title: "Name", formula: "Name", sort: "asc" }, { title: "Number", formula: "Number" }] } } });
  await bulk("/large/_bulk_docs", DOCUMENTS, (number) => ({ Name: numbered("Document", number), Number: number }));
  const { total_rows: total } = await ask("GET", "/large/_design/all/_view/numbers?limit=0");
  assert.equal(total, DOCUMENTS);
  await ask("GET", `${mail}/_folder/Inbox?limit=1`);
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

/** Notes when the first row of a list is there, in milliseconds since the navigation began. */
function watchFirstRow() {
  const look = () => {
    if (globalThis.firstRowMs === undefined && document.querySelector(".grid-body .row:not(.waiting)")) globalThis.firstRowMs = performance.now();
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
}

async function opened(state, place) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", timezoneId: "Europe/Berlin", ...(state ? { storageState: state } : {}) });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  await page.addInitScript(watchFirstRow);
  await page.goto(`${base}/${place}`);
  return { context, page };
}

async function signedIn(name, secret, place, shows) {
  const { context, page } = await opened(undefined, place);
  await page.locator("input[name=name]").fill(name);
  await page.locator("input[name=password]").fill(secret);
  await page.keyboard.press("Enter");
  await page.locator(shows).first().waitFor();
  return { context, page, state: { cookies: await context.cookies(), origins: [] } };
}

/** Goes somewhere or presses a key, and measures until what is meant is painted. */
function timed({ hash, key, selector, text }) {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const isThere = (element) => (text === undefined || element.textContent.includes(text)) && (element.tagName !== "IFRAME" || element.dataset.measured === "loaded");
    const loaded = ({ target }) => {
      if (target.tagName === "IFRAME") target.dataset.measured = "loaded";
      look();
    };
    const observer = new MutationObserver(() => look());
    const ended = (end, value) => {
      observer.disconnect();
      clearTimeout(timer);
      document.removeEventListener("load", loaded, true);
      end(value);
    };
    function look() {
      if ([...document.querySelectorAll(selector)].some(isThere)) requestAnimationFrame(() => ended(resolve, performance.now() - began));
    }
    const timer = setTimeout(() => ended(reject, new Error(`${selector} with ${text} did not come`)), 60_000);
    observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    document.addEventListener("load", loaded, true);
    if (hash) location.hash = hash;
    if (key) document.querySelector("main").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    look();
  });
}

const rounds = async (work, count = ROUNDS) => {
  const values = [];
  // The first one warms up.
  for (let round = 0; round <= count; round++) {
    const value = await work(round);
    if (round > 0) values.push(value);
  }
  return values;
};

/** Kilobytes of scripts, styles and pages that a page takes until something is shown. */
async function bytesUntil(state, place, shows) {
  const context = await browser.newContext({ storageState: state });
  const page = await context.newPage();
  const lengths = [];
  page.on("response", (response) => {
    if (["script", "stylesheet", "document"].includes(response.request().resourceType())) lengths.push(response.allHeaders().then((headers) => Number(headers["content-length"] ?? 0)));
  });
  await page.goto(`${base}/${place}`);
  await page.locator(shows).first().waitFor();
  const sum = (await Promise.all(lengths)).reduce((all, length) => all + length, 0);
  await context.close();
  return sum / 1024;
}

async function measurePaints(state) {
  const warm = await opened(state, "_app/#/mail/Inbox");
  const paint = async (page) => {
    await page.waitForFunction(() => globalThis.firstRowMs !== undefined);
    return page.evaluate(() => globalThis.firstRowMs);
  };
  await paint(warm.page);
  say("first paint, warm", await rounds(async () => {
    await warm.page.reload();
    return paint(warm.page);
  }));
  await warm.context.close();
  say("first paint, cold, shaped", await rounds(async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, storageState: state });
    const page = await context.newPage();
    await page.addInitScript(watchFirstRow);
    const session = await context.newCDPSession(page);
    await session.send("Network.enable");
    await session.send("Network.emulateNetworkConditions", SHAPED);
    await page.goto(`${base}/_app/#/mail/Inbox`);
    const took = await paint(page);
    await context.close();
    return took / 1000;
  }, Math.min(ROUNDS, 5)));
}

async function measureMail({ page, context }) {
  const row = (number) => ({ selector: ".grid-body .row:not(.waiting)", text: numbered("Memo", number) });
  const newest = MEMOS - 1;
  say("folder of 80000 opened", await rounds(async () => {
    await page.evaluate(timed, { hash: "#/mail/Reading", selector: ".grid-body .row:not(.waiting)", text: "Read" });
    return page.evaluate(timed, { hash: "#/mail/Inbox", ...row(newest) });
  }));
  const far = Math.floor(MEMOS * (79 / 80));
  say("jump to row 79000", await rounds(async (round) => {
    await page.evaluate(timed, { hash: `#/mail/Inbox?at=${round}`, ...row(newest - round) });
    return page.evaluate(timed, { hash: `#/mail/Inbox?at=${far - round * 200}`, ...row(newest - far + round * 200) });
  }));
  await page.evaluate(timed, { hash: "#/mail/Reading", selector: ".grid-body .row:not(.waiting)", text: "Read" });
  say("memo opened", await rounds(async (round) => {
    const number = READ - 1 - round * 3;
    const took = await page.evaluate(timed, { hash: `#/mail/Reading/read-${number}?at=${READ - 1 - number}`, selector: "iframe.body" });
    await page.evaluate(timed, { hash: "#/mail/Reading", selector: ".split.single" });
    return took;
  }));
  await page.evaluate(timed, { hash: `#/mail/Reading/read-${READ - 1}?at=0`, selector: ".reader h2", text: numbered("Read", READ - 1) });
  say("key e to the next memo", await rounds(async (round) => {
    // Somebody has read it; what comes next was fetched meanwhile.
    await page.waitForTimeout(300);
    return page.evaluate(timed, { key: "e", selector: ".reader h2", text: numbered("Read", READ - 2 - round) });
  }));
  await measureInteractions(page);
  const session = await context.newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.enable").then(() => session.send("Performance.getMetrics"));
  say("heap", [metrics.find(({ name }) => name === "JSHeapUsedSize").value / (1 << 20)]);
}

/** How long the page takes to paint what a key or a click has done: of all interactions, the 95th of a hundred. */
async function measureInteractions(page) {
  await page.evaluate(timed, { hash: "#/mail/Inbox", selector: ".grid-body .row:not(.waiting)", text: numbered("Memo", MEMOS - 1) });
  await page.evaluate(() => {
    globalThis.interactions = new Map();
    const note = (list) => list.getEntries().forEach(({ interactionId, duration }) => interactionId && globalThis.interactions.set(interactionId, Math.max(duration, globalThis.interactions.get(interactionId) ?? 0)));
    new PerformanceObserver(note).observe({ type: "event", durationThreshold: 16, buffered: false });
  });
  await page.locator('.grid-body [tabindex="0"]').focus();
  const keys = ["ArrowDown", "ArrowDown", "PageDown", "End", "PageUp", "x", "x", "Home", "Enter", "j", "j", "k", "u"];
  let count = 0;
  for (let round = 0; round < Math.max(2, ROUNDS); round++) {
    for (const key of keys) {
      await page.keyboard.press(key);
      await page.waitForTimeout(60);
      count++;
    }
  }
  await page.waitForTimeout(300);
  const slow = await page.evaluate(() => [...globalThis.interactions.values()]);
  // Those that took less than 16 ms are not told of.
  const all = [...slow, ...Array(Math.max(0, count - slow.length)).fill(8)].sort((a, b) => a - b);
  say("INP p95", [all[Math.min(all.length - 1, Math.floor(all.length * 0.95))]]);
}

async function measureCalendar({ page }) {
  say("month with 1000 events", await rounds(async () => {
    await page.evaluate(timed, { hash: "#/calendar/month/2026-02-10", selector: 'td[data-day="2026-02-10"]' });
    await page.waitForTimeout(200);
    return page.evaluate(timed, { hash: "#/calendar/month/2026-05-10", selector: 'td[data-day="2026-05-28"] .chip' });
  }));
}

async function measureView({ page }) {
  const place = (row) => `#/databases/large/views/all/numbers?row=${row}`;
  const row = (number) => ({ hash: place(number + 1), selector: ".grid-body .row:not(.waiting)", text: numbered("Document", number) });
  await page.evaluate(timed, row(0));
  say("view of 1000000, any page", await rounds((round) => page.evaluate(timed, row(Math.floor((DOCUMENTS * ((round * 7) % 19)) / 19) + 300 + round))));
}

await seed();
const ada = await signedIn("ada", ADA, "_app/#/mail/Inbox", ".grid-body .row:not(.waiting)");
const admin = await signedIn("admin", password, "_utils/#/overview", "main h1");
say("client before the first list", [await bytesUntil(ada.state, "_app/#/mail/Inbox", ".grid-body .row:not(.waiting)")]);
say("console first page", [await bytesUntil(admin.state, "_utils/#/overview", "main .cards, main .verdict")]);
await measurePaints(ada.state);
await measureMail(ada);
await measureCalendar(ada);
await measureView(admin);
await browser.close();
