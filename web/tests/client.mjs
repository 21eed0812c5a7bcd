// The client in a real browser: mail is read, written, moved and found, and messages of strangers do nothing. Run by browser.mjs.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";

/** The first reading of a folder indexes it, in a server built for tests. */
const ROWS = 20_000;
const INDEXED_WITHIN_MS = 60_000;
const ADA = "a-long-one-for-ada";
/** Stored by CalDAV, one by one. */
const MONTH_EVENTS = 300;

/** Messages of the kinds that did harm in other programs (HTML, SVG, CSS, plain text, headers, names of files), of our own making. */
const HOSTILE_HTML = [
  '<script>top.harmed=1</script><img src=x onerror="top.harmed=1">',
  '<svg><animate onbegin="top.harmed=1" attributeName="x" dur="1s"/><a xlink:href="javascript:top.harmed=1"><text y="20">x</text></a></svg>',
  "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=x onerror=top.harmed=1&gt;\"></table></mtext></math>",
  '<svg><style><img src="</style><img src=x onerror=top.harmed=1>"></svg>',
  '<noscript><p title="</noscript><img src=x onerror=top.harmed=1>"></noscript>',
  '<form action="https://evil.example/"><input name=password autofocus onfocus="top.harmed=1"><button formaction="javascript:top.harmed=1">Sign in</button></form>',
  '<meta http-equiv="refresh" content="0;url=https://evil.example/"><base href="https://evil.example/"><link rel="stylesheet" href="https://evil.example/x.css"><link rel="preconnect" href="https://evil.example"><link rel="dns-prefetch" href="//evil.example">',
  '<style>@import "https://evil.example/a.css"; body{background:url(https://evil.example/b)} @font-face{font-family:x;src:url(https://evil.example/f)}</style><p style="font-family:x;background:url(https://evil.example/c)">x</p>',
  '<p style="--a:url(https://evil.example/d);background:var(--a)">x</p><p style="background:u\\72l(https://evil.example/e)">x</p><p style="list-style-image:image-set(\'https://evil.example/f\' 1x)">x</p>',
  '<body background="https://evil.example/g"><table background="https://evil.example/h"><tr><td background="https://evil.example/i">x</table>',
  '<img src="https://evil.example/j"><img srcset="https://evil.example/k 2x"><picture><source srcset="https://evil.example/l"><img></picture><video poster="https://evil.example/m" src="https://evil.example/n" autoplay></video><audio src="https://evil.example/o" autoplay></audio>',
  '<iframe src="https://evil.example/"></iframe><iframe srcdoc="<script>top.harmed=1</script>"></iframe><object data="https://evil.example/"></object><embed src="https://evil.example/">',
  '<div style="position:fixed;inset:0;z-index:999999;background:#fff">You are signed out</div>',
  '<a href="javascript:top.harmed=1" id="click">x</a><a href="java&#10;script:top.harmed=1">y</a><a href="data:text/html,<script>top.harmed=1</script>">z</a>',
  '<template><script>top.harmed=1</script></template><textarea></textarea><img src=x onerror=top.harmed=1></textarea><xmp><img src=x onerror=top.harmed=1></xmp>',
  `${"<div>".repeat(5000)}deep`,
  '<a id="documentElement"></a><a id="body" name="cookie"></a><form id="location"></form><p title="`><img src=x onerror=top.harmed=1>">x</p>',
];
const HOSTILE_TEXT = [
  "https://ok.example/<img/src=x/onerror=top.harmed=1>",
  'https://ok.example/"onmouseover="top.harmed=1" javascript:top.harmed=1',
  "[1] javascript:top.harmed=1\n[1]: https://ok.example/' onclick='top.harmed=1",
  "<script>top.harmed=1</script>\n<svg onload=top.harmed=1>",
];
const HOSTILE_HEAD = ['"><img src=x onerror=top.harmed=1>', "{{constructor.constructor('top.harmed=1')()}}", "\u202egnp.exe", "<script>top.harmed=1</script>"];

