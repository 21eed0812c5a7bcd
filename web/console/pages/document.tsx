// One document: its JSON, its revisions and conflicts, its attachments.

import { useEffect, useRef, useState } from "preact/hooks";
import { addressOf, ApiError, ask, documentPath, pathOf, type Document, type Json } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { bytes } from "../../shared/i18n.ts";
import { bind } from "../../shared/keys.ts";
import { go } from "../../shared/route.ts";
import { attempt, complain, Loaded, say } from "../../shared/ui.tsx";
import { compare } from "../excerpt.ts";
import { t } from "../texts.ts";

type Props = { database: string; id: string; changed: () => void; close: () => void };
type Attachment = { content_type: string; length: number; digest: string; revpos: number };
type Revision = { rev: string; status: string };
type Shown = { document: Document | undefined; text: string; revisions: Revision[]; conflicts: string[] };

/** What the server adds for the answer, and is not to be stored. */
const ADDED = ["_revs_info", "_conflicts", "_deleted_conflicts", "_revisions"];

async function open(database: string, id: string): Promise<Shown> {
  if (id === "_new") {
    const { uuids } = await ask<{ uuids: string[] }>("GET", "_uuids");
    return { document: undefined, text: `{\n  "_id": "${uuids[0]}"\n}`, revisions: [], conflicts: [] };
  }
  const document = await ask<Document>("GET", documentPath(database, id), { conflicts: true, revs_info: true });
  const kept = Object.fromEntries(Object.entries(document).filter(([name]) => !ADDED.includes(name)));
  return {
    document: kept as Document,
    text: JSON.stringify(kept, null, 2),
    revisions: (document["_revs_info"] as Revision[] | undefined) ?? [],
    conflicts: (document["_conflicts"] as string[] | undefined) ?? [],
  };
}

export function DocumentPane({ database, id, changed, close }: Props) {
  const resource = useResource(`${database}/${id}`, () => open(database, id));
  const again = () => {
    changed();
    void resource.reload();
  };
  useEffect(() => bind([{ keys: "Escape", what: t("backToList"), run: close }]), []);
  return (
    <section class="card docked" aria-label={id}>
      <div class="spread">
        <h2 dir="auto" class="mono" style={{ overflowWrap: "anywhere" }}>{id === "_new" ? t("newDocument") : id}</h2>
        <button type="button" class="plain" onClick={close}>✕ {t("backToList")}</button>
      </div>
      <Loaded of={resource}>{(shown) => (
        <>
          {shown.conflicts.length > 0 && shown.document && <Conflicts database={database} document={shown.document} conflicts={shown.conflicts} settled={again} />}
          <Editor key={shown.document?._rev ?? ""} database={database} shown={shown} changed={again} deleted={() => { changed(); close(); }} />
          {shown.document && <Attachments database={database} document={shown.document} changed={again} />}
          {shown.revisions.length > 0 && <Revisions revisions={shown.revisions} />}
        </>
      )}</Loaded>
    </section>
  );
}

function draftOf(database: string, id: string) {
  return `draft ${database}/${id}`;
}

