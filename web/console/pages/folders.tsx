// Folders: which there are, and what is in one.

import { useState } from "preact/hooks";
import { ask, pathOf, type Json } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { Grid, type Column } from "../../shared/grid.tsx";
import { number } from "../../shared/i18n.ts";
import { go, hashOf, place } from "../../shared/route.ts";
import { attempt, Dialog, Empty, Field, Form, Loaded, say } from "../../shared/ui.tsx";
import type { PartProps } from "./database.tsx";
import { t } from "../texts.ts";

type Folder = { name: string; total: number | null; unread: number | null; next_uid: number; columns: { title: string }[] };
type Row = { id: string; uid: number; unread?: boolean; value: { [title: string]: Json } };

export function Part({ name }: PartProps) {
  const folders = useResource(`folders ${name}`, async () => {
    const told = await ask<Folder[] | { folders: Folder[] }>("GET", `${pathOf(name)}/_folder`);
    return Array.isArray(told) ? told : told.folders;
  }, 10_000);
  const [adding, setAdding] = useState(false);
  const wanted = place.value.segments[3];
  const remove = (folder: Folder) => attempt(async () => {
    await ask("DELETE", `${pathOf(name)}/_folder/${pathOf(folder.name)}`);
    say(t("folderGone", { name: folder.name }));
    go(["databases", name, "folders"]);
    await folders.reload();
  });
  return (
    <>
      <div class="spread"><span /><button type="button" class="primary" onClick={() => setAdding(true)}>{t("newFolder")}</button></div>
      <Loaded of={folders}>{(all) => {
        const chosen = all.find((folder) => folder.name === wanted);
        if (all.length === 0) return <Empty title={t("noFolders")}><p>{t("noFoldersHint")}</p></Empty>;
        return (
          <>
            <section class="card scrolls" tabIndex={0} aria-label={t("folders")}>
              <table>
                <thead><tr><th scope="col">{t("folder")}</th><th scope="col" class="numeric">{t("documents")}</th><th scope="col" class="numeric">{t("unread")}</th><th scope="col" class="numeric">{t("lastUid")}</th><th /></tr></thead>
                <tbody>{all.map((folder) => (
                  <tr><td dir="auto"><a href={hashOf(["databases", name, "folders", folder.name])} aria-current={folder === chosen ? "true" : undefined}>{folder.name}</a></td>
                    <td class="numeric">{number(folder.total)}</td><td class="numeric">{number(folder.unread)}</td><td class="numeric">{number(folder.next_uid)}</td>
                    <td class="numeric"><button type="button" aria-label={`${t("deleteFolder")}: ${folder.name}`} onClick={() => void remove(folder)}>{t("deleteFolder")}</button></td></tr>
                ))}</tbody>
              </table>
            </section>
            {chosen && <div class="fills grid-holder"><Rows key={chosen.name} database={name} folder={chosen} /></div>}
          </>
        );
      }}</Loaded>
      {adding && <Add database={name} close={() => setAdding(false)} added={() => void folders.reload()} />}
    </>
  );
}

function Rows({ database, folder }: { database: string; folder: Folder }) {
  const path = `${pathOf(database)}/_folder/${pathOf(folder.name)}`;
  const page = useResource(path, () => ask<{ total_rows: number | null; rows: Row[] }>("GET", path, { limit: 0 }), undefined, `${folder.total} ${folder.next_uid}`);
  const columns: Column<Row>[] = folder.columns.map(({ title }) => ({
    title,
    show: (row) => <span dir="auto">{typeof row.value[title] === "string" ? row.value[title] as string : JSON.stringify(row.value[title] ?? "")}</span>,
  }));
  return (
    <Loaded of={page}>{({ total_rows }) => (total_rows ?? folder.total ?? 0) === 0 ? <Empty title={t("emptyFolder")} /> : (
      <Grid label={folder.name} columns={columns} count={total_rows ?? folder.total ?? 0} source={path} version={page.data.value} pageSize={200}
        fetchPage={async (start, limit) => (await ask<{ rows: Row[] }>("GET", path, { start, limit })).rows}
        rowClass={(row) => (row.unread ? "unread" : "")} open={(row) => go(["databases", database, "documents", row.id])} />
    )}</Loaded>
  );
}

function Add({ database, close, added }: { database: string; close: () => void; added: () => void }) {
  const [name, setName] = useState("");
  return (
    <Dialog title={t("newFolder")} close={close}>
      <Form label={t("create")} send={async () => { await ask("PUT", `${pathOf(database)}/_folder/${pathOf(name)}`, {}, { body: {} }); close(); added(); }}>
        <Field label={t("folderName")} required first value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </Form>
    </Dialog>
  );
}
