// A series that goes on in another way from one of it on: it ends before that one, and another series begins with it. So every program
// understands it; RANGE=THISANDFUTURE (RFC 5545, section 3.2.13) many do not.

import { copyOf, lineOf, parameterOf, setLine, values, type Component, type Line } from "./content.ts";
import { at, basic, changed, fieldsOf, masterOf, recurrenceTime, stamp, timeLine, timeOf, utcText, type Fields, type Occurrence, type Time } from "./event.ts";
import { askAgain } from "./meeting.ts";
import { addDays, civilAt, instantOf, ownZone } from "./zone.ts";

const LISTS = ["RDATE", "EXDATE"];

const instant = (time: Time): number => (time.isDay ? instantOf(time.day, "UTC") : time.ms);

/** The moment by which a part of a series is known. */
const momentOf = (part: Component): number | undefined => {
  const time = timeOf(lineOf(part, "RECURRENCE-ID"));
  return time && instant(time);
};

/** Leaves those times in the lists of a series that are meant. A period counts by its start. */
function keepTimes(master: Component, isKept: (ms: number) => boolean): void {
  master.lines = master.lines.flatMap((line): Line[] => {
    if (!LISTS.includes(line.name)) return [line];
    const all = values(line.value, ",");
    const kept = all.filter((value) => {
      const time = timeOf(line, value.split("/")[0]);
      return time === undefined || isKept(instant(time));
    });
    if (kept.length === all.length) return [line];
    return kept.length === 0 ? [] : [{ name: line.name, parameters: line.parameters, value: kept.join(",") }];
  });
}

/** Leaves those parts that are no exceptions, or are meant. */
function keepExceptions(calendar: Component, isKept: (ms: number) => boolean): void {
  calendar.parts = calendar.parts.filter((part) => {
    const moment = part.name === "VEVENT" ? momentOf(part) : undefined;
    return moment === undefined || isKept(moment);
  });
}

const partsOf = (rule: string): string[] => rule.split(";").filter(Boolean);
const without = (rule: string, ...names: string[]): string[] => partsOf(rule).filter((part) => !names.includes(part.split("=")[0]!.toUpperCase()));

/** The moment before another one, as the end of a rule has it: in the form of the start (section 3.3.10). */
function endBefore(start: Line | undefined, time: Time): string {
  if (time.isDay) return basic(addDays(time.day, -1));
  const isFloating = !parameterOf(start, "TZID") && !/Z$/i.test(start?.value ?? "");
  return isFloating ? basic(civilAt(time.ms - 1000, ownZone())) : utcText(time.ms - 1000);
}

/** Where a series is cut, in the zone of its start. `undefined`: there is no series, or it begins there, so that nothing stays of it. */
function cutAt(calendar: Component, recurrence: string): { master: Component; time: Time } | undefined {
  const [master, wanted] = [masterOf(calendar), recurrenceTime(recurrence)];
  const start = master && timeOf(lineOf(master, "DTSTART"));
  if (!master || !wanted || !start || instant(wanted) <= instant(start)) return undefined;
  return { master, time: at(wanted, start) };
}

/** The series without one of it and those that come after; `undefined` where nothing stays. */
export function endedBefore(source: Component, recurrence: string, now: number): Component | undefined {
  const calendar = copyOf(source);
  const cut = cutAt(calendar, recurrence);
  if (!cut) return undefined;
  const { master, time } = cut;
  const isBefore = (ms: number) => ms < instant(time);
  const rule = lineOf(master, "RRULE");
  if (rule) setLine(master, "RRULE", [...without(rule.value, "COUNT", "UNTIL"), `UNTIL=${endBefore(lineOf(master, "DTSTART"), time)}`].join(";"));
  keepTimes(master, isBefore);
  keepExceptions(calendar, isBefore);
  stamp(master, now);
  return calendar;
}

/** Whether a series says how many it has. */
export function isCounted(calendar: Component): boolean {
  const master = masterOf(calendar);
  return partsOf((master && lineOf(master, "RRULE")?.value) ?? "").some((part) => /^COUNT=/i.test(part));
}

/**
 * How many of a rule's count are left from one on: those that take place, as the server says, without those that are in the list of
 * further ones, and with those that are left out.
 */
export function countFrom(source: Component, recurrence: string, instances: Occurrence[]): number {
  const cut = cutAt(copyOf(source), recurrence);
  if (!cut) return instances.length;
  const isLater = (time: Time | undefined) => time !== undefined && instant(time) >= instant(cut.time);
  const listed = (name: string) => cut.master.lines.filter((line) => line.name === name).flatMap((line) => values(line.value, ",").map((value) => timeOf(line, value.split("/")[0]))).filter(isLater).length;
  const taking = instances.filter(({ recurrence: one }) => isLater(recurrenceTime(one))).length;
  return Math.max(1, taking - listed("RDATE") + listed("EXDATE"));
}

/** What comes from one of a series on, as a series of its own that is as somebody wants it. `left` counts where the rule does. */
export function following(source: Component, { recurrence }: Pick<Occurrence, "recurrence">, fields: Fields, left: number, uid: string, now: number): Component | undefined {
  const calendar = copyOf(source);
  const cut = cutAt(calendar, recurrence);
  const before = fieldsOf(source, { recurrence });
  if (!cut || !before) return undefined;
  const { master, time } = cut;
  // What was an exception there is the rule now.
  keepExceptions(calendar, (ms) => ms > instant(time));
  keepTimes(master, (ms) => ms > instant(time));
  begin(master, time);
  const rule = lineOf(master, "RRULE")?.value ?? "";
  if (isCounted(source)) setLine(master, "RRULE", [...without(rule, "COUNT"), `COUNT=${left}`].join(";"));
  for (const part of calendar.parts.filter(({ name }) => name === "VEVENT")) {
    setLine(part, "UID", uid);
    setLine(part, "SEQUENCE", "0");
    askAgain(part);
  }
  const kept = lineOf(master, "RRULE")?.value ?? "";
  return changed(calendar, { recurrence: "" }, { ...fields, rule: fields.rule === before.rule ? kept : fields.rule }, "all", now);
}

/** Moves the start of an event, as long as it was. */
function begin(master: Component, time: Time): void {
  const [from, to] = ["DTSTART", "DTEND"].map((name) => timeOf(lineOf(master, name)));
  timeLine(master, "DTSTART", time);
  if (!from || !to) return;
  if (time.isDay && from.isDay && to.isDay) timeLine(master, "DTEND", { isDay: true, day: addDays(time.day, Math.round((instant(to) - instant(from)) / 86_400_000)) });
  else if (!time.isDay && !to.isDay && !from.isDay) timeLine(master, "DTEND", { isDay: false, ms: time.ms + to.ms - from.ms, zone: to.zone });
}
