// What a person sets for themselves: the password, a second factor, app passwords, sessions, language.

import { useId, useState } from "preact/hooks";
import { ask, documentPath, offersPasskeys, pathOf, person, signInFirst, type Document } from "../shared/api.ts";
import { useResource, type Resource } from "../shared/data.ts";
import { language, moment, setLanguage, type Language } from "../shared/i18n.ts";
import { addPasskey } from "../shared/passkey.ts";
import { attempt, Dialog, Field, Form, Loaded, say } from "../shared/ui.tsx";
import { SecondFactor } from "./second_factor.tsx";
import { t } from "./settings_texts.ts";
import { ownZone } from "./zone.ts";

type AppPassword = { id: string; name: string; protocols: string[]; created_ms: number; used_ms: number | null; valid: boolean };
type Passkey = { id: string; name: string; created_ms: number; used_ms: number | null };
export type Credentials = { password: boolean; totp: boolean; recovery_codes_left: number; second_factor_required: boolean; app_passwords: AppPassword[]; passkeys: Passkey[] };

export function SettingsPage() {
  const credentials = useResource("credentials", () => ask<Credentials>("GET", "_credentials"));
  return (
    <>
      <h1>{t("settings")}</h1>
      <div class="two settings">
        <Password />
        <Region />
        <Loaded of={credentials}>{(held) => (
          <>
            <SecondFactor held={held} changed={() => void credentials.reload()} />
            <AppPasswords held={held} credentials={credentials} />
            {(offersPasskeys.value || held.passkeys.length > 0) && <Passkeys held={held} credentials={credentials} />}
          </>
        )}</Loaded>
        <Sessions />
      </div>
    </>
  );
}

const ownDocument = () => documentPath("_users", `org.couchdb.user:${person.value?.name ?? ""}`);

function Password() {
  const [value, setValue] = useState({ first: "", second: "" });
  const send = async () => {
    if (value.first !== value.second) throw new Error(t("differ"));
    // The server takes another password from somebody who has just signed in.
    await signInFirst();
    const document = await ask<Document>("GET", ownDocument());
    await ask("PUT", ownDocument(), {}, { body: { ...document, password: value.first } });
    setValue({ first: "", second: "" });
    say(t("passwordChanged"));
  };
  return (
    <section class="card"><h2>{t("password")}</h2>
      <Form label={t("changePassword")} send={send}>
        <input type="text" name="username" autocomplete="username" class="hidden" tabIndex={-1} aria-hidden="true" readOnly value={person.value?.name ?? ""} />
        <Field label={t("newPassword")} type="password" autocomplete="new-password" required value={value.first} hint={t("passwordHint")} onInput={(event) => setValue({ ...value, first: event.currentTarget.value })} />
        <Field label={t("again")} type="password" autocomplete="new-password" required value={value.second} onInput={(event) => setValue({ ...value, second: event.currentTarget.value })} />
      </Form>
    </section>
  );
}

function Region() {
  const own = useResource("own", () => ask<Document>("GET", ownDocument()));
  return (
    <section class="card"><h2>{t("region")}</h2>
      <div class="field"><label for="own-language">{t("language")}</label>
        <select id="own-language" value={language.value} onChange={(event) => setLanguage(event.currentTarget.value as Language)}><option value="en" lang="en">English</option><option value="de" lang="de">Deutsch</option></select></div>
      <Loaded of={own}>{(document) => <RegionForm key={document._rev} document={document} saved={() => void own.reload()} />}</Loaded>
    </section>
  );
}

