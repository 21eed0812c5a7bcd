// A line of recipients, which offers those who may be meant.

import { Combobox } from "./combobox.tsx";
import { suggestions } from "./people.ts";
import { t } from "./texts.ts";

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
  const start = lastStart(value);
  return (
    <Combobox id={id} label={label} hint={t("recipientHint")} class="compose-line" value={value} set={set} ask={(typed) => suggestions(typed.slice(lastStart(typed)))}
      take={(one) => set(`${value.slice(0, start)}${start > 0 ? " " : ""}${one.written}, `)} />
  );
}
