// Replications: those that run and why one fails, orders that are kept as documents, what came of earlier ones, conflicts.

import { useState } from "preact/hooks";
import { ApiError, ask, command, type Json } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { moment, number } from "../../shared/i18n.ts";
import { change, hashOf, place } from "../../shared/route.ts";
import { attempt, Dialog, Field, Form, Loaded, say } from "../../shared/ui.tsx";
import { t } from "../texts.ts";

type Info = { error?: string | null; docs_read?: number; docs_written?: number; doc_write_failures?: number; conflicts_seen?: number; changes_pending?: number | null };
type Job = { id: string; source: string; target: string; state: string; start_time: string; doc_id: string | null; database: string | null; info: Info | null; history: { timestamp: string; type: string; reason?: string }[] };
type Order = { doc_id: string; database: string; source: string | null; target: string | null; state: string | null; info: Info | null; last_updated?: string; error_count?: number };
type Session = { start_time?: string; end_time?: string; docs_written?: number; doc_write_failures?: number };
type Pair = { source?: string; target?: string; history?: Session[] };

/** Shown of each; jobs that fail come first. */
const SHOWN = 200;

export function Page() {
  const { of = "" } = place.value.parameters;
  const [adding, setAdding] = useState(false);
  const jobs = useResource("jobs", async () => (await ask<{ jobs: Job[] }>("GET", "_scheduler/jobs", { limit: SHOWN })).jobs, 3000);
  const orders = useResource("orders", async () => (await ask<{ docs: Order[] }>("GET", "_scheduler/docs", { limit: SHOWN })).docs, 5000);
  return (
    <>
      <div class="spread"><h1>{t("replication")}</h1><button type="button" class="primary" onClick={() => setAdding(true)}>{t("newReplication")}</button></div>
      <section class="card">
        <h2>{t("runningReplications")}</h2>
        <Loaded of={jobs}>{(all) => (all.length === 0 ? <p class="quiet">{t("noReplications")}</p> : <Jobs jobs={all} changed={jobs.reload} />)}</Loaded>
      </section>
      <section class="card">
        <h2>{t("orders")}</h2>
        <p class="quiet">{t("ordersHint")}</p>
        <Loaded of={orders}>{(all) => (all.length === 0 ? <p class="quiet">{t("noOrders")}</p> : <Orders orders={all} />)}</Loaded>
      </section>
      <History of={of} />
      {adding && <Add close={() => setAdding(false)} added={() => void jobs.reload()} />}
    </>
  );
}

const failed = (state: string | null) => state === "crashing" || state === "failed" || state === "error";
const pill = (state: string | null) => <span class={`pill ${failed(state) ? "bad" : state === "running" || state === "completed" ? "good" : ""}`}>{state ?? "–"}</span>;

function Counts({ info }: { info: Info | null }) {
  return (
    <>
      <td class="numeric">{number(info?.docs_written)}</td>
      <td class="numeric">{info?.doc_write_failures ? <span class="pill bad">{number(info.doc_write_failures)}</span> : number(info?.doc_write_failures)}</td>
      <td class="numeric">{number(info?.changes_pending)}</td>
    </>
  );
}

const HEADS = () => <><th scope="col" class="numeric">{t("written")}</th><th scope="col" class="numeric">{t("refusedDocuments")}</th><th scope="col" class="numeric">{t("stillBehind")}</th></>;

function Jobs({ jobs, changed }: { jobs: Job[]; changed: () => Promise<void> }) {
  const stop = (job: Job) => attempt(async () => {
    await ask("POST", "_replicate", {}, { body: { replication_id: job.id, cancel: true } });
    say(t("stopped"));
    await changed();
  });
  const sorted = [...jobs].sort((a, b) => Number(failed(b.state)) - Number(failed(a.state)));
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label={t("runningReplications")}><table>
      <thead><tr><th scope="col">{t("replicationSource")}</th><th scope="col">{t("replicationTarget")}</th><th scope="col">{t("state")}</th><HEADS /><th scope="col">{t("why")}</th><th scope="col"><span class="hidden">{t("actions")}</span></th></tr></thead>
      <tbody>{sorted.map((job) => (
        <tr>
          <td dir="auto">{job.source}</td><td dir="auto">{job.target}</td>
          <td>{pill(job.state)}<div class="quiet">{moment(job.start_time)}</div></td>
          <Counts info={job.info} />
          <td dir="auto">{job.info?.error ?? job.history.find(({ reason }) => reason)?.reason ?? ""}</td>
          <td>{job.doc_id && job.database
            ? <a class="button" href={hashOf(["databases", job.database, "documents", job.doc_id])}>{t("order")}</a>
            : <button type="button" onClick={() => void stop(job)}>{t("stopTask")}</button>}</td>
        </tr>
      ))}</tbody>
    </table></div>
  );
}

