// The log database: what happened, by kind and time, live, and one line in full.

import { useState } from "preact/hooks";
import { ask, command, type Document, type Json } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { Grid, type Column } from "../../shared/grid.tsx";
import { moment } from "../../shared/i18n.ts";
import { change, place } from "../../shared/route.ts";
import { Empty, Loaded } from "../../shared/ui.tsx";
import { excerpt } from "../excerpt.ts";
import { t } from "../texts.ts";

type Line = Document & { Time: string };

/** Kinds of documents by the beginning of their ids. */
const KINDS = [["events", "event"], ["slow", "slow"], ["mail", "mail"], ["logins", "login"], ["audit", "audit"], ["usage", "usage"], ["taskRuns", "task"]] as const;
const SPANS = { hour: 1, day: 24, week: 24 * 7, year: 24 * 365 } as const;
const LINES_MAX = 2000;

export function Page() {
  const { kind = "events", span = "hour", level = "", find = "" } = place.value.parameters;
  const [prefix] = KINDS.filter(([id]) => id === kind).map(([, prefix]) => prefix);
  const hours = SPANS[span as keyof typeof SPANS] ?? 1;
  const lines = useResource(`log ${kind} ${span}`, async () => {
    const since = new Date(Date.now() - hours * 3_600_000).toISOString();
    const database = await logDatabase();
    const { rows } = await ask<{ rows: { doc?: Line }[] }>("GET", `${encodeURIComponent(database)}/_all_docs`, {
      startkey: JSON.stringify(`${prefix}:\ufff0`), endkey: JSON.stringify(`${prefix}:${since}`), descending: true, include_docs: true, limit: LINES_MAX,
    });
    return rows.flatMap(({ doc }) => (doc ? [doc] : []));
  }, 5000);
  const [chosen, setChosen] = useState<Line>();
  return (
    <>
      <h1>{t("log")}</h1>
      <div class="filters" role="group" aria-label={t("kind")}>
        {KINDS.map(([id]) => <button type="button" aria-pressed={id === kind} onClick={() => { change({ kind: id }); setChosen(undefined); }}>{t(id)}</button>)}
      </div>
      <div class="filters">
        <select aria-label={t("since")} value={span} onChange={(event) => change({ span: event.currentTarget.value })}>
          {(Object.keys(SPANS) as (keyof typeof SPANS)[]).map((id) => <option value={id}>{t(id)}</option>)}
        </select>
        {kind === "events" && (
          <select aria-label={t("level")} value={level} onChange={(event) => change({ level: event.currentTarget.value })}>
            <option value="">{t("anyLevel")}</option><option value="warn">{t("warnAndUp")}</option><option value="error">{t("errorsOnly")}</option>
          </select>
        )}
        <input type="search" aria-label={t("containing")} placeholder={t("containing")} value={find} onInput={(event) => change({ find: event.currentTarget.value })} />
      </div>
      <div class={`fills split ${chosen ? "has-detail" : "single"}`}>
        <Loaded of={lines}>{(all) => {
          const shown = all.filter((line) => hasLevel(line, level) && JSON.stringify(line).toLowerCase().includes(find.toLowerCase()));
          if (shown.length === 0) return <Empty title={t("noLines")}><p>{t("noLinesHint")}</p></Empty>;
          return (
            <Grid label={t(kind as "events")} columns={columnsOf(kind)} count={shown.length} source={`${kind} ${span} ${level} ${find}`} version={`${shown[0]!._id} ${shown.length}`}
              fetchPage={async (start, limit) => shown.slice(start, start + limit)} open={setChosen} />
          );
        }}</Loaded>
        {chosen && <Detail line={chosen} close={() => setChosen(undefined)} />}
      </div>
      <p class="quiet" role="status">{lines.data.value && (lines.data.value.length === LINES_MAX ? t("linesFirst", { n: LINES_MAX }) : t("lines", { n: lines.data.value.length }))}</p>
    </>
  );
}

let name: Promise<string> | undefined;

/** The log database's name, which is a setting. */
export function logDatabase(): Promise<string> {
  name ??= command<{ value: string }>("show configuration log_database.name").then(({ data }) => data.value || "log", () => "log");
  return name;
}

function hasLevel(line: Line, level: string): boolean {
  if (!level) return true;
  return line["Level"] === "error" || (level === "warn" && line["Level"] === "warn");
}

const TONES: { [word: string]: string } = { error: "bad", warn: "warn", failed: "bad", dead: "bad", refused: "warn", "refused and locked": "bad", locked: "warn", accepted: "good", delivered: "good", finished: "good" };

function pill(value: Json | undefined) {
  return <span class={`pill ${TONES[String(value)] ?? ""}`}>{String(value ?? "")}</span>;
}

function columnsOf(kind: string): Column<Line>[] {
  const plain = (title: string, member: string, width = "minmax(6rem, 1fr)"): Column<Line> => ({
    title, width, show: (line) => <span dir="auto">{typeof line[member] === "string" ? line[member] as string : JSON.stringify(line[member] ?? "")}</span>,
  });
  const numeric = (title: string, member: string): Column<Line> => ({ ...plain(title, member), width: "6.5rem", numeric: true });
  const state = (title: string, member: string): Column<Line> => ({ title, width: "7rem", show: (line) => pill(line[member]) });
  const time: Column<Line> = { title: t("time"), width: "12.5rem", show: (line) => <span class="quiet">{moment(line.Time)}</span> };
  const name = plain(t("person"), "Person");
  const database = plain(t("database"), "Database");
  const table: { [kind: string]: Column<Line>[] } = {
    events: [time, state(t("level"), "Level"), { title: t("what"), width: "minmax(8rem, 5fr)", show: (line) => <span dir="auto">{String(line["Text"] ?? "")} <span class="quiet">{excerpt((line["Fields"] as { [member: string]: Json }) ?? {})}</span></span> }],
    slow: [time, plain(t("operation"), "Operation"), database, name, numeric("ms", "Milliseconds")],
    mail: [time, state(t("state"), "State"), plain(t("person"), "From"), plain(t("what"), "Reason", "minmax(6rem, 2fr)")],
    logins: [time, state(t("state"), "Outcome"), name, plain(t("address"), "Address"), numeric(t("count"), "Count")],
    audit: [time, plain(t("what"), "Action"), plain(t("database"), "Target"), name, plain(t("address"), "Address")],
    usage: [time, database, name, numeric("Reads", "Reads"), numeric("Writes", "Writes")],
    taskRuns: [time, plain(t("task"), "Task"), database, state(t("state"), "Outcome"), numeric("ms", "Milliseconds")],
  };
  return table[kind] ?? table["events"]!;
}

function Detail({ line, close }: { line: Line; close: () => void }) {
  return (
    <section class="card docked" aria-label={t("line")}>
      <div class="spread"><h2>{moment(line.Time)}</h2><button type="button" class="plain" onClick={close}>✕ {t("backToList")}</button></div>
      <div class="scrolls" style={{ maxHeight: "none" }} tabIndex={0} role="region" aria-label={t("line")}>
        <table><tbody>{Object.entries(line).filter(([member]) => member !== "_rev").map(([member, value]) => (
          <tr><th scope="row">{member}</th><td dir="auto"><pre>{typeof value === "string" ? value : JSON.stringify(value, null, 1)}</pre></td></tr>
        ))}</tbody></table>
      </div>
    </section>
  );
}
