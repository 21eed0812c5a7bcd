// Times of the day in zones, as the browser knows them.

/** A time as a clock on the wall shows it: `2026-11-27T09:30:00`, or `2026-11-27` for a whole day. */
export type Civil = string;

export const DAY_MS = 86_400_000;

/** The zone of this device. */
export const ownZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-CA-u-hc-h23", { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" });
    formats.set(zone, format);
  }
  return format;
}

/** Whether the browser knows a zone of this name. */
export function isZone(name: string): boolean {
  try {
    formatOf(name);
    return name !== "";
  } catch {
    return false;
  }
}

/** What a clock shows in a zone, as the browser's tables have it. That takes long. */
function lookedUp(ms: number, zone: string): Civil {
  const parts: { [type: string]: string } = {};
  for (const { type, value } of formatOf(zone).formatToParts(ms)) parts[type] = value;
  return `${parts["year"]!.padStart(4, "0")}-${parts["month"]}-${parts["day"]}T${parts["hour"]}:${parts["minute"]}:${parts["second"]}`;
}

const asUtc = (civil: Civil): number => Date.parse(`${civil.length === 10 ? `${civil}T00:00:00` : civil}Z`);

const lookedUpOffset = (ms: number, zone: string): number => asUtc(lookedUp(ms, zone)) - Math.floor(ms / 1000) * 1000;

/** Offsets at the beginnings of days, by zone and day since 1970. */
const offsets = new Map<string, Map<number, number>>();
/** More are forgotten, and looked up again. */
const OFFSETS_MAX = 20_000;
/** Before, clocks were changed in ways that nobody needs to be quick. */
const QUICK_FROM_MS = Date.UTC(1973, 0);
const QUICK_TO_MS = Date.UTC(9000, 0);

/** By how much a zone's clocks are ahead of UTC. A day on whose ends they are the same has that offset throughout. */
export function offsetAt(ms: number, zone: string): number {
  if (zone === "UTC") return 0;
  if (ms < QUICK_FROM_MS || ms > QUICK_TO_MS) return lookedUpOffset(ms, zone);
  let days = offsets.get(zone);
  if (!days || days.size > OFFSETS_MAX) offsets.set(zone, (days = new Map()));
  const day = Math.floor(ms / DAY_MS);
  const [first, next] = [day, day + 1].map((one) => {
    let offset = days.get(one);
    if (offset === undefined) days.set(one, (offset = lookedUpOffset(one * DAY_MS, zone)));
    return offset;
  });
  return first === next ? first! : lookedUpOffset(ms, zone);
}

/** What a clock shows in a zone. */
export function civilAt(ms: number, zone: string): Civil {
  if (ms < QUICK_FROM_MS || ms > QUICK_TO_MS) return lookedUp(ms, zone);
  return new Date(ms + offsetAt(ms, zone)).toISOString().slice(0, 19);
}

/** When a clock in a zone shows a time. Where it does so twice, the first time; where it never does, as long after midnight as it says. */
export function instantOf(civil: Civil, zone: string): number {
  const wanted = asUtc(civil);
  const around = [offsetAt(wanted - DAY_MS, zone), offsetAt(wanted + DAY_MS, zone)].sort((a, b) => b - a);
  const found = around.map((offset) => wanted - offset).find((ms) => asUtc(civilAt(ms, zone)) === wanted);
  // In the hour that is left out in spring: by the offset of before.
  return found ?? wanted - offsetAt(wanted - DAY_MS, zone);
}

/** A day a number of days later. */
export const addDays = (day: string, days: number): string => new Date(asUtc(day.slice(0, 10)) + days * DAY_MS).toISOString().slice(0, 10);

/** Days from one to another. */
export const daysBetween = (from: string, to: string): number => Math.round((asUtc(to.slice(0, 10)) - asUtc(from.slice(0, 10))) / DAY_MS);

/** The day of the week, Sunday 0. */
export const weekdayOf = (day: string): number => new Date(asUtc(day)).getUTCDay();

/** The day of the month a number of months later, or the month's last one. */
export function addMonths(day: string, months: number): string {
  const [year, month, date] = [Number(day.slice(0, 4)), Number(day.slice(5, 7)) - 1 + months, Number(day.slice(8, 10))];
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return new Date(Date.UTC(year, month, Math.min(date, last))).toISOString().slice(0, 10);
}

/** The number of a week as ISO 8601 counts it. */
export function weekOf(day: string): number {
  const thursday = addDays(day, 4 - (weekdayOf(day) || 7));
  return 1 + Math.floor(daysBetween(`${thursday.slice(0, 4)}-01-01`, thursday) / 7);
}

/** The day on which weeks begin where the person lives: Sunday 0. */
export function firstWeekday(locale: string): number {
  type WithWeek = Intl.Locale & { getWeekInfo?: () => { firstDay: number }; weekInfo?: { firstDay: number } };
  const known = new Intl.Locale(locale) as WithWeek;
  return ((known.getWeekInfo?.() ?? known.weekInfo)?.firstDay ?? 1) % 7;
}
