import assert from "node:assert/strict";
import test from "node:test";
import { cardOf, fits, withFields, written } from "../client/card.ts";
import { fold, parse, textOf, values, write } from "../client/content.ts";
import { answeredBy, changed, durationOf, fieldsOf, invitationOf, newEvent, occurrencesOf, ruleOf, simpleRule, without, type Fields } from "../client/event.ts";
import { columnsOf } from "../client/layout.ts";
import { modulesOf } from "../client/qr.ts";
import { addDays, addMonths, civilAt, daysBetween, instantOf, weekOf } from "../client/zone.ts";

process.env["TZ"] = "Europe/Berlin";
const NOW = Date.UTC(2026, 10, 27, 12);
const calendar = (...lines: string[]) => `BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:u\r\n${lines.map((line) => `${line}\r\n`).join("")}END:VEVENT\r\nEND:VCALENDAR\r\n`;
const linesOf = (source: string) => source.replace(/\r\n /g, "").split("\r\n");

test("what nobody changes is written as it was read", () => {
  const source = calendar('ATTENDEE;MEMBER="mailto:a@x.test","mailto:b@x.test";CN="Ada; L":mailto:c@x.test', "X-ODD;P=a:b:c", "SUMMARY;LANGUAGE=de:Eins\\, zwei", `DESCRIPTION:${"ü".repeat(200)}`);
  assert.equal(linesOf(write(parse(source)!)).join("\n"), linesOf(source).join("\n"));
  for (const line of fold(`DESCRIPTION:${"𝄞ü".repeat(200)}`).split("\r\n")) assert.ok(new TextEncoder().encode(line).length <= 75);
  for (const broken of ["", "x", "BEGIN:VCALENDAR\r\n", "BEGIN:A\r\nEND:B\r\n", "BEGIN:A\r\n".repeat(100)]) assert.equal(parse(broken), undefined);
  assert.deepEqual(values("a\\,b,c\\\\,d,", ","), ["a\\,b", "c\\\\", "d", ""]);
});

test("clocks of zones, over the changes of the hour", () => {
  assert.equal(civilAt(instantOf("2026-07-01T09:00:00", "Asia/Tokyo"), "Europe/Berlin"), "2026-07-01T02:00:00");
  for (const zone of ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "UTC", "Asia/Kathmandu"]) {
    for (let hour = 0; hour < 365 * 24; hour += 7) {
      const ms = Date.UTC(2026, 0, 1, hour);
      const civil = civilAt(ms, zone);
      // An hour that comes twice means the first of the two.
      assert.ok([0, 1_800_000, 3_600_000].includes(ms - instantOf(civil, zone)), `${zone} ${civil}`);
    }
  }
  assert.equal(instantOf("2026-03-29T02:30:00", "Europe/Berlin"), Date.UTC(2026, 2, 29, 1, 30));
  assert.equal(addMonths("2026-01-31", 1), "2026-02-28");
  assert.equal(daysBetween("2026-03-28", addDays("2026-03-28", 3)), 3);
  assert.deepEqual(["2026-01-01", "2027-01-01", "2026-12-31", "2024-12-30"].map(weekOf), [1, 53, 53, 1]);
});

test("what the server sends of an event is shown by this device's clock", () => {
  const [event] = occurrencesOf(calendar("DTSTART:20261127T090000Z", "DURATION:PT1H30M", "SUMMARY:a\\nb", "TRANSP:TRANSPARENT", "CLASS:PRIVATE"), "/h", "/c");
  assert.deepEqual([event!.from, event!.to, event!.subject, event!.isFree, event!.isPrivate, event!.recurrence], ["2026-11-27T10:00:00", "2026-11-27T11:30:00", "a\nb", true, true, ""]);
  const [days] = occurrencesOf(calendar("DTSTART;VALUE=DATE:20261127", "DTEND;VALUE=DATE:20261129"), "", "");
  assert.deepEqual([days!.isDay, days!.from, days!.to], [true, "2026-11-27", "2026-11-29"]);
  for (const line of ["DTSTART:never", "DTSTART;VALUE=DATE:20269999", "X:1"]) assert.deepEqual(occurrencesOf(calendar(line), "", ""), []);
  assert.deepEqual(["PT15M", "-P1DT2H", "P2W", "PT", "soon"].map(durationOf), [900_000, -93_600_000, 1_209_600_000, 0, undefined]);
});

const FIELDS: Fields = { subject: "Board; all", location: "", body: "", isDay: false, fromDay: "2026-11-25", toDay: "2026-11-25", fromTime: "10:00", toTime: "11:30", zone: "Europe/Berlin", rule: "", isFree: false, isPrivate: false, alarm: "15", invited: [], caller: "" };

