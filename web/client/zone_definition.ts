// Definitions of zones (VTIMEZONE, RFC 5545, section 3.6.5): who gets an event need not know the zone that it names.

import { lineOf, parameterOf, setLine, type Component, type Line } from "./content.ts";
import { timeOf } from "./event.ts";
import { addDays, civilAt, DAY_MS, isZone, offsetAt, weekdayOf, type Civil } from "./zone.ts";

/** Years whose changes of the clock are looked at, from the year before an event. */
const YEARS = 12;
/** Within these days no zone changes twice. */
const STEP_DAYS = 7;
const WEEKDAYS = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];

type Change = { ms: number; from: number; to: number; /** By the clock of before. */ civil: Civil };

const basic = (civil: Civil): string => civil.replace(/[-:]/g, "");

/** An offset as calendars write it. */
function offsetText(ms: number): string {
  const seconds = Math.abs(ms) / 1000;
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  return `${ms < 0 ? "-" : "+"}${two(seconds / 3600)}${two((seconds / 60) % 60)}${seconds % 60 ? two(seconds % 60) : ""}`;
}

/** The changes of a zone's clocks in a span. */
function changesOf(zone: string, from: number, to: number): Change[] {
  const found: Change[] = [];
  for (let start = from; start < to; start += STEP_DAYS * DAY_MS) {
    const [before, after] = [offsetAt(start, zone), offsetAt(start + STEP_DAYS * DAY_MS, zone)];
    if (before === after) continue;
    let [low, high] = [start, start + STEP_DAYS * DAY_MS];
    while (high - low > 1000) {
      const middle = Math.floor((low + high) / 2000) * 1000;
      if (offsetAt(middle, zone) === before) low = middle;
      else high = middle;
    }
    found.push({ ms: high, from: before, to: after, civil: civilAt(high + before, "UTC") });
  }
  return found;
}

const lastDayOfMonth = (day: string): number => Number(addDays(`${addDays(`${day.slice(0, 7)}-28`, 4).slice(0, 7)}-01`, -1).slice(8, 10));

/** The rule that changes of several years follow, if they follow one: a day of the week, counted from the beginning or the end of a month. */
function ruleOf(changes: Change[]): string | undefined {
  const [first] = changes;
  if (!first || changes.length < YEARS - 2) return undefined;
  const years = changes.map(({ civil }) => Number(civil.slice(0, 4)));
  const isYearly = years.every((year, index) => year === years[0]! + index);
  const isAlike = changes.every(({ civil }) => civil.slice(5, 7) === first.civil.slice(5, 7) && civil.slice(10) === first.civil.slice(10) && weekdayOf(civil.slice(0, 10)) === weekdayOf(first.civil.slice(0, 10)));
  if (!isYearly || !isAlike) return undefined;
  const days = changes.map(({ civil }) => ({ day: Number(civil.slice(8, 10)), last: lastDayOfMonth(civil.slice(0, 10)) }));
  const which = (number: string) => `FREQ=YEARLY;BYMONTH=${Number(first.civil.slice(5, 7))};BYDAY=${number}${WEEKDAYS[weekdayOf(first.civil.slice(0, 10))]}`;
  if (days.every(({ day, last }) => day > last - 7)) return which("-1");
  const week = Math.ceil(days[0]!.day / 7);
  return days.every(({ day }) => Math.ceil(day / 7) === week) ? which(String(week)) : undefined;
}

function observance(changes: Change[], isDaylight: boolean): Component {
  const [first] = changes;
  const rule = ruleOf(changes);
  const line = (name: string, value: string): Line => ({ name, parameters: [], value });
  const lines = [line("DTSTART", basic(first!.civil)), line("TZOFFSETFROM", offsetText(first!.from)), line("TZOFFSETTO", offsetText(first!.to))];
  if (rule) lines.push(line("RRULE", rule));
  else if (changes.length > 1) lines.push(line("RDATE", changes.slice(1).map(({ civil }) => basic(civil)).join(",")));
  return { name: isDaylight ? "DAYLIGHT" : "STANDARD", lines, parts: [] };
}

/** What a zone is from the year before a moment on. */
export function zoneDefinition(zone: string, at: number): Component {
  const year = new Date(at).getUTCFullYear();
  const [from, to] = [Date.UTC(year - 1, 0), Date.UTC(year - 1 + YEARS, 0)];
  const definition: Component = { name: "VTIMEZONE", lines: [], parts: [] };
  setLine(definition, "TZID", zone);
  const changes = changesOf(zone, from, to);
  if (changes.length === 0) {
    const offset = offsetAt(at, zone);
    definition.parts.push(observance([{ ms: 0, from: offset, to: offset, civil: "1970-01-01T00:00:00" }], false));
    return definition;
  }
  // Those that change the clocks alike belong together.
  const alike = new Map<string, Change[]>();
  for (const change of changes) {
    const key = `${change.from} ${change.to}`;
    alike.set(key, [...(alike.get(key) ?? []), change]);
  }
  definition.parts.push(...[...alike.values()].map((group) => observance(group, group[0]!.to > group[0]!.from)));
  return definition;
}

/** A calendar with definitions of all zones that its events name and that it does not define itself. */
export function withZones(calendar: Component): Component {
  const defined = new Set(calendar.parts.filter(({ name }) => name === "VTIMEZONE").map((part) => lineOf(part, "TZID")?.value.trim()));
  const missing = new Map<string, number>();
  for (const part of calendar.parts.filter(({ name }) => name !== "VTIMEZONE")) {
    const start = timeOf(lineOf(part, "DTSTART")) ?? timeOf(lineOf(part, "DUE"));
    for (const line of part.lines) {
      const zone = parameterOf(line, "TZID");
      if (zone && !defined.has(zone) && isZone(zone)) missing.set(zone, Math.min(missing.get(zone) ?? Infinity, start && !start.isDay ? start.ms : Infinity));
    }
  }
  const definitions = [...missing].map(([zone, at]) => zoneDefinition(zone, Number.isFinite(at) ? at : Date.now()));
  return definitions.length === 0 ? calendar : { ...calendar, parts: [...definitions, ...calendar.parts] };
}
