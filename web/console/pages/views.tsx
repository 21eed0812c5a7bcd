// Views as their readers see them: rows, categories that unfold, groups and totals, from any place in them.

import { useState } from "preact/hooks";
import { ask, pathOf, type Document, type Json } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { Grid, type Column } from "../../shared/grid.tsx";
import { number } from "../../shared/i18n.ts";
import { change, go, hashOf, place } from "../../shared/route.ts";
import { attempt, Empty, Loaded } from "../../shared/ui.tsx";
import type { PartProps } from "./database.tsx";
import { GoTo } from "./documents.tsx";
import { t } from "../texts.ts";

type Column_ = { title: string; sort?: string; category?: boolean; total?: Json };
type Definition = { columns?: Column_[]; map?: string; reduce?: string };
type Design = Document & { language?: string; views?: { [name: string]: Definition } };
type Row = { id?: string; key: Json; value: Json; category?: boolean; level?: number; expanded?: boolean };
type Page = { total_rows?: number | null; offset?: number | null; rows: Row[] };
type IndexInfo = { view_index: { pending_changes?: number; progress?: number | null; errors?: number | null; entries?: number | null } };

/** A page of groups or categories; more are unfolded or narrowed by keys. */
const ROWS_MAX = 2000;

export function Part({ name }: PartProps) {
  const designs = useResource(`designs ${name}`, () => ask<{ rows: { doc: Design }[] }>("GET", `${pathOf(name)}/_design_docs`, { include_docs: true }));
  const [, , , design, view] = place.value.segments;
  return (
    <Loaded of={designs}>{({ rows }) => {
      const all = rows.flatMap(({ doc }) => Object.entries(doc?.views ?? {}).filter(([view]) => view !== "lib" && doc["language"] !== "query")
        .map(([view, definition]) => ({ design: doc._id.slice(8), view, definition, language: String(doc["language"] ?? "javascript") })));
      const chosen = all.find((found) => found.design === design && found.view === view) ?? all[0];
      if (!chosen) return <Empty title={t("noViews")}><p>{t("noViewsHint")}</p></Empty>;
      return (
        <>
          <div class="filters">
            <select aria-label={t("view")} value={`${chosen.design}/${chosen.view}`} onChange={(event) => { const next = all[event.currentTarget.selectedIndex]; if (next) go(["databases", name, "views", next.design, next.view]); }}>
              {all.map((found) => <option value={`${found.design}/${found.view}`}>{found.design} / {found.view}</option>)}
            </select>
            <State database={name} design={chosen.design} />
            <span style={{ flex: 1 }} />
            <a class="button" href={hashOf(["databases", name, "documents", `_design/${chosen.design}`])}>{t("editDesign")}</a>
          </div>
          <Entries key={`${chosen.design}/${chosen.view}`} database={name} {...chosen} />
        </>
      );
    }}</Loaded>
  );
}

function State({ database, design }: { database: string; design: string }) {
  const info = useResource(`info ${database} ${design}`, () => ask<IndexInfo>("GET", `${pathOf(database)}/_design/${pathOf(design)}/_info`), 3000);
  const told = info.data.value?.view_index;
  if (!told) return null;
  const isBuilding = typeof told.progress === "number" && told.progress < 100;
  const behind = told.pending_changes ?? 0;
  return (
    <>
      <span class={`pill ${behind === 0 ? "good" : "warn"}`} role="status">{isBuilding ? t("building", { percent: told.progress! }) : behind === 0 ? t("upToDate") : t("behind", { n: behind })}</span>
      {(told.errors ?? 0) > 0 && <span class="pill bad">{t("buildErrors", { n: told.errors! })}</span>}
    </>
  );
}

type Mode = { id: string; title: string; parameters: { [name: string]: Json } };

function modesOf(definition: Definition, isFormula: boolean): Mode[] {
  const rows: Mode = { id: "rows", title: t("asRows"), parameters: { reduce: false } };
  const categories = definition.columns?.filter(({ category }) => category).length ?? 0;
  const modes = isFormula ? (categories > 0 ? [{ id: "categories", title: t("asCategories"), parameters: {} }, rows] : [rows]) : [rows];
  if (!isFormula && !definition.reduce) return modes;
  const levels = isFormula ? categories : 3;
  for (let level = 1; level <= levels; level++) modes.push({ id: `level${level}`, title: t("groupedBy", { n: level }), parameters: { group_level: level, reduce: true } });
  modes.push({ id: "group", title: t("groupedExactly"), parameters: { group: true, reduce: true } });
  modes.push({ id: "all", title: t("reduced"), parameters: { reduce: true } });
  return modes;
}

