// Cards of an address book (vCard, RFC 6350).

import { copyOf, escapeText, lineOf, parse, setLine, textOf, unescapeText, values, type Component } from "./content.ts";
import type { Resource } from "./dav.ts";

export type Card = { href: string; tag: string; book: string; name: string; emails: string[]; phones: string[]; company: string; title: string; note: string; first: string; last: string };
export type CardFields = Pick<Card, "first" | "last" | "emails" | "phones" | "company" | "title" | "note">;

const all = (card: Component, name: string) => card.lines.filter((line) => line.name === name).map((line) => unescapeText(line.value).trim()).filter(Boolean);

/** The card that a resource is; `undefined` for another one. */
export function cardOf({ href, tag, data }: Resource, book: string): Card | undefined {
  const card = parse(data);
  if (card?.name !== "VCARD") return undefined;
  const [last = "", first = ""] = values(lineOf(card, "N")?.value ?? "", ";").map((part) => unescapeText(part).trim());
  const company = unescapeText(values(lineOf(card, "ORG")?.value ?? "", ";")[0] ?? "");
  const emails = all(card, "EMAIL");
  const name = textOf(card, "FN") || [first, last].filter(Boolean).join(" ") || company || emails[0] || "";
  return { href, tag, book, name, emails, phones: all(card, "TEL").map((phone) => phone.replace(/^tel:/i, "")), company, title: textOf(card, "TITLE"), note: textOf(card, "NOTE"), first, last };
}

/** Puts values in the place of those that a card has; a value that stays keeps its line, with what that says of it. */
function setAll(card: Component, name: string, wanted: string[]): void {
  const known = card.lines.filter((line) => line.name === name);
  const place = card.lines.findIndex((line) => line.name === name);
  const kept = wanted.map((value) => known.find((line) => unescapeText(line.value).trim().replace(/^tel:/i, "") === value) ?? { name, parameters: [] as [string, string][], value: escapeText(value) });
  card.lines = card.lines.filter((line) => line.name !== name);
  card.lines.splice(place < 0 ? card.lines.length : place, 0, ...kept);
}

/** A card with other fields; without a source it is a new one. */
export function withFields(source: string | undefined, fields: CardFields, uid: string): Component {
  const read = source === undefined ? undefined : parse(source);
  const card: Component = read ? copyOf(read) : { name: "VCARD", lines: [{ name: "VERSION", parameters: [], value: "3.0" }, { name: "UID", parameters: [], value: uid }], parts: [] };
  const { first, last, company } = fields;
  const [, , ...rest] = values(lineOf(card, "N")?.value ?? ";;;;", ";");
  const name = [first, last].filter(Boolean).join(" ") || company || fields.emails[0] || "";
  const before = cardOf({ href: "", tag: "", data: source ?? "" }, "");
  if (!before || before.first !== first || before.last !== last || !lineOf(card, "FN")) {
    setLine(card, "N", [escapeText(last), escapeText(first), ...rest].join(";"));
    setLine(card, "FN", escapeText(name));
  }
  if (company !== (before?.company ?? "")) setLine(card, "ORG", company ? escapeText(company) : undefined);
  for (const [line, field] of [["TITLE", "title"], ["NOTE", "note"]] as const) if (fields[field] !== textOf(card, line)) setLine(card, line, fields[field] ? escapeText(fields[field]) : undefined);
  setAll(card, "EMAIL", fields.emails);
  setAll(card, "TEL", fields.phones);
  return card;
}

/** How somebody is written as a recipient. */
export function written(name: string, address: string): string {
  if (!name || name === address) return address;
  return `${/[",;<>@]/.test(name) ? `"${name.replace(/["\\]/g, "")}"` : name} <${address}>`;
}

const folded = (text: string) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

/** Whether all words that somebody typed begin a word of these texts. */
export function fits(typed: string, texts: string[]): boolean {
  const words = folded(texts.join(" ")).split(/[\s@._,;<>"()-]+/);
  const whole = folded(texts.join("\n"));
  return folded(typed).split(/\s+/).filter(Boolean).every((word) => words.some((known) => known.startsWith(word)) || whole.includes(word));
}
