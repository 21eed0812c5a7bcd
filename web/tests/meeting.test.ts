import assert from "node:assert/strict";
import test from "node:test";
import { lineOf, parse, textOf, write, type Component } from "../client/content.ts";
import type { Busy } from "../client/dav.ts";
import { busyIn, changed, fieldsOf, newEvent, occurrencesOf, type Fields } from "../client/event.ts";
import { isFreeIn, merged, nextFree, withoutSpan } from "../client/free.ts";
import { invitedTo } from "../client/meeting.ts";
import { countFrom, endedBefore, following, isCounted } from "../client/series.ts";
import { changedTodo, inOrder, newTodo, todoOf } from "../client/todo.ts";
import { addDays, civilAt, DAY_MS, offsetAt, weekdayOf } from "../client/zone.ts";
import { withZones, zoneDefinition } from "../client/zone_definition.ts";
import { bytesOf, textOf as base64Of } from "../shared/passkey.ts";

process.env["TZ"] = "Europe/Berlin";
const NOW = Date.UTC(2026, 10, 27, 12);
const calendar = (...lines: string[]) => `BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:u\r\n${lines.map((line) => `${line}\r\n`).join("")}END:VEVENT\r\nEND:VCALENDAR\r\n`;
const linesOf = (part: Component) => write(part).replace(/\r\n /g, "").split("\r\n");
const BASE = ["DTSTART;TZID=Europe/Berlin:20261021T100000", "DTEND;TZID=Europe/Berlin:20261021T110000", "EXDATE;TZID=Europe/Berlin:20261104T100000,20261118T100000", "SUMMARY:S"];
const MET = ["ORGANIZER:mailto:ada@x.test", "ATTENDEE;PARTSTAT=ACCEPTED;SCHEDULE-STATUS=1.2;CN=Bob:mailto:bob@x.test"];

test("a series is cut in two, which take place as the one did", () => {
  const source = parse(calendar(...BASE, ...MET, "RRULE:FREQ=WEEKLY;COUNT=8"))!;
  const moved = (recurrence: string) => ({ ...fieldsOf(source, { recurrence })!, fromTime: "14:00", toTime: "15:00" });
  const early = changed(source, { recurrence: "20261028T090000Z" }, moved("20261028T090000Z"), "one", NOW)!;
  const both = changed(early, { recurrence: "20261125T090000Z" }, moved("20261125T090000Z"), "one", NOW)!;
  // From the 11th of November on, after the change of the clock.
  const cut = "20261111T090000Z";
  const ended = endedBefore(both, cut, NOW)!;
  assert.equal(ended.parts.length, 2);
  const first = linesOf(ended);
  for (const line of ["RRULE:FREQ=WEEKLY;UNTIL=20261111T085959Z", "EXDATE;TZID=Europe/Berlin:20261104T100000", "RECURRENCE-ID;TZID=Europe/Berlin:20261028T100000"]) assert.ok(first.includes(line), line);
  // Of eight there are four: of those that are left two are exceptions, one of which takes place at another time.
  const instances = occurrencesOf(["20261111T090000Z", "20261125T130000Z", "20261202T090000Z", "20261209T090000Z"].map((start, index) => calendar(`DTSTART:${start}`, `RECURRENCE-ID:${index === 1 ? "20261125T090000Z" : start}`)).map((one) => one.split("VERSION:2.0\r\n")[1]!.replace("END:VCALENDAR\r\n", "")).join("").replace(/^/, "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n") + "END:VCALENDAR\r\n", "", "");
  assert.deepEqual([isCounted(both), instances.length, countFrom(both, cut, instances)], [true, 4, 5]);
  const fields = fieldsOf(both, { recurrence: cut })!;
  const second = following(both, { recurrence: cut }, { ...fields, subject: "T", fromTime: "12:00", toTime: "13:00" }, 5, "other", NOW)!;
  const lines = linesOf(second);
  for (const line of ["DTSTART;TZID=Europe/Berlin:20261111T120000", "DTEND;TZID=Europe/Berlin:20261111T130000", "RRULE:FREQ=WEEKLY;COUNT=5", "SUMMARY:T", "UID:other", "EXDATE:20261118T110000Z", "RECURRENCE-ID;TZID=Europe/Berlin:20261125T120000"]) assert.ok(lines.includes(line), `${line} in ${lines.join("\n")}`);
  assert.ok(!lines.some((line) => line.includes("UID:u") || line.includes("20261104") || line.includes("20261028")));
  // Everybody is asked about the other series.
  assert.ok(lines.includes("ATTENDEE;CN=Bob;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:bob@x.test"));
  const own = linesOf(following(both, { recurrence: cut }, { ...fields, rule: "FREQ=DAILY;UNTIL=20261231T225959Z" }, 5, "other", NOW)!);
  assert.ok(own.includes("RRULE:FREQ=DAILY;UNTIL=20261231T225959Z"));
});

