// Mail on its way: what waits for whom and why, what is kept back, where one message is, and the keys that sign what leaves.

import { useState } from "preact/hooks";
import { ApiError, ask, command } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { bytes, moment, number } from "../../shared/i18n.ts";
import { change, hashOf, place } from "../../shared/route.ts";
import { attempt, Dialog, Empty, Field, Form, Loaded, say } from "../../shared/ui.tsx";
import { statisticOf, type Stats } from "../health.ts";
import { Dmarc, DomainCheck } from "./mail_domains.tsx";
import { QUEUES, type Destination, type Entry, type Queued } from "../queue.ts";
import { t as shared } from "../../shared/texts.ts";
import { t } from "../texts.ts";

type Line = { time: string; memo: string; words: string };
const LABELS = { incoming: "incoming", active: "active", deferred: "deferred", hold: "heldBack", dead: "stuckDead" } as const;

type Held = { id: string; since: string; bytes: number; from: string; to: string[]; subject: string; why: string };

type Key = { domain: string; state: string; name: string; record: string };

/** The queue; `undefined` where this server sends nothing to others. */
async function queued(what: string): Promise<Queued | null> {
  try {
    return (await command<Queued>(`show queue ${what}`.trim())).data;
  } catch (error) {
    if (error instanceof ApiError && /outbound\.route/.test(error.reason)) return null;
    throw error;
  }
}

export function Page() {
  const { of = "" } = place.value.parameters;
  const queue = useResource("queue", () => queued(""), 5000);
  const stats = useResource("mail-stats", () => ask<Stats>("GET", "_stats"), 5000);
  return (
    <>
      <h1>{t("mail")}</h1>
      <Loaded of={stats}>{(now) => <Counts stats={now} />}</Loaded>
      <section class="card">
        <h2>{t("outgoing")}</h2>
        <Loaded of={queue}>{(found) => (found === null
          ? <p class="quiet">{t("noOutgoing")} <a href={hashOf(["configuration"], { key: "outbound.route" })}>outbound.route</a></p>
          : found.destinations.length === 0 ? <p class="quiet">{t("nothingWaits")}</p> : <Destinations all={found.destinations} changed={queue.reload} />)}</Loaded>
      </section>
      {of && <Messages key={of} of={of} changed={queue.reload} />}
      <Quarantine />
      <Trace />
      <DomainCheck />
      <Dmarc />
      <Signing />
    </>
  );
}

function Counts({ stats }: { stats: Stats }) {
  const tiles: [Parameters<typeof t>[0], string, string][] = [
    ["mailWaiting", "Mail.Waiting", hashOf(["databases", "mail.box", "documents"])],
    ["mailHeld", "Mail.Hold", hashOf(["databases", "mail.box", "documents"])],
    ["mailStopped", "Mail.Dead", hashOf(["databases", "mail.box", "documents"])],
    ["mailDelivered", "Mail.Delivered", hashOf(["statistics"], { name: "Mail.Delivered" })],
    ["sentOut", "Outbound.Delivered", hashOf(["statistics"], { name: "Outbound.Delivered" })],
    ["notTaken", "Outbound.Failed", hashOf(["statistics"], { name: "Outbound.Failed" })],
  ];
  return (
    <div class="cards">
      {tiles.map(([title, name, href]) => <a class="card tile" href={href}><span class="quiet">{t(title)}</span><b>{number(statisticOf(stats, name))}</b></a>)}
    </div>
  );
}

/** Carries an order to the router out and says what came of it. */
async function tell(verb: string, what: string, reason = ""): Promise<void> {
  const { text, data } = await command<{ done: number }>(`tell router ${verb} ${what} ${reason}`.trim());
  say(data.done === undefined ? text : t("ordered", { n: data.done }));
}

function Destinations({ all, changed }: { all: Destination[]; changed: () => Promise<void> }) {
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label={t("outgoing")}><table>
      <thead><tr><th scope="col">{t("destination")}</th>{QUEUES.map((queue) => <th scope="col" class="numeric">{t(LABELS[queue])}</th>)}<th scope="col">{t("nextAttempt")}</th><th scope="col">{t("why")}</th><th scope="col"><span class="hidden">{t("actions")}</span></th></tr></thead>
      <tbody>{all.map((destination) => (
        <tr>
          <td><a dir="auto" href={hashOf(["mail"], { of: destination.destination })}>{destination.destination}</a><div class="quiet">{t("recipients", { n: destination.recipients })} · {bytes(destination.bytes)}</div></td>
          {QUEUES.map((queue) => <td class="numeric">{number(destination[queue])}</td>)}
          <td>{destination.next ? moment(destination.next) : "–"}<div class="quiet">{t("oldest", { time: moment(destination.oldest) })}</div></td>
          <td dir="auto">{destination.why}</td>
          <td><Orders what={destination.destination} held={destination.hold > 0} waits={destination.hold < destination.incoming + destination.active + destination.deferred + destination.hold} changed={changed} /></td>
        </tr>
      ))}</tbody>
    </table></div>
  );
}

