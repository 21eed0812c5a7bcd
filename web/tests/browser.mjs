// The console and the client in a real browser, against a server that is running: what people do there, by mouse and by keyboard, with hostile
// contents, in two tabs, in both themes, under the eyes of axe.
//
//   node tests/browser.mjs http://localhost:5984 PASSWORD [CHROMIUM]

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { clientSteps } from "./client.mjs";

const [, , base, password, executablePath = "/usr/bin/chromium"] = process.argv;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const DOCUMENTS = 80_000;
const began = Date.now();

async function ask(method, path, body) {
  const answer = await fetch(base + path, {
    method,
    headers: { authorization: `Basic ${Buffer.from(`admin:${password}`).toString("base64")}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const told = await answer.json();
  assert.ok(answer.ok, `${method} ${path}: ${JSON.stringify(told)}`);
  return told;
}

const six = (number) => String(number).padStart(6, "0");
/** Texts that do something in pages that take them for more than text. */
const HOSTILE = [
  '<img src=x onerror="window.harmed=1">',
  "<script>window.harmed=1</script>",
  '"><svg onload=window.harmed=1>',
  "javascript:window.harmed=1",
  "{{constructor.constructor('window.harmed=1')()}}",
  "\u202eevil\u202c \u05e9\u05dc\u05d5\u05dd",
  "x".repeat(4000),
];

async function seed() {
  for (const name of ["large", "films", "hostile", "shared"]) await ask("PUT", `/${name}`);
  for (let first = 0; first < DOCUMENTS; first += 10_000) {
    const docs = Array.from({ length: 10_000 }, (_, index) => ({ _id: `memo-${six(first + index)}`, n: first + index }));
    await ask("POST", "/large/_bulk_docs", { docs });
  }
  const genres = ["Comedy", "Drama", "Western"];
  const films = Array.from({ length: 90 }, (_, index) => ({ _id: `film-${six(index)}`, title: `Film ${index}`, year: 1950 + index, genre: genres[index % 3], minutes: 100 }));
  await ask("POST", "/films/_bulk_docs", { docs: films });
  await ask("POST", "/films/_bulk_docs", { new_edits: false, docs: [{ _id: "film-000003", _rev: "1-ffffffffffffffffffffffffffffffff", title: "Another cut", year: 1953, genre: "Comedy" }] });
  const columns = [{ title: "Genre", formula: "genre", category: true }, { title: "Title", formula: "title", sort: "asc" }, { title: "Minutes", formula: "minutes", total: true }];
  await ask("PUT", "/films/_design/catalogue", { language: "formula", views: { genres: { columns } } });
  await ask("PUT", "/films/_folder/Favourites", {});
  await ask("POST", "/films/_folder/Favourites", { add: ["film-000001"] });
  for (const [index, text] of HOSTILE.entries()) {
    await ask("PUT", `/hostile/${encodeURIComponent(text.slice(0, 900))}`, { [text]: text, nested: { list: [text] }, Subject: text });
    await ask("PUT", `/hostile/_folder/${encodeURIComponent(text.slice(0, 40) + index)}`, {});
  }
  const hostile = HOSTILE.slice(0, 3).map((text) => ({ title: text, formula: "Subject" }));
  await ask("PUT", `/hostile/_design/${encodeURIComponent(HOSTILE[0])}`, { language: "formula", views: { [HOSTILE[1]]: { columns: [{ ...hostile[0], category: true }, hostile[1]] } } });
  await ask("PUT", `/hostile/with-attachment`, { _attachments: { [HOSTILE[0]]: { content_type: "text/html", data: Buffer.from("<script>window.harmed=1</script>").toString("base64") } } });
  await ask("PUT", "/shared/doc", { text: "first" });
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const problems = [];
const foreign = [];

async function tab(context) {
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`a script failed: ${error}`));
  page.on("console", (message) => {
    const text = message.text();
    // A refused request is shown on the page; what the policy refuses is a defect.
    if (message.type() === "error" && !text.startsWith("Failed to load resource")) problems.push(text);
  });
  page.on("dialog", (dialog) => {
    problems.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const isOwn = [base, base.replace("127.0.0.1", "localhost"), "blob:"].some((start) => request.url().startsWith(start));
    if (!isOwn) foreign.push(request.url());
  });
  page.setDefaultTimeout(15_000);
  return page;
}

let session;

/** A tab of somebody who has signed in: the first one by keyboard, the others by the cookie that it got. */
async function signedIn(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", ...(session ? { storageState: session } : {}), ...options });
  const page = await tab(context);
  await page.goto(`${base}/_utils/`);
  if (session) {
    await page.waitForSelector("nav.rail");
    return { context, page };
  }
  // By keyboard alone: the first field has the focus.
  await page.waitForSelector("input[name=name]:focus");
  await page.keyboard.type("admin");
  await page.keyboard.press("Tab");
  await page.keyboard.type(password);
  await page.keyboard.press("Enter");
  await page.waitForSelector("nav.rail");
  session = { cookies: await context.cookies(), origins: [] };
  return { context, page };
}

async function open(page, place) {
  await page.goto(`${base}/_utils/#/${place}`);
  await page.waitForFunction(() => document.querySelector("main h1") && !document.querySelector("main .bones"));
}

const rowText = (page, text) => page.locator(".grid-body .row", { hasText: text }).first();

const steps = [];
const step = (name, run) => steps.push({ name, run });

step("a wrong password is refused in words, and the files hold to their budget", async () => {
  const context = await browser.newContext();
  const page = await tab(context);
  const lengths = [];
  page.on("response", (response) => {
    lengths.push(response.allHeaders().then((headers) => Number(headers["content-length"] ?? 0)));
  });
  await page.goto(`${base}/_utils`);
  await page.fill("input[name=name]", "admin");
  await page.fill("input[name=password]", "wrong");
  await page.keyboard.press("Enter");
  await page.locator("[role=alert]").waitFor();
  assert.match(page.url(), /_utils\/$/);
  const bytes = (await Promise.all(lengths)).reduce((sum, length) => sum + length, 0);
  assert.ok(bytes > 1000 && bytes < 80 * 1024, `the first page takes ${bytes} bytes`);
  await context.close();
});

step("80,000 documents are opened anywhere", async () => {
  const { context, page } = await signedIn();
  await open(page, "databases/large/documents");
  await rowText(page, "memo-000000").waitFor();
  assert.ok((await page.locator(".grid-body .row").count()) < 120, "too many rows are made");
  await page.getByLabel("Go to row").fill("79000");
  await page.keyboard.press("Enter");
  await rowText(page, "memo-078999").waitFor();
  const grid = page.getByRole("grid");
  assert.equal(await grid.getAttribute("aria-rowcount"), String(DOCUMENTS + 1));
  await page.locator('.grid-body [tabindex="0"]').focus();
  await page.keyboard.press("End");
  await rowText(page, "memo-079999").waitFor();
  await page.keyboard.press("Home");
  await rowText(page, "memo-000000").waitFor();
  await context.close();
});

step("by keyboard alone: a document is found, edited, deleted, and brought back", async () => {
  const { context, page } = await signedIn();
  await page.waitForSelector("main h1");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("films");
  await page.locator('[role=option][aria-selected=true]', { hasText: "films" }).waitFor();
  await page.keyboard.press("Enter");
  await rowText(page, "film-000000").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("film-000005");
  await page.waitForFunction(() => document.querySelectorAll(".grid-body .row").length === 1);
  // The row may not have come yet: it is opened once it has.
  await page.locator('.grid-body [tabindex="0"]').focus();
  await page.keyboard.press("Enter");
  await page.locator("h2", { hasText: "film-000005" }).waitFor();
  // The key leads to the text once that is there and the page has been painted.
  await page.locator("textarea").waitFor();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100))));
  await page.keyboard.press("e");
  await page.waitForSelector("textarea:focus");
  await page.keyboard.press("Control+End");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("End");
  await page.keyboard.type(',\n  "seen": true');
  await page.keyboard.press("Control+Enter");
  await page.locator(".message", { hasText: "film-000005 was saved" }).waitFor();
  assert.equal((await ask("GET", "/films/film-000005")).seen, true);
  await page.getByRole("button", { name: "Delete", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".message", { hasText: "was deleted" }).waitFor();
  await page.locator("h1").click();
  await page.keyboard.press("z");
  await assert.doesNotReject(async () => {
    for (let round = 0; round < 100; round++) {
      const answer = await fetch(`${base}/films/film-000005`, { headers: { authorization: `Basic ${Buffer.from(`admin:${password}`).toString("base64")}` } });
      if (answer.ok) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("the document did not come back");
  });
  await context.close();
});

step("a conflict is seen and settled", async () => {
  const { context, page } = await signedIn();
  await open(page, "databases/films/documents/film-000003");
  await page.locator("td.differs", { hasText: "Another cut" }).first().waitFor();
  await page.getByRole("button", { name: /^Keep this one: Shown/ }).click();
  await page.locator(".message", { hasText: "settled" }).waitFor();
  assert.equal((await ask("GET", "/films/film-000003?conflicts=true"))._conflicts, undefined);
  await context.close();
});

step("two tabs that save one document lose nothing", async () => {
  const { context, page } = await signedIn();
  const other = await tab(context);
  await open(page, "databases/shared/documents/doc");
  await open(other, "databases/shared/documents/doc");
  for (const [where, text] of [[page, "second"], [other, "third"]]) {
    await where.locator("textarea").fill(JSON.stringify({ ...(await ask("GET", "/shared/doc")), _rev: JSON.parse(await where.locator("textarea").inputValue())._rev, text }));
    await where.getByRole("button", { name: /^Save/ }).click();
    await where.locator(".message, .note.warn").first().waitFor();
  }
  assert.equal((await ask("GET", "/shared/doc")).text, "second");
  await other.getByRole("button", { name: "Keep mine" }).click();
  await other.locator(".message", { hasText: "was saved" }).waitFor();
  assert.equal((await ask("GET", "/shared/doc")).text, "third");
  await context.close();
});

step("a session that ends asks for the password, and the text is still there", async () => {
  const { context, page } = await signedIn();
  await open(page, "databases/films/documents/film-000007");
  await page.locator("textarea").waitFor();
  const text = (await page.locator("textarea").inputValue()).replace('"Film 7"', '"Film seven"');
  await page.locator("textarea").fill(text);
  await context.clearCookies();
  await page.getByRole("button", { name: /^Save/ }).click();
  await page.locator("dialog input[name=password]").fill(password);
  await page.keyboard.press("Enter");
  await page.locator(".message", { hasText: "was saved" }).waitFor();
  assert.equal((await ask("GET", "/films/film-000007")).title, "Film seven");
  await context.close();
});

step("a view unfolds by keyboard, with its totals", async () => {
  const { context, page } = await signedIn();
  await open(page, "databases/films/views/catalogue/genres");
  await rowText(page, "Comedy").waitFor();
  await page.locator('.grid-body [tabindex="0"]').focus();
  await page.keyboard.press("ArrowRight");
  await page.locator('.grid-body .row[aria-level="2"]').first().waitFor();
  await page.locator('.row[aria-expanded="true"]:focus', { hasText: "Comedy" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.locator('.grid-body .row[aria-level="2"]:focus').waitFor();
  // What somebody else writes comes into the list, and the one who reads it keeps the place.
  await open(page, "databases/shared/documents");
  await rowText(page, "doc").waitFor();
  await page.locator('.grid-body [tabindex="0"]').focus();
  await ask("PUT", "/shared/zebra", { text: "came later" });
  await page.locator('.grid-body .row:focus', { hasText: "doc" }).waitFor();
  await rowText(page, "zebra").waitFor();
  await page.locator('.grid-body .row:focus', { hasText: "doc" }).waitFor();
  await context.close();
});

step("a query says that no index fits, and makes one", async () => {
  const { context, page } = await signedIn();
  await open(page, "databases/films/query");
  await page.locator("textarea").fill('{"selector": {"year": {"$gte": 1990}}}');
  await page.getByRole("button", { name: "Why this index" }).click();
  await page.getByRole("button", { name: "Create this index" }).click();
  await page.locator(".message").waitFor();
  await page.locator("textarea").press("Control+Enter");
  await page.locator("section", { hasText: "Results" }).locator("tr").first().waitFor();
  await context.close();
});

step("a database is made, compacted and deleted; a person is added", async () => {
  const { context, page } = await signedIn();
  await open(page, "databases");
  await page.getByRole("button", { name: "New database" }).click();
  await page.getByLabel("Name of the database").fill("made-here");
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "made-here" }).waitFor();
  await open(page, "databases/made-here/properties");
  await page.getByRole("button", { name: "Compact" }).click();
  await page.locator(".message", { hasText: "Compaction" }).waitFor();
  await page.getByRole("button", { name: "Delete database" }).click();
  assert.ok(await page.locator("dialog button.danger").isDisabled());
  await page.locator("dialog input").fill("made-here");
  await page.keyboard.press("Enter");
  await page.locator(".message", { hasText: "made-here was deleted" }).waitFor();
  await open(page, "people");
  await page.getByRole("button", { name: "New person" }).click();
  await page.getByLabel("Short name").fill("eve");
  await page.locator("dialog [type=password]").fill("a-long-one-for-eve");
  await page.keyboard.press("Enter");
  await rowText(page, "eve").waitFor();
  await open(page, "tasks");
  await page.getByLabel("Command").fill("show server");
  await page.keyboard.press("Enter");
  await page.locator(".terminal", { hasText: "Scrinium server" }).waitFor();
  await context.close();
});

step("a replication is ordered, fails in words and is stopped; a person is disabled, and gets an app password", async () => {
  const { context, page } = await signedIn();
  await open(page, "replication");
  await page.getByRole("button", { name: "New replication" }).click();
  await page.getByLabel("Source", { exact: true }).fill("films");
  await page.getByLabel("Target", { exact: true }).fill("not-there");
  await page.getByLabel("How", { exact: true }).selectOption("continuous");
  await page.locator("dialog button.primary").click();
  await page.locator("tr", { hasText: "not-there" }).getByText("no such database").waitFor();
  await page.locator("tr", { hasText: "not-there" }).getByRole("button", { name: "Stop" }).click();
  await page.getByText("No replication is running.").waitFor();
  await page.getByLabel("Name of the database").fill("films");
  await page.keyboard.press("Enter");
  await page.getByText("This database has not been replicated.").waitFor();
  await ask("PUT", "/directory/person:mallory", { Form: "Person", ShortName: "mallory", FullName: ["Mallory"] });
  await open(page, "people");
  await rowText(page, "mallory").click();
  await page.getByRole("button", { name: "Disable" }).click();
  await page.locator(".docked .pill.bad").waitFor();
  assert.equal((await ask("GET", "/directory/person:mallory")).Disabled, true);
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByRole("button", { name: "Disable" }).waitFor();
  await page.getByRole("button", { name: "New app password" }).click();
  await page.getByLabel("Program or device").fill("phone");
  await page.keyboard.press("Enter");
  await page.locator("dialog code").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".docked tr", { hasText: "phone" }).waitFor();
  await page.getByRole("button", { name: "Rooms", exact: true }).click();
  await page.getByRole("button", { name: "New room" }).click();
  await page.getByLabel("Short name").fill("hall");
  await page.getByLabel("Address", { exact: true }).fill("hall@acme.example");
  await page.getByLabel("Site").fill("Berlin");
  await page.getByLabel("Seats").fill("12");
  await page.locator("dialog button.primary").click();
  await rowText(page, "hall@acme.example").waitFor();
  const { Resource, Site, Capacity } = await ask("GET", "/directory/person:hall");
  assert.deepEqual([Resource, Site, Capacity], ["room", "Berlin", 12]);
  await page.getByRole("button", { name: "domains", exact: false }).first().click();
  await page.getByRole("button", { name: "New domain" }).click();
  await page.getByLabel("Domain", { exact: true }).fill("beta.example");
  await page.getByLabel("What others see of it").selectOption("nothing");
  await page.locator("dialog button.primary").click();
  await rowText(page, "beta.example").waitFor();
  assert.equal((await ask("GET", "/directory/domain:beta.example")).OutsidersSee, "nothing");
  await context.close();
});

