// What a mail domain should have in DNS and what is there, and what other servers say of mail in its name (DMARC).

import { useState } from "preact/hooks";
import { ask, command, pathOf, type Json } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { number } from "../../shared/i18n.ts";
import { change, hashOf, place } from "../../shared/route.ts";
import { Loaded } from "../../shared/ui.tsx";
import { t as shared } from "../../shared/texts.ts";
import { t } from "../texts.ts";

type DnsRecord = { name: string; type: string; value: string; state: "fine" | "missing" | "differs" | "unknown"; found: string[]; without: string };
type Host = { name: string; answers: boolean; addresses: { address: string; greeting: string | null; reason: string | null }[] };
type Findings = { domain: string; ok: boolean; records: DnsRecord[]; mail_hosts: Host[]; remarks: string[] };

const STATES = { fine: ["good", "recordFine"], missing: ["bad", "recordMissing"], differs: ["warn", "recordDiffers"], unknown: ["", "recordUnknown"] } as const;

/** The domain whose DNS is looked at is in the address, so that it can be linked to. */
export function DomainCheck() {
  const { check = "" } = place.value.parameters;
  const [typed, setTyped] = useState<string>();
  return (
    <section class="card" aria-label={t("domainCheck")}>
      <h2>{t("domainCheck")}</h2>
      <form class="filters" onSubmit={(event) => { event.preventDefault(); change({ check: (typed ?? check).trim().toLowerCase() }); }}>
        <input style={{ flex: 1 }} aria-label={t("domain")} placeholder="example.org" spellcheck={false} autocapitalize="none" maxLength={253} value={typed ?? check} onInput={(event) => setTyped(event.currentTarget.value)} />
        <button>{t("checkDomain")}</button>
      </form>
      <p class="quiet">{t("domainCheckHint")}</p>
      {check && <Found key={check} domain={check} />}
    </section>
  );
}

function Found({ domain }: { domain: string }) {
  const found = useResource(`domain ${domain}`, () => ask<Findings>("GET", `_domain_check/${pathOf(domain)}`));
  return (
    <Loaded of={found}>{({ ok, records, mail_hosts: hosts, remarks }) => (
      <>
        <div class="spread"><p role="status"><span class={`pill ${ok ? "good" : "warn"}`}>{t(ok ? "domainFine" : "domainLacks")}</span></p>
          <button type="button" onClick={() => void found.reload()} aria-busy={found.loading.value}>{t("checkAgain")}</button></div>
        <div class="scrolls" tabIndex={0} role="region" aria-label={t("dnsRecords")}><table>
          <thead><tr><th scope="col">{t("state")}</th><th scope="col">{t("record")}</th><th scope="col"><span class="hidden">{t("actions")}</span></th></tr></thead>
          <tbody>{records.map((record) => <Line key={`${record.type} ${record.name}`} record={record} />)}</tbody>
        </table></div>
        <h3>{t("mailHosts")}</h3>
        <ul class="plain-list">{hosts.map((host) => (
          <li key={host.name}><span class={`pill ${host.answers ? "good" : "bad"}`}>{t(host.answers ? "answersHere" : "answersNot")}</span> <span dir="auto">{host.name}</span>
            {host.addresses.map(({ address, greeting, reason }) => <div class="quiet" dir="auto">{address}: {greeting ?? reason}</div>)}</li>
        ))}</ul>
        {remarks.map((remark) => <p class="note" dir="auto">{remark}</p>)}
      </>
    )}</Loaded>
  );
}

function Line({ record: { name, type, value, state, found, without } }: { record: DnsRecord }) {
  const [tone, words] = STATES[state] ?? STATES.unknown;
  return (
    <tr>
      <td><span class={`pill ${tone}`}>{t(words)}</span></td>
      <td><div class="mono" dir="auto">{name} {type}</div>
        {state !== "fine" && <><div class="mono quiet breaks" dir="auto">{value}</div><div dir="auto">{t("withoutIt", { what: without })}</div></>}
        {state === "differs" && found.map((one) => <div class="quiet" dir="auto">{t("dnsHas")}: <span class="mono breaks">{one}</span></div>)}</td>
      <td>{state !== "fine" && <button type="button" aria-label={t("copyOf", { name: `${name} ${type}` })} onClick={() => void navigator.clipboard?.writeText(`${name}. ${type} ${type === "TXT" ? JSON.stringify(value) : value}`)}>{shared("copy")}</button>}</td>
    </tr>
  );
}