function Orders({ what, held, waits, changed }: { what: string; held: boolean; waits: boolean; changed: () => Promise<void> }) {
  const [asking, setAsking] = useState<"" | "hold" | "delete">("");
  const order = (verb: string) => attempt(async () => { await tell(verb, what); await changed(); });
  return (
    <div class="buttons end">
      {waits && <button type="button" onClick={() => void order("retry")}>{t("retryNow")}</button>}
      {waits && <button type="button" onClick={() => setAsking("hold")}>{t("hold")}</button>}
      {held && <button type="button" onClick={() => void order("release")}>{t("release")}</button>}
      <button type="button" onClick={() => setAsking("delete")}>{t("deleteDocument")}</button>
      {asking === "hold" && <Hold what={what} close={() => setAsking("")} changed={changed} />}
      {asking === "delete" && <Delete what={what} close={() => setAsking("")} changed={changed} />}
    </div>
  );
}

function Hold({ what, close, changed }: { what: string; close: () => void; changed: () => Promise<void> }) {
  const [reason, setReason] = useState("");
  return (
    <Dialog title={t("holdOf", { what })} close={close}>
      <Form label={t("hold")} send={async () => { await tell("hold", what, reason); close(); await changed(); }}>
        <Field label={t("reason")} first value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </Form>
    </Dialog>
  );
}

function Delete({ what, close, changed }: { what: string; close: () => void; changed: () => Promise<void> }) {
  const [silent, setSilent] = useState(false);
  return (
    <Dialog title={t("deleteOf", { what })} close={close}>
      <Form label={t("deleteDocument")} danger send={async () => { await tell(silent ? "discard" : "delete", what); close(); await changed(); }}>
        <p>{t("deleteMailHint")}</p>
        <label class="check"><input type="checkbox" data-first checked={silent} onChange={(event) => setSilent(event.currentTarget.checked)} />{t("withoutNotice")}</label>
      </Form>
    </Dialog>
  );
}

function Messages({ of, changed }: { of: string; changed: () => Promise<void> }) {
  const found = useResource(`queue ${of}`, () => queued(of), 5000);
  const both = async () => { await Promise.all([found.reload(), changed()]); };
  return (
    <section class="card" aria-label={of}>
      <div class="spread"><h2 dir="auto">{t("messagesTo", { what: of })}</h2><button type="button" class="plain" onClick={() => change({ of: undefined })}>✕ {shared("close")}</button></div>
      <Loaded of={found}>{(data) => (!data || data.entries.length === 0 ? <p class="quiet">{t("nothingWaits")}</p> : <Entries entries={data.entries} more={data.more} changed={both} />)}</Loaded>
    </section>
  );
}

function Entries({ entries, more, changed }: { entries: Entry[]; more: number; changed: () => Promise<void> }) {
  return (
    <>
      <div class="scrolls" tabIndex={0} role="region" aria-label={t("messages")}><table>
        <thead><tr><th scope="col">{t("state")}</th><th scope="col">{t("from")}</th><th scope="col">{t("to")}</th><th scope="col" class="numeric">{t("attempts")}</th><th scope="col">{t("nextAttempt")}</th><th scope="col">{t("why")}</th><th scope="col"><span class="hidden">{t("actions")}</span></th></tr></thead>
        <tbody>{entries.map((entry) => (
          <tr>
            <td><span class={`pill ${entry.queue === "dead" ? "bad" : entry.queue === "hold" ? "warn" : ""}`}>{t(LABELS[entry.queue])}</span></td>
            <td dir="auto">{entry.from}</td><td dir="auto">{entry.to}<div class="quiet">{bytes(entry.bytes)}</div></td>
            <td class="numeric">{number(entry.attempts)}</td><td>{entry.next ? moment(entry.next) : "–"}</td>
            <td dir="auto">{entry.why}{entry.message_id && <div><a href={hashOf(["mail"], { trace: entry.message_id })}>{t("trace")}</a></div>}</td>
            <td><Orders what={entry.id} held={entry.queue === "hold"} waits={entry.queue !== "hold" && entry.queue !== "dead"} changed={changed} /></td>
          </tr>
        ))}</tbody>
      </table></div>
      {more > 0 && <p class="quiet">{t("andMore", { n: more })}</p>}
    </>
  );
}

