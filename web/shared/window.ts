// Which rows of a long list are made, and where they stand. Browsers cap the height of an element, so a list that would be
// higher is scrolled in proportion.

/** Lower than every browser's cap (Firefox: 17.9 million pixels). */
export const HEIGHT_MAX = 8_000_000;

export type Window = { first: number; last: number; offset: number; height: number };

/** The rows to make, with `spare` more on either side, and by how many pixels they are moved from the top. */
export function windowOf(count: number, rowHeight: number, scrolled: number, seen: number, spare = 12): Window {
  const whole = count * rowHeight;
  const height = Math.min(whole, HEIGHT_MAX);
  const most = Math.max(0, height - seen);
  const part = most === 0 ? 0 : Math.min(1, Math.max(0, scrolled / most));
  // The place in the whole list that is at the top of what is seen.
  const top = part * Math.max(0, whole - seen);
  const first = Math.max(0, Math.floor(top / rowHeight) - spare);
  const last = Math.min(count, Math.ceil((top + seen) / rowHeight) + spare);
  return { first, last, offset: Math.max(0, scrolled) - (top - first * rowHeight), height };
}

/** How far to scroll so that a row is seen; `undefined` where it is. */
export function scrollFor(row: number, count: number, rowHeight: number, scrolled: number, seen: number): number | undefined {
  const whole = count * rowHeight;
  const height = Math.min(whole, HEIGHT_MAX);
  const most = Math.max(0, height - seen);
  const scale = most === 0 ? 0 : Math.max(0, whole - seen) / most;
  const top = scrolled * scale;
  const wanted = row * rowHeight;
  if (wanted >= top && wanted + rowHeight <= top + seen) return undefined;
  const target = wanted < top ? wanted : wanted + rowHeight - seen;
  return scale === 0 ? 0 : target / scale;
}

/** Pages of a list by their number, of which those that were not used for longest go. */
export class Pages<T> {
  private pages = new Map<number, T[]>();
  private expired = new Set<number>();

  constructor(readonly size: number, private most = 40) {}

  row(position: number): T | undefined {
    return this.pages.get(Math.floor(position / this.size))?.[position % this.size];
  }

  has(page: number): boolean {
    const found = this.pages.get(page);
    if (!found || this.expired.has(page)) return false;
    this.pages.delete(page);
    this.pages.set(page, found);
    return true;
  }

  put(page: number, rows: T[]): void {
    this.expired.delete(page);
    this.pages.set(page, rows);
    for (const oldest of this.pages.keys()) {
      if (this.pages.size <= this.most) break;
      this.pages.delete(oldest);
      this.expired.delete(oldest);
    }
  }

  /** All are to be fetched again; until then they are shown as they were. */
  expire(): void {
    for (const page of this.pages.keys()) this.expired.add(page);
  }
}
