// Events: what the server's occurrences say, and how an event or one of a series is changed. Nothing here computes when a series takes
// place: the server does.

import { copyOf, escapeText, lineOf, parameterOf, parse, setLine, textOf, unescapeText, values, type Component, type Line } from "./content.ts";
import { addressIn, callerOf, changeInvited, invitedTo, type Invited } from "./meeting.ts";
import { addDays, civilAt, DAY_MS, daysBetween, instantOf, isZone, ownZone, type Civil } from "./zone.ts";

/** One event of a calendar as it takes place. */
export type Occurrence = {
  href: string;
  calendar: string;
  /** Which of a series it is, as the server names it; empty for a single event. */
  recurrence: string;
  subject: string;
  location: string;
  body: string;
  organizer: string;
  /** The address of who calls, in lower case; empty where nobody is invited. */
  caller: string;
  isDay: boolean;
  /** For a whole day: days of the calendar, the end exclusive. Else what this device's clock shows. */
  from: Civil;
  to: Civil;
  start: number;
  end: number;
  isCancelled: boolean;
  isFree: boolean;
  isPrivate: boolean;
};

/** What somebody says of an event. */
export type Fields = {
  subject: string;
  location: string;
  body: string;
  isDay: boolean;
  /** Days, the last one included, and times of the day. */
  fromDay: string;
  toDay: string;
  fromTime: string;
  toTime: string;
  zone: string;
  /** A rule, or nothing. */
  rule: string;
  isFree: boolean;
  isPrivate: boolean;
  /** Minutes before; empty for none. */
  alarm: string;
  /** Who comes, but for who calls. */
  invited: Invited[];
  /** The address of who calls; empty where nobody is invited. */
  caller: string;
};

/** What of a series is meant: this one, this and those that come after it, all of it. */
export const SCOPES = ["one", "following", "all"] as const;
export type Scope = (typeof SCOPES)[number];

const DATE = /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?$/;

/** A time of a line: a day, a moment, or what any clock shows. */
export type Time = { isDay: true; day: string } | { isDay: false; ms: number; zone: string };

export function timeOf(line: Line | undefined, value = line?.value ?? ""): Time | undefined {
  const found = DATE.exec(value.trim());
  if (!found) return undefined;
  const day = `${found[1]}-${found[2]}-${found[3]}`;
  if (Number.isNaN(Date.parse(day))) return undefined;
  if (found[4] === undefined) return { isDay: true, day };
  const civil = `${day}T${found[4]}:${found[5]}:${found[6] === "60" ? "59" : found[6]}`;
  if (Number.isNaN(Date.parse(`${civil}Z`))) return undefined;
  const named = parameterOf(line, "TZID");
  const zone = found[7] ? "UTC" : isZone(named) ? named : ownZone();
  return { isDay: false, ms: instantOf(civil, zone), zone };
}

/** A duration such as PT1H30M, in milliseconds. */
export function durationOf(value: string): number | undefined {
  const found = /^([+-]?)P(?:(\d{1,5})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,7})M)?(?:(\d{1,9})S)?)?$/.exec(value.trim());
  if (!found) return undefined;
  const [weeks, days, hours, minutes, seconds] = found.slice(2).map((part) => Number(part ?? 0));
  return (found[1] === "-" ? -1 : 1) * (((weeks! * 7 + days!) * 24 + hours!) * 3600 + minutes! * 60 + seconds!) * 1000;
}

/** From when to when a component takes place. */
function spanOf(component: Component): { start: Time; lengthMs: number } | undefined {
  const start = timeOf(lineOf(component, "DTSTART"));
  if (!start) return undefined;
  const end = timeOf(lineOf(component, "DTEND"));
  const duration = durationOf(lineOf(component, "DURATION")?.value ?? "");
  if (start.isDay) {
    const days = end?.isDay ? daysBetween(start.day, end.day) : Math.round((duration ?? DAY_MS) / DAY_MS);
    return { start, lengthMs: Math.max(1, days) * DAY_MS };
  }
  const length = end && !end.isDay ? end.ms - start.ms : (duration ?? 0);
  return { start, lengthMs: Math.max(0, length) };
}