/** What rules and filters keep back, until somebody decides. */
function Quarantine() {
  const held = useResource("quarantine", async () => (await command<{ messages: Held[]; more: boolean }>("show quarantine")).data, 5000);
  const [dropped, setDropped] = useState<Held>();
  const order = async (verb: "release" | "delete", { id }: Held) => {
    const { text } = await command(`tell quarantine ${verb} ${id}`);
    say(text.trim());
    await held.reload();
  };
  return (
    <section class="card" aria-label={t("quarantine")}>
      <h2>{t("quarantine")}</h2>
      <Loaded of={held}>{({ messages, more }) => (messages.length === 0 ? <p class="quiet">{t("nothingKeptBack")}</p> : (
        <>
          <p class="quiet">{t("quarantineHint")}</p>
          <div class="scrolls" tabIndex={0} role="region" aria-label={t("quarantine")}><table>
            <thead><tr><th scope="col">{t("since")}</th><th scope="col">{t("from")}</th><th scope="col">{t("subject")}</th><th scope="col">{t("why")}</th><th scope="col"><span class="hidden">{t("actions")}</span></th></tr></thead>
            <tbody>{messages.map((message) => (
              <tr key={message.id}>
                <td>{moment(`${message.since.replace(" ", "T")}:00Z`)}<div class="quiet">{bytes(message.bytes)}</div></td>
                <td dir="auto">{message.from}<div class="quiet">{t("toWhom", { names: message.to.join(", ") })}</div></td><td dir="auto">{message.subject}</td><td dir="auto">{message.why}</td>
                <td><div class="buttons end">
                  <button type="button" onClick={() => void attempt(() => order("release", message))}>{t("letGo")}</button>
                  <button type="button" onClick={() => setDropped(message)}>{t("deleteDocument")}</button>
                </div></td>
              </tr>
            ))}</tbody>
          </table></div>
          {more && <p class="quiet">{t("andOthers")}</p>}
        </>
      ))}</Loaded>
      {dropped && (
        <Dialog title={t("dropHeld", { what: dropped.subject || dropped.id })} close={() => setDropped(undefined)}>
          <Form label={t("deleteDocument")} danger send={async () => { await order("delete", dropped); setDropped(undefined); }}><p>{t("dropHeldHint")}</p></Form>
        </Dialog>
      )}
    </section>
  );
}

function Trace() {
  const { trace = "" } = place.value.parameters;
  const [typed, setTyped] = useState<string>();
  return (
    <section class="card">
      <h2>{t("traceTitle")}</h2>
      <form class="filters" onSubmit={(event) => { event.preventDefault(); change({ trace: (typed ?? trace).trim() }); }}>
        <input class="mono" style={{ flex: 1 }} aria-label={t("messageId")} placeholder="<abc@example.org>" spellcheck={false} autocapitalize="none" value={typed ?? trace} onInput={(event) => setTyped(event.currentTarget.value)} />
        <button>{t("trace")}</button>
      </form>
      <p class="quiet">{t("traceHint")}</p>
      {trace && <Traced key={trace} id={trace} />}
    </section>
  );
}

function Traced({ id }: { id: string }) {
  const found = useResource(`trace ${id}`, async () => (await command<{ lines: Line[] }>(`show message ${id}`)).data.lines, 5000);
  return (
    <Loaded of={found}>{(lines) => (lines.length === 0 ? <Empty title={t("noTrace")} /> : (
      <div class="scrolls" tabIndex={0} role="region" aria-label={t("traceTitle")}><table>
        <thead><tr><th scope="col">{t("time")}</th><th scope="col">{t("what")}</th></tr></thead>
        <tbody>{lines.map((line) => <tr><td>{moment(line.time)}</td><td dir="auto">{line.words}<div class="quiet mono">{line.memo}</div></td></tr>)}</tbody>
      </table></div>
    ))}</Loaded>
  );
}

function Signing() {
  const keys = useResource("dkim", async () => (await command<{ keys: Key[] }>("show dkim")).data.keys);
  return (
    <section class="card">
      <h2>{t("signing")}</h2>
      <Loaded of={keys}>{(all) => (all.length === 0 ? <p class="quiet">{t("noKeys")}</p> : (
        <>
          <p class="quiet">{t("signingHint")}</p>
          <div class="scrolls" tabIndex={0} role="region" aria-label={t("signing")}><table>
            <thead><tr><th scope="col">{t("state")}</th><th scope="col">{t("record")}</th><th scope="col"><span class="hidden">{t("actions")}</span></th></tr></thead>
            <tbody>{all.map((key) => (
              <tr><td><span class={`pill ${key.state === "active" ? "good" : key.state === "waiting" ? "warn" : ""}`}>{key.state}</span></td>
                <td><div class="mono">{key.name}</div><div class="quiet mono">{key.record}</div></td>
                <td><button type="button" onClick={() => void navigator.clipboard?.writeText(`${key.name} TXT "${key.record}"`)}>{shared("copy")}</button></td></tr>
            ))}</tbody>
          </table></div>
        </>
      ))}</Loaded>
    </section>
  );
}
