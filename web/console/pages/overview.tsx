// Overview: whether the server is healthy, what it does, and what will run out.

import type { ComponentChildren } from "preact";
import { ask, command, type Json } from "../../shared/api.ts";
import { Chart } from "../../shared/chart.tsx";
import { useResource } from "../../shared/data.ts";
import { bytes, duration, moment, number } from "../../shared/i18n.ts";
import { hashOf } from "../../shared/route.ts";
import { Loaded } from "../../shared/ui.tsx";
import { findingsOf, forecast, statisticOf, type Finding, type Replication, type Stats, type Task } from "../health.ts";
import { history, type History } from "../history.ts";
import type { Queued } from "../queue.ts";
import { t } from "../texts.ts";

type Server = { name: string; version: string; elapsed_seconds: number; users: number; transactions_last_minute: number; transactions_per_minute_peak: number };
type Operation = { function: string; count: number; total_ms: number; average_ms: number; p95_ms: number; p99_ms: number };
type Seen = { up: { status: string; reason?: string; frozen_seconds?: number }; stats: Stats; server: Server; tasks: { running: Task[]; ended: Task[] }; operations: Operation[]; warnings: number; queue: Queued["destinations"]; replications: Replication[]; backupTargets: number };

async function look(): Promise<Seen> {
  const [up, stats, server, tasks, operations, warnings, queue, replications, targets] = await Promise.all([
    ask<Seen["up"]>("GET", "_up"),
    ask<Stats>("GET", "_stats"),
    command<Server>("show server"),
    command<Seen["tasks"]>("show tasks"),
    command<{ transactions?: Operation[]; [member: string]: Json | Operation[] | undefined }>("show transactions"),
    command<{ documents?: Json[] }>("show log 1h -l warn -n 100").catch(() => ({ data: {} as { documents?: Json[] } })),
    // A server that sends nothing to others has no queue.
    command<Queued>("show queue").catch(() => ({ data: { destinations: [] } })),
    ask<{ jobs: Replication[] }>("GET", "_scheduler/jobs", { limit: 200 }),
    command<{ value: Json }>("show configuration backup.targets"),
  ]);
  const listed = Object.values(operations.data).find(Array.isArray) as Operation[] | undefined;
  return { up, stats, server: server.data, tasks: tasks.data, operations: listed ?? [], warnings: warnings.data.documents?.length ?? 0, queue: queue.data.destinations, replications: replications.jobs, backupTargets: Array.isArray(targets.data.value) ? targets.data.value.length : 0 };
}

export function Page() {
  const seen = useResource("overview", look, 5000);
  const past = useResource("overview-past", () => history(60), 60_000);
  const days = useResource("overview-days", () => history(60 * 24 * 7), 600_000);
  return (
    <>
      <h1>{t("overview")}</h1>
      <Loaded of={seen}>{(now) => <Now seen={now} past={past.data.value} days={days.data.value} />}</Loaded>
    </>
  );
}

