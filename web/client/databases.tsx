// Any database that the person may read: its views as they are, and its documents.

import { useEffect, useState } from "preact/hooks";
import { addressOf, ask, documentPath, pathOf, person, type Document, type Json } from "../shared/api.ts";
import { useResource } from "../shared/data.ts";
import { Grid, type Column } from "../shared/grid.tsx";
import { bytes, language, number } from "../shared/i18n.ts";
import { bind } from "../shared/keys.ts";
import { change, go, hashOf, place } from "../shared/route.ts";
import { attempt, Empty, Field, Form, Loaded } from "../shared/ui.tsx";
import { t } from "./databases_texts.ts";

type ViewColumn = { title: string; sort?: string; category?: boolean; total?: Json };
type Definition = { columns?: ViewColumn[]; map?: string };
type Design = Document & { language?: string; views?: { [name: string]: Definition } };
type Row = { id?: string; key: Json; value: Json; category?: boolean; level?: number; expanded?: boolean };
type Page = { total_rows?: number | null; offset?: number | null; rows: Row[] };
type View = { path: string; title: string; definition: Definition; isFormula: boolean };

/** Rows of categories that are shown; more are unfolded one by one. */
const ROWS_MAX = 2000;
const RECENT_MAX = 20;

const recentKey = () => `databases ${person.value?.name ?? ""}`;
function recent(): string[] {
  try {
    return (JSON.parse(localStorage.getItem(recentKey()) ?? "[]") as unknown[]).map(String);
  } catch {
    return [];
  }
}
const keep = (names: string[]) => localStorage.setItem(recentKey(), JSON.stringify(names.slice(0, RECENT_MAX)));

export function DatabasesPage() {
  const name = place.value.segments[1];
  return name ? <DatabasePage key={name} name={name} /> : <Chooser />;
}

function Chooser() {
  const [typed, setTyped] = useState("");
  const [names, setNames] = useState(recent);
  const forget = (name: string) => {
    const rest = names.filter((one) => one !== name);
    keep(rest);
    setNames(rest);
  };
  return (
    <>
      <h1>{t("databases")}</h1>
      <section class="card"><Form label={t("open")} send={async () => { await ask("GET", pathOf(typed.trim())); go(["databases", typed.trim()]); }}>
        <Field label={t("databaseName")} required autocapitalize="none" spellcheck={false} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      </Form></section>
      {names.length === 0 ? <Empty title={t("noneYet")}><p>{t("noneYetWhat")}</p></Empty> : (
        <section class="card"><h2>{t("recent")}</h2>
          <ul class="recent">{names.map((name) => <li><a href={hashOf(["databases", name])} dir="auto">{name}</a> <button type="button" class="plain" aria-label={t("forget", { name })} onClick={() => forget(name)}>✕</button></li>)}</ul></section>
      )}
    </>
  );
}

const ALL = "_all_docs";

function viewsOf(name: string, designs: Design[]): View[] {
  const views = designs.flatMap((design) => Object.entries(design.views ?? {}).filter(([view]) => view !== "lib" && design["language"] !== "query").map(([view, definition]) => ({
    path: `${pathOf(name)}/_design/${pathOf(design._id.slice(8))}/_view/${pathOf(view)}`, title: `${design._id.slice(8)} / ${view}`, definition, isFormula: design["language"] === "formula",
  })));
  return [...views, { path: `${pathOf(name)}/${ALL}`, title: t("allDocuments"), definition: {}, isFormula: false }];
}

function DatabasePage({ name }: { name: string }) {
  const designs = useResource(`designs ${name}`, async () => {
    const { rows } = await ask<{ rows: { doc: Design }[] }>("GET", `${pathOf(name)}/_design_docs`, { include_docs: true });
    keep([name, ...recent().filter((one) => one !== name)]);
    return viewsOf(name, rows.flatMap(({ doc }) => doc ?? []));
  });
  const id = place.value.segments[2];
  useEffect(() => (id === undefined ? undefined : bind(["u", "Escape"].map((keys) => ({ keys, what: t("back"), run: () => go(["databases", name], place.value.parameters) })))), [id, language.value]);
  return (
    <>
      <p class="crumbs"><a href="#/databases">{t("databases")}</a></p>
      <h1 dir="auto">{name}</h1>
      <Loaded of={designs}>{(views) => {
        const chosen = views.find(({ title }) => title === place.value.parameters["view"]) ?? views[0]!;
        return (
          <>
            <div class="filters">
              <select aria-label={t("view")} value={chosen.title} onChange={(event) => go(["databases", name], { view: event.currentTarget.value })}>{views.map(({ title }) => <option value={title}>{title}</option>)}</select>
              {chosen.isFormula && <Find view={chosen} />}
            </div>
            <div class={`fills split ${id === undefined ? "single" : "has-card"}`}>
              <Rows key={chosen.path} name={name} view={chosen} />
              {id !== undefined && <Shown key={id} name={name} id={id} />}
            </div>
          </>
        );
      }}</Loaded>
    </>
  );
}

/** Goes to the first row that begins with what is typed. */
function Find({ view }: { view: View }) {
  const find = (text: string) => attempt(async () => {
    const { offset } = await ask<Page>("GET", view.path, { find: text, limit: 0, reduce: false });
    change({ row: String((offset ?? 0) + 1), flat: "1" });
  });
  return <form onSubmit={(event) => { event.preventDefault(); void find(event.currentTarget.querySelector("input")!.value); }}><input type="search" aria-label={t("goToText")} placeholder={t("goToText")} /></form>;
}