test("an event is what was said of it, and is read so again", () => {
  for (const fields of [FIELDS, { ...FIELDS, isDay: true, toDay: "2026-11-27", alarm: "" }, { ...FIELDS, zone: "UTC", rule: "FREQ=WEEKLY;UNTIL=20261231T235959Z", isFree: true, isPrivate: true, body: "a\nb, c" }]) {
    const made = newEvent(fields, "uid", NOW)!;
    const read = fieldsOf(parse(write(made))!, { recurrence: "" })!;
    assert.deepEqual(fields.isDay ? { ...read, fromTime: "10:00", toTime: "11:30" } : read, fields);
  }
  assert.equal(newEvent({ ...FIELDS, toTime: "09:00" }, "u", NOW), undefined);
  assert.equal(newEvent({ ...FIELDS, fromDay: "2026-99-01" }, "u", NOW), undefined);
  assert.equal(ruleOf({ frequency: "WEEKLY", interval: "2", until: "2026-12-31" }, FIELDS), "FREQ=WEEKLY;INTERVAL=2;UNTIL=20261231T225959Z");
  assert.deepEqual(simpleRule("FREQ=DAILY;UNTIL=20261231"), { frequency: "DAILY", interval: "1", until: "2026-12-31" });
  assert.equal(simpleRule("FREQ=MONTHLY;BYDAY=2MO"), undefined);
});

const SERIES = calendar("DTSTART;TZID=Europe/Berlin:20261021T100000", "DTEND;TZID=Europe/Berlin:20261021T110000", "RRULE:FREQ=WEEKLY", "EXDATE;TZID=Europe/Berlin:20261104T100000", "SUMMARY:S", "X-KEPT:1");

test("one of a series is changed alone, and all of it keeps its hour over the change of the clock", () => {
  const source = parse(SERIES)!;
  const recurrence = "20261028T090000Z";
  const shown = fieldsOf(source, { recurrence })!;
  assert.deepEqual([shown.fromDay, shown.fromTime, shown.rule], ["2026-10-28", "10:00", "FREQ=WEEKLY"]);
  const one = parse(write(changed(source, { recurrence }, { ...shown, fromTime: "14:00", toTime: "15:00", subject: "T" }, "one", NOW)!))!;
  assert.equal(one.parts.length, 2);
  const [master, override] = one.parts.map((part) => linesOf(write(part)));
  assert.ok(master!.includes("RRULE:FREQ=WEEKLY") && master!.includes("SUMMARY:S"));
  for (const line of ["RECURRENCE-ID;TZID=Europe/Berlin:20261028T100000", "DTSTART;TZID=Europe/Berlin:20261028T140000", "SUMMARY:T", "X-KEPT:1", "SEQUENCE:1"]) assert.ok(override!.includes(line), line);
  assert.ok(!override!.some((line) => /^(RRULE|EXDATE)/.test(line)));
  assert.equal(fieldsOf(one, { recurrence })!.fromTime, "14:00");
  // From one of winter: the series begins in summer, at the same hour.
  const winter = "20261111T090000Z";
  const all = changed(source, { recurrence: winter }, { ...fieldsOf(source, { recurrence: winter })!, fromDay: "2026-11-12", toDay: "2026-11-12", fromTime: "12:00", toTime: "13:00" }, "all", NOW)!;
  const lines = linesOf(write(all));
  for (const line of ["DTSTART;TZID=Europe/Berlin:20261022T120000", "DTEND;TZID=Europe/Berlin:20261022T130000", "EXDATE:20261105T110000Z", "RRULE:FREQ=WEEKLY", "X-KEPT:1"]) assert.ok(lines.includes(line), `${line} in ${lines.join("\n")}`);
  const days = changed(source, { recurrence: winter }, { ...fieldsOf(source, { recurrence: winter })!, isDay: true }, "all", NOW)!;
  for (const line of ["DTSTART;VALUE=DATE:20261021", "DTEND;VALUE=DATE:20261022", "EXDATE;VALUE=DATE:20261104"]) assert.ok(linesOf(write(days)).includes(line), line);
  const never = changed(one, { recurrence }, { ...fieldsOf(one, { recurrence })!, rule: "" }, "all", NOW)!;
  assert.deepEqual([never.parts.length, linesOf(write(never)).some((line) => /^(RRULE|EXDATE|RECURRENCE-ID)/.test(line))], [1, false]);
});

test("one of a series goes, with what was an exception", () => {
  const source = parse(SERIES)!;
  const recurrence = "20261028T090000Z";
  const one = changed(source, { recurrence }, { ...fieldsOf(source, { recurrence })!, fromTime: "14:00", toTime: "15:00" }, "one", NOW)!;
  const left = without(one, recurrence, NOW)!;
  assert.equal(left.parts.length, 1);
  assert.ok(linesOf(write(left)).includes("EXDATE;TZID=Europe/Berlin:20261028T100000"));
  assert.ok(linesOf(write(without(parse(calendar("DTSTART;VALUE=DATE:20261127", "RRULE:FREQ=DAILY"))!, "20261128", NOW)!)).includes("EXDATE;VALUE=DATE:20261128"));
});