step("mail that is kept back is let go, or deleted", async () => {
  const held = (number) => ({
    Form: "Memo", $State: "Held", HoldReason: `rspamd gives it ${number}`, From: "<img src=x onerror=window.harmed=1>", SendTo: ["admin"],
    Subject: `kept back ${number}`, Body: "x", PostedDate: "2026-11-27T00:00:00Z",
  });
  await ask("PUT", "/mail.box/_folder/Quarantine", {});
  for (const number of [1, 2]) await ask("PUT", `/mail.box/held-${number}?folder=Quarantine`, held(number));
  const { context, page } = await signedIn();
  await open(page, "mail");
  const section = page.getByRole("region", { name: "Kept back by rules and filters" }).first();
  const row = (number) => section.locator("tbody tr", { hasText: `kept back ${number}` });
  await row(2).getByRole("button", { name: "Delete" }).click();
  await page.locator("dialog button.danger").click();
  await page.locator(".message", { hasText: "held-2 is deleted" }).waitFor();
  await row(2).waitFor({ state: "detached" });
  await row(1).getByRole("button", { name: "Let go" }).click();
  await page.locator(".message", { hasText: "held-1 is released" }).waitFor();
  await section.getByText("Nothing is kept back.").waitFor();
  assert.equal(await page.evaluate(() => window.harmed), undefined);
  await context.close();
});

