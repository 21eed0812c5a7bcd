// What a database is, and what keeps it in shape.

import { useState } from "preact/hooks";
import { ask, command, isAdministrator, pathOf } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { bytes, moment, number } from "../../shared/i18n.ts";
import { go } from "../../shared/route.ts";
import { attempt, Dialog, Field, Form, say } from "../../shared/ui.tsx";
import type { PartProps } from "./database.tsx";
import { t } from "../texts.ts";

export function Part({ name, info, reload }: PartProps) {
  const settings = useResource(`properties ${name}`, async () => {
    const [properties, limit] = await Promise.all([ask<{ logged?: boolean }>("GET", `${pathOf(name)}/_properties`), ask<number>("GET", `${pathOf(name)}/_revs_limit`)]);
    return { properties, limit };
  });
  const [dropping, setDropping] = useState(false);
  const act = (work: () => Promise<unknown>, text: Parameters<typeof t>[0]) => attempt(async () => { await work(); say(t(text)); await reload(); });
  const facts: [string, string][] = info ? [
    [t("documents"), number(info.doc_count)], [t("deleted"), number(info.doc_del_count)], [t("size"), bytes(info.sizes?.file)], [t("garbage"), bytes(info.sizes?.active)],
    [t("external"), bytes(info.sizes?.external)], [t("volume"), info.volume], [t("format"), String(info.disk_format_version)], [t("opened"), moment(Number(info.instance_start_time) / 1000)], [t("uuid"), info.uuid],
  ] : [];
  return (
    <div class="two">
      <section class="card">
        <h2>{t("facts")}</h2>
        <table><tbody>
          {facts.map(([what, value]) => <tr><th scope="row">{what}</th><td class="numeric">{value}</td></tr>)}
          {settings.data.value && <tr><th scope="row">{t("logged")}</th><td class="numeric">{settings.data.value.properties.logged === false ? t("no") : t("yes")}</td></tr>}
          {settings.data.value && <tr><th scope="row">{t("revsLimit")}</th><td class="numeric">{number(settings.data.value.limit)}</td></tr>}
        </tbody></table>
      </section>
      <section class="card" style={{ display: "grid", gap: ".8rem" }}>
        <h2>{t("upkeep")}</h2>
        <p class="quiet">{t("compactHint")}</p>
        <div class="buttons"><button type="button" class="primary" onClick={() => void act(() => ask("POST", `${pathOf(name)}/_compact`, {}, { body: {} }), "compactBegun")}>{t("compact")}</button>
          {info?.compact_running && <span class="pill warn">{t("compacting")}</span>}</div>
        <p class="quiet">{t("cleanupHint")}</p>
        <div class="buttons"><button type="button" onClick={() => void act(() => ask("POST", `${pathOf(name)}/_view_cleanup`, {}, { body: {} }), "cleanedUp")}>{t("cleanup")}</button>
          {isAdministrator() && <button type="button" onClick={() => void act(() => command(`load updall ${name}`), "begun")}>{t("updateViews")}</button>}
          {isAdministrator() && <button type="button" onClick={() => void act(() => command(`load fixup ${name}`), "begun")}>{t("fixup")}</button>}</div>
        {isAdministrator() && <div class="buttons"><button type="button" class="danger" onClick={() => setDropping(true)}>{t("drop")}</button></div>}
      </section>
      {dropping && <Drop name={name} count={info?.doc_count ?? 0} close={() => setDropping(false)} />}
    </div>
  );
}

function Drop({ name, count, close }: { name: string; count: number; close: () => void }) {
  const [typed, setTyped] = useState("");
  const send = async () => {
    await ask("DELETE", pathOf(name));
    close();
    say(t("dropped", { name }));
    go(["databases"]);
  };
  return (
    <Dialog title={`${t("drop")}: ${name}`} close={close}>
      <Form label={t("drop")} danger disabled={typed !== name} send={send}>
        <p>{t("dropSure", { n: count })}</p><br />
        <Field label={t("databaseName")} first autocomplete="off" autocapitalize="none" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      </Form>
    </Dialog>
  );
}
