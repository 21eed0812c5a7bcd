// Databases: the list of them, and the parts of one.

import { useState } from "preact/hooks";
import { addressOf, ask, isAdministrator, pathOf } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { Grid, type Column } from "../../shared/grid.tsx";
import { bytes, number } from "../../shared/i18n.ts";
import { change, go, place } from "../../shared/route.ts";
import { Dialog, Empty, Field, Form, Loaded, say } from "../../shared/ui.tsx";
import { DatabasePage, type Info } from "./database.tsx";
import { t } from "../texts.ts";

export function Page() {
  const name = place.value.segments[1];
  if (name !== undefined) return <DatabasePage key={name} name={name} />;
  return isAdministrator() ? <List /> : <OpenByName />;
}

/** Who may not see the list opens by name. */
function OpenByName() {
  const [name, setName] = useState("");
  return (
    <>
      <h1>{t("databases")}</h1>
      <div class="card" style={{ maxWidth: "30rem" }}>
        <p>{t("noAdministrator")}</p><br />
        <Form label={t("openDatabase")} send={async () => { await ask("GET", pathOf(name)); go(["databases", name]); }}>
          <Field label={t("databaseName")} required value={name} autocapitalize="none" onInput={(event) => setName(event.currentTarget.value)} />
        </Form>
      </div>
    </>
  );
}

const COLUMNS: Column<Row>[] = [
  { title: t("databases"), width: "minmax(9rem, 3fr)", show: ({ key }) => <strong dir="auto">{key}</strong> },
  { title: t("documents"), width: "minmax(5rem, 1fr)", numeric: true, show: ({ info }) => number(info?.doc_count) },
  { title: t("deleted"), width: "minmax(5rem, 1fr)", numeric: true, wide: true, show: ({ info }) => number(info?.doc_del_count) },
  { title: t("size"), width: "minmax(5rem, 1fr)", numeric: true, show: ({ info }) => bytes(info?.sizes?.file) },
  { title: t("sequence"), width: "minmax(5rem, 1fr)", numeric: true, wide: true, show: ({ info }) => number(Number.parseInt(String(info?.update_seq ?? ""), 10) || 0) },
  { title: t("volume"), width: "minmax(5rem, 1fr)", wide: true, show: ({ info }) => info?.volume },
  { title: t("state"), width: "minmax(5rem, 1fr)", wide: true, show: ({ info }) => (info?.compact_running ? <span class="pill warn">{t("compacting")}</span> : "") },
];

type Row = { key: string; info?: Info };

function List() {
  const names = useResource("databases", () => ask<string[]>("GET", "_all_dbs"), 15_000);
  const [creating, setCreating] = useState(false);
  const filter = place.value.parameters["filter"] ?? "";
  return (
    <>
      <div class="spread">
        <h1>{t("databases")}</h1>
        <button type="button" class="primary" onClick={() => setCreating(true)}>{t("newDatabase")}</button>
      </div>
      <Loaded of={names}>{(all) => {
        const shown = all.filter((name) => name.toLowerCase().includes(filter.toLowerCase()));
        const fetchPage = (start: number, limit: number) =>
          ask<Row[]>("POST", "_dbs_info", {}, { body: { keys: shown.slice(start, start + limit) } });
        return (
          <>
            <div class="filters">
              <input type="search" aria-label={t("filterDatabases")} placeholder={t("filterDatabases")} value={filter} onInput={(event) => change({ filter: event.currentTarget.value })} />
              <span class="quiet" role="status">{t("databasesFound", { n: shown.length })}</span>
            </div>
            {shown.length === 0
              ? <Empty title={t("noDatabases")}><p>{t("noDatabasesHint", { address: addressOf("") })}</p></Empty>
              : <div class="fills grid-holder"><Grid label={t("databases")} columns={COLUMNS} count={shown.length} source={filter} version={shown.join("\n")} fetchPage={fetchPage} open={({ key }) => go(["databases", key])} /></div>}
          </>
        );
      }}</Loaded>
      {creating && <Create close={() => setCreating(false)} />}
    </>
  );
}

function Create({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const [owner, setOwner] = useState("");
  const send = async () => {
    await ask("PUT", pathOf(name), { owner: owner || undefined });
    close();
    say(t("created", { name }));
    go(["databases", name]);
  };
  return (
    <Dialog title={t("newDatabase")} close={close}>
      <Form label={t("create")} send={send}>
        <Field label={t("databaseName")} hint={t("databaseNameHint")} required first autocapitalize="none" spellcheck={false} value={name} onInput={(event) => setName(event.currentTarget.value)} />
        <Field label={t("owner")} value={owner} autocapitalize="none" onInput={(event) => setOwner(event.currentTarget.value)} />
      </Form>
    </Dialog>
  );
}
