// What is wrong with a server, and what will run out, going by what it says of itself.

import type { Point } from "../shared/chart.tsx";
import type { Json } from "../shared/api.ts";
import { bytes } from "../shared/i18n.ts";
import { hashOf } from "../shared/route.ts";
import { stuck, type Destination } from "./queue.ts";
import type { t } from "./texts.ts";

/** `_stats`: a tree whose leaves have a value. */
export type Stats = { [name: string]: Json };
export type Task = {
  task: number; kind: string; database: string | null; done: number; total: number | null; percent: number | null; per_second: number; remaining_seconds: number | null;
  started_on: number; updated_on: number; state: string; reason: string | null; cancel_requested: boolean; paused: boolean; details: Json;
};
export type Finding = { level: "note" | "warn" | "bad"; text: Parameters<typeof t>[0]; values: { [name: string]: string | number }; href?: string };

/** A statistic by its name with dots. */
export function statisticOf(stats: Stats, name: string): number | undefined {
  let found: Json | undefined = stats;
  for (const part of name.split(".")) {
    if (found === null || typeof found !== "object" || Array.isArray(found)) return undefined;
    found = found[part];
  }
  const value = found && typeof found === "object" && !Array.isArray(found) ? found["value"] : undefined;
  return typeof value === "number" ? value : undefined;
}

/** All statistics by their names. */
export function flat(stats: Stats, prefix = ""): { name: string; value: number; type: string }[] {
  return Object.entries(stats).flatMap(([part, found]) => {
    if (found === null || typeof found !== "object" || Array.isArray(found)) return [];
    const { value, type, desc, ...rest } = found;
    const own = typeof value === "number" && typeof desc === "string" ? [{ name: prefix + part, value, type: String(type) }] : [];
    return [...own, ...flat(rest as Stats, `${prefix}${part}.`)];
  });
}

/** When what is free will be used up, going by a line through what was measured; nothing where it does not shrink. */
export function forecast(points: Point[]): { days: number; hours: number } | undefined {
  if (points.length < 5) return undefined;
  const origin = points[0]!.time;
  const at = (point: Point) => (point.time - origin) / 3_600_000;
  const meanTime = points.reduce((sum, point) => sum + at(point), 0) / points.length;
  const meanValue = points.reduce((sum, point) => sum + point.value, 0) / points.length;
  const spread = points.reduce((sum, point) => sum + (at(point) - meanTime) ** 2, 0);
  const slope = points.reduce((sum, point) => sum + (at(point) - meanTime) * (point.value - meanValue), 0) / (spread || 1);
  const last = points.at(-1)!;
  const hours = at(last);
  const days = -last.value / slope / 24;
  // A line through less than an hour says nothing of days.
  return slope < 0 && hours >= 1 && days < 365 ? { days, hours } : undefined;
}

export type Replication = { source: string; target: string; state: string; info?: { error?: string | null } | null };
type Seen = {
  up: { status: string; reason?: string; frozen_seconds?: number }; stats: Stats; tasks: { ended: Task[] }; warnings: number;
  queue?: Destination[]; replications?: Replication[]; backupTargets?: number;
};

/** A backup should be younger than this. */
const BACKUP_OLD_DAYS = 2;

/** What does not reach others, and what would not come back. */
function elsewhere({ stats, queue = [], replications = [], backupTargets }: Seen, now: number): Finding[] {
  const found: Finding[] = stuck(queue, now).slice(0, 3).map(({ destination, oldest, why }) => (
    { level: "warn", text: "mailStuck", values: { name: destination, time: oldest, reason: why ?? "" }, href: hashOf(["mail"], { of: destination }) }
  ));
  for (const { source, target, info } of replications.filter(({ state }) => state === "crashing" || state === "failed").slice(0, 3)) {
    found.push({ level: "warn", text: "replicationFails", values: { source, target, reason: info?.error ?? "" }, href: hashOf(["replication"]) });
  }
  const last = statisticOf(stats, "Backup.LastTime") ?? 0;
  const days = Math.floor((now / 1000 - last) / 86_400);
  if (backupTargets === 0) found.push({ level: "note", text: "noTargetsFinding", values: {}, href: hashOf(["backups"]) });
  else if (last > 0 && days >= BACKUP_OLD_DAYS) found.push({ level: "warn", text: "backupOld", values: { days }, href: hashOf(["backups"]) });
  return found;
}

/** What an administrator should look at, worst first. */
export function findingsOf(seen: Seen, left?: { days: number; hours: number }, now = Date.now()): Finding[] {
  const { up, stats, tasks, warnings } = seen;
  const found: Finding[] = [];
  const value = (name: string) => statisticOf(stats, name) ?? 0;
  if (up.status === "read_only") found.push({ level: "bad", text: "readOnly", values: { reason: up.reason ?? "" }, href: hashOf(["log"], { level: "warn" }) });
  if (up.frozen_seconds) found.push({ level: "warn", text: "frozen", values: { seconds: up.frozen_seconds }, href: hashOf(["tasks"]) });
  for (const disk of ["Data", "Log"]) {
    const [free, size] = [value(`Disk.${disk}.Free`), value(`Disk.${disk}.Size`)];
    const isLow = size > 0 && free < size / 10;
    if (isLow && (disk === "Data" || free !== value("Disk.Data.Free"))) {
      found.push({ level: free < size / 33 ? "bad" : "warn", text: "diskLow", values: { free: bytes(free), name: disk.toLowerCase() }, href: hashOf(["statistics"], { name: `Disk.${disk}.Free` }) });
    }
  }
  if (left && left.days < 30) found.push({ level: left.days < 3 ? "bad" : "warn", text: "diskDays", values: { hours: Math.round(left.hours), days: Math.ceil(left.days) }, href: hashOf(["databases"], { sort: "size" }) });
  if (value("Mail.Dead") > 0) found.push({ level: "warn", text: "mailDead", values: { n: value("Mail.Dead") }, href: hashOf(["mail"]) });
  found.push(...elsewhere(seen, now));
  if (value("Server.Faults") > 0) found.push({ level: "bad", text: "faults", values: { n: value("Server.Faults") }, href: hashOf(["log"], { level: "error" }) });
  if (value("Database.PassedOver") > 0) found.push({ level: "bad", text: "passedOver", values: { n: value("Database.PassedOver") }, href: hashOf(["tasks"], { command: "load fixup *" }) });
  for (const task of tasks.ended.filter(({ state }) => state === "failed").slice(0, 3)) {
    found.push({ level: "warn", text: "taskFailed", values: { kind: task.kind, reason: task.reason ?? "" }, href: hashOf(["tasks"]) });
  }
  if (warnings > 0) found.push({ level: "note", text: "warnings", values: { n: warnings }, href: hashOf(["log"], { level: "warn" }) });
  const order = { bad: 0, warn: 1, note: 2 };
  return found.sort((a, b) => order[a.level] - order[b.level]);
}