/** The occurrences in what the server sent of one resource. */
export function occurrencesOf(source: string, href: string, calendar: string): Occurrence[] {
  const whole = parse(source);
  const found: Occurrence[] = [];
  for (const part of whole?.parts ?? []) {
    const span = part.name === "VEVENT" ? spanOf(part) : undefined;
    if (!span) continue;
    const { start, lengthMs } = span;
    const zone = ownZone();
    const from = start.isDay ? start.day : civilAt(start.ms, zone);
    const to = start.isDay ? addDays(start.day, lengthMs / DAY_MS) : civilAt(start.ms + lengthMs, zone);
    const ms = start.isDay ? instantOf(start.day, zone) : start.ms;
    const organizer = lineOf(part, "ORGANIZER");
    found.push({
      href, calendar, recurrence: lineOf(part, "RECURRENCE-ID")?.value ?? "",
      subject: textOf(part, "SUMMARY"), location: textOf(part, "LOCATION"), body: textOf(part, "DESCRIPTION"),
      organizer: parameterOf(organizer, "CN") || addressIn(organizer?.value ?? ""), caller: addressIn(organizer?.value ?? "").toLowerCase(),
      isDay: start.isDay, from, to, start: ms, end: start.isDay ? instantOf(to, zone) : ms + lengthMs,
      isCancelled: /^CANCELLED$/i.test(lineOf(part, "STATUS")?.value ?? ""),
      isFree: /^TRANSPARENT$/i.test(lineOf(part, "TRANSP")?.value ?? ""),
      isPrivate: /^(PRIVATE|CONFIDENTIAL)$/i.test(lineOf(part, "CLASS")?.value ?? ""),
    });
  }
  return found;
}

export const basic = (civil: Civil): string => civil.replace(/[-:]/g, "");
export const utcText = (ms: number): string => `${basic(civilAt(ms, "UTC"))}Z`;

/** The line of a time in a zone. UTC has no name in a calendar. */
export function timeLine(component: Component, name: string, time: Time): void {
  if (time.isDay) return setLine(component, name, basic(time.day), [["VALUE", "DATE"]]);
  if (time.zone === "UTC") return setLine(component, name, utcText(time.ms));
  setLine(component, name, basic(civilAt(time.ms, time.zone)), [["TZID", time.zone]]);
}

function sameInstant(line: Line | undefined, wanted: Time): boolean {
  const time = timeOf(line);
  if (!time) return false;
  return time.isDay || wanted.isDay ? time.isDay && wanted.isDay && time.day === wanted.day : time.ms === wanted.ms;
}

export const masterOf = (calendar: Component) => calendar.parts.find((part) => part.name === "VEVENT" && !lineOf(part, "RECURRENCE-ID"));
const overrideOf = (calendar: Component, wanted: Time) => calendar.parts.find((part) => part.name === "VEVENT" && sameInstant(lineOf(part, "RECURRENCE-ID"), wanted));

/** The time by which one of a series is known. */
export const recurrenceTime = (recurrence: string): Time | undefined => timeOf(undefined, recurrence);

/** Whether a calendar's event takes place more than once. */
export function isSeries(calendar: Component): boolean {
  const events = calendar.parts.filter(({ name }) => name === "VEVENT");
  return events.length > 1 || events.some((event) => ["RRULE", "RDATE", "RECURRENCE-ID"].some((name) => lineOf(event, name)));
}

const minutesBefore = (component: Component): string => {
  const alarm = component.parts.find(({ name }) => name === "VALARM");
  const length = alarm && durationOf(lineOf(alarm, "TRIGGER")?.value ?? "");
  return length === undefined ? "" : String(Math.max(0, -length / 60_000));
};

