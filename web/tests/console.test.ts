import assert from "node:assert/strict";
import test from "node:test";
import { compare, excerpt } from "../console/excerpt.ts";
import { findingsOf, flat, forecast, statisticOf, type Stats, type Task } from "../console/health.ts";
import { History } from "../console/history.ts";
import { stuck } from "../console/queue.ts";
import { fieldsOf } from "../console/selector.ts";
import { writtenValue, writtenValues } from "../console/settings.ts";

const leaf = (value: number, desc: string) => ({ value, type: "gauge", desc });
const healthy: Stats = {
  Disk: { Data: { Free: leaf(90e9, "Disk.Data.Free"), Size: leaf(100e9, "Disk.Data.Size") } },
  HTTP: { Connections: { ...leaf(3, "HTTP.Connections"), Shed: leaf(0, "HTTP.Connections.Shed") } },
};
const idle = { running: [] as Task[], ended: [] as Task[] };

test("a healthy server has no findings, and what is wrong is found, worst first", () => {
  assert.deepEqual(findingsOf({ up: { status: "ok" }, stats: healthy, tasks: idle, warnings: 0 }), []);
  const ill: Stats = { ...healthy, Mail: { Dead: leaf(2, "Mail.Dead") }, Server: { Faults: leaf(1, "Server.Faults") } };
  const found = findingsOf({ up: { status: "read_only", reason: "the disk is full" }, stats: ill, tasks: idle, warnings: 4 });
  assert.deepEqual(found.map(({ text, level }) => `${level} ${text}`), ["bad readOnly", "bad faults", "warn mailDead", "note warnings"]);
  assert.ok(found.every(({ href }) => href?.startsWith("#/")));
});

test("mail that waits long, a replication that fails and backups that are old or have no place are found", () => {
  const hour = 3_600_000;
  const now = Date.parse("2026-11-27T12:00:00Z");
  const destination = (name: string, hours: number, more = {}) => ({ destination: name, recipients: 1, bytes: 1, oldest: new Date(now - hours * hour).toISOString(), next: "", why: "it refuses", incoming: 0, active: 0, deferred: 1, hold: 0, dead: 0, ...more });
  const queue = [destination("young", 0.5), destination("old", 3), destination("older", 5), destination("held", 9, { deferred: 0, hold: 1 }), destination("unknown", 9, { why: null })];
  assert.deepEqual(stuck(queue, now).map((one) => one.destination), ["older", "old"]);
  const replications = [{ source: "a", target: "b", state: "running" }, { source: "c", target: "d", state: "crashing", info: { error: "it is away" } }];
  const saved = { ...healthy, Backup: { LastTime: leaf(now / 1000 - 3 * 86_400, "Backup.LastTime") } };
  const found = findingsOf({ up: { status: "ok" }, stats: saved, tasks: idle, warnings: 0, queue, replications, backupTargets: 1 }, undefined, now);
  assert.deepEqual(found.map(({ text }) => text), ["mailStuck", "mailStuck", "replicationFails", "backupOld"]);
  assert.deepEqual(findingsOf({ up: { status: "ok" }, stats: healthy, tasks: idle, warnings: 0, backupTargets: 0 }).map(({ text }) => text), ["noTargetsFinding"]);
});

test("a disk that both use is reported once", () => {
  const low = { Free: leaf(1e9, "x"), Size: leaf(100e9, "y") };
  const found = findingsOf({ up: { status: "ok" }, stats: { Disk: { Data: low, Log: low } }, tasks: idle, warnings: 0 });
  assert.deepEqual(found.map(({ text }) => text), ["diskLow"]);
});

test("statistics are found by their names, also those that have others below them", () => {
  assert.equal(statisticOf(healthy, "HTTP.Connections"), 3);
  assert.equal(statisticOf(healthy, "HTTP.Connections.Shed"), 0);
  assert.equal(statisticOf(healthy, "HTTP.None.x"), undefined);
  assert.deepEqual(flat(healthy).map(({ name }) => name), ["Disk.Data.Free", "Disk.Data.Size", "HTTP.Connections", "HTTP.Connections.Shed"]);
});

test("a forecast needs a fall and more than an hour", () => {
  const line = (hours: number, perHour: number) => Array.from({ length: 20 }, (_, index) => ({ time: (index * hours * 3_600_000) / 19, value: 1000 - (perHour * hours * index) / 19 }));
  const { days } = forecast(line(10, 10))!;
  assert.ok(Math.abs(days - 900 / 10 / 24) < 0.01);
  assert.equal(forecast(line(0.5, 10)), undefined);
  assert.equal(forecast(line(10, -10)), undefined);
  assert.equal(forecast(line(10, 0)), undefined);
  assert.equal(forecast([]), undefined);
});

test("a counter's growth begins again after a restart", () => {
  const at = (minute: number, count: number) => ({ Time: new Date(minute * 60_000).toISOString(), Requests: count });
  const rates = new History([at(0, 100), at(1, 160), at(2, 5), at(4, 25)]).rate("Requests");
  assert.deepEqual(rates.map(({ value }) => value), [60, 0, 10]);
});

test("an index for a query has the fields that are equal first", () => {
  assert.deepEqual(fieldsOf({ year: { $gt: 1980 }, genre: "Drama", _id: { $gt: null } }), ["genre", "year"]);
  assert.deepEqual(fieldsOf({ $and: [{ a: { $eq: 1 } }, { b: { c: { $lt: 3 } } }], $or: [{ d: 1 }] }), ["a", "b.c"]);
  assert.deepEqual(fieldsOf(null), []);
  let deep: { [name: string]: never } | { x: unknown } = {};
  for (let level = 0; level < 5000; level++) deep = { x: deep };
  assert.deepEqual(fieldsOf(deep as never), []);
});

test("documents are compared by member, differences first", () => {
  const rows = compare({ _id: "x", same: 1, mine: "a" }, { _id: "x", same: 1, theirs: "b", _rev: "2-x" });
  assert.deepEqual(rows.map(({ name, differs }) => `${name} ${differs}`), ["mine true", "theirs true", "_id false", "same false"]);
});

test("an excerpt is short, whatever a document holds", () => {
  assert.equal(excerpt({ _id: "x", _rev: "1-a", Subject: "Hello", n: 3 }), "Subject: Hello  ·  n: 3");
  assert.ok(excerpt({ long: "x".repeat(1e6), more: ["y".repeat(1e6)] }).length <= 240);
});

test("settings are shown as they are written", () => {
  const text = '[log]\ndir = "log"                # default\nmax_size = "4 GB"   # scrinium.toml\n\n[http]\nlisten = ["a:1", "b:2"]   # SCRINIUM_HTTP__LISTEN\nodd = "a # b"   # default\n';
  assert.deepEqual([...writtenValues(text)], [["log.dir", "log"], ["log.max_size", "4 GB"], ["http.listen", '["a:1", "b:2"]'], ["http.odd", "a # b"]]);
  assert.equal(writtenValue('log.archive_every = "1 min"    (default)\n  How often.\n'), "1 min");
  assert.equal(writtenValue("nothing"), undefined);
});
