// The client in a real browser: mail is read, written, moved and found, and messages of strangers do nothing. Run by browser.mjs.

import assert from "node:assert/strict";

/** The first reading of a folder indexes it, in a server built for tests. */
const ROWS = 20_000;
const INDEXED_WITHIN_MS = 60_000;
const ADA = "a-long-one-for-ada";

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

export function clientSteps({ ask, base, browser, tab, axe, step }) {
  const mail = (person) => `/${encodeURIComponent(`mail/${person}`)}`;
  let number = 0;

  /** A memo as SMTP would have brought it. */
  async function deliver(person, { subject, from = "Grace Hopper <grace@elsewhere.example>", text = "", html, file, references }) {
    const at = new Date(Date.UTC(2026, 10, 20) + number++ * 1000).toISOString();
    const id = `memo-${String(number).padStart(6, "0")}`;
    const clean = (value) => value.replace(/[\r\n]/g, " ");
    const parts = [["text/plain; charset=utf-8", text]];
    if (html) parts.push(["text/html; charset=utf-8", html]);
    const kind = html ? "alternative" : "mixed";
    let body = parts.map(([type, content]) => `--b\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(content).toString("base64")}\r\n`).join("");
    if (file) body += `--b\r\nContent-Type: text/html\r\nContent-Disposition: attachment; filename*=UTF-8''${encodeURIComponent(file)}\r\n\r\n<script>top.harmed=1</script>\r\n`;
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
    await page.locator(".message", { hasText: "Sending" }).getByRole("button", { name: "Undo" }).click();
    await page.locator(".composer").waitFor();
    await page.locator(".composer textarea").focus();
    await page.keyboard.press("Control+Enter");
    await page.keyboard.press("Control+Enter");
    await page.locator(".message", { hasText: "The memo was sent." }).waitFor({ timeout: 20_000 });
    const all = await ask("GET", `${mail("bob")}/_folder/Inbox?include_docs=true`);
    assert.ok(all.rows.length >= 1);
    assert.match(all.rows[0].doc.Body, /^Thank you[\s\S]*> The zebra report 9/);
    const folders = (await ask("GET", `${mail("ada")}/_folder`)).folders;
    const count = (name) => folders.find((folder) => folder.name === name)?.total;
    assert.deepEqual([count("Sent") >= 1, count("Drafts"), count("Archive")], [true, 0, 0]);
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

  step("mail: axe finds nothing serious in both themes, and nothing is wider than a phone", async () => {
    const found = [];
    await seed();
    const memo = (await ask("GET", `${mail("ada")}/_folder/Inbox?limit=1&descending=true`)).rows[0].id;
    for (const [colorScheme, width] of [["light", 1280], ["dark", 1280], ["light", 320]]) {
      const { context, page } = await opened("ada", "mail/Inbox", { colorScheme, viewport: { width, height: 800 } });
      for (const place of ["mail/Inbox", `mail/Inbox/${memo}`, "search?q=zebra", "mail/Inbox?write"]) {
        await page.goto(`${base}/_app/#/${place}`);
        await page.waitForTimeout(500);
        if (place.endsWith("write")) await page.locator("button.compose").click();
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
