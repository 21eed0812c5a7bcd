// The person's contacts.

import { useEffect, useState } from "preact/hooks";
import { useResource, useSettled } from "../shared/data.ts";
import { Grid, type Column } from "../shared/grid.tsx";
import { language, number } from "../shared/i18n.ts";
import { bind } from "../shared/keys.ts";
import { go, place } from "../shared/route.ts";
import { attempt, Dialog, Empty, Field, Form, Loaded, say } from "../shared/ui.tsx";
import { fits, withFields, written, type Card, type CardFields } from "./card.ts";
import { write as writeMemo } from "./composer.tsx";
import { t } from "./contacts_texts.ts";
import { write } from "./content.ts";
import { put, read, readBooks, remove } from "./dav.ts";
import { changes } from "./mailbox.ts";
import { emptyDraft } from "./memo.ts";
import { forgetContacts, readContacts } from "./people.ts";

/** A mail file in which much happens has contacts read again no more often than this. */
const SETTLED_MS = 5000;

export function ContactsPage() {
  const contacts = useResource("contacts", readContacts, undefined, useSettled(changes.value, SETTLED_MS));
  const changed = async () => {
    forgetContacts();
    await contacts.reload();
  };
  return <Loaded of={contacts}>{(all) => <Shown all={all} changed={changed} />}</Loaded>;
}

function Shown({ all, changed }: { all: Card[]; changed: () => Promise<void> }) {
  const [filter, setFilter] = useState("");
  const [open, setOpen] = useState<"" | "new" | "edit">("");
  const href = place.value.segments[1];
  const card = all.find((one) => one.href === href);
  const found = filter.trim() ? all.filter((one) => fits(filter, [one.name, one.company, ...one.emails, ...one.phones])) : all;
  useEffect(() => bind([
    { keys: "n", what: t("newContact"), run: () => setOpen("new") },
    { keys: "/", what: t("filter"), run: () => document.querySelector<HTMLInputElement>("main input[type=search]")?.focus() },
    ...(card ? [{ keys: "e", what: t("edit"), run: () => setOpen("edit") }, { keys: "Escape", what: t("back"), run: () => go(["contacts"]) }, { keys: "u", what: t("back"), run: () => go(["contacts"]) }] : []),
  ]), [Boolean(card), language.value]);
  const erase = (one: Card) => attempt(async () => {
    const before = await read(one.href);
    await remove(one.href, before.tag);
    go(["contacts"]);
    await changed();
    say(t("deleted"), async () => { await put(one.href, before.data, undefined); await changed(); });
  });
  const columns: Column<Card>[] = [
    { title: t("name"), show: (one) => <span dir="auto">{one.name}</span> },
    { title: t("address"), show: (one) => <span dir="auto">{one.emails[0]}</span> },
    { title: t("company"), wide: true, show: (one) => <span dir="auto">{one.company}</span> },
  ];
  return (
    <>
      <div class="spread list-head"><h1>{t("contacts")} <small class="quiet">{number(all.length)}</small></h1>
        <div class="buttons"><input type="search" aria-label={t("filter")} placeholder={t("filter")} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
          <button type="button" class="primary" title="n" onClick={() => setOpen("new")}>+ {t("newContact")}</button></div></div>
      <div class={`fills split ${card ? "has-card" : "single"}`}>
        {all.length === 0 ? <Empty title={t("none")}><p>{t("noneWhat")}</p></Empty> : found.length === 0 ? <Empty title={t("noneFound")} /> : (
          <Grid label={t("contacts")} columns={columns} count={found.length} source={filter} version={`${all.map(({ tag }) => tag).join()}`} fetchPage={async (start, limit) => found.slice(start, start + limit)} open={(one) => go(["contacts", one.href])} rowClass={(one) => (one.href === href ? "read-now" : "")} />
        )}
        {card && <Detail card={card} edit={() => setOpen("edit")} erase={() => void erase(card)} />}
      </div>
      {open === "new" && <Edit close={() => setOpen("")} saved={changed} />}
      {open === "edit" && card && <Edit card={card} close={() => setOpen("")} saved={changed} />}
    </>
  );
}