test("what is cut at its beginning is all of it, and ends have the form of the start", () => {
  const weekly = parse(calendar(...BASE, "RRULE:FREQ=WEEKLY"))!;
  assert.equal(endedBefore(weekly, "20261021T080000Z", NOW), undefined);
  assert.equal(endedBefore(parse(calendar(...BASE))!, "", NOW), undefined);
  const rule = (source: Component | undefined) => lineOf(source!.parts[0]!, "RRULE")!.value;
  const days = parse(calendar("DTSTART;VALUE=DATE:20261127", "RRULE:FREQ=DAILY;INTERVAL=2;UNTIL=20270101", "RDATE;VALUE=DATE:20261128,20261206"))!;
  const ended = endedBefore(days, "20261203", NOW)!;
  assert.deepEqual([rule(ended), lineOf(ended.parts[0]!, "RDATE")!.value], ["FREQ=DAILY;INTERVAL=2;UNTIL=20261202", "20261128"]);
  const next = following(days, { recurrence: "20261203" }, fieldsOf(days, { recurrence: "20261203" })!, 0, "o", NOW)!;
  assert.deepEqual(["DTSTART", "RRULE", "RDATE"].map((name) => lineOf(next.parts[0]!, name)!.value), ["20261203", "FREQ=DAILY;INTERVAL=2;UNTIL=20270101", "20261206"]);
  assert.equal(rule(endedBefore(parse(calendar("DTSTART:20261127T090000", "RRULE:FREQ=DAILY"))!, "20261129T090000", NOW)), "FREQ=DAILY;UNTIL=20261129T085959");
});

/** The offset that a definition gives, by its rules: of the last change before. */
function definedOffset(definition: Component, ms: number): number {
  const offset = (text: string) => (text.startsWith("-") ? -1 : 1) * (Number(text.slice(1, 3)) * 60 + Number(text.slice(3, 5))) * 60_000;
  const instant = (civil: string, from: number) => Date.parse(civil.replace(/^(....)(..)(..)T(..)(..)(..)$/, "$1-$2-$3T$4:$5:$6Z")) - from;
  const changes = definition.parts.flatMap((part) => {
    const value = (name: string) => lineOf(part, name)?.value ?? "";
    const [from, to, start] = [offset(value("TZOFFSETFROM")), offset(value("TZOFFSETTO")), value("DTSTART")];
    const [, month, week, weekday] = /^FREQ=YEARLY;BYMONTH=(\d+);BYDAY=(-?\d)(\w\w)$/.exec(value("RRULE")) ?? [];
    const found = [start, ...value("RDATE").split(",").filter(Boolean)];
    for (let year = Number(start.slice(0, 4)) + 1; month && year < 2040; year++) {
      const days = Array.from({ length: 31 }, (_, index) => addDays(`${year}-${month.padStart(2, "0")}-01`, index)).filter((day) => Number(day.slice(5, 7)) === Number(month) && ["SU", "MO", "TU", "WE", "TH", "FR", "SA"][weekdayOf(day)] === weekday);
      found.push(`${days.at(Number(week) < 0 ? Number(week) : Number(week) - 1)!.replace(/-/g, "")}${start.slice(8)}`);
    }
    return found.map((civil) => ({ ms: instant(civil, from), to }));
  }).sort((a, b) => a.ms - b.ms);
  return changes.filter((change) => change.ms <= ms).at(-1)?.to ?? changes[0]!.to;
}