/** What a form shows of an event: as it takes place, with the rule of its series. */
export function fieldsOf(calendar: Component, occurrence: Pick<Occurrence, "recurrence">): Fields | undefined {
  const wanted = recurrenceTime(occurrence.recurrence);
  const master = masterOf(calendar);
  const override = wanted && overrideOf(calendar, wanted);
  const component = override ?? master ?? calendar.parts.find(({ name }) => name === "VEVENT");
  const span = component && spanOf(component);
  if (!component || !span) return undefined;
  const start = !override && wanted && wanted.isDay === span.start.isDay ? at(wanted, span.start) : span.start;
  return {
    subject: textOf(component, "SUMMARY"), location: textOf(component, "LOCATION"), body: textOf(component, "DESCRIPTION"),
    ...timesOf(start, span.lengthMs), rule: lineOf(master ?? component, "RRULE")?.value ?? "",
    isFree: /^TRANSPARENT$/i.test(lineOf(component, "TRANSP")?.value ?? ""),
    isPrivate: /^(PRIVATE|CONFIDENTIAL)$/i.test(lineOf(component, "CLASS")?.value ?? ""), alarm: minutesBefore(component),
    invited: invitedTo(component), caller: callerOf(component),
  };
}

/** The moment of one, in the zone of the other. */
export const at = (moment: Time, like: Time): Time => (moment.isDay || like.isDay ? moment : { ...moment, zone: like.zone });

function timesOf(start: Time, lengthMs: number): Pick<Fields, "isDay" | "fromDay" | "toDay" | "fromTime" | "toTime" | "zone"> {
  if (start.isDay) return { isDay: true, fromDay: start.day, toDay: addDays(start.day, lengthMs / DAY_MS - 1), fromTime: "09:00", toTime: "10:00", zone: ownZone() };
  const [from, to] = [civilAt(start.ms, start.zone), civilAt(start.ms + lengthMs, start.zone)];
  return { isDay: false, fromDay: from.slice(0, 10), toDay: to.slice(0, 10), fromTime: from.slice(11, 16), toTime: to.slice(11, 16), zone: start.zone };
}

/** An event that nobody has filled in yet. */
export function emptyFields(day: string, fromTime = "09:00", toTime = "10:00", isDay = false): Fields {
  return { subject: "", location: "", body: "", isDay, fromDay: day, toDay: day, fromTime, toTime, zone: ownZone(), rule: "", isFree: false, isPrivate: false, alarm: isDay ? "" : "15", invited: [], caller: "" };
}

/** The span that a form says. `undefined`: it ends before it begins, or cannot be read. */
export function spanIn(fields: Fields): { start: Time; lengthMs: number } | undefined {
  const isDate = (day: string) => /^\d{4}-\d\d-\d\d$/.test(day) && !Number.isNaN(Date.parse(day));
  if (!isDate(fields.fromDay) || !isDate(fields.toDay)) return undefined;
  if (fields.isDay) {
    const days = daysBetween(fields.fromDay, fields.toDay) + 1;
    return days < 1 ? undefined : { start: { isDay: true, day: fields.fromDay }, lengthMs: days * DAY_MS };
  }
  if (![fields.fromTime, fields.toTime].every((time) => /^\d\d:\d\d$/.test(time)) || !isZone(fields.zone)) return undefined;
  const start = instantOf(`${fields.fromDay}T${fields.fromTime}:00`, fields.zone);
  const end = instantOf(`${fields.toDay}T${fields.toTime}:00`, fields.zone);
  return end < start ? undefined : { start: { isDay: false, ms: start, zone: fields.zone }, lengthMs: end - start };
}

function writeSpan(component: Component, start: Time, lengthMs: number): void {
  timeLine(component, "DTSTART", start);
  setLine(component, "DURATION", undefined);
  timeLine(component, "DTEND", start.isDay ? { isDay: true, day: addDays(start.day, lengthMs / DAY_MS) } : { ...start, ms: start.ms + lengthMs });
}

function writeText(component: Component, name: string, text: string): void {
  // What was not changed keeps its parameters, such as a language.
  if (textOf(component, name) !== text) setLine(component, name, text ? escapeText(text) : undefined);
}

function writeAlarm(component: Component, minutes: string, subject: string): void {
  if (minutesBefore(component) === minutes) return;
  component.parts = component.parts.filter(({ name }) => name !== "VALARM");
  if (minutes === "") return;
  const line = (name: string, value: string): Line => ({ name, parameters: [], value });
  component.parts.push({ name: "VALARM", parts: [], lines: [line("ACTION", "DISPLAY"), line("DESCRIPTION", escapeText(subject || "-")), line("TRIGGER", `-PT${Number(minutes)}M`)] });
}