function RegionForm({ document, saved }: { document: Document; saved: () => void }) {
  const [spoken, setSpoken] = useState(String(document["Language"] ?? ""));
  const [zone, setZone] = useState(String(document["TimeZone"] ?? ""));
  const id = useId();
  const send = async () => {
    const current = await ask<Document>("GET", ownDocument());
    const { Language: _, TimeZone: __, ...rest } = current;
    await ask("PUT", ownDocument(), {}, { body: { ...rest, ...(spoken ? { Language: spoken } : {}), ...(zone ? { TimeZone: zone } : {}) } as Document });
    say(t("saved"));
    saved();
  };
  const zones = (Intl as { supportedValuesOf?: (key: "timeZone") => string[] }).supportedValuesOf?.("timeZone") ?? [];
  return (
    <Form label={t("save")} send={send}>
      <div class="field"><label for={`${id}-language`}>{t("languageOfMail")}</label>
        <select id={`${id}-language`} value={spoken} onChange={(event) => setSpoken(event.currentTarget.value)}>
          {[...new Set(["", "en", "de", spoken])].map((one) => <option value={one}>{one === "" ? t("notSet") : one === "en" ? "English" : one === "de" ? "Deutsch" : one}</option>)}
        </select></div>
      <div class="field"><label for={`${id}-zone`}>{t("timeZone")}</label>
        <select id={`${id}-zone`} value={zone} onChange={(event) => setZone(event.currentTarget.value)}>
          {[...new Set(["", ownZone(), ...zones, zone])].map((one) => <option value={one}>{one === "" ? t("notSet") : one.replace(/_/g, " ")}</option>)}
        </select></div>
    </Form>
  );
}

type HeldProps = { held: Credentials; credentials: Resource<Credentials> };

function AppPasswords({ held, credentials }: HeldProps) {
  const [adding, setAdding] = useState(false);
  const revoke = (id: string) => attempt(async () => {
    await ask("DELETE", `_credentials/app_passwords/${pathOf(id)}`);
    say(t("revoked"));
    await credentials.reload();
  });
  const valid = held.app_passwords.filter((one) => one.valid);
  return (
    <section class="card"><div class="spread"><h2>{t("appPasswords")}</h2><button type="button" onClick={() => setAdding(true)}>{t("newAppPassword")}</button></div>
      <p class="quiet">{t("appPasswordsWhat")}</p>
      {valid.length === 0 ? <p>{t("noAppPasswords")}</p> : (
        <table><thead><tr><th scope="col">{t("appName")}</th><th scope="col">{t("lastUsed")}</th><th scope="col"><span class="hidden">{t("actions")}</span></th></tr></thead>
          <tbody>{valid.map((one) => (
            <tr><td dir="auto">{one.name}<div class="quiet">{one.protocols.join(", ")}</div></td><td>{one.used_ms ? moment(one.used_ms) : "–"}</td>
              <td><button type="button" aria-label={t("revokeOf", { name: one.name })} onClick={() => void revoke(one.id)}>{t("revoke")}</button></td></tr>
          ))}</tbody></table>
      )}
      {adding && <AddAppPassword close={() => setAdding(false)} added={() => void credentials.reload()} />}
    </section>
  );
}

const FOR = { mail: "forMail", calendars: "forCalendars", http: "forHttp", ldap: "forLdap" } as const;

function AddAppPassword({ close, added }: { close: () => void; added: () => void }) {
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<string[]>(["mail", "calendars"]);
  const [password, setPassword] = useState("");
  const send = async () => {
    const made = await ask<{ password: string }>("POST", "_credentials/app_passwords", {}, { body: { name, protocols: chosen } });
    setPassword(made.password);
    added();
  };
  const toggle = (one: string, on: boolean) => setChosen(on ? [...chosen, one] : chosen.filter((other) => other !== one));
  return (
    <Dialog title={t("newAppPassword")} close={close}>
      {password ? <><p class="note" role="status">{t("appPasswordShown")}</p><p class="secret"><code>{password}</code></p><div class="buttons end"><button type="button" class="primary" onClick={close}>{t("done")}</button></div></> : (
        <Form label={t("create")} send={send} disabled={chosen.length === 0}>
          <Field label={t("appName")} required first maxLength={100} value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <fieldset class="field"><legend>{t("appFor")}</legend>
            {Object.entries(FOR).map(([one, words]) => <label class="check"><input type="checkbox" checked={chosen.includes(one)} onChange={(event) => toggle(one, event.currentTarget.checked)} />{t(words)}</label>)}
          </fieldset>
        </Form>
      )}
    </Dialog>
  );
}

