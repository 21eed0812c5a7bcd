// When people have time together.

import type { Busy } from "./dav.ts";
import { addDays, civilAt, DAY_MS, instantOf, weekdayOf } from "./zone.ts";

/** Hours of the day in which a meeting is looked for. */
export const WORK_FROM = 8;
export const WORK_TO = 18;
/** Meetings begin at these minutes. */
const STEP_MS = 15 * 60_000;
/** Looked through for a time. */
export const SEARCHED_DAYS = 30;

const hour = (day: string, at: number): string => `${day}T${String(at).padStart(2, "0")}:00:00`;

/** Times that overlap or touch, as one. */
export function merged(all: Busy[]): Busy[] {
  const found: Busy[] = [];
  for (const one of [...all].sort((a, b) => a.start - b.start)) {
    const last = found.at(-1);
    if (last && one.start <= last.end) last.end = Math.max(last.end, one.end);
    else found.push({ ...one });
  }
  return found;
}

/** Times without a part of them: what a meeting itself takes is free for it. */
export function withoutSpan(all: Busy[], span: { start: number; end: number } | undefined): Busy[] {
  if (!span) return all;
  return all.flatMap((one) => {
    if (one.end <= span.start || one.start >= span.end) return [one];
    return [{ ...one, end: span.start }, { ...one, start: span.end }].filter(({ start, end }) => end > start);
  });
}

export const isFreeIn = (busy: Busy[], start: number, end: number): boolean => !busy.some((one) => one.start < end && one.end > start);

/**
 * The first moment from which everybody has time for a while, in the hours of work of a weekday. What is longer than a day of work may
 * begin at the beginning of one. `undefined`: there is none within the days that are looked through.
 */
export function nextFree(busy: Busy[][], lengthMs: number, from: number, zone: string): number | undefined {
  const all = merged(busy.flat());
  const first = civilAt(from, zone).slice(0, 10);
  for (let number = 0; number < SEARCHED_DAYS; number++) {
    const day = addDays(first, number);
    if (weekdayOf(day) === 0 || weekdayOf(day) === 6) continue;
    const [opens, closes] = [instantOf(hour(day, WORK_FROM), zone), instantOf(hour(day, WORK_TO), zone)];
    const latest = Math.max(opens, closes - lengthMs);
    let start = Math.max(opens, Math.ceil(from / STEP_MS) * STEP_MS);
    while (start <= latest) {
      const taken = all.find((one) => one.start < start + Math.max(lengthMs, 1) && one.end > start);
      if (!taken) return start;
      start = Math.ceil(taken.end / STEP_MS) * STEP_MS;
    }
  }
  return undefined;
}

/** The span in which busy time is asked for: days before and after a meeting, so that it may be moved. */
export const askedSpan = (start: number): [number, number] => [start - DAY_MS, start + (SEARCHED_DAYS + 1) * DAY_MS];
