// A line of recipients, which offers those who may be meant (the combobox of the ARIA practices).

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { suggestions, type Suggestion } from "./people.ts";
import { t } from "./texts.ts";

/** After the last key. */
const ASK_AFTER_MS = 120;

/** Where the recipient begins that is being typed. */
export function lastStart(written: string): number {
  let [start, quoted, angle] = [0, false, false];
  for (let at = 0; at < written.length; at++) {
    const letter = written[at];
    if (letter === '"') quoted = !quoted;
    else if (!quoted && letter === "<") angle = true;
    else if (!quoted && letter === ">") angle = false;
    else if ((letter === "," || letter === ";") && !quoted && !angle) start = at + 1;
  }
  return start;
}

export function Recipients({ id, label, value, set }: { id: string; label: string; value: string; set: (value: string) => void }) {
  const [offered, setOffered] = useState<Suggestion[]>([]);
  const [chosen, setChosen] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  const round = useRef(0);
  const list = useId();
  const close = () => {
    round.current++;
    setOffered([]);
    setChosen(-1);
  };
  useEffect(() => () => void round.current++, []);
  const ask = (typed: string) => {
    const mine = ++round.current;
    setTimeout(() => {
      if (mine !== round.current) return;
      void suggestions(typed.slice(lastStart(typed))).then((found) => {
        if (mine !== round.current) return;
        setOffered(found);
        setChosen(found.length > 0 ? 0 : -1);
      });
    }, ASK_AFTER_MS);
  };
  const take = (one: Suggestion) => {
    const start = lastStart(value);
    set(`${value.slice(0, start)}${start > 0 ? " " : ""}${one.written}, `);
    close();
    input.current?.focus();
  };
  const key = (event: KeyboardEvent) => {
    if (offered.length === 0 || event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") setChosen((chosen + (event.key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length);
    else if ((event.key === "Enter" && !event.ctrlKey && !event.metaKey) || event.key === "Tab") {
      const one = offered[chosen];
      if (!one) return;
      take(one);
    } else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="compose-line recipients"><label for={id}>{label}</label>
      <input id={id} ref={input} dir="auto" value={value} title={t("recipientHint")} autocomplete="off" autocapitalize="none" spellcheck={false} role="combobox" aria-expanded={offered.length > 0} aria-controls={list} aria-autocomplete="list"
        aria-activedescendant={chosen >= 0 ? `${list}-${chosen}` : undefined} onInput={(event) => { set(event.currentTarget.value); ask(event.currentTarget.value); }} onKeyDown={key} onBlur={() => setTimeout(close, 150)} />
      <div id={list} role="listbox" aria-label={t("suggestions")} class={`offers ${offered.length === 0 ? "none" : ""}`}>
        {offered.map((one, number) => (
          <div id={`${list}-${number}`} role="option" aria-selected={number === chosen} onPointerDown={(event) => { event.preventDefault(); take(one); }}><span dir="auto">{one.name}</span> <span class="quiet" dir="auto">{one.detail}</span></div>
        ))}
      </div>
    </div>
  );
}