function writeFields(component: Component, fields: Fields): void {
  writeText(component, "SUMMARY", fields.subject);
  writeText(component, "LOCATION", fields.location);
  writeText(component, "DESCRIPTION", fields.body);
  const isFree = /^TRANSPARENT$/i.test(lineOf(component, "TRANSP")?.value ?? "");
  if (isFree !== fields.isFree) setLine(component, "TRANSP", fields.isFree ? "TRANSPARENT" : "OPAQUE");
  const isPrivate = /^(PRIVATE|CONFIDENTIAL)$/i.test(lineOf(component, "CLASS")?.value ?? "");
  if (isPrivate !== fields.isPrivate) setLine(component, "CLASS", fields.isPrivate ? "PRIVATE" : "PUBLIC");
  writeAlarm(component, fields.alarm, fields.subject);
  changeInvited(component, invitedTo(component), fields.invited, fields.caller);
}

export function stamp(component: Component, now: number): void {
  setLine(component, "DTSTAMP", utcText(now));
  setLine(component, "LAST-MODIFIED", utcText(now));
  setLine(component, "SEQUENCE", String((Number(lineOf(component, "SEQUENCE")?.value) || 0) + 1));
}

/** A calendar with one new event. */
export function newEvent(fields: Fields, uid: string, now: number): Component | undefined {
  const span = spanIn(fields);
  if (!span) return undefined;
  const event: Component = { name: "VEVENT", lines: [], parts: [] };
  setLine(event, "UID", uid);
  setLine(event, "DTSTAMP", utcText(now));
  writeSpan(event, span.start, span.lengthMs);
  if (fields.rule) setLine(event, "RRULE", fields.rule);
  writeFields(event, fields);
  return { name: "VCALENDAR", lines: [{ name: "VERSION", parameters: [], value: "2.0" }, { name: "PRODID", parameters: [], value: "-//Scrinium//Client//EN" }], parts: [event] };
}

/** By how much one time was moved to become the other. */
function moved(from: Time, to: Time): (time: Time) => Time {
  return (time) => {
    if (to.isDay) {
      const dayOf = (one: Time) => (one.isDay ? one.day : civilAt(one.ms, one.zone === "UTC" ? ownZone() : one.zone).slice(0, 10));
      return { isDay: true, day: addDays(dayOf(time), daysBetween(dayOf(from), to.day)) };
    }
    const civil = civilAt(to.ms, to.zone);
    if (time.isDay || from.isDay) {
      const [day, before] = [time.isDay ? time.day : civilAt(time.ms, to.zone).slice(0, 10), from.isDay ? from.day : civilAt(from.ms, to.zone).slice(0, 10)];
      return { isDay: false, ms: instantOf(`${addDays(day, daysBetween(before, civil.slice(0, 10)))}${civil.slice(10)}`, to.zone), zone: to.zone };
    }
    // By the clock, so that a series keeps its hour when summer begins.
    const clock = (one: { ms: number }) => Date.parse(`${civilAt(one.ms, to.zone)}Z`);
    const there = new Date(clock(time) + clock(to) - clock(from)).toISOString().slice(0, 19);
    return { isDay: false, ms: instantOf(there, to.zone), zone: to.zone };
  };
}

const isSame = (a: Time, b: Time): boolean => (a.isDay || b.isDay ? a.isDay && b.isDay && a.day === b.day : a.ms === b.ms && a.zone === b.zone);

/** Moves a whole series, with what is an exception to it. */
function moveSeries(calendar: Component, master: Component, shift: (time: Time) => Time): void {
  const list = (line: Line): void => {
    const times = values(line.value, ",").map((value) => timeOf(line, value)).filter((time) => time !== undefined).map(shift);
    const [first] = times;
    delete line.raw;
    line.value = times.map((time) => (time.isDay ? basic(time.day) : utcText(time.ms))).join(",");
    line.parameters = first?.isDay ? [["VALUE", "DATE"]] : [];
  };
  master.lines.filter(({ name }) => name === "EXDATE" || name === "RDATE").forEach(list);
  for (const part of calendar.parts) {
    const time = part.name === "VEVENT" ? timeOf(lineOf(part, "RECURRENCE-ID")) : undefined;
    if (time) timeLine(part, "RECURRENCE-ID", shift(time));
  }
}