function Passkeys({ held, credentials }: HeldProps) {
  const [adding, setAdding] = useState(false);
  const remove = (id: string) => attempt(async () => {
    await ask("DELETE", `_credentials/passkeys/${pathOf(id)}`);
    say(t("passkeyRemoved"));
    await credentials.reload();
  });
  return (
    <section class="card"><div class="spread"><h2>{t("passkeys")}</h2>{offersPasskeys.value && <button type="button" onClick={() => setAdding(true)}>{t("newPasskey")}</button>}</div>
      <p class="quiet">{t("passkeysWhat")}</p>
      {held.passkeys.length === 0 ? <p>{t("noPasskeys")}</p> : (
        <table><thead><tr><th scope="col">{t("passkeyName")}</th><th scope="col">{t("lastUsed")}</th><th scope="col"><span class="hidden">{t("actions")}</span></th></tr></thead>
          <tbody>{held.passkeys.map((one) => (
            <tr><td dir="auto">{one.name}<div class="quiet">{t("created")}: {moment(one.created_ms)}</div></td><td>{one.used_ms ? moment(one.used_ms) : "–"}</td>
              <td><button type="button" aria-label={t("removeOf", { name: one.name })} onClick={() => void remove(one.id)}>{t("remove")}</button></td></tr>
          ))}</tbody></table>
      )}
      {adding && <AddPasskey close={() => setAdding(false)} added={() => void credentials.reload()} />}
    </section>
  );
}

function AddPasskey({ close, added }: { close: () => void; added: () => void }) {
  const [name, setName] = useState(() => programOf(navigator.userAgent));
  const send = async () => {
    await addPasskey(name.trim());
    close();
    say(t("passkeyAdded"));
    added();
  };
  return (
    <Dialog title={t("newPasskey")} close={close}>
      <Form label={t("newPasskey")} send={send} disabled={!name.trim()}>
        <Field label={t("passkeyName")} required first maxLength={100} value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </Form>
    </Dialog>
  );
}

type Session = { id: string; begun_ms: number; used_ms: number; address: string; agent: string; current: boolean };

/** The browser and the system that a program says it is. */
export function programOf(agent: string): string {
  const browser = /(Edg|OPR|Firefox|Chrome|Safari)\/(\d+)/.exec(agent.replace(/Chrome\/\d+[^]*(?=Edg|OPR)/, ""));
  const system = /iPhone|iPad|Android|Windows|Mac OS X|Linux/.exec(agent)?.[0];
  const name = browser && { Edg: "Edge", OPR: "Opera" }[browser[1] as "Edg" | "OPR"];
  return [browser && `${name ?? browser[1]} ${browser[2]}`, system].filter(Boolean).join(", ") || agent.slice(0, 60);
}

function Sessions() {
  const sessions = useResource("sessions", () => ask<{ sessions: Session[] }>("GET", "_credentials/sessions"));
  const end = (one: Session) => attempt(async () => {
    await ask("DELETE", `_credentials/sessions/${one.id}`);
    say(t("sessionEnded"));
    await sessions.reload();
  });
  const endOthers = () => attempt(async () => {
    const { ended } = await ask<{ ended: number }>("DELETE", "_credentials/sessions");
    say(t("othersEnded", { n: ended }));
    await sessions.reload();
  });
  return (
    <section class="card"><div class="spread"><h2>{t("sessions")}</h2><button type="button" onClick={() => void endOthers()}>{t("endOthers")}</button></div>
      <p class="quiet">{t("sessionsWhat")}</p>
      <Loaded of={sessions}>{({ sessions: all }) => (
        <table><thead><tr><th scope="col">{t("device")}</th><th scope="col">{t("begun")}</th><th scope="col">{t("lastUsed")}</th><th scope="col"><span class="hidden">{t("actions")}</span></th></tr></thead>
          <tbody>{all.map((one) => {
            const program = programOf(one.agent) || t("unknownProgram");
            return (
              <tr><td dir="auto">{program}<div class="quiet">{one.address}</div></td><td>{moment(one.begun_ms)}</td><td>{moment(one.used_ms)}</td>
                <td>{one.current ? <span class="pill good">{t("thisOne")}</span> : <button type="button" aria-label={t("endSessionOf", { name: program })} onClick={() => void end(one)}>{t("endSession")}</button>}</td></tr>
            );
          })}</tbody></table>
      )}</Loaded>
    </section>
  );
}