function Detail({ card, edit, erase }: { card: Card; edit: () => void; erase: () => void }) {
  return (
    <article class="card docked contact" aria-label={card.name}>
      <div class="spread"><h2 dir="auto">{card.name}</h2><div class="buttons"><button type="button" title="e" onClick={edit}>{t("edit")}</button><button type="button" onClick={erase}>{t("delete")}</button><button type="button" class="plain" aria-label={t("back")} onClick={() => go(["contacts"])}>✕</button></div></div>
      {(card.company || card.title) && <p dir="auto">{[card.title, card.company].filter(Boolean).join(", ")}</p>}
      <table><tbody>
        {card.emails.map((address) => <tr><th scope="row">{t("address")}</th><td dir="auto"><button type="button" class="plain link" aria-label={t("writeTo", { name: address })} onClick={() => writeMemo({ ...emptyDraft(crypto.randomUUID().replace(/-/g, "")), to: `${written(card.name, address)}, ` })}>{address}</button></td></tr>)}
        {card.phones.map((phone) => <tr><th scope="row">{t("phone")}</th><td dir="auto"><a href={`tel:${phone.replace(/[^+\d]/g, "")}`}>{phone}</a></td></tr>)}
      </tbody></table>
      {card.note && <p class="plain-body" dir="auto">{card.note}</p>}
    </article>
  );
}

const lines = (text: string) => text.split("\n").map((line) => line.trim()).filter(Boolean);

function Edit({ card, close, saved }: { card?: Card; close: () => void; saved: () => Promise<void> }) {
  const [fields, setFields] = useState({ first: card?.first ?? "", last: card?.last ?? "", emails: (card?.emails ?? []).join("\n"), phones: (card?.phones ?? []).join("\n"), company: card?.company ?? "", title: card?.title ?? "", note: card?.note ?? "" });
  const set = (more: Partial<typeof fields>) => setFields({ ...fields, ...more });
  const send = async () => {
    const wanted: CardFields = { ...fields, emails: lines(fields.emails), phones: lines(fields.phones) };
    if (![wanted.first, wanted.last, wanted.company, ...wanted.emails].some((text) => text.trim())) throw new Error(t("needsName"));
    const [uid, before] = [crypto.randomUUID(), card && (await read(card.href))];
    const [book] = before ? [] : await readBooks();
    const href = card?.href ?? `${book?.href ?? ""}${uid}.vcf`;
    const data = write(withFields(before?.data, wanted, uid));
    const tag = await put(href, data, before?.tag);
    close();
    await saved();
    go(["contacts", href]);
    say(t("saved"), async () => {
      if (before) await put(href, before.data, tag);
      else await remove(href, tag);
      await saved();
    });
  };
  const area = (name: "emails" | "phones" | "note", label: string, rows: number) => (
    <div class="field"><label for={`contact-${name}`}>{label}</label><textarea id={`contact-${name}`} class="notes" dir="auto" rows={rows} value={fields[name]} onInput={(event) => set({ [name]: event.currentTarget.value })} /></div>
  );
  return (
    <Dialog title={t(card ? "editContact" : "newContact")} close={close}>
      <Form label={t("save")} send={send}>
        <div class="pair">
          <Field label={t("firstName")} first maxLength={200} dir="auto" value={fields.first} onInput={(event) => set({ first: event.currentTarget.value })} />
          <Field label={t("lastName")} maxLength={200} dir="auto" value={fields.last} onInput={(event) => set({ last: event.currentTarget.value })} />
        </div>
        {area("emails", t("emails"), 2)}
        {area("phones", t("phones"), 2)}
        <div class="pair">
          <Field label={t("company")} maxLength={200} dir="auto" value={fields.company} onInput={(event) => set({ company: event.currentTarget.value })} />
          <Field label={t("jobTitle")} maxLength={200} dir="auto" value={fields.title} onInput={(event) => set({ title: event.currentTarget.value })} />
        </div>
        {area("note", t("note"), 3)}
      </Form>
    </Dialog>
  );
}
