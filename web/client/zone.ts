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

/** What a clock shows in a zone. */
export function civilAt(ms: number, zone: string): Civil {
  const parts: { [type: string]: string } = {};
  for (const { type, value } of formatOf(zone).formatToParts(ms)) parts[type] = value;
  return `${parts["year"]!.padStart(4, "0")}-${parts["month"]}-${parts["day"]}T${parts["hour"]}:${parts["minute"]}:${parts["second"]}`;
}

const asUtc = (civil: Civil): number => Date.parse(`${civil.length === 10 ? `${civil}T00:00:00` : civil}Z`);

/** When a clock in a zone shows a time. Where it does so twice, the first time; where it never does, as long after midnight as it says. */
export function instantOf(civil: Civil, zone: string): number {
  const wanted = asUtc(civil);
  const offsetAt = (ms: number) => asUtc(civilAt(ms, zone)) - ms;
  const offsets = [offsetAt(wanted - DAY_MS), offsetAt(wanted + DAY_MS)].sort((a, b) => b - a);
  const found = offsets.map((offset) => wanted - offset).find((ms) => asUtc(civilAt(ms, zone)) === wanted);
  // In the hour that is left out in spring: by the offset of before.
  return found ?? wanted - offsetAt(wanted - DAY_MS);
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