function Rows({ name, view }: { name: string; view: View }) {
  const [open, setOpen] = useState<Json[]>([]);
  const { flat, row } = place.value.parameters;
  const isTree = view.isFormula && !flat && (view.definition.columns ?? []).some(({ category }) => category);
  const parameters: { [name: string]: Json | undefined } = isTree ? { level: 0, expand: open.length > 0 ? open : undefined } : view.path.endsWith(ALL) ? {} : { reduce: false };
  const found = useResource(`rows ${view.path} ${isTree}`, async () => {
    const page = await ask<Page>("GET", view.path, { ...parameters, limit: isTree ? ROWS_MAX : 0 });
    // Who does not see all of a database is not told how much there is.
    const counted = !isTree && typeof page.total_rows === "number" ? page.total_rows : undefined;
    const rows = isTree || counted !== undefined ? page.rows : (await ask<Page>("GET", view.path, { ...parameters, limit: ROWS_MAX })).rows;
    return { rows, counted };
  }, undefined, JSON.stringify(open));
  const openRow = (one: Row) => {
    if (one.category) setOpen(one.expanded ? open.filter((key) => !isWithin(key, one.key)) : [...open, one.key]);
    else if (one.id !== undefined) go(["databases", name, one.id], place.value.parameters);
  };
  const unfolds = (key: string, one: Row) => Boolean(one.category && ((key === "ArrowRight" && !one.expanded) || (key === "ArrowLeft" && one.expanded)));
  return (
    <Loaded of={found}>{({ rows, counted }) => {
      const count = counted ?? rows.length;
      if (count === 0) return <Empty title={t("noRows")} />;
      return (
        <div class="grid-holder">
          <p class="quiet" role="status">{counted === undefined && rows.length === ROWS_MAX ? t("shownOnly", { n: ROWS_MAX }) : t("rows", { n: count })}</p>
          <Grid label={view.title} columns={columnsOf(view, isTree)} count={count} source={`${view.path} ${isTree}`} version={found.data.value} position={row ? Number(row) - 1 : undefined} open={openRow} rowClass={(one) => (one.category ? "category" : "")}
            fetchPage={async (start, limit) => (counted === undefined ? rows.slice(start, start + limit) : (await ask<Page>("GET", view.path, { ...parameters, [view.path.endsWith(ALL) ? "skip" : "start"]: start, limit })).rows)}
            onKey={(key, one) => { const does = unfolds(key, one); if (does) openRow(one); return does; }}
            {...(isTree ? { level: (one: Row) => ({ level: one.level ?? 0, ...(one.category ? { expanded: Boolean(one.expanded) } : {}) }) } : {})} />
        </div>
      );
    }}</Loaded>
  );
}

const isWithin = (key: Json, category: Json): boolean => Array.isArray(key) && Array.isArray(category) && category.every((part, index) => JSON.stringify(part) === JSON.stringify(key[index]));

/** A value as people read it. */
export function readable(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number") return number(value, 3);
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(", ");
  return typeof value === "string" ? value : JSON.stringify(value);
}

const member = (value: Json | undefined, name: string): Json | undefined => (value && typeof value === "object" && !Array.isArray(value) ? value[name] : undefined);

function columnsOf({ definition, isFormula, path }: View, isTree: boolean): Column<Row>[] {
  if (path.endsWith(ALL)) return [{ title: t("document"), show: ({ id }) => <span dir="auto">{id}</span> }];
  if (!isFormula) {
    return [
      { title: t("key"), width: "minmax(7rem, 1fr)", show: ({ key }) => <span dir="auto">{readable(key)}</span> },
      { title: t("value"), width: "minmax(7rem, 2fr)", show: ({ value }) => <span dir="auto">{readable(value)}</span> },
    ];
  }
  const own: Column<Row>[] = (definition.columns ?? []).filter(({ category }) => !isTree || !category).map(({ title, total }) => ({
    title, numeric: Boolean(total), show: (row) => <span dir="auto">{readable(row.category ? member(member(row.value, "totals"), title) : member(row.value, title))}</span>,
  }));
  if (!isTree) return own;
  const named = (row: Row) => `${row.expanded ? "▾" : "▸"} ${(Array.isArray(row.key) ? readable(row.key.at(-1)) : "") || t("notCategorized")}`;
  return [{ title: t("category"), width: "minmax(7rem, 1.5fr)", show: (row) => <span dir="auto">{row.category ? named(row) : ""} <span class="quiet">{row.category ? readable(member(row.value, "count")) : ""}</span></span> }, ...own];
}

function Shown({ name, id }: { name: string; id: string }) {
  const document = useResource(`document ${name} ${id}`, () => ask<Document>("GET", documentPath(name, id)));
  return (
    <article class="card docked" aria-label={t("document")}>
      <Loaded of={document}>{(found) => {
        const { _id, _rev: _, _attachments, ...fields } = found;
        const files = Object.entries((_attachments ?? {}) as { [file: string]: { length?: number } });
        return (
          <>
            <div class="spread"><h2 dir="auto">{readable(found["Subject"] ?? found["Title"] ?? found["title"]) || _id}</h2><button type="button" class="plain" aria-label={t("back")} onClick={() => go(["databases", name], place.value.parameters)}>✕</button></div>
            <table><tbody>{Object.entries(fields).map(([field, value]) => <tr><th scope="row" dir="auto">{field}</th><td dir="auto" class="plain-body">{readable(value)}</td></tr>)}</tbody></table>
            {files.length > 0 && <ul class="files" aria-label={t("files")}>{files.map(([file, { length }]) => <li><a class="button" href={addressOf(`${documentPath(name, id)}/${pathOf(file)}`)} download={file}><span dir="auto">{file}</span> <span class="quiet">{bytes(length)}</span></a></li>)}</ul>}
          </>
        );
      }}</Loaded>
    </article>
  );
}
