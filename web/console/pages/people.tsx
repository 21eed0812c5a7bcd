// People and groups of the directory.

import { useState } from "preact/hooks";
import { ask, documentPath, pathOf, type Document, type Json } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { Grid, type Column } from "../../shared/grid.tsx";
import { change, go, hashOf, place } from "../../shared/route.ts";
import { Dialog, Empty, Field, Form, Loaded, say } from "../../shared/ui.tsx";
import { DomainDialog, domainOf } from "./domain.tsx";
import { Account } from "./person.tsx";
import { t } from "../texts.ts";

/** More than one looks through; the documents of the directory have all. */
const ENTRIES_MAX = 10_000;

const all = (value: Json | undefined): string[] => (Array.isArray(value) ? value.map(String) : value === undefined || value === null ? [] : [String(value)]);
const list = (value: Json | undefined) => all(value).join(", ");

const PEOPLE: Column<Document>[] = [
  { title: t("fullName"), width: "minmax(8rem, 2fr)", show: (person) => <strong dir="auto">{all(person["FullName"])[0] ?? list(person["ShortName"])}</strong> },
  { title: t("shortName"), show: (person) => <span dir="auto">{list(person["ShortName"])}</span> },
  { title: t("address"), width: "minmax(6rem, 2fr)", wide: true, show: (person) => <span dir="auto">{list(person["InternetAddress"])}</span> },
  { title: t("mailDatabase"), wide: true, show: (person) => <span dir="auto">{list(person["MailFile"])}</span> },
  { title: t("state"), width: "6rem", wide: true, show: (person) => (person["Disabled"] === true ? <span class="pill bad">{t("disabled")}</span> : "") },
];

const GROUPS: Column<Document>[] = [
  { title: t("group"), width: "minmax(8rem, 1fr)", show: (group) => <strong dir="auto">{list(group["ListName"]) || group._id}</strong> },
  { title: t("members"), width: "minmax(8rem, 4fr)", show: (group) => <span dir="auto" class="quiet">{list(group["Members"])}</span> },
];

const DOMAINS: Column<Document>[] = [
  { title: t("domain"), width: "minmax(8rem, 2fr)", show: (domain) => <strong dir="auto">{domainOf(domain)}</strong> },
  { title: t("administrators"), width: "minmax(8rem, 3fr)", show: (domain) => <span dir="auto">{list(domain["Administrators"])}</span> },
  { title: t("outsidersSee"), width: "minmax(8rem, 2fr)", wide: true, show: (domain) => (domain["OutsidersSee"] === "nothing" ? t("seeNothing") : domain["OutsidersSee"] === "addresses" ? t("seeAddresses") : domain["OutsidersSee"] === "all" ? t("seeAll") : t("seeUnset")) },
];

const ROOMS: Column<Document>[] = [
  { title: t("room"), width: "minmax(8rem, 2fr)", show: (room) => <strong dir="auto">{all(room["FullName"])[0] ?? list(room["ShortName"])}</strong> },
  { title: t("address"), width: "minmax(6rem, 2fr)", wide: true, show: (room) => <span dir="auto">{list(room["InternetAddress"])}</span> },
  { title: t("site"), show: (room) => <span dir="auto">{list(room["Site"])}</span> },
  { title: t("seats"), width: "5rem", numeric: true, show: (room) => list(room["Capacity"]) },
];

const isRoom = (entry: Document): boolean => entry["Form"] === "Person" && typeof entry["Resource"] === "string";

/** What of the directory is shown. */
const KINDS = {
  persons: { isOne: (entry: Document) => entry["Form"] === "Person" && !isRoom(entry), columns: PEOPLE, add: "newPerson" },
  rooms: { isOne: isRoom, columns: ROOMS, add: "newRoom" },
  groups: { isOne: (entry: Document) => entry["Form"] === "Group", columns: GROUPS, add: "newPerson" },
  domains: { isOne: (entry: Document) => entry["Form"] === "Domain", columns: DOMAINS, add: "newDomain" },
} as const;
type Kind = keyof typeof KINDS;

export function Page() {
  const { kind: wanted = "persons", filter = "" } = place.value.parameters;
  const kind: Kind = wanted in KINDS ? (wanted as Kind) : "persons";
  const [adding, setAdding] = useState(false);
  const [chosen, setChosen] = useState<Document>();
  const people = useResource("people", async () => {
    const { rows } = await ask<{ rows: { doc?: Document }[] }>("GET", "directory/_all_docs", { include_docs: true, limit: ENTRIES_MAX });
    return rows.flatMap(({ doc }) => (doc ? [doc] : []));
  });
  const { isOne, columns, add } = KINDS[kind];
  const isDomain = kind === "domains";
  return (
    <>
      <div class="spread"><h1>{t("people")}</h1><button type="button" class="primary" onClick={() => setAdding(true)}>{t(add)}</button></div>
      <div class="filters">
        {(Object.keys(KINDS) as Kind[]).map((id) => <button type="button" aria-pressed={id === kind} onClick={() => { change({ kind: id }); setChosen(undefined); }}>{t(id)}</button>)}
        <input type="search" aria-label={t("filterPeople")} placeholder={t("filterPeople")} value={filter} onInput={(event) => change({ filter: event.currentTarget.value })} />
      </div>
      <div class={`fills split ${chosen && !isDomain ? "has-detail" : "single"}`}>
        <Loaded of={people}>{(everybody) => {
          const shown = everybody.filter((entry) => isOne(entry) && JSON.stringify(entry).toLowerCase().includes(filter.toLowerCase()));
          if (shown.length === 0) return <Empty title={t("noPeople")}><p>{t("noPeopleHint")}</p></Empty>;
          return <Grid label={t(kind)} columns={columns} count={shown.length} source={`${kind} ${filter}`} version={shown.map(({ _rev }) => _rev).join()} pageSize={500}
            fetchPage={async (start, limit) => shown.slice(start, start + limit)} open={setChosen} />;
        }}</Loaded>
        {chosen && !isDomain && <Detail key={chosen._id} entry={chosen} close={() => setChosen(undefined)} changed={() => void people.reload()} />}
      </div>
      {isDomain && (adding || chosen) && <DomainDialog entry={chosen} close={() => { setAdding(false); setChosen(undefined); }} changed={() => void people.reload()} />}
      {adding && kind === "rooms" && <AddRoom close={() => setAdding(false)} added={() => void people.reload()} />}
      {adding && !isDomain && kind !== "rooms" && <Add close={() => setAdding(false)} added={() => void people.reload()} />}
    </>
  );
}