test("definitions of zones say what the browser knows of them", () => {
  for (const zone of ["Europe/Berlin", "America/New_York", "Australia/Sydney", "Australia/Lord_Howe", "Asia/Kathmandu", "Asia/Jerusalem", "Africa/Casablanca", "America/Santiago", "Europe/Dublin"]) {
    const definition = zoneDefinition(zone, Date.UTC(2026, 5));
    for (let day = 0; day < 365 * 8; day += 3) {
      const ms = Date.UTC(2026, 0, 2) + day * DAY_MS + 5 * 3_600_000;
      assert.equal(definedOffset(definition, ms), offsetAt(ms, zone), `${zone} ${new Date(ms).toISOString()}`);
    }
  }
  const lines = linesOf(zoneDefinition("Europe/Berlin", Date.UTC(2026, 5)));
  for (const line of ["TZID:Europe/Berlin", "RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", "TZOFFSETTO:+0200", "DTSTART:20250330T020000"]) assert.ok(lines.includes(line), `${line} in ${lines.join("\n")}`);
  const made = withZones(parse(calendar("DTSTART;TZID=Asia/Tokyo:20261127T090000", "EXDATE;TZID=Not/There:20261127T090000", "SUMMARY:x"))!);
  assert.deepEqual(made.parts.map(({ name }) => name), ["VTIMEZONE", "VEVENT"]);
  assert.equal(withZones(made), made);
});

const FIELDS: Fields = { subject: "Board", location: "", body: "", isDay: false, fromDay: "2026-11-25", toDay: "2026-11-25", fromTime: "10:00", toTime: "11:30", zone: "Europe/Berlin", rule: "", isFree: false, isPrivate: false, alarm: "", invited: [], caller: "" };
const BOB = { address: "Bob@x.test", name: "Bob; B", kind: "INDIVIDUAL" as const, status: "NEEDS-ACTION" };
const ROOM = { address: "room@x.test", name: "Room 1", kind: "ROOM" as const, status: "NEEDS-ACTION" };

test("people are invited, keep what they have answered, and leave", () => {
  const made = parse(write(newEvent({ ...FIELDS, invited: [BOB, ROOM], caller: "ada@x.test" }, "u", NOW)!))!;
  const lines = linesOf(made);
  for (const line of ["ORGANIZER:mailto:ada@x.test", 'ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN="Bob; B":mailto:Bob@x.test', "ATTENDEE;CUTYPE=ROOM;ROLE=NON-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN=Room 1:mailto:room@x.test"]) assert.ok(lines.includes(line), `${line} in ${lines.join("\n")}`);
  assert.deepEqual(invitedTo(made.parts[0]!), [BOB, ROOM]);
  const answered = parse(write(made).replace(/\r\n /g, "").replace("PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN=Room 1", "PARTSTAT=ACCEPTED;X-OWN=1;CN=Room 1"))!;
  const shown = fieldsOf(answered, { recurrence: "" })!;
  assert.deepEqual(shown.invited.map(({ status }) => status), ["NEEDS-ACTION", "ACCEPTED"]);
  const left = changed(answered, { recurrence: "" }, { ...shown, invited: shown.invited.slice(1) }, "all", NOW)!;
  assert.deepEqual(linesOf(left).filter((line) => line.startsWith("ATTENDEE")), ["ATTENDEE;CUTYPE=ROOM;ROLE=NON-PARTICIPANT;PARTSTAT=ACCEPTED;X-OWN=1;CN=Room 1:mailto:room@x.test"]);
  const nobody = linesOf(changed(answered, { recurrence: "" }, { ...shown, invited: [] }, "all", NOW)!);
  assert.ok(!nobody.some((line) => /^(ATTENDEE|ORGANIZER)/.test(line)));
  // Who joins a series is invited to those of it that have a part of their own, too.
  const series = parse(calendar(...BASE, ...MET, "RRULE:FREQ=WEEKLY"))!;
  const one = changed(series, { recurrence: "20261028T090000Z" }, fieldsOf(series, { recurrence: "20261028T090000Z" })!, "one", NOW)!;
  const all = fieldsOf(one, { recurrence: "20261021T080000Z" })!;
  const joined = changed(one, { recurrence: "20261021T080000Z" }, { ...all, invited: [...all.invited, ROOM] }, "all", NOW)!;
  assert.deepEqual(joined.parts.map((part) => invitedTo(part).map(({ address }) => address)), [["bob@x.test", "room@x.test"], ["bob@x.test", "room@x.test"]]);
});