/** What the server finds of a domain, with texts of a stranger's in it. */
const FINDINGS = {
  domain: "acme.example", ok: false, remarks: [HOSTILE[0]],
  records: [
    { name: "acme.example", type: "MX", value: "10 mail.acme.example.", state: "fine", found: [], without: "nobody can send mail to it" },
    { name: "_dmarc.acme.example", type: "TXT", value: "v=DMARC1; p=none", state: "missing", found: [], without: "nobody says who sends in its name" },
    { name: "acme.example", type: "TXT", value: "v=spf1 mx -all", state: "differs", found: [HOSTILE[0], "x".repeat(600)], without: "others may take its mail for forged" },
  ],
  mail_hosts: [{ name: "mail.acme.example", answers: false, addresses: [{ address: "192.0.2.1", greeting: null, reason: HOSTILE[1] }, { address: "192.0.2.2", greeting: `220 ${HOSTILE[2]}`, reason: null }] }],
};
const withFindings = (page) => page.route("**/_domain_check/*", (route) => route.fulfill({ json: FINDINGS }));

step("what DNS lacks of a domain is said, and so is what others report of its mail", async () => {
  const { context, page } = await signedIn();
  await open(page, "mail");
  const section = page.getByRole("region", { name: "Is a domain ready for mail?" }).first();
  // The server itself: it has no name that others could know.
  await section.getByLabel("Domain").fill("acme.example");
  await page.keyboard.press("Enter");
  await section.getByRole("alert").waitFor();
  await withFindings(page);
  await section.getByRole("button", { name: "Try again" }).click();
  await section.locator("tr", { hasText: "_dmarc.acme.example" }).getByText("nobody says who sends in its name").waitFor();
  await section.locator("tr", { hasText: "differs" }).getByText(HOSTILE[0]).waitFor();
  await section.getByText(HOSTILE[1]).waitFor();
  const report = { _id: "dmarc:1", Form: "DMARCReport", Domain: "acme.example", Day: "2026-11-26", Reporter: HOSTILE[0], Messages: 1200, Passed: 1195, Failed: 5, Quarantined: 0, Rejected: 5 };
  const source = { _id: "dmarc:1:0", Form: "DMARCSource", Domain: "acme.example", Source: "198.51.100.7", Day: "2026-11-26", Messages: 5, Result: "fails", Why: HOSTILE[1], Reporter: HOSTILE[0] };
  await ask("POST", "/dmarc/_bulk_docs", { docs: [report, source] });
  await open(page, "overview");
  await open(page, "mail");
  await page.locator("tr", { hasText: "1,200" }).getByText("acme.example").waitFor();
  await page.locator("tr", { hasText: "198.51.100.7" }).waitFor();
  await page.getByRole("link", { name: "Why they failed" }).click();
  await rowText(page, "acme.example").waitFor();
  assert.equal(await page.evaluate(() => window.harmed), undefined);
  await context.close();
});

