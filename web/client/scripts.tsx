// Answers while one is away, and the texts of one's Sieve scripts.

import { useState } from "preact/hooks";
import { ask } from "../shared/api.ts";
import { useResource } from "../shared/data.ts";
import { Dialog, Field, Form, Loaded, say } from "../shared/ui.tsx";
import { AWAY, awayOf, withAway, type Away as Entered, type Scripts as Kept } from "./away.ts";
import { t } from "./texts.ts";

const PATH = "_mail_scripts";

const useScripts = () => useResource("scripts", () => ask<Kept>("GET", PATH));

/** Sets all scripts. Who has signed in long ago does so again: a script may lead mail away. */
const keep = (scripts: Kept): Promise<void> => ask("PUT", PATH, {}, { body: scripts });

export function Away({ close }: { close: () => void }) {
  const found = useScripts();
  return <Dialog title={t("away")} close={close}><Loaded of={found}>{(scripts) => <AwayForm scripts={scripts} close={close} />}</Loaded></Dialog>;
}

function AwayForm({ scripts, close }: { scripts: Kept; close: () => void }) {
  const [away, setAway] = useState(() => awayOf(scripts));
  const set = (changed: Partial<Entered>) => setAway({ ...away, ...changed });
  const send = async () => {
    await keep(withAway(scripts, away));
    close();
    say(t(away.on ? "awayOn" : "awayOff"));
  };
  return (
    <Form label={t("save")} send={send} disabled={away.on && !away.text.trim()}>
      <label class="check"><input type="checkbox" data-first checked={away.on} onChange={(event) => set({ on: event.currentTarget.checked })} />{t("awayAnswer")}</label>
      <div class="days">
        <Field label={t("awayFrom")} type="date" value={away.from} onInput={(event) => set({ from: event.currentTarget.value })} />
        <Field label={t("awayUntil")} type="date" value={away.until} min={away.from} onInput={(event) => set({ until: event.currentTarget.value })} />
      </div>
      <Field label={t("subject")} maxLength={200} value={away.subject} placeholder={t("awaySubject")} onInput={(event) => set({ subject: event.currentTarget.value })} />
      <div class="field">
        <label for="away-text">{t("awayText")}</label>
        <textarea id="away-text" rows={7} maxLength={10_000} value={away.text} onInput={(event) => set({ text: event.currentTarget.value })} />
      </div>
      <p class="quiet">{t("awayHint")}</p>
    </Form>
  );
}

export function Scripts({ close }: { close: () => void }) {
  const found = useScripts();
  return <Dialog title={t("scripts")} close={close}><Loaded of={found}>{(scripts) => <ScriptsForm scripts={scripts} close={close} />}</Loaded></Dialog>;
}

function ScriptsForm({ scripts, close }: { scripts: Kept; close: () => void }) {
  const names = Object.keys(scripts.scripts);
  const [chosen, setChosen] = useState(scripts.active || names[0] || "");
  const [name, setName] = useState(chosen);
  const [text, setText] = useState(scripts.scripts[chosen] ?? "");
  const [runs, setRuns] = useState(chosen !== "" && scripts.active === chosen);
  const choose = (other: string) => {
    setChosen(other);
    setName(other);
    setText(scripts.scripts[other] ?? "");
    setRuns(other !== "" && scripts.active === other);
  };
  const send = async () => {
    const { [chosen]: _, ...others } = scripts.scripts;
    const ran = scripts.active === chosen && chosen !== "";
    const active = runs ? name : ran ? "" : scripts.active;
    // Without a text it is deleted.
    const all = text.trim() ? { ...others, [name]: text } : others;
    await keep({ ...scripts, active: active in all ? active : "", scripts: all });
    close();
    say(t("scriptsKept"));
  };
  return (
    <Form label={t("save")} send={send} disabled={!name.trim() || (name !== chosen && name in scripts.scripts)}>
      <div class="field">
        <label for="script">{t("script")}</label>
        <select id="script" data-first value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
          {names.map((one) => <option value={one}>{one === scripts.active ? t("scriptActive", { name: one }) : one}</option>)}
          <option value="">{t("scriptNew")}</option>
        </select>
      </div>
      <Field label={t("scriptName")} required maxLength={128} value={name} onInput={(event) => setName(event.currentTarget.value)} />
      <label class="check"><input type="checkbox" checked={runs} onChange={(event) => setRuns(event.currentTarget.checked)} />{t("scriptRuns")}</label>
      <div class="field">
        <label for="script-text">{t("scriptText")}</label>
        <textarea id="script-text" class="mono" rows={14} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </div>
      <p class="quiet">{t(chosen === AWAY ? "scriptAway" : "scriptHint")}</p>
    </Form>
  );
}