function Editor({ database, shown, changed, deleted }: { database: string; shown: Shown; changed: () => void; deleted: () => void }) {
  const key = draftOf(database, shown.document?._id ?? "_new");
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? shown.text);
  const [restored, setRestored] = useState(text !== shown.text);
  const [other, setOther] = useState<Document>();
  const area = useRef<HTMLTextAreaElement>(null);
  const [problem, parsed] = parsedOf(text);
  const isDirty = text !== shown.text;

  const edit = (next: string) => {
    setText(next);
    // Whatever happens to the page: what was typed is kept.
    try {
      if (next === shown.text) sessionStorage.removeItem(key);
      else sessionStorage.setItem(key, next);
    } catch {
      // Longer than a browser keeps; the editor has it all the same.
    }
  };
  const done = () => {
    sessionStorage.removeItem(key);
    setOther(undefined);
    changed();
  };
  const store = async (document: { [member: string]: Json }) => {
    const id = typeof document["_id"] === "string" ? document["_id"] : "";
    await ask("PUT", documentPath(database, id), {}, { body: document });
    say(t("saved", { id }));
    if (!shown.document) go(["databases", database, "documents", id]);
    done();
  };
  const save = async () => {
    if (!parsed) return;
    try {
      await store(parsed);
    } catch (error) {
      const isConflict = error instanceof ApiError && error.status === 409 && shown.document;
      if (isConflict) setOther(await ask<Document>("GET", documentPath(database, shown.document!._id)));
      else complain(error);
    }
  };
  const remove = () => attempt(async () => {
    const document = shown.document!;
    const gone = await ask<{ rev: string }>("DELETE", documentPath(database, document._id), { rev: document._rev });
    sessionStorage.removeItem(key);
    say(t("deletedDocument", { id: document._id }), async () => {
      const { _attachments: _, ...body } = document;
      await ask("PUT", documentPath(database, document._id), {}, { body: { ...body, _rev: gone.rev } as Json });
      changed();
    });
    deleted();
  });
  const keyPressed = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void attempt(save);
    }
  };
  useEffect(() => bind([{ keys: "e", what: t("json"), run: () => area.current?.focus() }]), []);
  return (
    <div class="editor">
      {restored && <p class="note" role="status">{t("draftFound")}</p>}
      {other && parsed && (
        <>
          <p class="note warn" role="alert">{t("conflictOnSave")}</p>
          <Comparison left={t("mine")} right={t("theirs")} mine={parsed} theirs={other} />
          <div class="buttons end">
            <button type="button" onClick={() => { sessionStorage.removeItem(key); setOther(undefined); changed(); }}>{t("keepTheirs")}</button>
            <button type="button" class="primary" onClick={() => void attempt(() => store({ ...parsed, _rev: other._rev }))}>{t("keepMine")}</button>
          </div>
        </>
      )}
      <textarea ref={area} aria-label={t("json")} aria-invalid={problem !== undefined} spellcheck={false} autocapitalize="off" value={text} onInput={(event) => edit(event.currentTarget.value)} onKeyDown={keyPressed} />
      <div class="spread">
        <span class={problem ? "pill bad" : "quiet"} role="status" style={{ whiteSpace: "normal" }}>{problem ? t("badJson", { reason: problem }) : isDirty ? t("unsaved") : bytes(text.length)}</span>
        <div class="buttons">
          {shown.document && <button type="button" onClick={() => void navigator.clipboard?.writeText(`curl -u admin '${addressOf(documentPath(database, shown.document!._id))}'`)}>{t("copyCurl")}</button>}
          {shown.document && <button type="button" onClick={() => void remove()}>{t("deleteDocument")}</button>}
          {isDirty && shown.document && <button type="button" onClick={() => { edit(shown.text); setRestored(false); }}>{t("discard")}</button>}
          <button type="button" class="primary" disabled={!parsed || (!isDirty && Boolean(shown.document))} onClick={() => void attempt(save)}>{t("save")} <kbd>Ctrl ↵</kbd></button>
        </div>
      </div>
    </div>
  );
}

function parsedOf(text: string): [string | undefined, { [member: string]: Json } | undefined] {
  try {
    const parsed: unknown = JSON.parse(text);
    if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) return ["{ … }", undefined];
    return [undefined, parsed as { [member: string]: Json }];
  } catch (error) {
    return [(error as Error).message, undefined];
  }
}

function Comparison({ left, right, mine, theirs }: { left: string; right: string; mine: { [member: string]: Json }; theirs: { [member: string]: Json } }) {
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label={`${left} / ${right}`}>
      <table class="diff">
        <thead><tr><th scope="col">{t("field")}</th><th scope="col">{left}</th><th scope="col">{right}</th></tr></thead>
        <tbody>{compare(mine, theirs).map((row) => (
          <tr><th scope="row" dir="auto">{row.name}</th><td class={row.differs ? "differs" : ""} dir="auto"><pre>{row.mine}</pre></td><td class={row.differs ? "differs" : ""} dir="auto"><pre>{row.theirs}</pre></td></tr>
        ))}</tbody>
      </table>
    </div>
  );
}

