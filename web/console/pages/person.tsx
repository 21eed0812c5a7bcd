// One person: what an account may do and what opens it.

import { useState } from "preact/hooks";
import { ask, command, documentPath, pathOf, type Document } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { moment } from "../../shared/i18n.ts";
import { hashOf } from "../../shared/route.ts";
import { attempt, Dialog, Field, Form, Loaded, say } from "../../shared/ui.tsx";
import { t } from "../texts.ts";

type Shown = {
  person: string; names: string[]; address: string | null; addresses: string[]; mail_database: string; groups: string[]; roles: string[]; forward_to: string[]; is_out_of_office: boolean;
  is_disabled: boolean; expires: string | null; protocols: string[] | string; has_password: boolean; has_second_factor: boolean; passkeys: number;
};
type AppPassword = { id: string; name: string; protocols: string[]; expires_ms?: number | null; last_used_ms?: number | null };

const PROTOCOLS = ["mail", "http", "calendars", "ldap"] as const;

export function Account({ name, id, changed }: { name: string; id: string; changed: () => void }) {
  const shown = useResource(`person ${name}`, async () => (await command<Shown>(`show person ${name}`)).data);
  const [removing, setRemoving] = useState(false);
  const disable = (disabled: boolean) => attempt(async () => {
    const { Disabled: _, ...current } = await ask<Document>("GET", documentPath("directory", id));
    await ask("PUT", documentPath("directory", id), {}, { body: disabled ? { ...current, Disabled: true } : current });
    say(t(disabled ? "personDisabled" : "personEnabled", { name }), disabled ? async () => { await disable(false); } : undefined);
    await shown.reload();
    changed();
  });
  return (
    <>
      <Loaded of={shown}>{(person) => (
        <>
          <table><tbody>
            <tr><th scope="row">{t("mailDatabase")}</th><td dir="auto"><a href={hashOf(["databases", person.mail_database])}>{person.mail_database}</a></td></tr>
            <tr><th scope="row">{t("address")}</th><td dir="auto">{[...new Set([person.address, ...person.addresses])].map((address) => <div>{address}</div>)}</td></tr>
            <tr><th scope="row">{t("groupsOf")}</th><td dir="auto">{person.groups.join(", ") || "–"}</td></tr>
            <tr><th scope="row">{t("comesInBy")}</th><td>
              {person.is_disabled && <span class="pill bad">{t("disabled")}</span>}{" "}
              {[person.has_password && t("hasPassword"), person.has_second_factor && t("secondFactor"), person.passkeys > 0 && t("passkeysCounted", { n: person.passkeys })].filter(Boolean).join(", ") || "–"}
              <div class="quiet">{Array.isArray(person.protocols) ? person.protocols.join(", ") : person.protocols}{person.expires && ` · ${person.expires}`}</div>
            </td></tr>
          </tbody></table>
          <div class="buttons">
            <button type="button" onClick={() => void disable(!person.is_disabled)}>{t(person.is_disabled ? "enable" : "disable")}</button>
            <button type="button" onClick={() => setRemoving(true)}>{t("removePerson")}</button>
          </div>
        </>
      )}</Loaded>
      <AppPasswords name={name} />
      {removing && <Remove name={name} close={() => setRemoving(false)} removed={changed} />}
    </>
  );
}

function AppPasswords({ name }: { name: string }) {
  const held = useResource(`credentials ${name}`, () => ask<{ app_passwords?: AppPassword[] }>("GET", "_credentials", { person: name }));
  const [adding, setAdding] = useState(false);
  const revoke = (id: string) => attempt(async () => {
    await ask("DELETE", `_credentials/app_passwords/${pathOf(id)}`, { person: name });
    say(t("revoked"));
    await held.reload();
  });
  return (
    <section>
      <div class="spread"><h3>{t("appPasswords")}</h3><button type="button" onClick={() => setAdding(true)}>{t("newAppPassword")}</button></div>
      <Loaded of={held}>{({ app_passwords: all = [] }) => (all.length === 0 ? <p class="quiet">{t("noAppPasswords")}</p> : (
        <table><thead><tr><th scope="col">{t("appName")}</th><th scope="col">{t("protocols")}</th><th scope="col">{t("lastUsed")}</th><th scope="col"><span class="hidden">{t("actions")}</span></th></tr></thead>
          <tbody>{all.map((one) => (
            <tr><td dir="auto">{one.name}</td><td>{one.protocols.join(", ")}</td><td>{one.last_used_ms ? moment(one.last_used_ms) : "–"}</td>
              <td><button type="button" onClick={() => void revoke(one.id)}>{t("revoke")}</button></td></tr>
          ))}</tbody></table>
      ))}</Loaded>
      {adding && <Add name={name} close={() => setAdding(false)} added={() => void held.reload()} />}
    </section>
  );
}

function Add({ name, close, added }: { name: string; close: () => void; added: () => void }) {
  const [program, setProgram] = useState("");
  const [protocol, setProtocol] = useState<string>("mail");
  const [password, setPassword] = useState("");
  const send = async () => {
    const made = await ask<{ password: string }>("POST", "_credentials/app_passwords", { person: name }, { body: { name: program, protocols: [protocol] } });
    setPassword(made.password);
    added();
  };
  return (
    <Dialog title={t("newAppPassword")} close={close}>
      {password ? <p class="note" role="status">{t("appPasswordShown", { password: "" })}<br /><code>{password}</code></p> : (
        <Form label={t("create")} send={send}>
          <Field label={t("appName")} required first value={program} onInput={(event) => setProgram(event.currentTarget.value)} />
          <div class="field"><label for="protocol">{t("protocols")}</label>
            <select id="protocol" value={protocol} onChange={(event) => setProtocol(event.currentTarget.value)}>{PROTOCOLS.map((one) => <option value={one}>{one}</option>)}</select></div>
        </Form>
      )}
    </Dialog>
  );
}

function Remove({ name, close, removed }: { name: string; close: () => void; removed: () => void }) {
  const [typed, setTyped] = useState("");
  const send = async () => {
    await command(`remove person ${name}`);
    close();
    say(t("removeBegan", { name }));
    removed();
  };
  return (
    <Dialog title={t("removePerson")} close={close}>
      <Form label={t("removePerson")} danger disabled={typed !== name} send={send}>
        <p>{t("removeSure", { name })}</p><br />
        <Field label={t("shortName")} first autocapitalize="none" spellcheck={false} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      </Form>
    </Dialog>
  );
}

