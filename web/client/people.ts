// Whom a memo may go to: the person's contacts, and those of the directory that they may see.

import { ApiError, ask, pathOf, type Document } from "../shared/api.ts";
import { cardOf, fits, written, type Card } from "./card.ts";
import { readBooks, readCards } from "./dav.ts";
import { text, texts } from "./memo.ts";

/** Offered at once. */
const OFFERED_MAX = 8;
/** Asked of the directory. */
const ASKED = 6;

export type Suggestion = { written: string; name: string; detail: string };

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

/** Ways to ask the directory that this person has; one that was refused is not tried again. */
const ways = { byName: true, byWords: true };

async function allowed<T>(way: keyof typeof ways, work: () => Promise<T[]>): Promise<T[]> {
  if (!ways[way]) return [];
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.status >= 400 && error.status < 500) ways[way] = false;
    return [];
  }
}

function suggestionOf(document: Document): Suggestion[] {
  const isGroup = document["Form"] === "Group";
  const name = isGroup ? text(document["ListName"]) || text(document["GroupName"]) : texts(document["FullName"])[0] ?? "";
  const short = text(document["ShortName"]);
  const address = text(document["InternetAddress"]);
  if (document["Disabled"] === true || (!name && !short)) return [];
  if (isGroup) return [{ written: name, name, detail: "" }];
  return [{ written: address ? written(name, address) : name || short, name: name || short, detail: address || short }];
}

/** People and groups of the directory whose short name begins so, or, where it is indexed, whose names have such words. */
async function fromDirectory(typed: string): Promise<Suggestion[]> {
  const prefix = typed.trim().toLowerCase();
  const byId = (kind: string) => allowed("byName", async () => {
    const start = `${kind}:${prefix}`;
    const { rows } = await ask<{ rows: { doc?: Document }[] }>("GET", "directory/_all_docs", { startkey: JSON.stringify(start), endkey: JSON.stringify(`${start}\ufff0`), include_docs: true, limit: ASKED });
    return rows.flatMap(({ doc }) => (doc ? suggestionOf(doc) : []));
  });
  const words = prefix.replace(/[^\p{L}\p{N}]+/gu, " ").trim();
  const byWords = allowed("byWords", async () => {
    if (!words) return [];
    const q = words.split(" ").map((word) => `+${word}*`).join(" ");
    const { hits } = await ask<{ hits: { doc: Document }[] }>("GET", `${pathOf("directory")}/_fulltext`, { q, limit: ASKED, include_docs: true });
    return hits.flatMap(({ doc }) => suggestionOf(doc));
  });
  return (await Promise.all([byId("person"), byId("group"), byWords])).flat();
}

/** Who may be meant by what was typed. */
export async function suggestions(typed: string): Promise<Suggestion[]> {
  if (typed.trim().length < 2) return [];
  const own = known().then((cards) => cards.flatMap((card) => (fits(typed, [card.name, ...card.emails]) ? card.emails.map((address) => ({ written: written(card.name, address), name: card.name, detail: address })) : [])).slice(0, OFFERED_MAX));
  const found = (await Promise.all([own, fromDirectory(typed)])).flat();
  const seen = new Set<string>();
  return found.filter((one) => !seen.has(one.written.toLowerCase()) && seen.add(one.written.toLowerCase())).slice(0, OFFERED_MAX);
}
