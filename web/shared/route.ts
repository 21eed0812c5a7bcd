// Where the person is: `#/databases/mail%2Fada/documents?find=x`. All that a page shows can be linked to.

import { computed, signal } from "@preact/signals";

export type Place = { segments: string[]; parameters: { [name: string]: string } };

/** Reads a hash; what cannot be decoded is taken as it is. */
export function parsePlace(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const decoded = (text: string) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const segments = path.split("/").filter((part) => part !== "").map(decoded);
  return { segments, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

/** The hash of a place. */
export function hashOf(segments: string[], parameters: { [name: string]: string | undefined } = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value);
  const text = query.toString();
  return `#/${segments.map((segment) => encodeURIComponent(segment)).join("/")}${text ? `?${text}` : ""}`;
}

const hash = signal(typeof location === "undefined" ? "" : location.hash);

export const place = computed(() => parsePlace(hash.value));

export function go(segments: string[], parameters: { [name: string]: string | undefined } = {}): void {
  location.hash = hashOf(segments, parameters);
}

/** Changes parameters of the place without a step in the browser's history. */
export function change(parameters: { [name: string]: string | undefined }): void {
  const all = { ...place.value.parameters, ...parameters };
  history.replaceState(null, "", hashOf(place.value.segments, all as { [name: string]: string }));
  hash.value = location.hash;
}

export function follow(): void {
  addEventListener("hashchange", () => (hash.value = location.hash));
}