/** A rule keeps its end in the form of its start: a day, or UTC (RFC 5545, section 3.3.10). */
function fittingRule(rule: string, start: Time): string {
  return rule.replace(/UNTIL=(\d{8})(T\d{6}Z?)?/i, (_, day: string) => {
    if (start.isDay) return `UNTIL=${day}`;
    const end = instantOf(`${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6, 8)}T23:59:59`, start.zone);
    return `UNTIL=${utcText(end)}`;
  });
}

/** The calendar with an event changed: one of a series, or all of it. `undefined` where there is nothing to change, or no span. */
export function changed(source: Component, occurrence: Pick<Occurrence, "recurrence">, fields: Fields, scope: Scope, now: number): Component | undefined {
  const calendar = copyOf(source);
  const span = spanIn(fields);
  const before = fieldsOf(source, occurrence);
  const wanted = recurrenceTime(occurrence.recurrence);
  if (!span || !before) return undefined;
  const master = masterOf(calendar);
  const override = wanted && overrideOf(calendar, wanted);
  if (scope === "one" && wanted) {
    let part = override;
    if (!part) {
      if (!master) return undefined;
      part = copyOf(master);
      part.lines = part.lines.filter(({ name }) => !["RRULE", "RDATE", "EXDATE", "EXRULE"].includes(name));
      const like = timeOf(lineOf(master, "DTSTART"));
      timeLine(part, "RECURRENCE-ID", like ? at(wanted, like) : wanted);
      calendar.parts.push(part);
    }
    writeSpan(part, span.start, span.lengthMs);
    writeFields(part, fields);
    stamp(part, now);
    return calendar;
  }
  const part = master ?? override ?? calendar.parts.find(({ name }) => name === "VEVENT");
  if (!part) return undefined;
  const from = spanIn(before)!.start;
  const own = spanOf(part)!;
  const shift = moved(from, span.start);
  const start = wanted ? shift(own.start) : span.start;
  if (!isSame(from, span.start)) moveSeries(calendar, part, shift);
  if (!isSame(own.start, start) || own.lengthMs !== span.lengthMs) writeSpan(part, start, span.lengthMs);
  if (fields.rule !== before.rule || start.isDay !== own.start.isDay) setLine(part, "RRULE", fields.rule ? fittingRule(fields.rule, start) : undefined);
  if (!fields.rule && before.rule) {
    // What was an exception to the series goes with it.
    calendar.parts = calendar.parts.filter((one) => one.name !== "VEVENT" || one === part);
    part.lines = part.lines.filter(({ name }) => name !== "EXDATE" && name !== "RDATE");
  }
  // Who joins or leaves the series does so in those of it that have a part of their own, too.
  const invited = invitedTo(part);
  for (const other of calendar.parts) if (other.name === "VEVENT" && other !== part) changeInvited(other, invited, fields.invited, fields.caller);
  writeFields(part, fields);
  stamp(part, now);
  return calendar;
}

/** The series without one of it. */
export function without(source: Component, recurrence: string, now: number): Component | undefined {
  const calendar = copyOf(source);
  const [master, wanted] = [masterOf(calendar), recurrenceTime(recurrence)];
  if (!master || !wanted) return undefined;
  const override = overrideOf(calendar, wanted);
  calendar.parts = calendar.parts.filter((part) => part !== override);
  const like = timeOf(lineOf(master, "DTSTART"));
  const time = like ? at(wanted, like) : wanted;
  const line: Line = time.isDay
    ? { name: "EXDATE", parameters: [["VALUE", "DATE"]], value: basic(time.day) }
    : time.zone === "UTC" ? { name: "EXDATE", parameters: [], value: utcText(time.ms) } : { name: "EXDATE", parameters: [["TZID", time.zone]], value: basic(civilAt(time.ms, time.zone)) };
  master.lines.push(line);
  stamp(master, now);
  return calendar;
}