step("whatever names and contents hold, nothing of it runs and nothing is fetched", async () => {
  const { context, page } = await signedIn();
  const places = ["hostile/documents?contents=1", "hostile/documents/with-attachment", "hostile/views", "hostile/folders", "hostile/changes", "hostile/query"];
  for (const place of places) {
    await open(page, `databases/${place}`);
    await page.waitForTimeout(150);
  }
  for (const text of HOSTILE) {
    await open(page, `databases/hostile/documents/${encodeURIComponent(text.slice(0, 900))}`);
    await page.locator("textarea").waitFor();
    await open(page, `databases/${encodeURIComponent(text.slice(0, 200))}`);
  }
  assert.equal(await page.evaluate(() => window.harmed), undefined);
  await context.close();
});

const PAGES = [
  "overview", "databases", "databases/films/documents/film-000009", "databases/films/views", "databases/films/query", "databases/films/folders/Favourites",
  "databases/films/changes", "databases/films/access", "databases/films/properties", "people", "people?kind=domains", "people?kind=rooms", "mail?check=acme.example", "replication?of=films", "backups", "tasks", "log", "statistics?name=Server.Users", "configuration?key=compact.window",
];

step("axe finds nothing serious on any page, in both themes, and nothing is wider than a phone", async () => {
  const found = [];
  for (const [colorScheme, width] of [["light", 1280], ["dark", 1280], ["light", 320]]) {
    const { context, page } = await signedIn({ colorScheme, viewport: { width, height: 800 } });
    await withFindings(page);
    for (const place of PAGES) {
      await open(page, place);
      await page.waitForTimeout(250);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) found.push(`${place} is ${wide} pixels too wide at ${width}`);
      if (width === 320) continue;
      // The policy lets no script in; the browser's own protocol may.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      for (const { id, impact, nodes } of violations) {
        if (impact === "serious" || impact === "critical") found.push(`${place} (${colorScheme}): ${id} ${nodes.slice(0, 3).map(({ target }) => target.join(" ")).join(", ")}`);
      }
    }
    await context.close();
  }
  assert.deepEqual(found, []);
});

