// Where events stand next to each other.

export type Placed<T> = { item: T; column: number; columns: number };
type Span = { start: number; end: number };

/** Shown as long as this, so that it can be read. */
export const LEAST_MS = 25 * 60_000;

/** Columns for events of one day: those that overlap stand next to each other, and each group takes the whole width. */
export function columnsOf<T extends Span>(items: T[]): Placed<T>[] {
  const sorted = [...items].sort((a, b) => a.start - b.start || b.end - a.end);
  const placed: Placed<T>[] = [];
  let group: Placed<T>[] = [];
  let ends: number[] = [];
  let groupEnd = -Infinity;
  const close = () => {
    for (const one of group) one.columns = ends.length;
    group = [];
    ends = [];
  };
  for (const item of sorted) {
    const end = Math.max(item.end, item.start + LEAST_MS);
    if (item.start >= groupEnd) close();
    const free = ends.findIndex((taken) => taken <= item.start);
    const column = free < 0 ? ends.length : free;
    ends[column] = end;
    groupEnd = group.length === 0 ? end : Math.max(groupEnd, end);
    const one = { item, column, columns: 1 };
    group.push(one);
    placed.push(one);
  }
  close();
  return placed;
}

export type Days = { from: string; to: string; isDay: boolean };

/** The days that an event touches: of one that ends at midnight, not the next. */
export function lastDayOf({ from, to, isDay }: Days, before: (day: string) => string): string {
  if (isDay || (to.slice(11) === "00:00:00" && to > from)) return before(to.slice(0, 10));
  return to.slice(0, 10);
}