function Conflicts({ database, document, conflicts, settled }: { database: string; document: Document; conflicts: string[]; settled: () => void }) {
  const [chosen, setChosen] = useState(conflicts[0]!);
  const other = useResource(`${document._id} ${chosen}`, () => ask<Document>("GET", documentPath(database, document._id), { rev: chosen }));
  const keep = (kept: Document) => attempt(async () => {
    const leaves = [document._rev, ...conflicts].filter((rev) => rev !== kept._rev);
    const docs = leaves.map((rev) => ({ _id: document._id, _rev: rev, _deleted: true }));
    const answers = await ask<{ error?: string; reason?: string }[]>("POST", `${pathOf(database)}/_bulk_docs`, {}, { body: { docs } });
    const failed = answers.find(({ error }) => error);
    if (failed) throw new Error(failed.reason ?? failed.error);
    say(t("settled"));
    settled();
  });
  return (
    <section>
      <h3>{t("conflicts")}</h3>
      <p class="note warn">{t("conflictsHint")}</p>
      <div class="filters" style={{ marginBlock: ".5rem" }}>
        <button type="button" onClick={() => void keep(document)}>{t("keepThis")}: {t("winner", { rev: document._rev.slice(0, 9) })}</button>
        <select aria-label={t("revision")} value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
          {conflicts.map((rev) => <option value={rev}>{rev}</option>)}
        </select>
        <button type="button" disabled={!other.data.value} onClick={() => void keep(other.data.value!)}>{t("keepThis")}: {chosen.slice(0, 9)}</button>
      </div>
      <Loaded of={other}>{(loser) => <Comparison left={t("winner", { rev: document._rev.slice(0, 9) })} right={chosen.slice(0, 9)} mine={document} theirs={loser} />}</Loaded>
    </section>
  );
}

function Attachments({ database, document, changed }: { database: string; document: Document; changed: () => void }) {
  const attachments = Object.entries((document["_attachments"] as { [name: string]: Attachment } | undefined) ?? {});
  const path = (name: string) => `${documentPath(database, document._id)}/${pathOf(name)}`;
  const add = (event: Event) => attempt(async () => {
    const input = event.currentTarget as HTMLInputElement;
    for (const file of input.files ?? []) {
      await ask("PUT", path(file.name), { rev: document._rev }, { body: file, headers: { "Content-Type": file.type || "application/octet-stream" } });
      changed();
      break;
    }
  });
  const remove = (name: string) => attempt(async () => {
    await ask("DELETE", path(name), { rev: document._rev });
    changed();
  });
  return (
    <section>
      <div class="spread">
        <h3>{t("attachments")}</h3>
        <label class="check">{t("addAttachment")} <input type="file" onChange={(event) => void add(event)} /></label>
      </div>
      {attachments.length > 0 && (
        <table>
          <thead><tr><th scope="col">{t("name")}</th><th scope="col">{t("type")}</th><th scope="col" class="numeric">{t("size")}</th><th /></tr></thead>
          <tbody>{attachments.map(([name, attachment]) => (
            <tr><td dir="auto">{name}</td><td>{attachment.content_type}</td><td class="numeric">{bytes(attachment.length)}</td>
              <td class="buttons end"><a class="button" href={addressOf(path(name))} download={name} rel="noopener noreferrer">{t("download")}</a>
                <button type="button" aria-label={`${t("deleteDocument")}: ${name}`} onClick={() => void remove(name)}>{t("deleteDocument")}</button></td></tr>
          ))}</tbody>
        </table>
      )}
    </section>
  );
}

function Revisions({ revisions }: { revisions: Revision[] }) {
  return (
    <details>
      <summary>{t("revisions")} ({revisions.length})</summary>
      <table><tbody>{revisions.map(({ rev, status }) => <tr><td class="mono">{rev}</td><td>{status === "available" ? t("available") : t("superseded")}</td></tr>)}</tbody></table>
    </details>
  );
}