function Orders({ orders }: { orders: Order[] }) {
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label={t("orders")}><table>
      <thead><tr><th scope="col">{t("order")}</th><th scope="col">{t("replicationSource")}</th><th scope="col">{t("replicationTarget")}</th><th scope="col">{t("state")}</th><HEADS /><th scope="col">{t("why")}</th></tr></thead>
      <tbody>{orders.map((order) => (
        <tr>
          <td dir="auto"><a href={hashOf(["databases", order.database, "documents", order.doc_id])}>{order.doc_id}</a></td>
          <td dir="auto">{order.source}</td><td dir="auto">{order.target}</td>
          <td>{pill(order.state)}{order.last_updated && <div class="quiet">{moment(order.last_updated)}</div>}</td>
          <Counts info={order.info} />
          <td dir="auto">{order.info?.error ?? ""}</td>
        </tr>
      ))}</tbody>
    </table></div>
  );
}

function History({ of }: { of: string }) {
  const [typed, setTyped] = useState<string>();
  return (
    <section class="card">
      <h2>{t("historyOf")}</h2>
      <form class="filters" onSubmit={(event) => { event.preventDefault(); change({ of: (typed ?? of).trim() }); }}>
        <input aria-label={t("databaseName")} placeholder={t("databaseName")} autocapitalize="none" spellcheck={false} value={typed ?? of} onInput={(event) => setTyped(event.currentTarget.value)} />
        <button>{t("show")}</button>
      </form>
      {of && <Past key={of} name={of} />}
    </section>
  );
}

function Past({ name }: { name: string }) {
  const past = useResource(`past ${name}`, async () => (await command<{ pairs: Pair[] }>(`show replication ${name}`)).data.pairs);
  const conflicts = useResource(`conflicts ${name}`, async () => (await command<{ documents: Json[] }>(`show conflicts ${name}`)).data.documents);
  return (
    <>
      <Loaded of={conflicts}>{(all) => (all.length === 0 ? <p>{t("noConflicts")}</p> : (
        <div class="note warn">
          <p>{t("conflictsFound", { n: all.length })}</p>
          <ul>{all.slice(0, 50).map((one) => {
            const id = idOf(one);
            return <li><a dir="auto" href={hashOf(["databases", name, "documents", id])}>{id}</a></li>;
          })}</ul>
        </div>
      ))}</Loaded>
      <Loaded of={past}>{(pairs) => (pairs.length === 0 ? <p class="quiet">{t("noHistory")}</p> : (
        <div class="scrolls" tabIndex={0} role="region" aria-label={t("historyOf")}><table>
          <thead><tr><th scope="col">{t("replicationSource")}</th><th scope="col">{t("replicationTarget")}</th><th scope="col">{t("began")}</th><th scope="col">{t("ended")}</th><th scope="col" class="numeric">{t("written")}</th><th scope="col" class="numeric">{t("refusedDocuments")}</th></tr></thead>
          <tbody>{pairs.flatMap((pair) => (pair.history ?? []).slice(0, 10).map((session) => (
            <tr><td dir="auto">{pair.source ?? "–"}</td><td dir="auto">{pair.target ?? "–"}</td><td>{session.start_time ?? "–"}</td><td>{session.end_time ?? "–"}</td>
              <td class="numeric">{number(session.docs_written)}</td><td class="numeric">{number(session.doc_write_failures)}</td></tr>
          )))}</tbody>
        </table></div>
      ))}</Loaded>
    </>
  );
}

function idOf(conflict: Json): string {
  if (typeof conflict === "string") return conflict;
  const id = conflict && typeof conflict === "object" && !Array.isArray(conflict) ? conflict["id"] : undefined;
  return typeof id === "string" ? id : JSON.stringify(conflict);
}

function Add({ close, added }: { close: () => void; added: () => void }) {
  const [fields, setFields] = useState({ source: "", target: "" });
  const [mode, setMode] = useState<"once" | "continuous" | "kept">("once");
  const [creates, setCreates] = useState(false);
  const field = (name: keyof typeof fields) => ({ value: fields[name], onInput: (event: { currentTarget: HTMLInputElement }) => setFields({ ...fields, [name]: event.currentTarget.value }) });
  const send = async () => {
    const order = { ...fields, continuous: mode !== "once", create_target: creates };
    if (mode === "kept") {
      await ask("PUT", "_replicator").catch((error: unknown) => {
        if (!(error instanceof ApiError && error.status === 412)) throw error;
      });
      await ask("POST", "_replicator", {}, { body: order });
    } else {
      await ask("POST", "_replicate", {}, { body: order });
    }
    close();
    say(mode === "once" ? t("replicated") : t("replicationBegan"));
    added();
  };
  return (
    <Dialog title={t("newReplication")} close={close}>
      <Form label={t("replicate")} send={send}>
        <Field label={t("replicationSource")} hint={t("sourceHint")} required first autocapitalize="none" spellcheck={false} {...field("source")} />
        <Field label={t("replicationTarget")} required autocapitalize="none" spellcheck={false} {...field("target")} />
        <div class="field"><label for="mode">{t("how")}</label>
          <select id="mode" value={mode} onChange={(event) => setMode(event.currentTarget.value as typeof mode)}>
            <option value="once">{t("once")}</option><option value="continuous">{t("untilRestart")}</option><option value="kept">{t("keptOrder")}</option>
          </select></div>
        <label class="check"><input type="checkbox" checked={creates} onChange={(event) => setCreates(event.currentTarget.checked)} />{t("createTarget")}</label>
      </Form>
    </Dialog>
  );
}
