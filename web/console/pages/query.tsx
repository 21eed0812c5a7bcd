// Mango queries: written, run, explained, and the indexes that they read.

import { useState } from "preact/hooks";
import { ask, pathOf, type Document, type Json } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { hashOf } from "../../shared/route.ts";
import { attempt, Dialog, ErrorBox, Field, Form, Loaded, say } from "../../shared/ui.tsx";
import { excerpt } from "../excerpt.ts";
import { fieldsOf } from "../selector.ts";
import type { PartProps } from "./database.tsx";
import { t } from "../texts.ts";

type Index = { ddoc: string | null; name: string; type: string; def: { fields: { [field: string]: string }[] } };
type Answer = { docs: (Document & { [member: string]: Json })[]; bookmark: string; warning?: string; execution_stats?: { total_keys_examined: number; total_docs_examined: number; execution_time_ms: number } };
type Explained = { index: Index; selector: Json; index_candidates?: { index: Index; analysis?: { usable?: boolean; reasons?: { name: string }[] } }[] };

const EXAMPLE = `{
  "selector": { "_id": { "$gt": null } },
  "limit": 50
}`;

export function Part({ name }: PartProps) {
  const kept = `query ${name}`;
  const [text, setText] = useState(() => sessionStorage.getItem(kept) ?? EXAMPLE);
  const [answer, setAnswer] = useState<Answer>();
  const [explained, setExplained] = useState<Explained>();
  const [error, setError] = useState<unknown>();
  const indexes = useResource(`indexes ${name}`, () => ask<{ indexes: Index[] }>("GET", `${pathOf(name)}/_index`));
  const run = async (bookmark?: string) => {
    setError(undefined);
    try {
      const query = JSON.parse(text) as { [member: string]: Json };
      setExplained(undefined);
      setAnswer(await ask<Answer>("POST", `${pathOf(name)}/_find`, {}, { body: { ...query, ...(bookmark ? { bookmark } : {}), execution_stats: true } }));
    } catch (reason) {
      setError(reason);
    }
  };
  const explain = async () => {
    setError(undefined);
    try {
      setExplained(await ask<Explained>("POST", `${pathOf(name)}/_explain`, {}, { body: JSON.parse(text) as Json }));
    } catch (reason) {
      setError(reason);
    }
  };
  const edit = (next: string) => {
    setText(next);
    sessionStorage.setItem(kept, next);
  };
  return (
    <div class="two">
      <section class="card editor">
        <h2>{t("selector")}</h2>
        <textarea aria-label={t("selector")} spellcheck={false} value={text} onInput={(event) => edit(event.currentTarget.value)}
          onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); void run(); } }} />
        <div class="buttons end">
          <button type="button" onClick={() => void explain()}>{t("explain")}</button>
          <button type="button" class="primary" onClick={() => void run()}>{t("run")} <kbd>Ctrl ↵</kbd></button>
        </div>
        {error !== undefined && <ErrorBox error={error} />}
        {explained && <Why name={name} explained={explained} made={() => void indexes.reload()} />}
        <Loaded of={indexes}>{({ indexes: all }) => <Indexes name={name} indexes={all} changed={() => void indexes.reload()} />}</Loaded>
      </section>
      <section class="card" aria-label={t("results")}>
        <div class="spread"><h2>{t("results")}</h2>
          {answer && <span class="quiet" role="status">{t("found", { n: answer.docs.length })}{answer.execution_stats && ` · ${t("examined", { keys: answer.execution_stats.total_keys_examined, documents: answer.execution_stats.total_docs_examined, ms: Math.round(answer.execution_stats.execution_time_ms) })}`}</span>}</div>
        {answer?.warning && <p class="note warn">{answer.warning}</p>}
        {answer && (
          <div class="scrolls" style={{ maxHeight: "34rem" }} tabIndex={0} role="region" aria-label={t("results")}>
            <table><tbody>{answer.docs.map((document) => (
              <tr><td dir="auto">{document._id ? <a class="mono" href={hashOf(["databases", name, "documents", document._id])}>{document._id}</a> : null}</td><td class="quiet" dir="auto">{excerpt(document)}</td></tr>
            ))}</tbody></table>
          </div>
        )}
        {answer && answer.docs.length > 0 && answer.bookmark !== "nil" && <div class="buttons end"><button type="button" onClick={() => void run(answer.bookmark)}>{t("next")}</button></div>}
      </section>
    </div>
  );
}

function shown(index: Index): string {
  return index.def.fields.map((field) => Object.keys(field)[0]).join(", ");
}

function Why({ name, explained, made }: { name: string; explained: Explained; made: () => void }) {
  const { index } = explained;
  const fields = fieldsOf(explained.selector);
  const others = (explained.index_candidates ?? []).filter((candidate) => candidate.index.name !== index.name);
  const make = () => attempt(async () => {
    const { name: made_ } = await ask<{ name: string }>("POST", `${pathOf(name)}/_index`, {}, { body: { index: { fields } } });
    say(t("indexMade", { name: made_ }));
    made();
  });
  return (
    <div class="note" role="status">
      {index.type === "special"
        ? <><p>{t("usesAll", { fields: fields.join(", ") || "…" })}</p>{fields.length > 0 && <button type="button" onClick={() => void make()}>{t("makeIndex")}</button>}</>
        : <p>{t("usesIndex", { name: index.name, fields: shown(index) })}</p>}
      {others.length > 0 && <p class="quiet">{t("otherIndexes")}: {others.map((other) => `${other.index.name} (${other.analysis?.reasons?.map((reason) => reason.name).join(", ") ?? ""})`).join("; ")}</p>}
    </div>
  );
}

function Indexes({ name, indexes, changed }: { name: string; indexes: Index[]; changed: () => void }) {
  const [adding, setAdding] = useState(false);
  const [fields, setFields] = useState("");
  const remove = (index: Index) => attempt(async () => {
    await ask("DELETE", `${pathOf(name)}/_index/${pathOf(index.ddoc?.replace("_design/", "") ?? "", "json", index.name)}`);
    say(t("indexGone", { name: index.name }));
    changed();
  });
  return (
    <div>
      <div class="spread"><h3>{t("indexes")}</h3><button type="button" onClick={() => setAdding(true)}>{t("newIndex")}</button></div>
      <table><tbody>{indexes.map((index) => (
        <tr><td dir="auto">{index.name}</td><td class="mono" dir="auto">{shown(index)}</td><td class="numeric">{index.ddoc && <button type="button" aria-label={`${t("remove")}: ${index.name}`} onClick={() => void remove(index)}>{t("remove")}</button>}</td></tr>
      ))}</tbody></table>
      {adding && (
        <Dialog title={t("newIndex")} close={() => setAdding(false)}>
          <Form label={t("create")} send={async () => {
            const list = fields.split(",").map((field) => field.trim()).filter(Boolean);
            const { name: made } = await ask<{ name: string }>("POST", `${pathOf(name)}/_index`, {}, { body: { index: { fields: list } } });
            say(t("indexMade", { name: made }));
            setAdding(false);
            changed();
          }}>
            <Field label={t("indexFields")} required first value={fields} onInput={(event) => setFields(event.currentTarget.value)} />
          </Form>
        </Dialog>
      )}
    </div>
  );
}