clientSteps({ ask, base, browser, tab, axe, step });

// A part is the steps whose names begin with its name, or, for the console, all others; a step is known by a piece of its name.
const { SCRINIUM_PART: part = "", SCRINIUM_STEP: only = "" } = process.env;
const partOf = (name) => /^(mail|calendar): /.exec(name)?.[1] ?? "console";
const isMeant = (name) => name.includes(only) && (part === "" || part === partOf(name));
if (steps.some(({ name }) => isMeant(name) && partOf(name) === "console")) await seed();
console.log(`seeded after ${Math.round((Date.now() - began) / 1000)} s`);
let failed = 0;
for (const { name, run } of steps) {
  if (!isMeant(name)) continue;
  const start = Date.now();
  // A browser on a machine that does much else misses a key now and then; what is broken fails twice.
  for (let attempt = 1; attempt <= 2; attempt++) {
    try {
      await run();
      console.log(`ok ${name} (${Date.now() - start} ms, attempt ${attempt})`);
      break;
    } catch (error) {
      console.log(`failed ${name}, attempt ${attempt}: ${error?.stack ?? error}`);
      if (attempt === 2) failed++;
    }
  }
}
if (problems.length > 0 || foreign.length > 0) {
  failed++;
  console.log(`failed: the pages had problems: ${[...new Set([...problems, ...foreign])].slice(0, 20).join("\n")}`);
}
await browser.close();
console.log(`${steps.filter(({ name }) => isMeant(name)).length} steps, ${failed} failed, ${Math.round((Date.now() - began) / 1000)} s`);
process.exitCode = failed > 0 ? 1 : 0;
