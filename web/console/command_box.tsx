// Ctrl+K: every page, database and console command in one box.

import { useEffect, useState } from "preact/hooks";
import { ask, command, isAdministrator } from "../shared/api.ts";
import { go } from "../shared/route.ts";
import { Dialog } from "../shared/ui.tsx";
import { t } from "./texts.ts";

type Target = { text: string; kind: string; run: () => void };

export function CommandBox({ close, sections }: { close: () => void; sections: { id: string; title: string }[] }) {
  const [text, setText] = useState("");
  const [names, setNames] = useState<string[]>([]);
  const [commands, setCommands] = useState<string[]>([]);
  const [chosen, setChosen] = useState(0);
  useEffect(() => {
    if (!isAdministrator()) return;
    ask<string[]>("GET", "_all_dbs").then(setNames, () => {});
    command<{ commands: { command: string }[] }>("help").then(({ data }) => setCommands(data.commands.map((known) => known.command)), () => {});
  }, []);
  const targets = found(text, sections, names, commands);
  const run = (target: Target | undefined) => {
    if (!target) return;
    close();
    target.run();
  };
  const key = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) setChosen(Math.max(0, Math.min(targets.length - 1, chosen + step)));
    else if (event.key === "Enter") run(targets[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title={t("search")} close={close}>
      <input type="text" data-first="" style={{ width: "100%" }} role="combobox" aria-expanded="true" aria-controls="targets" aria-label={t("searchHint")}
        aria-activedescendant={targets.length ? `target-${chosen}` : undefined} placeholder={t("searchHint")} value={text}
        onInput={(event) => { setText(event.currentTarget.value); setChosen(0); }} onKeyDown={key} />
      <div class="results" role="listbox" id="targets" aria-label={t("search")}>
        {targets.map((target, index) => (
          <div role="option" id={`target-${index}`} aria-selected={index === chosen} onClick={() => run(target)} dir="auto">
            {target.text} <span class="quiet">{target.kind}</span>
          </div>
        ))}
      </div>
    </Dialog>
  );
}

function found(text: string, sections: { id: string; title: string }[], names: string[], commands: string[]): Target[] {
  const wanted = text.trim().toLowerCase();
  const fits = (candidate: string) => candidate.toLowerCase().includes(wanted);
  const targets: Target[] = sections.filter(({ title }) => fits(title)).map(({ id, title }) => ({ text: title, kind: "", run: () => go([id]) }));
  for (const name of names.filter(fits).slice(0, 30)) targets.push({ text: name, kind: t("databases"), run: () => go(["databases", name]) });
  for (const known of wanted ? commands.filter(fits).slice(0, 8) : []) targets.push({ text: known, kind: t("tasks"), run: () => go(["tasks"], { command: known }) });
  if (wanted && isAdministrator()) targets.push({ text: t("runCommand", { command: text.trim() }), kind: "", run: () => go(["tasks"], { command: text.trim(), run: "1" }) });
  return targets;
}
