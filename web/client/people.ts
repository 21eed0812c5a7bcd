// Whom a memo may go to: the person's contacts, and those of the directory that they may see.

import { ApiError, ask } from "../shared/api.ts";
import { cardOf, fits, written, type Card } from "./card.ts";
import { readBooks, readCards } from "./dav.ts";

/** Offered at once. */
const OFFERED_MAX = 8;
/** Rooms that are shown at once. */
const ROOMS_MAX = 20;
/** Nobody's name is longer. */
const TYPED_MAX = 60;

/** Somebody who may be meant: as a memo names them, and with the address alone. */
export type Suggestion = { written: string; name: string; detail: string; address: string; kind: Entry["kind"] };

/** All cards of all books. */
export async function readContacts(): Promise<Card[]> {
  const books = await readBooks();
  const all = await Promise.all(books.map(async (book) => (await readCards(book)).flatMap((card) => cardOf(card, book.href) ?? [])));
  return all.flat().sort((a, b) => a.name.localeCompare(b.name));
}

let contacts: Promise<Card[]> | undefined;

/** Contacts, read once; `forgetContacts` has them read again. */
const known = (): Promise<Card[]> => (contacts ??= readContacts().catch(() => []));
export const forgetContacts = (): void => void (contacts = undefined);

/** A person, group or room of the directory, as far as this person sees it. */
export type Entry = { kind: "person" | "group" | "room" | "resource"; name: string; short_name: string | null; address: string | null };
/** A room or another resource. */
export type Room = Entry & { site: string | null; capacity: number | null };

/** Whether this person may ask the directory: who was refused once is not asked again. */
let mayAsk = true;

async function allowed<T>(work: () => Promise<T>, none: T): Promise<T> {
  if (!mayAsk) return none;
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 0 || error.status >= 500) throw error;
    if (error.status === 403) mayAsk = false;
    return none;
  }
}

function suggestionOf({ kind, name, short_name: short, address }: Entry): Suggestion {
  // An address that holds on this server alone is for nobody's eyes elsewhere.
  const isNamed = kind === "group" || !address || address.endsWith("@localhost");
  const to = isNamed ? name || short || "" : written(name, address);
  return { written: to, name: name || short || "", detail: address ?? short ?? "", address: address ?? "", kind };
}

/** People and groups of the directory who may be meant. */
const fromDirectory = (typed: string): Promise<Suggestion[]> => allowed(async () => {
  const { people } = await ask<{ people: Entry[] }>("GET", "_people", { q: typed.trim().slice(0, TYPED_MAX), limit: String(OFFERED_MAX) });
  return people.map(suggestionOf);
}, []).catch(() => []);

/** Rooms and other resources that somebody may book, and all their sites. Who may not read the directory finds none. */
export const findRooms = (site: string, capacity: number): Promise<{ people: Room[]; sites: string[] }> =>
  allowed(() => ask<{ people: Room[]; sites: string[] }>("GET", "_people", { kind: "room", site: site || undefined, capacity: String(Math.max(0, Math.floor(capacity) || 0)), limit: String(ROOMS_MAX) }), { people: [], sites: [] });

/** Who may be meant by what was typed. */
export async function suggestions(typed: string): Promise<Suggestion[]> {
  if (typed.trim().length < 2) return [];
  const own = known().then((cards) => cards.flatMap((card) => (fits(typed, [card.name, ...card.emails]) ? card.emails.map((address) => ({ written: written(card.name, address), name: card.name, detail: address, address, kind: "person" as const })) : [])).slice(0, OFFERED_MAX));
  const found = (await Promise.all([own, fromDirectory(typed)])).flat();
  const seen = new Set<string>();
  return found.filter((one) => !seen.has(one.written.toLowerCase()) && seen.add(one.written.toLowerCase())).slice(0, OFFERED_MAX);
}