/** What an authenticator shows now (RFC 6238). */
function codeOf(secret) {
  const bits = [...secret.replace(/[^A-Z2-7]/g, "")].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const moment = Buffer.alloc(8);
  moment.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const hash = createHmac("sha1", key).update(moment).digest();
  return String((hash.readUInt32BE(hash[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

export function clientSteps({ ask, base, browser, tab, axe, step }) {
  const mail = (person) => `/${encodeURIComponent(`mail/${person}`)}`;
  let number = 0;

  /** A memo as SMTP would have brought it. */
  async function deliver(person, { subject, from = "Grace Hopper <grace@elsewhere.example>", text = "", html, file, references, invitation }) {
    const at = new Date(Date.UTC(2026, 10, 20) + number++ * 1000).toISOString();
    const id = `memo-${String(number).padStart(6, "0")}`;
    const clean = (value) => value.replace(/[\r\n]/g, " ");
    const parts = [["text/plain; charset=utf-8", text]];
    if (html) parts.push(["text/html; charset=utf-8", html]);
    const kind = html ? "alternative" : "mixed";
    let body = parts.map(([type, content]) => `--b\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(content).toString("base64")}\r\n`).join("");
    if (file) body += `--b\r\nContent-Type: text/html\r\nContent-Disposition: attachment; filename*=UTF-8''${encodeURIComponent(file)}\r\n\r\n<script>top.harmed=1</script>\r\n`;
    if (invitation) body += `--b\r\nContent-Type: text/calendar; charset=utf-8; method=REQUEST\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(invitation).toString("base64")}\r\n`;
    const eml = `From: ${clean(from)}\r\nTo: ${person}@acme.example\r\nSubject: ${clean(subject)}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/${file ? "mixed" : kind}; boundary=b\r\n\r\n${body}--b--\r\n`;
    const memo = {
      Form: "Memo", From: from, SendTo: [`${person}@acme.example`], Subject: subject, Body: text || "as HTML", PostedDate: at, DeliveredDate: at, $MessageID: `<${id}@elsewhere.example>`,
      ...(references ? { References: references } : {}), ...(file ? { $FileNames: [file] } : {}),
      _attachments: { "message.eml": { content_type: "message/rfc822", data: Buffer.from(eml).toString("base64") } },
    };
    await ask("PUT", `${mail(person)}/${id}?folder=Inbox`, memo);
    return id;
  }

  async function mailFile(person) {
    await ask("PUT", `/directory/person:${person}`, { Form: "Person", ShortName: person, FullName: [person], password: ADA });
    await ask("PUT", `${mail(person)}?owner=${person}`);
    await ask("PUT", `${mail(person)}/_properties`, { full_text: true });
    const columns = ["Date DeliveredDate", "From From", "Subject Subject", "Categories Categories"].map((column) => ({ title: column.split(" ")[0], formula: column.split(" ")[1] }));
    columns[0].sort = "asc";
    await ask("PUT", `${mail(person)}/_folder/Inbox`, { columns });
  }

  /** Cookies of those who have signed in before: a password takes the server long to check. */
  const sessions = new Map();

  /** A tab of somebody who has signed in at the client. */
  async function opened(person, place = "mail/Inbox", options = {}) {
    await seed();
    const kept = sessions.get(person);
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", ...(kept ? { storageState: kept } : {}), ...options });
    const page = await tab(context);
    await page.goto(`${base}/_app/#/${place}`);
    if (!kept) {
      await page.locator("input[name=name]").fill(person);
      await page.locator("input[name=password]").fill(ADA);
      await page.keyboard.press("Enter");
    }
    await page.waitForSelector(".mail-shell main h1");
    sessions.set(person, { cookies: await context.cookies(), origins: [] });
    return { context, page };
  }

  /** Waits for what the server does by itself. */
  async function until(holds) {
    for (let round = 0; !(await holds()); round++) {
      assert.ok(round < 300, "it did not come");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  const row = (page, text) => page.locator(".grid-body .row", { hasText: text }).first();

  let seeded;
  /** What all steps read, made once. */
  const seed = () => (seeded ??= seedMail());

  async function seedMail() {
    for (const person of ["ada", "bob", "carl"]) await mailFile(person);
    const first = await deliver("ada", { subject: "Lunch on Friday", text: "Shall we?\nSee https://menu.example/today.\n\n> you asked" });
    await deliver("ada", { subject: "Re: Lunch on Friday", text: "Or on Thursday?", references: [`<${first}@elsewhere.example>`] });
    for (let index = 0; index < 12; index++) await deliver("ada", { subject: `Report ${index}`, text: `The zebra report ${index}.`, html: `<p>The zebra <b>report</b> ${index}.</p><img src="https://tracker.example/p.gif" alt="Logo">` });
  }

  step("mail: by keyboard alone a memo is opened, answered, taken back, sent, and archived", async () => {
    const { context, page } = await opened("ada");
    await row(page, "Report 11").waitFor();
    await page.locator('.grid-body [tabindex="0"]').focus();
    await page.keyboard.press("Enter");
    await page.locator(".reader h2", { hasText: "Report 11" }).waitFor();
    await page.keyboard.press("j");
    await page.locator(".reader h2", { hasText: "Report 10" }).waitFor();
    await page.keyboard.press("e");
    await page.locator(".message", { hasText: "moved to Archive" }).waitFor();
    await page.locator(".reader h2", { hasText: "Report 9" }).waitFor();
    await page.keyboard.press("z");
    await row(page, "Report 10").waitFor();
    await page.keyboard.press("r");
    await page.locator(".composer textarea:focus").waitFor();
    await page.keyboard.type("Thank you. See the attachment.");
    await page.locator(".composer input").first().fill("bob");
    await page.keyboard.press("Control+Enter");
    await page.getByText("speaks of a file").waitFor();
    await page.keyboard.press("Control+Enter");
    await page.locator(".message", { hasText: "goes in ten seconds" }).getByRole("button", { name: "Undo" }).click();
    await page.locator(".composer").waitFor();
    await page.locator(".composer textarea").focus();
    await page.keyboard.press("Control+Enter");
    await page.keyboard.press("Control+Enter");
    await page.locator(".message", { hasText: "goes in ten seconds" }).waitFor();
    // It goes although the page is closed.
    await context.close();
    await until(async () => (await ask("GET", `${mail("bob")}/_folder`)).folders.some(({ name, total }) => name === "Inbox" && total > 0));
    const all = await ask("GET", `${mail("bob")}/_folder/Inbox?include_docs=true`);
    assert.ok(all.rows.length >= 1);
    assert.match(all.rows[0].doc.Body, /^Thank you[\s\S]*> The zebra report 9/);
    const folders = (await ask("GET", `${mail("ada")}/_folder`)).folders;
    const count = (name) => folders.find((folder) => folder.name === name)?.total;
    assert.deepEqual([count("Sent") >= 1, count("Drafts"), count("Archive")], [true, 0, 0]);
  });

  step("mail: what comes is seen at once, and a page that is looked at asks for nothing", async () => {
    const { context, page } = await opened("ada");
    await row(page, "Report 11").waitFor();
    await page.waitForTimeout(1500);
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.waitForTimeout(3000);
    assert.deepEqual(asked, []);
    const began = Date.now();
    const subject = `Came ${++number}`;
    await deliver("ada", { subject, text: "Now." });
    await row(page, subject).waitFor();
    assert.ok(Date.now() - began < 10_000);
    await context.close();
  });

  step("mail: a draft is there after the page is loaded again, and its file with it", async () => {
    const { context, page } = await opened("ada");
    await page.keyboard.press("c");
    await page.locator(".composer input:focus").waitFor();
    await page.keyboard.type("bob");
    await page.locator(".composer textarea").fill("A long letter.");
    await page.locator(".composer input[type=file]").setInputFiles({ name: "numbers.csv", mimeType: "text/csv", buffer: Buffer.from("1,2") });
    await page.locator(".composer .pill", { hasText: "numbers.csv" }).waitFor();
    await page.locator(".composer textarea").fill("A longer letter.");
    await page.locator(".composer [role=status]", { hasText: "Draft kept" }).waitFor();
    await page.waitForTimeout(3500);
    await page.reload();
    await page.waitForSelector(".mail-shell main h1");
    await page.keyboard.press("g");
    await page.keyboard.press("d");
    await row(page, "bob").click();
    await page.locator(".composer .pill", { hasText: "numbers.csv" }).waitFor();
    assert.equal(await page.locator(".composer textarea").inputValue(), "A longer letter.");
    await page.getByRole("button", { name: "Discard" }).click();
    await page.locator(".composer").waitFor({ state: "detached" });
    await context.close();
  });

  step("mail: memos are selected, moved, starred and found; a conversation holds together", async () => {
    const { context, page } = await opened("ada");
    await row(page, "Report 8").locator("input[type=checkbox]").click();
    await row(page, "Report 7").locator("input[type=checkbox]").click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.locator(".message", { hasText: "2 memos were moved to Trash" }).waitFor();
    await page.locator(".message", { hasText: "moved to Trash" }).getByRole("button", { name: "Undo" }).click();
    await row(page, "Report 8").waitFor();
    await row(page, "Report 6").getByRole("button", { name: /^Star/ }).click();
    await row(page, "Report 6").locator(".star.on").waitFor();
    await row(page, "Re: Lunch").click();
    await page.getByText("One other memo in this conversation").waitFor();
    await page.locator(".conversation li a").first().click();
    await page.locator(".reader h2", { hasText: /^Lunch on Friday/ }).waitFor();
    assert.equal(await page.locator(".plain-body a").getAttribute("href"), "https://menu.example/today");
    await page.keyboard.press("/");
    await page.keyboard.type("zebra subject:report");
    await page.keyboard.press("Enter");
    await page.locator(".hits li").nth(5).waitFor();
    await page.locator(".hits li a", { hasText: /^Grace.*Report 3/s }).first().click();
    await page.locator(".reader h2", { hasText: /^Report 3/ }).waitFor();
    await page.getByText("A picture of other servers").waitFor();
    await context.close();
  });

  step("mail: an answer while one is away is set, and so are scripts", async () => {
    const { context, page } = await opened("bob");
    const menu = async (name) => {
      await page.locator("button.account").click();
      await page.getByRole("button", { name }).click();
      return page.locator("dialog", { has: page.getByRole("heading", { name }) });
    };
    const scripts = await menu("Sieve scripts");
    await scripts.getByLabel("Name of the script").fill("sorted");
    await scripts.getByLabel("Text of the script").fill('require "fileinto"; fileinto "Work;');
    await scripts.getByLabel("It runs for all mail that comes").check();
    await scripts.getByRole("button", { name: "Save" }).click();
    await scripts.getByRole("alert").waitFor();
    await scripts.getByLabel("Text of the script").fill('require "fileinto"; fileinto "Work";');
    await scripts.getByRole("button", { name: "Save" }).click();
    await page.locator(".message", { hasText: "Your scripts are saved." }).waitFor();
    const away = await menu("Out of office");
    await away.getByLabel("Answer for me while I am away").check();
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document.querySelector("dialog"), { resultTypes: ["violations"] }));
    assert.deepEqual(violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id }) => id), []);
    await away.getByLabel("From (day)").fill("2026-12-20");
    await away.getByLabel("Text", { exact: true }).fill('I am "away".\n<script>top.harmed=1</script>');
    await away.getByRole("button", { name: "Save" }).click();
    await page.locator(".message", { hasText: "answered while you are away" }).waitFor();
    const kept = await ask("GET", `${mail("bob")}/sieve:scripts`);
    assert.equal(kept.Active, "Out of office");
    assert.match(kept.Scripts["Out of office"], /include :personal :optional "sorted";/);
    // It is there again, and another text than the one that was read is no loss.
    const again = await menu("Out of office");
    assert.equal(await again.getByLabel("Text", { exact: true }).inputValue(), 'I am "away".\n<script>top.harmed=1</script>');
    await again.getByLabel("Answer for me while I am away").uncheck();
    await again.getByRole("button", { name: "Save" }).click();
    await page.locator(".message", { hasText: "not answered" }).waitFor();
    assert.equal((await ask("GET", `${mail("bob")}/sieve:scripts`)).Active, "sorted");
    await context.close();
  });

  step("mail: a long folder is opened anywhere", async () => {
    await seed();
    await ask("PUT", `${mail("carl")}/_folder/Large`, { columns: [{ title: "Date", formula: "DeliveredDate", sort: "asc" }, { title: "From", formula: "From" }, { title: "Subject", formula: "Subject" }] });
    for (let from = 0; from < ROWS; from += 10_000) {
      const docs = Array.from({ length: 10_000 }, (_, index) => ({ _id: `l${String(from + index).padStart(6, "0")}`, Form: "Memo", From: "Grace <g@x.example>", Subject: `Memo ${from + index}`, DeliveredDate: new Date(Date.UTC(2020, 0, 1) + (from + index) * 60_000).toISOString() }));
      await ask("POST", `${mail("carl")}/_bulk_docs?folder=Large`, { docs });
    }
    const { context, page } = await opened("carl", "mail/Large");
    await row(page, `Memo ${ROWS - 1}`).waitFor({ timeout: INDEXED_WITHIN_MS });
    assert.ok((await page.locator(".grid-body .row").count()) < 120, "too many rows are made");
    await page.locator('.grid-body [tabindex="0"]').focus();
    await page.keyboard.press("End");
    await row(page, "Memo 0").waitFor();
    await page.keyboard.press("Home");
    await row(page, `Memo ${ROWS - 1}`).waitFor();
    await context.close();
  });

  /** Answers of CalDAV and CardDAV for somebody. */
  async function dav(person, method, path, body, headers = {}) {
    const answer = await fetch(`${base}/_dav/${path}`, { method, body, headers: { authorization: `Basic ${Buffer.from(`${person}:${ADA}`).toString("base64")}`, ...headers } });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return text;
  }

  const event = (uid, lines) => `BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\nBEGIN:VEVENT\r\nUID:${uid}\r\nDTSTAMP:20261101T000000Z\r\n${lines.map((line) => `${line}\r\n`).join("")}END:VEVENT\r\nEND:VCALENDAR\r\n`;
  const chip = (page, text) => page.locator(".calendar-page .chip", { hasText: text });

  step("calendar: events are made, changed, moved by the mouse, one of a series alone, and brought back", async () => {
    const { context, page } = await opened("ada", "calendar/week/2026-11-25", { timezoneId: "Europe/Berlin" });
    await dav("ada", "PROPFIND", "calendars/ada/", undefined, { depth: "1" });
    const subject = `Board meeting ${++number}`;
    await page.keyboard.press("c");
    await page.getByLabel("Title").fill(subject);
    await page.getByLabel("First day").fill("2026-11-25");
    await page.getByLabel("From", { exact: true }).fill("10:00");
    await page.getByLabel("Until", { exact: true }).fill("11:30");
    await page.getByLabel("Repeats").selectOption("WEEKLY");
    await page.getByLabel("Place").fill("Room 1");
    await page.keyboard.press("Enter");
    await chip(page, subject).waitFor();
    await page.getByRole("button", { name: "Later" }).click();
    await page.locator("h1", { hasText: "30 November" }).waitFor();
    await chip(page, subject).click();
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("This one alone").waitFor();
    await page.getByLabel("From", { exact: true }).fill("15:00");
    await page.getByLabel("Until", { exact: true }).fill("16:30");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".hours .chip", { hasText: `${subject} 15:00` }).waitFor();
    await page.getByRole("button", { name: "Later" }).click();
    await page.locator(".hours .chip", { hasText: `${subject} 10:00` }).waitFor();
    // By the mouse, to the next day: the question is for one or all.
    const from = await chip(page, subject).boundingBox();
    await page.mouse.move(from.x + 20, from.y + 10);
    await page.mouse.down();
    await page.mouse.move(from.x + 20 + from.width, from.y + 12, { steps: 5 });
    await page.mouse.up();
    await page.getByRole("button", { name: "All of the series" }).click();
    await page.locator(".message", { hasText: "The event is moved." }).waitFor();
    await page.locator('.hours[data-day="2026-12-10"] .chip', { hasText: subject }).waitFor();
    await page.keyboard.press("m");
    // The one that somebody gave a time of its own keeps that.
    await page.locator('.month td[data-day="2026-12-02"] .chip', { hasText: subject }).waitFor();
    await page.locator('.month td[data-day="2026-12-17"] .chip', { hasText: subject }).click();
    await page.getByRole("button", { name: "Delete this one", exact: true }).click();
    await page.locator('.month td[data-day="2026-12-17"] .chip', { hasText: subject }).waitFor({ state: "detached" });
    await page.locator('.month td[data-day="2026-12-24"] .chip', { hasText: subject }).waitFor();
    await page.keyboard.press("z");
    await page.locator('.month td[data-day="2026-12-17"] .chip', { hasText: subject }).waitFor();
    // What a phone finds: the series in its zone, with one exception.
    const stored = await dav("ada", "REPORT", "calendars/ada/calendar/", '<c:calendar-query xmlns="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><prop><c:calendar-data/></prop><c:filter><c:comp-filter name="VCALENDAR"/></c:filter></c:calendar-query>', { depth: "1", "content-type": "application/xml" });
    assert.match(stored, /DTSTART;TZID=Europe\/Berlin:20261126T100000/);
    assert.match(stored, /RECURRENCE-ID;TZID=Europe\/Berlin:20261203T100000/);
    await context.close();
  });

  step("calendar: an invitation is shown in its memo, and put into the calendar", async () => {
    const { context, page } = await opened("bob", "mail/Inbox", { timezoneId: "Europe/Berlin" });
    await dav("bob", "PROPFIND", "calendars/bob/", undefined, { depth: "1" });
    const uid = `invitation-${++number}`;
    const invitation = event(uid, ["DTSTART:20261203T090000Z", "DTEND:20261203T100000Z", `SUMMARY:${HOSTILE_HEAD[0]}`, "LOCATION:Room 2", 'ORGANIZER;CN="<script>top.harmed=1</script>":mailto:grace@elsewhere.example', "ATTENDEE;PARTSTAT=ACCEPTED;CN=Bob:mailto:bob@acme.example"]).replace("VERSION:2.0", "VERSION:2.0\r\nMETHOD:REQUEST");
    const id = await deliver("bob", { subject: "Planning", text: "Please come.", invitation });
    await page.goto(`${base}/_app/#/mail/Inbox/${id}`);
    await page.locator(".invitation", { hasText: "You are invited to" }).waitFor();
    await page.locator(".invitation", { hasText: /3 December 2026.*10:00.*11:00/ }).waitFor();
    assert.equal(await page.evaluate(() => window.harmed), undefined);
    await page.getByRole("button", { name: "Put it into my calendar" }).click();
    await page.locator(".message", { hasText: "in your calendar" }).waitFor();
    await page.goto(`${base}/_app/#/calendar/day/2026-12-03`);
    await page.locator(".hours .chip", { hasText: HOSTILE_HEAD[0] }).first().waitFor();
    await context.close();
  });

  step("calendar: an invitation is answered in its memo, and who called hears it", async () => {
    const [host, guest] = [`lea${++number}`, `max${number}`];
    await seed();
    for (const name of [host, guest]) await ask("PUT", `/directory/person:${name}`, { Form: "Person", ShortName: name, FullName: [name], InternetAddress: `${name}@meet.example`, password: ADA });
    for (const name of [host, guest]) await dav(name, "PROPFIND", `calendars/${name}/`, undefined, { depth: "1" });
    const own = `calendars/${host}/calendar/plan.ics`;
    const meeting = event(`plan-${number}`, ["DTSTART:20261203T090000Z", "DTEND:20261203T100000Z", "SUMMARY:The plan", `ORGANIZER:mailto:${host}@meet.example`, `ATTENDEE;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:${guest}@meet.example`]);
    await dav(host, "PUT", own, meeting, { "content-type": "text/calendar" });
    const arrived = async () => (await ask("GET", `${mail(guest)}/_folder/Inbox?limit=1`).catch(() => ({ rows: [] }))).rows[0]?.id;
    let id;
    for (let tries = 0; tries < 300 && !id; tries++) {
      id = await arrived();
      if (!id) await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const { context, page } = await opened(guest, `mail/Inbox/${id}`);
    await page.locator(".invitation").getByRole("button", { name: "Accept", exact: true }).click();
    await page.locator(".message", { hasText: "Your answer is on its way" }).waitFor();
    let stored = "";
    for (let tries = 0; tries < 300 && !stored.includes("PARTSTAT=ACCEPTED"); tries++) {
      stored = (await dav(host, "GET", own)).replace(/\r\n /g, "");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.match(stored, /PARTSTAT=ACCEPTED/);
    await context.close();
  });

  /** A Wednesday that is still to come, so that a time may be looked for in it. */
  function comingWednesday() {
    const day = new Date(Date.now() + 20 * 86_400_000);
    day.setUTCDate(day.getUTCDate() + ((3 - day.getUTCDay() + 7) % 7));
    return day.toISOString().slice(0, 10);
  }

  /** Opens the directory for somebody while something is done. */
  async function withDirectory(name, work) {
    const before = await ask("GET", "/directory/_security");
    await ask("PUT", "/directory/_security", { ...before, members: { names: [name] } });
    try {
      await work();
    } finally {
      await ask("PUT", "/directory/_security", before);
    }
  }

  const addressed = (name, more = {}) => ask("PUT", `/directory/person:${name}`, { Form: "Person", ShortName: name, FullName: [`${name} Someone`], InternetAddress: `${name}@meet.example`, password: ADA, ...more });

  step("calendar: by keyboard people and a room are invited, at a time that is free for all", async () => {
    await seed();
    const [host, guest, room, taken] = ["host", "guest", "hall", "cellar"].map((word) => `${word}${++number}`);
    for (const name of [host, guest]) await addressed(name);
    for (const [name, seats] of [[room, 4], [taken, 3]]) await addressed(name, { Resource: "room", Site: "Berlin", Capacity: seats, password: undefined });
    for (const name of [host, guest]) await dav(name, "PROPFIND", `calendars/${name}/`, undefined, { depth: "1" });
    const day = comingWednesday();
    const civil = (time) => `${day.replaceAll("-", "")}T${time}00`;
    await dav(guest, "PUT", `calendars/${guest}/calendar/busy.ics`, event(`busy-${number}`, [`DTSTART;TZID=Europe/Berlin:${civil("1000")}`, "DURATION:PT1H", "SUMMARY:Secret"]), { "content-type": "text/calendar" });
    await withDirectory(host, async () => {
      const { context, page } = await opened(host, `calendar/day/${day}`, { timezoneId: "Europe/Berlin" });
      await page.locator(".hours-body").waitFor();
      await page.keyboard.press("c");
      await page.locator("dialog input:focus").waitFor();
      await page.keyboard.type("Budget");
      await page.getByLabel("From", { exact: true }).fill("10:00");
      await page.getByLabel("Until", { exact: true }).fill("11:00");
      await page.getByLabel("Invite", { exact: true }).focus();
      await page.keyboard.type(guest.slice(0, -1));
      await page.locator("dialog [role=option]", { hasText: `${guest} Someone` }).waitFor();
      await page.keyboard.press("Enter");
      const rowOf = (name) => page.locator("dialog .invite > .invited li", { hasText: name });
      await rowOf(guest).locator(".pill.bad", { hasText: "busy" }).waitFor();
      assert.equal(await page.locator("dialog", { hasText: "Secret" }).count(), 0);
      await page.getByRole("button", { name: "Next time that is free for all" }).focus();
      await page.keyboard.press("Enter");
      await rowOf(guest).locator(".pill.good", { hasText: "free" }).waitFor();
      assert.equal(await page.getByLabel("From", { exact: true }).inputValue(), "11:00");
      await page.locator(".rooms summary").focus();
      await page.keyboard.press("Enter");
      await page.getByLabel("Seats, at least").fill("4");
      await page.keyboard.press("Tab");
      await page.locator(".rooms li", { hasText: taken }).waitFor({ state: "detached" });
      await page.getByRole("button", { name: `Book ${room} Someone` }).click();
      await rowOf(room).locator(".pill.good", { hasText: "free" }).waitFor();
      assert.equal(await page.getByLabel("Place").inputValue(), `${room} Someone`);
      await page.getByRole("button", { name: "Save" }).click();
      await page.locator(".hours .chip", { hasText: "Budget 11:00" }).waitFor();
      await context.close();
    });
    const query = '<c:calendar-query xmlns="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><prop><c:calendar-data/></prop><c:filter><c:comp-filter name="VCALENDAR"/></c:filter></c:calendar-query>';
    const stored = async (name) => (await dav(name, "REPORT", `calendars/${name}/calendar/`, query, { depth: "1", "content-type": "application/xml" })).replace(/&#13;|\r/g, "").replace(/\n /g, "");
    await until(async () => new RegExp(`ATTENDEE[^\n]*PARTSTAT=ACCEPTED[^\n]*mailto:${room}@`).test(await stored(host)));
    const own = await stored(host);
    assert.match(own, /BEGIN:VTIMEZONE\nTZID:Europe\/Berlin/);
    assert.ok(own.includes(`ORGANIZER:mailto:${host}@meet.example`) || own.includes(`:mailto:${host}@meet.example`));
    await until(async () => (await stored(guest)).includes("Budget"));
  });

  step("calendar: a series is changed and deleted from one of it on, and brought back", async () => {
    const { context, page } = await opened("ada", "calendar/month/2027-03-01", { timezoneId: "Europe/Berlin" });
    await dav("ada", "PROPFIND", "calendars/ada/", undefined, { depth: "1" });
    const subject = `Choir ${++number}`;
    await dav("ada", "PUT", `calendars/ada/calendar/choir-${number}.ics`, event(`choir-${number}`, ["DTSTART;TZID=Europe/Berlin:20270302T100000", "DTEND;TZID=Europe/Berlin:20270302T110000", "RRULE:FREQ=WEEKLY;COUNT=5", `SUMMARY:${subject}`]), { "content-type": "text/calendar" });
    await page.reload();
    const at = (day) => page.locator(`.month td[data-day="${day}"] .chip`, { hasText: subject });
    await at("2027-03-16").click();
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("This one and those after it").check();
    await page.getByLabel("From", { exact: true }).fill("15:00");
    await page.getByLabel("Until", { exact: true }).fill("16:00");
    await page.getByRole("button", { name: "Save" }).click();
    for (const [day, time] of [["2027-03-02", "10:00"], ["2027-03-09", "10:00"], ["2027-03-16", "15:00"], ["2027-03-23", "15:00"], ["2027-03-30", "15:00"]]) await at(day).filter({ hasText: time }).waitFor();
    assert.equal(await page.locator(".month .chip", { hasText: subject }).count(), 5);
    await at("2027-03-23").click();
    await page.getByRole("button", { name: "Delete this one and those after it" }).click();
    await at("2027-03-23").waitFor({ state: "detached" });
    await at("2027-03-30").waitFor({ state: "detached" });
    await at("2027-03-16").waitFor();
    await page.keyboard.press("z");
    await at("2027-03-30").waitFor();
    await context.close();
  });

  step("calendar: to-dos are added, done, dated and deleted by keyboard", async () => {
    const { context, page } = await opened("ada", "calendar/todos");
    const subject = `Buy bread ${++number}`;
    await page.getByLabel("What is to be done?").fill(subject);
    await page.keyboard.press("Enter");
    const todo = page.locator(".todos li", { hasText: subject });
    await todo.waitFor();
    await todo.getByRole("button").focus();
    await page.keyboard.press("Enter");
    await page.getByLabel("Until (empty: any time)").fill("2020-02-03");
    await page.getByRole("button", { name: "Save" }).focus();
    await page.keyboard.press("Enter");
    await todo.locator(".pill.bad", { hasText: "late" }).waitFor();
    await todo.getByRole("checkbox").focus();
    await page.keyboard.press("Space");
    await todo.waitFor({ state: "detached" });
    await page.locator("h1").click();
    await page.keyboard.press("z");
    await todo.waitFor();
    await todo.getByRole("button").click();
    await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
    await page.locator(".message", { hasText: "The to-do is deleted." }).waitFor();
    await todo.waitFor({ state: "detached" });
    await context.close();
  });

  step("calendar: a passkey is added, and signs in", async () => {
    const own = `fay${++number}`;
    await seed();
    await ask("PUT", `/directory/person:${own}`, { Form: "Person", ShortName: own, FullName: [own], password: ADA });
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB" });
    const page = await tab(context);
    const session = await context.newCDPSession(page);
    await session.send("WebAuthn.enable");
    await session.send("WebAuthn.addVirtualAuthenticator", { options: { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true } });
    // Passkeys belong to a host with a name.
    const named = base.replace("127.0.0.1", "localhost");
    await page.goto(`${named}/_app/#/settings`);
    await page.locator("input[name=name]").fill(own);
    await page.locator("input[name=password]").fill(ADA);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Add a passkey" }).focus();
    await page.keyboard.press("Enter");
    await page.getByLabel("Name of the device").fill("laptop");
    await page.keyboard.press("Enter");
    await page.locator(".message", { hasText: "The passkey is added." }).waitFor();
    await context.clearCookies();
    await page.reload();
    await page.getByRole("button", { name: "Sign in with a passkey" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("section", { hasText: "Passkeys" }).locator("tr", { hasText: "laptop" }).waitFor();
    await page.getByRole("button", { name: "Remove laptop" }).click();
    await page.locator(".message", { hasText: "opens nothing any more" }).waitFor();
    await context.clearCookies();
    await page.reload();
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await page.getByText("This passkey opens no account here.").waitFor();
    await context.close();
  });

  step("calendar: one's own password, second factor, app passwords and sessions are set by keyboard", async () => {
    const [own, name] = [`dora${++number}`, { exact: true }];
    await seed();
    await ask("PUT", `/directory/person:${own}`, { Form: "Person", ShortName: own, FullName: [own], password: ADA });
    const other = await opened(own, "settings");
    sessions.delete(own);
    const { context, page } = await opened(own, "settings");
    await page.getByLabel("Language of notices by mail").selectOption("de");
    await page.getByRole("button", { name: "Save", ...name }).click();
    await page.locator(".message", { hasText: "Saved." }).waitFor();
    assert.equal((await ask("GET", `/directory/person:${own}`)).Language, "de");
    await page.getByRole("button", { name: "New app password" }).focus();
    await page.keyboard.press("Enter");
    await page.getByLabel("Program or device").fill("phone");
    await page.keyboard.press("Enter");
    const text = await page.locator("dialog .secret code").textContent();
    const tried = await fetch(`${base}/_dav/calendars/${own}/`, { method: "PROPFIND", headers: { depth: "0", authorization: `Basic ${Buffer.from(`${own}:${text}`).toString("base64")}` } });
    assert.equal(tried.status, 207);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "Revoke phone" }).click();
    await page.getByText("There are no app passwords.").waitFor();
    await page.locator("tr", { hasText: "this one" }).waitFor();
    await page.getByRole("button", { name: /^Sign out there/ }).first().click();
    await page.locator(".message", { hasText: "The session has ended." }).waitFor();
    await other.page.getByRole("button", { name: "Set up" }).click();
    await other.page.locator("dialog input[name=password]").waitFor();
    await other.context.close();
    // A code of the authenticator that the page shows.
    await page.locator("section", { hasText: "Second factor" }).getByRole("button", { name: "Set up" }).click();
    await page.locator("dialog .qr path").waitFor();
    const secret = await page.locator("dialog .secret code").textContent();
    await page.getByLabel("The code that it shows now").fill(codeOf(secret));
    await page.keyboard.press("Enter");
    await page.locator(".codes li").nth(9).waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("10 recovery codes are left").waitFor();
    await page.locator("section", { hasText: "Second factor" }).getByRole("button", { name: "Turn off" }).click();
    await page.locator(".message", { hasText: "The second factor is off." }).waitFor();
    // Another password, after the one before was shown once more.
    await page.getByLabel("New password", { exact: true }).fill("another-long-one");
    await page.getByLabel("The new password again").fill("another-long-one");
    await page.keyboard.press("Enter");
    await page.locator("dialog input[name=password]").fill(ADA);
    await page.keyboard.press("Enter");
    await page.locator(".message", { hasText: "Your password is changed." }).waitFor();
    const login = (password) => fetch(`${base}/_session`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name: own, password }) });
    assert.deepEqual([(await login(ADA)).status, (await login("another-long-one")).status], [401, 200]);
    await context.close();
  });

  step("calendar: a full month, with events in other zones, of whole days and of strangers, is read", async () => {
    const { context, page } = await opened("carl", "calendar/agenda/2026-03-27", { timezoneId: "Europe/Berlin" });
    await dav("carl", "PROPFIND", "calendars/carl/", undefined, { depth: "1" });
    const put = (uid, lines) => dav("carl", "PUT", `calendars/carl/calendar/${uid}.ics`, event(uid, lines), { "content-type": "text/calendar" });
    await put("tokyo", ["DTSTART;TZID=Asia/Tokyo:20260328T090000", "DTEND;TZID=Asia/Tokyo:20260328T100000", "SUMMARY:Tokyo calls"]);
    await put("days", ["DTSTART;VALUE=DATE:20260328", "DTEND;VALUE=DATE:20260331", "SUMMARY:Fair"]);
    await put("summer", ["DTSTART;TZID=Europe/Berlin:20260327T090000", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=4", "SUMMARY:Stand-up"]);
    for (const [index, text] of HOSTILE_HEAD.entries()) await put(`hostile-${index}`, ["DTSTART:20260401T120000Z", "DTEND:20260401T130000Z", `SUMMARY:${text}`, `LOCATION:${text}`, `DESCRIPTION:${text} javascript:top.harmed=1 https://ok.example/"onclick="x`, `ORGANIZER;CN="${text.replaceAll('"', "'")}":javascript:top.harmed=1`, "ATTACH:javascript:top.harmed=1", "URL:javascript:top.harmed=1"]);
    await page.reload();
    await page.locator(".chip", { hasText: "01:00 – 02:00Tokyo calls" }).waitFor();
    assert.equal(await page.locator(".agenda .chip", { hasText: "09:00 – 10:00Stand-up" }).count(), 4);
    assert.equal(await page.locator(".agenda .chip", { hasText: "Fair" }).count(), 3);
    for (const text of HOSTILE_HEAD) {
      await page.locator(".agenda .chip", { hasText: text }).first().click();
      await page.locator("dialog .event-card").waitFor();
      await page.keyboard.press("Escape");
    }
    assert.equal(await page.evaluate(() => window.harmed), undefined);
    const may = (index) => put(`may-${index}`, [`DTSTART:202605${String((index % 28) + 1).padStart(2, "0")}T${String(6 + (index % 12)).padStart(2, "0")}0000Z`, "DURATION:PT45M", `SUMMARY:May ${index}`]);
    for (let first = 0; first < MONTH_EVENTS; first += 50) await Promise.all(Array.from({ length: 50 }, (_, index) => may(first + index)));
    await page.goto(`${base}/_app/#/calendar/month/2026-05-01`);
    await page.locator('td[data-day="2026-05-04"] .chip.rest').waitFor();
    assert.ok((await page.locator(".month .chip").count()) < 250, "too many events are made");
    await page.locator('td[tabindex="0"]').focus();
    await page.keyboard.press("ArrowDown");
    await page.locator('td[data-day="2026-05-08"]:focus').waitFor();
    await page.keyboard.press("Enter");
    await page.locator('.hours[data-day="2026-05-08"] .chip').first().waitFor();
    await context.close();
  });

  step("calendar: a database's views and documents are read by who may, and by nobody else", async () => {
    const { context, page } = await opened("ada", "databases");
    const club = `club-${++number}`;
    await ask("PUT", `/${club}`);
    await ask("PUT", `/${club}/_acl`, { default: { level: "no_access" }, entries: [{ name: "ada", level: "reader" }] });
    const columns = [{ title: "Kind", formula: "Kind", category: true }, { title: "Subject", formula: "Subject", sort: "asc" }, { title: "Price", formula: "Price", total: true }];
    await ask("PUT", `/${club}/_design/all`, { language: "formula", views: { kinds: { columns } } });
    for (const [kind, subject] of [["Book", "Anna"], ["Book", "Emma"], ["Film", HOSTILE_HEAD[0]]]) await ask("POST", `/${club}`, { Kind: kind, Subject: subject, Price: 5, Secret: HOSTILE_HEAD[3] });
    await ask("POST", `/${club}`, { Kind: "Hidden", Subject: "Nobody's", Readers: ["bob"] });
    await page.getByLabel("Name of the database").fill(club);
    await page.keyboard.press("Enter");
    await page.locator(".row", { hasText: "Book" }).waitFor();
    assert.equal(await page.locator(".row", { hasText: "Hidden" }).count(), 0);
    await page.locator('.grid-body [tabindex="0"]').focus();
    await page.keyboard.press("ArrowRight");
    await page.locator(".row", { hasText: "Emma" }).click();
    await page.locator("article h2", { hasText: "Emma" }).waitFor();
    await page.locator("article td", { hasText: HOSTILE_HEAD[3] }).waitFor();
    assert.equal(await page.evaluate(() => window.harmed), undefined);
    await page.keyboard.press("Escape");
    await page.locator("article").waitFor({ state: "detached" });
    await context.close();
    const other = await opened("bob", "databases");
    await other.page.getByLabel("Name of the database").fill(club);
    await other.page.keyboard.press("Enter");
    await other.page.getByText("Database does not exist.").waitFor();
    await other.context.close();
  });

  step("calendar: a contact is added, offered where one writes, changed elsewhere without loss, and deleted", async () => {
    const { context, page } = await opened("ada", "contacts");
    await page.getByRole("button", { name: "New contact" }).click();
    await page.getByLabel("First name").fill("Grace");
    await page.getByLabel("Last name").fill("Hopper, Rear Admiral");
    await page.getByLabel("Addresses").fill("grace@navy.example\ngrace@home.example");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".contact h2", { hasText: "Grace" }).waitFor();
    await page.getByRole("button", { name: "Write to grace@navy.example" }).click();
    const to = page.getByLabel("To", { exact: true });
    assert.equal(await to.inputValue(), '"Grace Hopper, Rear Admiral" <grace@navy.example>, ');
    await to.focus();
    await page.keyboard.press("End");
    await page.keyboard.type("hop");
    await page.locator(".offers [role=option]", { hasText: "grace@home.example" }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    assert.match(await to.inputValue(), /, "Grace Hopper, Rear Admiral" <grace@home\.example>, $/);
    await page.getByRole("button", { name: "Discard" }).click();
    await page.keyboard.press("e");
    await page.getByLabel("Company").fill("Navy");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".contact p", { hasText: "Navy" }).waitFor();
    await page.locator(".contact").getByRole("button", { name: "Delete" }).click();
    await page.locator(".message", { hasText: "deleted" }).getByRole("button", { name: "Undo" }).click();
    await page.locator(".grid-body .row", { hasText: "Grace" }).waitFor();
    await context.close();
  });

  step("mail: messages of strangers run nothing, load nothing and stay in their frame", async () => {
    const { context, page } = await opened("bob");
    const ids = [];
    for (const [index, html] of HOSTILE_HTML.entries()) ids.push([await deliver("bob", { subject: `html ${index}`, html }), true]);
    for (const text of HOSTILE_TEXT) ids.push([await deliver("bob", { subject: "text", text }), false]);
    for (const head of HOSTILE_HEAD) ids.push([await deliver("bob", { subject: head, from: `${head} <eve@evil.example>`, text: head, file: head }), false]);
    for (const [id, hasFrame] of ids) {
      await page.goto(`${base}/_app/#/mail/Inbox/${id}`);
      await page.locator(`.reader ${hasFrame ? "iframe.body" : ".plain-body"}`).waitFor();
      if (hasFrame) await page.frameLocator("iframe.body").locator("body").waitFor();
      assert.equal(page.frames().length, hasFrame ? 2 : 1, id);
    }
    await page.waitForTimeout(500);
    assert.equal(await page.evaluate(() => window.harmed), undefined);
    assert.match(page.url(), /\/_app\/#\/mail\/Inbox\//);
    // The page of a message alone, as somebody would send its address.
    await page.goto(`${base}${mail("bob")}/${ids[0][0]}/_body`);
    assert.equal(await page.evaluate(() => window.harmed), undefined);
    await context.close();
  });

  /** Looks for what axe calls serious on places in both themes, and for what is wider than a phone. */
  async function inspect(person, places, prepare = async () => undefined) {
    const found = [];
    for (const [colorScheme, width] of [["light", 1280], ["dark", 1280], ["light", 320]]) {
      const { context, page } = await opened(person, "mail/Inbox", { colorScheme, viewport: { width, height: 800 } });
      for (const place of places) {
        await page.goto(`${base}/_app/#/${place}`);
        await page.waitForTimeout(400);
        await prepare(page, place);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (wide > 0) found.push(`${place} is ${wide} pixels too wide at ${width}`);
        if (width === 320) continue;
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], iframes: false }));
        for (const { id, impact, nodes } of violations) {
          if (impact === "serious" || impact === "critical") found.push(`${place} (${colorScheme}): ${id} ${nodes.slice(0, 3).map(({ target }) => target.join(" ")).join(", ")}`);
        }
      }
      await context.close();
    }
    assert.deepEqual(found, []);
  }

  step("mail: axe finds nothing serious in both themes, and nothing is wider than a phone", async () => {
    await seed();
    const memo = (await ask("GET", `${mail("ada")}/_folder/Inbox?limit=1&descending=true`)).rows[0].id;
    await inspect("ada", ["mail/Inbox", `mail/Inbox/${memo}`, "search?q=zebra", "mail/Inbox?write"], async (page, place) => {
      if (place.endsWith("write")) await page.locator("button.compose").click();
    });
  });

  step("calendar: people of the directory are offered to who may read it, and to nobody else", async () => {
    const { context, page } = await opened("ada", "mail/Inbox");
    const type = async () => {
      await page.locator("button.compose").click();
      await page.getByLabel("To", { exact: true }).fill("");
      await page.keyboard.type("car");
    };
    const refused = page.waitForResponse((response) => response.url().includes("/_people") && !response.ok());
    await type();
    await refused;
    assert.equal(await page.locator(".offers [role=option]", { hasText: "carl" }).count(), 0);
    const before = await ask("GET", "/directory/_security");
    await ask("PUT", "/directory/_security", { ...before, members: { names: ["ada"] } });
    try {
      await page.reload();
      await page.waitForSelector(".mail-shell main h1");
      await type();
      await page.locator(".offers [role=option]", { hasText: "carl" }).waitFor();
      await page.keyboard.press("Enter");
      assert.equal(await page.getByLabel("To", { exact: true }).inputValue(), "carl, ");
    } finally {
      await ask("PUT", "/directory/_security", before);
    }
    await page.getByRole("button", { name: "Discard" }).click();
    await context.close();
  });

  step("calendar: axe finds nothing serious in both themes, and nothing is wider than a phone", async () => {
    await seed();
    await dav("ada", "PROPFIND", "calendars/ada/", undefined, { depth: "1" });
    for (const uid of ["axe-1", "axe-2"]) await dav("ada", "PUT", `calendars/ada/calendar/${uid}.ics`, event(uid, ["DTSTART:20261126T090000Z", "DTEND:20261126T100000Z", "SUMMARY:Two at once", "RRULE:FREQ=DAILY;COUNT=2"]), { "content-type": "text/calendar" });
    await dav("ada", "PUT", "contacts/ada/contacts/axe.vcf", "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:axe\r\nFN:Grace Hopper\r\nN:Hopper;Grace;;;\r\nEMAIL:grace@axe.example\r\nEND:VCARD\r\n", { "content-type": "text/vcard" });
    await inspect("ada", ["calendar/week/2026-11-26", "calendar/month/2026-11-26", "calendar/agenda/2026-11-26", "calendar/day/2026-11-26", "contacts", `contacts/${encodeURIComponent("/_dav/contacts/ada/contacts/axe.vcf")}`, "settings", "databases"], async (page, place) => {
      if (place.startsWith("calendar/day")) await page.locator(".calendar-head").getByRole("button", { name: "New event" }).click();
    });
  });

  step("calendar: axe finds nothing serious where people are invited, and where one signs in", async () => {
    await seed();
    await addressed("nora");
    await addressed("axehall", { Resource: "room", Site: "Berlin", Capacity: 40, password: undefined });
    await withDirectory("nora", () => inspect("nora", ["calendar/day/2026-11-26", "calendar/todos"], async (page, place) => {
      if (place.endsWith("todos")) return;
      await page.getByRole("button", { name: "New event" }).click();
      await page.getByLabel("Invite", { exact: true }).fill("somebody@elsewhere.example");
      await page.keyboard.press("Enter");
      await page.locator(".rooms summary").click();
      await page.locator(".rooms li").first().waitFor();
    }));
    const context = await browser.newContext();
    const page = await tab(context);
    await page.goto(`${base}/_app/`);
    await page.locator("input[name=name]").waitFor();
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    assert.deepEqual(violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id }) => id), []);
    await context.close();
  });

  step("mail: the files of the first page hold to their budget", async () => {
    const context = await browser.newContext();
    const page = await tab(context);
    const lengths = [];
    page.on("response", (response) => lengths.push(response.allHeaders().then((headers) => Number(headers["content-length"] ?? 0))));
    await page.goto(`${base}/_app`);
    await page.locator("input[name=name]").waitFor();
    assert.match(page.url(), /_app\/$/);
    const bytes = (await Promise.all(lengths)).reduce((sum, length) => sum + length, 0);
    assert.ok(bytes > 1000 && bytes < 90 * 1024, `the first page takes ${bytes} bytes`);
    await context.close();
  });
}