function jsonOrUndefined(text: string | undefined): Json | undefined {
  if (!text) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

function Entries({ database, design, view, definition, language }: { database: string; design: string; view: string; definition: Definition; language: string }) {
  const isFormula = language === "formula";
  const modes = modesOf(definition, isFormula);
  const { mode: wanted, from, to, descending, row } = place.value.parameters;
  const mode = modes.find(({ id }) => id === wanted) ?? modes[0]!;
  const [open, setOpen] = useState<Json[]>([]);
  const path = `${pathOf(database)}/_design/${pathOf(design)}/_view/${pathOf(view)}`;
  const [start, end] = [jsonOrUndefined(from), jsonOrUndefined(to)];
  const range = {
    startkey: start === undefined ? undefined : JSON.stringify(start),
    endkey: end === undefined ? undefined : JSON.stringify(end),
    descending: descending ? true : undefined,
  };
  const isCounted = mode.id === "rows";
  const categories = mode.id === "categories" ? { level: 0, expand: open.length ? open : undefined } : {};
  const source = `${path} ${mode.id} ${from} ${to} ${descending}`;
  const found = useResource(source, async () => {
    const page = await ask<Page>("GET", path, { ...mode.parameters, ...categories, ...range, limit: isCounted && !from && !to ? 0 : ROWS_MAX });
    return { count: isCounted && !from && !to ? (page.total_rows ?? page.rows.length) : page.rows.length, rows: page.rows, total: page.total_rows };
  }, undefined, JSON.stringify(open));
  const fetchPage = async (first: number, limit: number) => {
    const { rows } = found.data.value ?? { rows: [] };
    if (!isCounted || from || to) return rows.slice(first, first + limit);
    return (await ask<Page>("GET", path, { ...mode.parameters, ...range, start: first, limit })).rows;
  };
  const goToKey = (text: string) => attempt(async () => {
    const key = isFormula ? { find: text } : { startkey: JSON.stringify(jsonOrUndefined(text) ?? null) };
    const { offset } = await ask<Page>("GET", path, { ...mode.parameters, ...key, limit: 0 });
    change({ row: String((offset ?? 0) + 1) });
  });
  const openRow = (row: Row) => {
    if (row.category) setOpen(row.expanded ? open.filter((key) => !isWithin(key, row.key)) : [...open, row.key]);
    else if (row.id) go(["databases", database, "documents", row.id]);
  };
  const columns = isFormula && (isCounted || mode.id === "categories") ? formulaColumns(definition, mode.id === "categories") : keyColumns();
  return (
    <>
      <div class="filters">
        <select aria-label={t("show")} value={mode.id} onChange={(event) => change({ mode: event.currentTarget.value, row: undefined })}>
          {modes.map(({ id, title }) => <option value={id}>{title}</option>)}
        </select>
        {isCounted && !from && !to && <GoTo count={found.data.value?.count ?? 0} />}
        {isCounted && <form class="filters" onSubmit={(event) => { event.preventDefault(); void goToKey(event.currentTarget.querySelector("input")!.value); }}><input type="search" aria-label={t("findKey")} placeholder={t("findKey")} /></form>}
        <input size={14} aria-label={t("keyFrom")} placeholder={t("keyFrom")} value={from ?? ""} onChange={(event) => change({ from: event.currentTarget.value, row: undefined })} />
        <input size={14} aria-label={t("keyTo")} placeholder={t("keyTo")} value={to ?? ""} onChange={(event) => change({ to: event.currentTarget.value, row: undefined })} />
        <label class="check"><input type="checkbox" checked={Boolean(descending)} onChange={(event) => change({ descending: event.currentTarget.checked ? "1" : undefined })} />{t("descending")}</label>
        <span class="quiet" role="status">{found.data.value && t("entries", { n: found.data.value.total ?? found.data.value.count })}</span>
      </div>
      <div class="fills grid-holder">
        <Loaded of={found}>{({ count }) => count === 0 ? <Empty title={t("emptyView")} /> : (
          <Grid label={`${design} / ${view}`} columns={columns} count={count} source={source} version={found.data.value} fetchPage={fetchPage} pageSize={200} position={row ? Number(row) - 1 : undefined}
            open={openRow} rowClass={(row) => (row.category ? "category" : "")}
            onKey={(key, row) => {
              const unfolds = row.category && ((key === "ArrowRight" && !row.expanded) || (key === "ArrowLeft" && row.expanded));
              if (unfolds) openRow(row);
              return Boolean(unfolds);
            }}
            {...(mode.id === "categories" ? { level: (row: Row) => ({ level: row.level ?? 0, ...(row.category ? { expanded: Boolean(row.expanded) } : {}) }) } : {})} />
        )}</Loaded>
      </div>
    </>
  );
}

function isWithin(key: Json, category: Json): boolean {
  return Array.isArray(key) && Array.isArray(category) && category.every((part, index) => JSON.stringify(part) === JSON.stringify(key[index]));
}

function text(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number") return number(value, 3);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The columns that the view itself has. */
function formulaColumns(definition: Definition, withCategories: boolean): Column<Row>[] {
  const own = (definition.columns ?? []).filter(({ category }) => !withCategories || !category);
  const member = (row: Row, title: string) => (row.value && typeof row.value === "object" && !Array.isArray(row.value) ? row.value[title] : undefined);
  const columns: Column<Row>[] = own.map((column) => ({
    title: column.title,
    numeric: Boolean(column.total),
    show: (row) => <span dir="auto">{row.category ? text(totalOf(row, column.title)) : text(member(row, column.title))}</span>,
  }));
  if (!withCategories) return columns;
  const count = (row: Row) => (row.category ? number(member(row, "count") as number) : "");
  return [
    { title: t("category"), width: "minmax(8rem, 1.5fr)", show: (row) => <span dir="auto">{row.category ? `${row.expanded ? "▾" : "▸"} ${(Array.isArray(row.key) ? text(row.key.at(-1)) : "") || t("notCategorized")}` : ""} <span class="quiet">{count(row)}</span></span> },
    ...columns,
  ];
}

function totalOf(row: Row, title: string): Json | undefined {
  const value = row.value as { totals?: { [title: string]: Json } } | null;
  return value?.totals?.[title];
}

function keyColumns(): Column<Row>[] {
  return [
    { title: t("key"), width: "minmax(8rem, 2fr)", show: (row) => <span class="mono" dir="auto">{JSON.stringify(row.key)}</span> },
    { title: t("value"), width: "minmax(6rem, 2fr)", show: (row) => <span class="mono" dir="auto">{JSON.stringify(row.value)}</span> },
    { title: t("id"), width: "minmax(6rem, 1fr)", wide: true, show: (row) => <span class="mono quiet" dir="auto">{row.id}</span> },
  ];
}
