// A field that offers what may be meant while somebody types (the combobox of the ARIA practices).

import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Suggestion } from "./people.ts";
import { t } from "./texts.ts";

/** After the last key. */
const ASK_AFTER_MS = 120;

type Props = {
  id: string; label: string; hint?: string; class: string; value: string; set: (value: string) => void;
  /** What may be meant by a value. */
  ask: (value: string) => Promise<Suggestion[]>;
  take: (one: Suggestion) => void;
  /** Enter, where nothing is offered; true where that means something. */
  enter?: (value: string) => boolean;
};

export function Combobox({ id, label, hint, value, set, ask, take, enter, ...props }: Props) {
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
  const look = (typed: string) => {
    const mine = ++round.current;
    setTimeout(() => {
      if (mine !== round.current) return;
      void ask(typed).then((found) => {
        if (mine !== round.current) return;
        setOffered(found);
        setChosen(found.length > 0 ? 0 : -1);
      });
    }, ASK_AFTER_MS);
  };
  const choose = (one: Suggestion) => {
    take(one);
    close();
    input.current?.focus();
  };
  const key = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (offered.length === 0) {
      if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && enter?.(value)) event.preventDefault();
      return;
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") setChosen((chosen + (event.key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length);
    else if ((event.key === "Enter" && !event.ctrlKey && !event.metaKey) || event.key === "Tab") {
      const one = offered[chosen];
      if (!one) return;
      choose(one);
    } else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class={`${props.class} recipients`}><label for={id}>{label}</label>
      <input id={id} ref={input} dir="auto" value={value} title={hint} autocomplete="off" autocapitalize="none" spellcheck={false} role="combobox" aria-expanded={offered.length > 0} aria-controls={list} aria-autocomplete="list"
        aria-activedescendant={chosen >= 0 ? `${list}-${chosen}` : undefined} onInput={(event) => { set(event.currentTarget.value); look(event.currentTarget.value); }} onKeyDown={key} onBlur={() => setTimeout(close, 150)} />
      <div id={list} role="listbox" aria-label={t("suggestions")} class={`offers ${offered.length === 0 ? "none" : ""}`}>
        {offered.map((one, number) => (
          <div id={`${list}-${number}`} role="option" aria-selected={number === chosen} onPointerDown={(event) => { event.preventDefault(); choose(one); }}><span dir="auto">{one.name}</span> <span class="quiet" dir="auto">{one.detail}</span></div>
        ))}
      </div>
    </div>
  );
}
