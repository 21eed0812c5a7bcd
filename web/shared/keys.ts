// The keyboard. One table says what keys do: the handler, the page of keys and the tests read it.

import { signal } from "@preact/signals";

/** What a key or a chord of two does. */
export type Binding = { keys: string; what: string; run: () => void };

/** Whether keys without Ctrl do anything; some people must be able to switch them off (WCAG 2.1.4). */
export const singleKeys = signal(typeof localStorage === "undefined" || localStorage.getItem("keys") !== "off");

const layers: Binding[][] = [];

/** Adds bindings until the function that it gives is called. Those that came last count first. */
export function bind(bindings: Binding[]): () => void {
  layers.push(bindings);
  return () => {
    const place = layers.indexOf(bindings);
    if (place >= 0) layers.splice(place, 1);
  };
}

/** All that hold now. */
export function bindings(): Binding[] {
  const seen = new Set<string>();
  return [...layers].reverse().flat().filter(({ keys }) => !seen.has(keys) && seen.add(keys));
}

/** The name of a key press, such as `j`, `Ctrl+k` or `Escape`. */
export function nameOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): string {
  return `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${event.altKey ? "Alt+" : ""}${event.key}`;
}

/** Follows key presses: gives the binding that a press completes. */
export class Chords {
  private begun = "";

  press(name: string, isTyping: boolean, known: Binding[]): Binding | undefined {
    const isPlain = !name.startsWith("Ctrl+") && !name.startsWith("Alt+") && name !== "Escape";
    if (isPlain && (isTyping || !singleKeys.value)) {
      this.begun = "";
      return undefined;
    }
    const chord = this.begun ? `${this.begun} ${name}` : name;
    const found = known.find(({ keys }) => keys === chord) ?? known.find(({ keys }) => keys === name);
    const begins = known.some(({ keys }) => keys.startsWith(`${name} `));
    this.begun = !found && begins ? name : "";
    return found;
  }
}

/** Listens to the page's keys. */
export function listen(): void {
  const chords = new Chords();
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const target = event.target as HTMLElement;
    const isTyping = target.matches("input:not([type=checkbox],[type=radio]), textarea, select, [contenteditable]");
    const found = chords.press(nameOf(event), isTyping, bindings());
    if (!found) return;
    event.preventDefault();
    found.run();
  });
}
