// An authenticator as a second factor, and the recovery codes for when it is lost.

import { useState } from "preact/hooks";
import { ask, person } from "../shared/api.ts";
import { attempt, Dialog, Field, Form, say } from "../shared/ui.tsx";
import { modulesOf } from "./qr.ts";
import type { Credentials } from "./settings.tsx";
import { t } from "./settings_texts.ts";

type Begun = { secret: string; uri: string; begun: string };

export function SecondFactor({ held, changed }: { held: Credentials; changed: () => void }) {
  const [begun, setBegun] = useState<Begun>();
  const [codes, setCodes] = useState<string[]>();
  const begin = () => attempt(async () => setBegun(await ask<Begun>("POST", "_credentials/totp", {}, { body: {} })));
  const renew = () => attempt(async () => {
    setCodes((await ask<{ recovery_codes: string[] }>("POST", "_credentials/recovery_codes", {}, { body: {} })).recovery_codes);
    changed();
  });
  const turnOff = () => attempt(async () => {
    await ask("DELETE", "_credentials/totp");
    say(t("turnedOff"));
    changed();
  });
  const confirmed = (made: string[]) => {
    setBegun(undefined);
    setCodes(made);
    changed();
    say(t("turnedOn"));
  };
  return (
    <section class="card"><div class="spread"><h2>{t("secondFactor")} <span class={`pill ${held.totp ? "good" : ""}`}>{t(held.totp ? "isOn" : "isOff")}</span></h2>
      {held.totp ? <button type="button" onClick={() => void turnOff()}>{t("turnOff")}</button> : <button type="button" onClick={() => void begin()}>{t("turnOn")}</button>}</div>
      <p class="quiet">{t("secondFactorWhat")} {held.second_factor_required && t("isRequired")}</p>
      {held.totp && <p>{t("recoveryLeft", { n: held.recovery_codes_left })} <button type="button" onClick={() => void renew()}>{t("recoveryRenew")}</button></p>}
      {begun && <Confirm begun={begun} close={() => setBegun(undefined)} confirmed={confirmed} />}
      {codes && <Codes codes={codes} close={() => setCodes(undefined)} />}
    </section>
  );
}

function Confirm({ begun, close, confirmed }: { begun: Begun; close: () => void; confirmed: (codes: string[]) => void }) {
  const [code, setCode] = useState("");
  const send = async () => {
    const made = await ask<{ recovery_codes: string[] }>("PUT", "_credentials/totp", {}, { body: { begun: begun.begun, code: code.trim() } });
    confirmed(made.recovery_codes);
  };
  return (
    <Dialog title={t("secondFactor")} close={close}>
      <p>{t("scan")}</p>
      <Picture text={begun.uri} />
      <p class="secret">{t("secret")}: <code>{begun.secret}</code></p>
      <p><a href={begun.uri}>{t("openIn")}</a></p><br />
      <Form label={t("turnOn")} send={send}>
        <Field label={t("firstCode")} autocomplete="one-time-code" inputMode="numeric" required first maxLength={20} value={code} onInput={(event) => setCode(event.currentTarget.value)} />
      </Form>
    </Dialog>
  );
}

/** A text as a picture that a phone reads. Without one where the text is too long. */
function Picture({ text }: { text: string }) {
  const modules = modulesOf(text);
  if (!modules) return null;
  const size = modules.length + 8;
  const path = modules.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x + 4} ${y + 4}h1v1h-1z`] : []))).join("");
  return <svg class="qr" role="img" aria-label={t("qrCode")} viewBox={`0 0 ${size} ${size}`} shape-rendering="crispEdges"><rect width={size} height={size} fill="#fff" /><path d={path} fill="#000" /></svg>;
}

function Codes({ codes, close }: { codes: string[]; close: () => void }) {
  const text = `${location.host} ${person.value?.name ?? ""}\n${codes.join("\n")}\n`;
  return (
    <Dialog title={t("recoveryCodes")} close={close}>
      <p class="note" role="status">{t("recoveryShown")}</p>
      <ol class="codes">{codes.map((code) => <li><code>{code}</code></li>)}</ol>
      <div class="buttons end"><button type="button" onClick={() => void navigator.clipboard?.writeText(text)}>{t("copy")}</button><button type="button" class="primary" data-first onClick={close}>{t("done")}</button></div>
    </Dialog>
  );
}