function Now({ seen, past, days }: { seen: Seen; past: History | undefined; days: History | undefined }) {
  const free = statisticOf(seen.stats, "Disk.Data.Free");
  const size = statisticOf(seen.stats, "Disk.Data.Size");
  const left = forecast(days?.of("Disk.Data.Free") ?? []);
  const findings = findingsOf(seen, left);
  const backup = statisticOf(seen.stats, "Backup.LastTime") ?? 0;
  const budget = (statisticOf(seen.stats, "Database.BufferPool.Maximum.Megabytes") ?? 0) * 1024 * 1024;
  return (
    <>
      <Verdict findings={findings} />
      <div class="cards">
        <Tile title={t("perMinute")} value={number(seen.server.transactions_last_minute)} href={hashOf(["statistics"], { name: "Transactions per minute" })}>{t("peak", { n: seen.server.transactions_per_minute_peak })}</Tile>
        <Tile title={t("users")} value={number(seen.server.users)} href={hashOf(["log"], { kind: "logins" })}>{t("upSince", { time: duration(seen.server.elapsed_seconds) })}</Tile>
        <Tile title={t("memory")} value={bytes(statisticOf(seen.stats, "Database.BufferPool.Used"))} href={hashOf(["statistics"], { name: "Buffer pool bytes" })}>{t("ofBudget", { budget: bytes(budget) })}</Tile>
        <Tile title={t("diskFree")} value={bytes(free)} href={hashOf(["statistics"], { name: "Disk.Data.Free" })}>{left ? t("diskDays", { hours: Math.round(left.hours), days: Math.ceil(left.days) }) : `/ ${bytes(size)}`}</Tile>
        <Tile title={t("mailWaiting")} value={number(statisticOf(seen.stats, "Mail.Waiting"))} href={hashOf(["mail"])}>{t("dead", { n: statisticOf(seen.stats, "Mail.Dead") ?? 0 })}</Tile>
        <Tile title={t("runningTasks")} value={number(seen.tasks.running.length)} href={hashOf(["tasks"])}>{backup > 0 ? t("lastBackup", { time: moment(backup * 1000) }) : t("noBackup")}</Tile>
      </div>
      <div class="two">
        <section class="card"><Chart title={t("perMinute")} points={past?.of("Transactions per minute") ?? []} /></section>
        <section class="card"><Chart title={t("memory")} points={past?.of("Buffer pool bytes") ?? []} format={bytes} /></section>
      </div>
      <Advice />
      <section class="card">
        <h2>{t("slowest")}</h2>
        <div class="scrolls" tabIndex={0} role="region" aria-label={t("slowest")}>
          <table>
            <thead><tr><th scope="col">{t("operation")}</th><th scope="col" class="numeric">{t("count")}</th><th scope="col" class="numeric">{t("average")} (ms)</th><th scope="col" class="numeric">p95 (ms)</th><th scope="col" class="numeric">p99 (ms)</th></tr></thead>
            <tbody>
              {[...seen.operations].sort((a, b) => b.total_ms - a.total_ms).slice(0, 12).map((operation) => (
                <tr><td><a href={hashOf(["log"], { kind: "slow", find: operation.function })}>{operation.function}</a></td><td class="numeric">{number(operation.count)}</td><td class="numeric">{number(operation.average_ms, 2)}</td><td class="numeric">{number(operation.p95_ms, 2)}</td><td class="numeric">{number(operation.p99_ms, 2)}</td></tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
    </>
  );
}

function Verdict({ findings }: { findings: Finding[] }) {
  const worst = findings.some(({ level }) => level === "bad") ? "bad" : findings.some(({ level }) => level === "warn") ? "warn" : "good";
  const counted = findings.filter(({ level }) => level !== "note").length;
  return (
    <section class="card" aria-label={t("health")}>
      <div class="verdict"><span class={`dot ${worst}`} /><h2>{counted === 0 ? t("healthy") : t("unhealthy", { n: counted })}</h2></div>
      {findings.length > 0 && (
        <ul class="findings">
          {findings.map((finding) => <li class={finding.level}><span dir="auto">{t(finding.text, finding.values)}</span>{finding.href && <a class="button" href={finding.href}>{t("lookAt")}</a>}</li>)}
        </ul>
      )}
      <p class="quiet" style={{ marginBlockStart: ".6rem" }}>{t("adviseHint")}</p>
    </section>
  );
}

type Step = { kind: "set" | "console" | "by_hand"; key?: string; command?: string; used?: string; text?: string };
type Advised = { advice: { rule: string; title: string; means: string; change: Step[] }[] };

/** Rules look at the whole time since the start, which changes slowly. */
const ADVICE_EVERY_MS = 300_000;

function Advice() {
  const advised = useResource("advice", async () => (await command<Advised>("show advice")).data, ADVICE_EVERY_MS);
  return (
    <section class="card" aria-label={t("advice")}>
      <h2>{t("advice")}</h2>
      <Loaded of={advised}>{({ advice }) => (advice.length === 0 ? <p class="quiet">{t("adviceNone")}</p> : (
        <ol class="advice">{advice.map(({ rule, title, means, change }) => (
          <li key={rule}><strong>{title}</strong><p>{means}</p>
            <ul>{change.map((step) => <li><AdvisedStep step={step} /></li>)}</ul></li>
        ))}</ol>
      ))}</Loaded>
    </section>
  );
}

function AdvisedStep({ step }: { step: Step }) {
  if (step.kind === "by_hand") return <span>{step.text}</span>;
  return (
    <>
      <code>{step.command}</code>
      {step.kind === "set" && <>{" "}<a href={hashOf(["configuration"], { key: step.key })}>{t("lookAt")}</a>{step.used === "next start" && <span class="quiet"> {t("usedNextStart")}</span>}</>}
    </>
  );
}

function Tile({ title, value, href, children }: { title: string; value: string; href: string; children: ComponentChildren }) {
  return <a class="card tile" href={href}><span class="quiet">{title}</span><b>{value}</b><span class="quiet">{children}</span></a>;
}