test("the next time for all is one in which nobody is busy", () => {
  const source = "BEGIN:VCALENDAR\r\nBEGIN:VFREEBUSY\r\nFREEBUSY:20261127T080000Z/20261127T093000Z,20261127T120000Z/PT1H\r\nFREEBUSY;FBTYPE=FREE:20261127T100000Z/PT1H\r\nFREEBUSY;FBTYPE=BUSY-TENTATIVE:20261130T070000Z/PT30M\r\nFREEBUSY:never/PT1H\r\nEND:VFREEBUSY\r\nEND:VCALENDAR\r\n";
  const busy = busyIn(source);
  const at = (text: string) => Date.parse(text);
  assert.deepEqual(busy.map(({ start, end, isTentative }) => [new Date(start).toISOString().slice(5, 16), (end - start) / 60_000, isTentative]), [["11-27T08:00", 90, false], ["11-27T12:00", 60, false], ["11-30T07:00", 30, true]]);
  const zone = "Europe/Berlin";
  const next = (minutes: number, from: string, all = [busy]) => civilAt(nextFree(all, minutes * 60_000, at(from), zone)!, zone).slice(5, 16);
  assert.equal(next(60, "2026-11-27T08:05:00Z"), "11-27T10:30");
  assert.equal(next(150, "2026-11-27T08:05:00Z"), "11-27T10:30");
  assert.equal(next(180, "2026-11-27T08:05:00Z"), "11-27T14:00");
  // Not in the evening, and not at the end of the week.
  assert.equal(next(60, "2026-11-27T16:30:00Z"), "11-30T08:30");
  let seed = 11;
  const random = (most: number) => (seed = (seed * 48271) % 2147483647) % most;
  for (let round = 0; round < 100; round++) {
    const all: Busy[][] = Array.from({ length: 3 }, () => Array.from({ length: random(60) }, () => at("2026-11-23T00:00:00Z") + random(600) * 1_800_000).map((start) => ({ start, end: start + (1 + random(6)) * 1_800_000, isTentative: false })));
    const [length, from] = [(1 + random(20)) * 900_000, at("2026-11-23T00:00:00Z") + random(900) * 900_000];
    const found = nextFree(all, length, from, zone);
    if (found === undefined) continue;
    assert.ok(found >= from && isFreeIn(all.flat(), found, found + length));
    const one = merged(all.flat());
    for (const [index, { end }] of one.entries()) assert.ok(index + 1 === one.length || end < one[index + 1]!.start);
  }
  assert.deepEqual(withoutSpan([{ start: 0, end: 10, isTentative: false }], { start: 3, end: 5 }).map(({ start, end }) => [start, end]), [[0, 3], [5, 10]]);
});

test("a to-do is made, changed, done and opened again, and keeps what is not known", () => {
  const made = newTodo({ subject: "Buy; bread", body: "", day: "2026-11-30", isUrgent: true }, "u", NOW);
  made.parts[0]!.lines.push({ name: "X-KEPT", parameters: [], value: "1" });
  const todo = todoOf(write(made), "/h", "/l")!;
  assert.deepEqual([todo.subject, todo.due, todo.isDone, todo.priority, todo.repeats], ["Buy; bread", "2026-11-30", false, 1, false]);
  const done = changedTodo(made, { isDone: true }, NOW)!;
  assert.ok(todoOf(write(done), "", "")!.isDone && linesOf(done).includes("PERCENT-COMPLETE:100"));
  const open = changedTodo(done, { isDone: false, fields: { subject: "Buy", body: "x", day: "", isUrgent: false } }, NOW)!;
  const lines = linesOf(open);
  assert.ok(!lines.some((line) => /^(COMPLETED|DUE|PRIORITY|PERCENT)/.test(line)) && lines.includes("X-KEPT:1") && lines.includes("STATUS:NEEDS-ACTION"));
  assert.equal(textOf(open.parts[0]!, "SUMMARY"), "Buy");
  const of = (subject: string, due: string, priority = 0) => ({ ...todo, subject, due, priority });
  assert.deepEqual(inOrder([of("d", ""), of("c", "2026-12-01"), of("b", "2026-11-30"), of("a", "2026-11-30", 1)]).map(({ subject }) => subject), ["a", "b", "c", "d"]);
  assert.equal(todoOf(calendar("SUMMARY:x"), "", ""), undefined);
});

test("bytes of passkeys are written as the server reads them", () => {
  for (let length = 0; length < 70; length++) {
    const bytes = Uint8Array.from({ length }, (_, index) => (index * 37 + length * 11) % 256);
    assert.equal(base64Of(bytes.buffer), Buffer.from(bytes).toString("base64url"));
    assert.deepEqual(bytesOf(base64Of(bytes.buffer)), bytes);
  }
});