test("events next to each other never cover each other, and use the whole width", () => {
  let seed = 7;
  const random = (most: number) => (seed = (seed * 48271) % 2147483647) % most;
  for (let round = 0; round < 200; round++) {
    const items = Array.from({ length: random(20) }, () => ({ start: random(24) * 3_600_000, end: 0 })).map(({ start }) => ({ start, end: start + 1_800_000 + random(5) * 1_800_000 }));
    const placed = columnsOf(items);
    assert.equal(placed.length, items.length);
    for (const a of placed) {
      assert.ok(a.column < a.columns);
      for (const b of placed) if (a !== b && a.item.start < b.item.end && b.item.start < a.item.end) assert.ok(a.column !== b.column && a.columns === b.columns);
    }
    for (const { item, columns } of placed) {
      const together = items.filter((other) => other.start < item.end && item.start < other.end);
      if (together.length === 1) assert.equal(columns, 1);
    }
  }
});

test("a card keeps what the form does not know", () => {
  const source = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:1\r\nN:Hopper;Grace;Brewster;Rear Admiral;\r\nFN:Grace Hopper\r\nitem1.EMAIL;TYPE=WORK:g@x.test\r\nitem1.X-ABLABEL:Ship\r\nTEL;VALUE=uri:tel:+1-555\r\nPHOTO;ENCODING=b:AAAA\r\nEND:VCARD\r\n";
  const card = cardOf({ href: "/a.vcf", tag: "t", data: source }, "/book")!;
  assert.deepEqual([card.name, card.first, card.last, card.emails, card.phones], ["Grace Hopper", "Grace", "Hopper", ["g@x.test"], ["+1-555"]]);
  assert.equal(write(withFields(source, card, "u")), source);
  const lines = linesOf(write(withFields(source, { ...card, last: "Murray", emails: ["new@x.test", "g@x.test"] }, "u")));
  for (const line of ["N:Murray;Grace;Brewster;Rear Admiral;", "FN:Grace Murray", "EMAIL:new@x.test", "item1.EMAIL;TYPE=WORK:g@x.test", "PHOTO;ENCODING=b:AAAA"]) assert.ok(lines.includes(line), line);
  const made = write(withFields(undefined, { ...card, first: "", last: "", company: "Navy, US", emails: [] }, "u"));
  assert.equal(cardOf({ href: "", tag: "", data: made }, "")!.company, "Navy, US");
  assert.equal(textOf(parse(made)!, "FN"), "Navy, US");
  assert.equal(written('Grace "Amazing" Hopper, RADM', "g@x.test"), '"Grace Amazing Hopper, RADM" <g@x.test>');
  assert.ok(fits("gra hop", ["Grace Hopper"]) && fits("müll", ["Jens Muller"]) && fits("x.test", ["g@x.test"]) && !fits("ada", ["Grace Hopper"]));
});

test("an invitation says what it is", () => {
  const source = calendar("DTSTART:20261127T090000Z", "DTEND:20261127T100000Z", "SUMMARY:Plan", 'ORGANIZER;CN="Grace; H":mailto:g@x.test', "ATTENDEE;PARTSTAT=ACCEPTED;CN=Bob:mailto:b@x.test", "RRULE:FREQ=DAILY").replace("VERSION:2.0", "VERSION:2.0\r\nMETHOD:REQUEST");
  const invitation = invitationOf(source)!;
  assert.deepEqual([invitation.method, invitation.subject, invitation.organizer, invitation.attendees, invitation.repeats], ["REQUEST", "Plan", "Grace; H", [{ name: "Bob", status: "ACCEPTED" }], true]);
  assert.equal(invitationOf("nothing"), undefined);
});

test("an answer changes the line of who answers, and no other", () => {
  const source = calendar("SUMMARY:Plan", "ATTENDEE;PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN=Bob:MAILTO:Bob@x.test", "ATTENDEE;PARTSTAT=ACCEPTED:mailto:c@x.test");
  const own = answeredBy(parse(source)!, ["mailto:bob@x.test"], "DECLINED")!;
  assert.deepEqual(linesOf(write(own)), linesOf(source.replace("PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN=Bob", "CN=Bob;PARTSTAT=DECLINED")));
  assert.equal(answeredBy(parse(source)!, ["mailto:d@x.test"], "DECLINED"), undefined);
});

test("a text becomes the code that readers expect", () => {
  const rows = modulesOf("A")!.map((row) => row.map((isDark) => (isDark ? "#" : ".")).join(""));
  assert.deepEqual([rows.length, rows[0]!.slice(0, 8), rows[20]!.slice(0, 8)], [21, "#######.", "#######."]);
  // Compared with another encoder when it was written.
  const digest = (text: string) => modulesOf(text)!.flat().reduce((sum, isDark, place) => (sum * 31 + (isDark ? place + 1 : 0)) % 1_000_000_007, 7);
  assert.deepEqual([digest("A"), digest("x".repeat(250))], [388896629, 149869084]);
  assert.equal(modulesOf("y".repeat(521)), undefined);
});