/** A rule as people choose it: how often, every how many, until when. `undefined`: it says more. */
export function simpleRule(rule: string): { frequency: string; interval: string; until: string } | undefined {
  const parts = new Map(rule.split(";").filter(Boolean).map((part): [string, string] => {
    const [name = "", value = ""] = part.split("=", 2);
    return [name.toUpperCase(), value];
  }));
  const { length } = [...parts.keys()].filter((name) => !["FREQ", "INTERVAL", "UNTIL", "WKST"].includes(name));
  const frequency = (parts.get("FREQ") ?? "").toUpperCase();
  if (length > 0 || !["DAILY", "WEEKLY", "MONTHLY", "YEARLY"].includes(frequency)) return undefined;
  const until = parts.get("UNTIL") ?? "";
  return { frequency, interval: parts.get("INTERVAL") ?? "1", until: until && `${until.slice(0, 4)}-${until.slice(4, 6)}-${until.slice(6, 8)}` };
}

/** The rule of what somebody chose; for an event of whole days or of times. */
export function ruleOf({ frequency, interval, until }: { frequency: string; interval: string; until: string }, fields: Fields): string {
  if (!frequency) return "";
  const start = spanIn(fields)?.start;
  const every = Math.min(999, Math.max(1, Number(interval) || 1));
  const rule = `FREQ=${frequency}${every > 1 ? `;INTERVAL=${every}` : ""}${/^\d{4}-\d\d-\d\d$/.test(until) ? `;UNTIL=${basic(until)}` : ""}`;
  return start ? fittingRule(rule, start) : rule;
}

/** An invitation that came by mail: what it asks, and of which event. */
export type Invitation = { method: string; subject: string; location: string; organizer: string; attendees: { name: string; status: string }[]; occurrence: Occurrence | undefined; repeats: boolean; calendar: Component };

export function invitationOf(source: string): Invitation | undefined {
  const calendar = parse(source);
  const event = calendar?.parts.find(({ name }) => name === "VEVENT");
  if (!calendar || !event) return undefined;
  const [occurrence] = occurrencesOf(source, "", "");
  const attendees = event.lines.filter(({ name }) => name === "ATTENDEE").map((line) => ({
    name: parameterOf(line, "CN") || line.value.replace(/^mailto:/i, ""), status: parameterOf(line, "PARTSTAT").toUpperCase(),
  }));
  return {
    method: (lineOf(calendar, "METHOD")?.value ?? "PUBLISH").trim().toUpperCase(), subject: unescapeText(lineOf(event, "SUMMARY")?.value ?? ""), location: textOf(event, "LOCATION"),
    organizer: occurrence?.organizer ?? "", attendees, occurrence, repeats: isSeries(calendar), calendar,
  };
}

/** A copy of a meeting with somebody's answer to it, or `undefined` where they are not invited. Instances that have parts of their own are answered as well. */
export function answeredBy(calendar: Component, addresses: string[], answer: string): Component | undefined {
  let found = false;
  const line = (one: Line): Line => {
    if (one.name !== "ATTENDEE" || !addresses.includes(one.value.trim().toLowerCase())) return one;
    found = true;
    const kept = one.parameters.filter(([name]) => name !== "PARTSTAT" && name !== "RSVP");
    return { name: one.name, parameters: [...kept, ["PARTSTAT", answer]], value: one.value };
  };
  const parts = calendar.parts.map((part) => (part.name === "VEVENT" ? { ...part, lines: part.lines.map(line) } : part));
  return found ? { ...calendar, parts } : undefined;
}

/** The times that an answer about busy time names (RFC 5545, section 3.8.2.6). */
export function busyIn(source: string): { start: number; end: number; isTentative: boolean }[] {
  const lines = parse(source)?.parts.find(({ name }) => name === "VFREEBUSY")?.lines.filter(({ name }) => name === "FREEBUSY") ?? [];
  const found = lines.flatMap((line) => {
    const kind = parameterOf(line, "FBTYPE").toUpperCase();
    if (kind === "FREE") return [];
    return line.value.split(",").flatMap((period) => {
      const [from = "", to = ""] = period.split("/");
      const start = timeOf(undefined, from);
      if (!start || start.isDay) return [];
      const end = timeOf(undefined, to);
      const length = durationOf(to);
      const ms = end && !end.isDay ? end.ms : length === undefined ? undefined : start.ms + length;
      return ms === undefined || ms <= start.ms ? [] : [{ start: start.ms, end: ms, isTentative: kind === "BUSY-TENTATIVE" }];
    });
  });
  return found.sort((a, b) => a.start - b.start);
}
