// Who may do what in a database: its access control list, or its `_security`.

import { useState } from "preact/hooks";
import { ApiError, ask, pathOf, type Json } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { Form, Loaded, say } from "../../shared/ui.tsx";
import type { PartProps } from "./database.tsx";
import { t } from "../texts.ts";

const LEVELS = ["no_access", "depositor", "reader", "author", "editor", "designer", "manager"];

type Rights = { level: string; create?: boolean; delete?: boolean };
type Entry = Rights & { name: string; kind?: string; roles?: string[] };
type List = { default?: Rights; anonymous?: Rights; entries?: Entry[]; you?: { level?: string }; [member: string]: unknown };

export function Part({ name }: PartProps) {
  const list = useResource(`acl ${name}`, async () => {
    try {
      return { acl: await ask<List>("GET", `${pathOf(name)}/_acl`), security: undefined };
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      return { acl: undefined, security: await ask<{ [member: string]: Json }>("GET", `${pathOf(name)}/_security`) };
    }
  });
  const begin = async () => {
    await ask("PUT", `${pathOf(name)}/_acl`, {}, { body: { default: { level: "no_access" }, anonymous: { level: "no_access" }, entries: [] } });
    await list.reload();
  };
  return (
    <Loaded of={list}>{({ acl, security }) => acl
      ? <ListEditor key={JSON.stringify(acl)} database={name} list={acl} saved={list.reload} />
      : (
        <>
          <p class="note">{t("aclNone")}</p>
          <Security key={JSON.stringify(security)} database={name} security={security ?? {}} saved={list.reload} />
          <Form label={t("aclMake")} send={begin} />
        </>
      )}</Loaded>
  );
}

function ListEditor({ database, list, saved }: { database: string; list: List; saved: () => Promise<void> }) {
  const [entries, setEntries] = useState<Entry[]>(list.entries ?? []);
  const [others, setOthers] = useState<Rights>(list.default ?? { level: "no_access" });
  const [nobody, setNobody] = useState<Rights>(list.anonymous ?? { level: "no_access" });
  const save = async () => {
    await ask("PUT", `${pathOf(database)}/_acl`, {}, { body: { default: others, anonymous: nobody, entries } as unknown as Json });
    say(t("aclSaved"));
    await saved();
  };
  const set = (index: number, change: Partial<Entry>) => setEntries(entries.map((entry, at) => (at === index ? { ...entry, ...change } : entry)));
  return (
    <Form label={t("save")} send={save}>
      <p class="quiet">{t("effective")} {list.you?.level && t("yourLevel", { level: list.you.level })}</p>
      <div class="card scrolls" style={{ maxHeight: "none", marginBlock: ".8rem" }} tabIndex={0} role="region" aria-label={t("access")}>
        <table>
          <thead><tr><th scope="col">{t("name")}</th><th scope="col">{t("kind")}</th><th scope="col">{t("level")}</th><th scope="col">{t("mayCreate")}</th><th scope="col">{t("mayDelete")}</th><th scope="col">{t("roles")}</th><th /></tr></thead>
          <tbody>
            <RightsRow title={t("everybodyElse")} rights={others} set={(change) => setOthers({ ...others, ...change })} />
            <RightsRow title={t("withoutName")} rights={nobody} set={(change) => setNobody({ ...nobody, ...change })} />
            {entries.map((entry, index) => (
              <tr>
                <td><input aria-label={t("name")} required value={entry.name} onInput={(event) => set(index, { name: event.currentTarget.value })} /></td>
                <td><select aria-label={`${t("kind")}: ${entry.name}`} value={entry.kind ?? "person"} onChange={(event) => set(index, { kind: event.currentTarget.value })}><option value="person">{t("person")}</option><option value="group">{t("group")}</option>{entry.kind && !["person", "group"].includes(entry.kind) && <option value={entry.kind}>{entry.kind}</option>}</select></td>
                <Levels name={entry.name} rights={entry} set={(change) => set(index, change)} />
                <td><input aria-label={`${t("roles")}: ${entry.name}`} value={(entry.roles ?? []).join(", ")} onChange={(event) => set(index, { roles: event.currentTarget.value.split(",").map((role) => role.trim()).filter(Boolean) })} /></td>
                <td><button type="button" aria-label={`${t("remove")}: ${entry.name}`} onClick={() => setEntries(entries.filter((_, at) => at !== index))}>{t("remove")}</button></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <button type="button" onClick={() => setEntries([...entries, { name: "", kind: "person", level: "reader" }])}>{t("addEntry")}</button>
    </Form>
  );
}

function RightsRow({ title, rights, set }: { title: string; rights: Rights; set: (change: Partial<Rights>) => void }) {
  return <tr><th scope="row">{title}</th><td /><Levels name={title} rights={rights} set={set} /><td /><td /></tr>;
}

function Levels({ name, rights, set }: { name: string; rights: Rights; set: (change: Partial<Rights>) => void }) {
  return (
    <>
      <td><select aria-label={`${t("level")}: ${name}`} value={rights.level} onChange={(event) => set({ level: event.currentTarget.value })}>{LEVELS.map((level) => <option value={level}>{level.replace("_", " ")}</option>)}</select></td>
      <td><input type="checkbox" aria-label={`${t("mayCreate")}: ${name}`} checked={rights.create ?? true} onChange={(event) => set({ create: event.currentTarget.checked })} /></td>
      <td><input type="checkbox" aria-label={`${t("mayDelete")}: ${name}`} checked={rights.delete ?? true} onChange={(event) => set({ delete: event.currentTarget.checked })} /></td>
    </>
  );
}

function Security({ database, security, saved }: { database: string; security: { [member: string]: Json }; saved: () => Promise<void> }) {
  const [text, setText] = useState(JSON.stringify(security, null, 2));
  const save = async () => {
    await ask("PUT", `${pathOf(database)}/_security`, {}, { body: JSON.parse(text) as Json });
    say(t("securitySaved"));
    await saved();
  };
  return (
    <div class="card">
      <Form label={t("save")} send={save}>
        <div class="editor"><textarea aria-label="_security" spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} /></div>
      </Form>
    </div>
  );
}