type Totals = { [title: string]: number };
type Category = { category?: boolean; level?: number; key: Json; value: { totals?: Totals } };

const COLUMNS = ["Messages", "Pass", "Fail", "Quarantined", "Rejected"] as const;
const TITLES = { Messages: "dmarcMessages", Pass: "dmarcPass", Fail: "dmarcFail", Quarantined: "dmarcQuarantined", Rejected: "dmarcRejected" } as const;
/** Domains, and addresses that sent in their names, that are shown; the views have all. */
const SHOWN_MAX = 50;

/** The categories of a view of reports. */
async function categories(database: string, view: string, level: number): Promise<Category[]> {
  const { rows } = await ask<{ rows: Category[] }>("GET", `${pathOf(database)}/_design/dmarc/_view/${view}`, { categories: true, level, limit: SHOWN_MAX * 4 });
  return rows.filter(({ category }) => category);
}

const last = ({ key }: Category): string => String((Array.isArray(key) ? key.at(-1) : key) ?? "");
const first = ({ key }: Category): string => String((Array.isArray(key) ? key[0] : key) ?? "");

export function Dmarc() {
  const found = useResource("dmarc", async () => {
    const { data } = await command<{ value: string }>("show configuration dmarc.reports_database");
    const database = data.value;
    if (!database) return { database, domains: [] as Category[], failing: [] as Category[] };
    const [domains, failing] = await Promise.all([categories(database, "by_domain", 0), categories(database, "failing_sources", 1)]);
    return { database, domains: domains.slice(0, SHOWN_MAX), failing: failing.filter(({ level }) => level === 1).slice(0, SHOWN_MAX) };
  });
  return (
    <section class="card" aria-label={t("dmarc")}>
      <h2>{t("dmarc")}</h2>
      <Loaded of={found}>{({ database, domains, failing }) => {
        const all = (view: string) => hashOf(["databases", database, "views", "dmarc", view]);
        if (!database) return <p class="quiet">{t("dmarcOff")} <a href={hashOf(["configuration"], { key: "dmarc.reports_database" })}>dmarc.reports_database</a></p>;
        if (domains.length === 0) return <p class="quiet">{t("dmarcNone")}</p>;
        return (
          <>
            <p class="quiet">{t("dmarcHint")}</p>
            <div class="scrolls" tabIndex={0} role="region" aria-label={t("dmarc")}><table>
              <thead><tr><th scope="col">{t("domain")}</th>{COLUMNS.map((title) => <th scope="col" class="numeric">{t(TITLES[title])}</th>)}</tr></thead>
              <tbody>{domains.map((row) => <tr key={last(row)}><td dir="auto">{last(row)}</td>{COLUMNS.map((title) => <td class="numeric">{number(row.value.totals?.[title] ?? 0)}</td>)}</tr>)}</tbody>
            </table></div>
            {failing.length > 0 && (
              <div class="scrolls" tabIndex={0} role="region" aria-label={t("dmarcFailing")}><table>
                <caption>{t("dmarcFailing")}</caption>
                <thead><tr><th scope="col">{t("domain")}</th><th scope="col">{t("dmarcSource")}</th><th scope="col" class="numeric">{t("dmarcMessages")}</th></tr></thead>
                <tbody>{failing.map((row) => <tr key={`${first(row)} ${last(row)}`}><td dir="auto">{first(row)}</td><td class="mono">{last(row)}</td><td class="numeric">{number(row.value.totals?.["Messages"] ?? 0)}</td></tr>)}</tbody>
              </table></div>
            )}
            <div class="buttons">{(["by_domain", "failing_sources", "sources"] as const).map((view) => <a class="button" href={all(view)}>{t(VIEWS[view])}</a>)}</div>
          </>
        );
      }}</Loaded>
    </section>
  );
}

const VIEWS = { by_domain: "dmarcByDomain", failing_sources: "dmarcFailingAll", sources: "dmarcSources" } as const;
