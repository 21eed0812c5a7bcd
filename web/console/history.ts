// Statistics of the past, from the log database.

import { ask, type Json } from "../shared/api.ts";
import type { Point } from "../shared/chart.tsx";

type Row = { doc?: { Time?: string; [name: string]: Json | undefined } };

/** As many points as a chart shows; more are thinned by asking for parts. */
const DOCUMENTS_MAX = 400;

/** The names that the log database's view has for what is computed. */
const COMPUTED: { [name: string]: (now: Row["doc"]) => number | undefined } = {
  "Transactions per minute": (now) => numberOf(now, "Server.Trans.PerMinute"),
  "Buffer pool bytes": (now) => numberOf(now, "Database.BufferPool.Used"),
};

function numberOf(document: Row["doc"], name: string): number | undefined {
  const value = document?.[name];
  return typeof value === "number" ? value : undefined;
}

export class History {
  constructor(private documents: NonNullable<Row["doc"]>[]) {}

  /** A statistic's values. */
  of(name: string): Point[] {
    return this.documents.flatMap((document) => {
      const value = COMPUTED[name]?.(document) ?? numberOf(document, name);
      const time = Date.parse(document.Time ?? "");
      return value === undefined || Number.isNaN(time) ? [] : [{ time, value }];
    });
  }

  /** Names of all statistics that are there. */
  names(): string[] {
    const last = this.documents.at(-1) ?? {};
    return [...Object.keys(COMPUTED), ...Object.keys(last).filter((name) => typeof last[name] === "number")];
  }

  /** A counter's growth per minute. */
  rate(name: string): Point[] {
    const points = this.of(name);
    return points.slice(1).flatMap((point, index) => {
      const before = points[index]!;
      const minutes = (point.time - before.time) / 60_000;
      // A restart begins to count from zero.
      return minutes > 0 ? [{ time: point.time, value: Math.max(0, point.value - before.value) / minutes }] : [];
    });
  }
}

/** What was recorded in the last minutes: each minute, or each hour where that would be too much. */
export async function history(minutes: number): Promise<History> {
  const kind = minutes > DOCUMENTS_MAX ? "hourly" : "statistics";
  const found = await statistics(kind, minutes);
  // A young server has no hours yet.
  if (kind === "hourly" && found.length < 5) return new History(await statistics("statistics", DOCUMENTS_MAX));
  return new History(found);
}

async function statistics(kind: string, minutes: number): Promise<NonNullable<Row["doc"]>[]> {
  const since = new Date(Date.now() - minutes * 60_000).toISOString();
  const { rows } = await ask<{ rows: Row[] }>("GET", "log/_all_docs", {
    startkey: JSON.stringify(`${kind}:\ufff0`), endkey: JSON.stringify(`${kind}:${since}`), descending: true, include_docs: true, limit: DOCUMENTS_MAX,
  });
  return rows.flatMap(({ doc }) => (doc ? [doc] : [])).reverse();
}