function Detail({ entry, close, changed }: { entry: Document; close: () => void; changed: () => void }) {
  const [password, setPassword] = useState("");
  const name = list(entry["ShortName"]) || list(entry["ListName"]) || entry._id;
  const set = async () => {
    const current = await ask<Document>("GET", documentPath("directory", entry._id));
    await ask("PUT", documentPath("directory", entry._id), {}, { body: { ...current, password } });
    setPassword("");
    say(t("passwordSet", { name }));
  };
  return (
    <section class="card docked" aria-label={name}>
      <div class="spread"><h2 dir="auto">{name}</h2><button type="button" class="plain" onClick={close}>✕ {t("backToList")}</button></div>
      {entry["Form"] === "Person" && <Account name={name} id={entry._id} changed={changed} />}
      {entry["Form"] === "Person" && (
        <Form label={t("setPassword")} send={set}>
          <Field label={t("newPassword")} type="password" autocomplete="new-password" required value={password} onInput={(event) => setPassword(event.currentTarget.value)} />
        </Form>
      )}
      <details open={entry["Form"] !== "Person"}><summary>{t("allFields")}</summary>
        <table><tbody>{Object.entries(entry).filter(([member]) => !member.startsWith("_")).map(([member, value]) => <tr><th scope="row" dir="auto">{member}</th><td dir="auto">{all(value).map((one) => <div>{one}</div>)}</td></tr>)}</tbody></table>
      </details>
      <div class="buttons"><a class="button" href={hashOf(["databases", "directory", "documents", entry._id])}>{t("openDocument")}</a></div>
    </section>
  );
}

function Add({ close, added }: { close: () => void; added: () => void }) {
  const [fields, setFields] = useState({ short: "", full: "", password: "" });
  const field = (name: keyof typeof fields) => ({ value: fields[name], onInput: (event: { currentTarget: HTMLInputElement }) => setFields({ ...fields, [name]: event.currentTarget.value }) });
  const send = async () => {
    const id = `person:${fields.short}`;
    await ask("PUT", pathOf("directory", id), {}, { body: { Form: "Person", ShortName: fields.short, FullName: [fields.full || fields.short], password: fields.password } });
    close();
    say(t("personCreated", { name: fields.full || fields.short }));
    added();
    go(["people"]);
  };
  return (
    <Dialog title={t("newPerson")} close={close}>
      <Form label={t("create")} send={send}>
        <Field label={t("shortName")} required first autocapitalize="none" spellcheck={false} {...field("short")} />
        <Field label={t("fullName")} {...field("full")} />
        <Field label={t("password")} type="password" required autocomplete="new-password" {...field("password")} />
      </Form>
    </Dialog>
  );
}

/** A room is a person of the directory who never signs in. */
function AddRoom({ close, added }: { close: () => void; added: () => void }) {
  const [fields, setFields] = useState({ short: "", full: "", address: "", site: "", seats: "" });
  const field = (name: keyof typeof fields) => ({ value: fields[name], onInput: (event: { currentTarget: HTMLInputElement }) => setFields({ ...fields, [name]: event.currentTarget.value }) });
  const send = async () => {
    const { short, full, address, site, seats } = fields;
    const room = { Form: "Person", Resource: "room", ShortName: short, FullName: [full || short], InternetAddress: address.trim(), ...(site.trim() ? { Site: site.trim() } : {}), ...(seats ? { Capacity: Number(seats) } : {}) };
    await ask("PUT", pathOf("directory", `person:${short}`), {}, { body: room });
    close();
    say(t("roomCreated", { name: full || short }));
    added();
  };
  return (
    <Dialog title={t("newRoom")} close={close}>
      <Form label={t("create")} send={send}>
        <Field label={t("shortName")} required first autocapitalize="none" spellcheck={false} {...field("short")} />
        <Field label={t("fullName")} {...field("full")} />
        <Field label={t("address")} hint={t("roomAddressHint")} type="email" required autocapitalize="none" spellcheck={false} {...field("address")} />
        <Field label={t("site")} maxLength={200} {...field("site")} />
        <Field label={t("seats")} type="number" min={1} max={100000} {...field("seats")} />
      </Form>
    </Dialog>
  );
}
