// Documents of a database by id, from any place in the list, and one of them in full next to it.

import { useState } from "preact/hooks";
import { ask, pathOf, type Json } from "../../shared/api.ts";
import { Grid, type Column } from "../../shared/grid.tsx";
import { useResource } from "../../shared/data.ts";
import { change, go, place } from "../../shared/route.ts";
import { Empty, Loaded } from "../../shared/ui.tsx";
import type { PartProps } from "./database.tsx";
import { DocumentPane } from "./document.tsx";
import { excerpt } from "../excerpt.ts";
import { t } from "../texts.ts";

type Row = { id: string; value?: { rev: string }; doc?: { [member: string]: Json } | null; error?: string };
type Page = { total_rows: number | null; rows: Row[] };

/** More than a screen of documents that may be large. */
const PAGE_WITH_CONTENTS = 40;

export function Part({ name, info, reload }: PartProps) {
  const { prefix = "", contents, row, id } = { id: place.value.segments[3], ...place.value.parameters } as { prefix?: string; contents?: string; row?: string; id?: string };
  const [round, setRound] = useState(0);
  const path = `${pathOf(name)}/_all_docs`;
  const range = prefix ? { startkey: JSON.stringify(prefix), endkey: JSON.stringify(`${prefix}\ufff0`) } : {};
  // A part of the list is not counted by the server: a page of it at most is shown.
  const found = useResource(`${name} ${prefix}`, async () => {
    const page = await ask<Page>("GET", path, prefix ? { ...range, limit: 1000 } : { limit: 0 });
    return { count: prefix ? page.rows.length : (page.total_rows ?? 0), rows: page.rows };
  }, undefined, `${round} ${info?.update_seq ?? ""}`);
  const withContents = Boolean(contents);
  const fetchPage = async (start: number, limit: number) => {
    const total = found.data.value?.count ?? 0;
    // Ids are not counted by the server's tree: the nearer end is walked from.
    const backwards = !prefix && start > total / 2;
    const length = Math.min(limit, total - start);
    const asked = backwards ? { descending: true, skip: total - start - length, limit: length } : { skip: start, limit };
    const { rows } = await ask<Page>("GET", path, { ...range, ...asked, include_docs: withContents || undefined });
    return backwards ? rows.reverse() : rows;
  };
  const columns: Column<Row>[] = [
    { title: t("id"), width: "minmax(8rem, 2fr)", show: (found) => <span class="mono" dir="auto">{found.id}</span> },
    withContents
      ? { title: t("excerpt"), width: "minmax(8rem, 4fr)", show: (found) => <span dir="auto" class="quiet">{found.doc ? excerpt(found.doc) : ""}</span> }
      : { title: t("revision"), width: "minmax(6rem, 1fr)", wide: true, show: (found) => <span class="mono quiet">{found.value?.rev ?? found.error}</span> },
  ];
  const changed = () => {
    setRound((before) => before + 1);
    void reload();
  };
  return (
    <>
      <div class="filters">
        <input type="search" aria-label={t("startsWith")} placeholder={t("startsWith")} value={prefix} onInput={(event) => change({ prefix: event.currentTarget.value, row: undefined })} />
        {!prefix && <GoTo count={found.data.value?.count ?? 0} />}
        <label class="check"><input type="checkbox" checked={withContents} onChange={(event) => change({ contents: event.currentTarget.checked ? "1" : undefined })} />{t("excerpts")}</label>
        <span style={{ flex: 1 }} />
        <button type="button" class="primary" onClick={() => go(["databases", name, "documents", "_new"])}>{t("newDocument")}</button>
      </div>
      <div class={`fills split ${id !== undefined ? "has-detail" : "single"}`}>
        <Loaded of={found}>{({ count }) => count === 0
          ? <Empty title={t("noDocuments")}><p>{t("noDocumentsHint", { name })}</p></Empty>
          : <Grid label={t("documents")} columns={columns} count={count} source={`${name} ${prefix} ${withContents}`} version={found.data.value} pageSize={withContents ? PAGE_WITH_CONTENTS : 200}
              position={row ? Number(row) - 1 : undefined} fetchPage={fetchPage} open={(found) => go(["databases", name, "documents", found.id], place.value.parameters)} />}</Loaded>
        {id !== undefined && <DocumentPane key={id} database={name} id={id} changed={changed} close={() => go(["databases", name, "documents"], place.value.parameters)} />}
      </div>
    </>
  );
}

/** A box for the number of a row. */
export function GoTo({ count }: { count: number }) {
  const [text, setText] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    const row = Math.max(1, Math.min(count, Number.parseInt(text.replace(/\D/g, ""), 10) || 1));
    change({ row: String(row) });
  };
  return (
    <form class="filters" onSubmit={submit}>
      <input inputMode="numeric" size={9} aria-label={t("goTo")} placeholder={t("goTo")} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <span class="quiet">/ {new Intl.NumberFormat().format(count)}</span>
    </form>
  );
}
