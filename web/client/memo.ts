// Memos as the server keeps them, and what an answer is made of.

import type { Document, Json } from "../shared/api.ts";
import { dateFormat } from "../shared/i18n.ts";

/** The texts of a field that is a text or a list of texts. */
export function texts(value: Json | undefined): string[] {
  const list = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
  return list.map(String).filter((text) => text.trim() !== "");
}

/** One text of a field. */
export const text = (value: Json | undefined): string => texts(value).join(", ");

/** The name that people know somebody by, of an address as it is written. */
export function nameOf(written: string): string {
  const name = /^\s*"?([^"<]*?)"?\s*<[^>]*>\s*$/.exec(written)?.[1]?.trim();
  return name || written.trim();
}

/** The address alone. */
export function addressOf(written: string): string {
  return (/<([^<>]*)>\s*$/.exec(written)?.[1] ?? written).trim();
}

/** Names with commas or semicolons in between, which may stand within quotes and angle brackets. */
export function recipientsOf(written: string): string[] {
  const found: string[] = [];
  let [start, quoted, angle] = [0, false, false];
  for (let at = 0; at <= written.length; at++) {
    const letter = written[at];
    if (letter === '"') quoted = !quoted;
    else if (!quoted && letter === "<") angle = true;
    else if (!quoted && letter === ">") angle = false;
    const isEnd = letter === undefined || ((letter === "," || letter === ";" || letter === "\n") && !quoted && !angle);
    if (!isEnd) continue;
    const one = written.slice(start, at).trim();
    if (one) found.push(one);
    start = at + 1;
  }
  return found;
}

/** A subject without what answers and forwarding have put before it. */
export function baseSubject(subject: string): string {
  return subject.replace(/^(\s*(re|aw|antw|fwd?|wg)(\[\d+\])?\s*:\s*)+/i, "").trim();
}

/** A text as one quotes it. */
export const quoted = (body: string): string => body.trimEnd().split("\n").map((line) => (line.startsWith(">") ? `>${line}` : `> ${line}`)).join("\n");

export type Draft = {
  id: string;
  rev: string | undefined;
  to: string;
  copy: string;
  blind: string;
  subject: string;
  body: string;
  inReplyTo: string;
  references: string[];
  files: { name: string; length: number }[];
};

/** Ids of a conversation that one message may refer to: the first one names it, the last ones are the nearest. */
const REFERENCES_MAX = 50;

export function emptyDraft(id: string): Draft {
  return { id, rev: undefined, to: "", copy: "", blind: "", subject: "", body: "", inReplyTo: "", references: [], files: [] };
}

const isMe = (written: string, me: string[]) => me.includes(addressOf(written).toLowerCase()) || me.includes(nameOf(written).toLowerCase());

/** An answer to a memo, to its sender or to everybody. `me` are one's own names and addresses, in small letters. */
export function answer(memo: Document, id: string, me: string[], toAll: boolean, introduction: string): Draft {
  const from = text(memo["ReplyTo"]) || text(memo["From"]);
  const own = isMe(text(memo["From"]), me);
  const others = (field: string) => texts(memo[field]).filter((written) => !isMe(written, me));
  const to = own ? texts(memo["SendTo"]) : [from, ...(toAll ? others("SendTo").filter((written) => addressOf(written) !== addressOf(from)) : [])];
  const messageId = text(memo["$MessageID"]);
  const before = texts(memo["References"]);
  const chain = before.length > 0 ? before : texts(memo["InReplyTo"]);
  const references = [...chain.filter((one) => one !== messageId), messageId].filter(Boolean);
  return {
    ...emptyDraft(id),
    to: to.join(", "),
    copy: toAll ? others("CopyTo").join(", ") : "",
    subject: `Re: ${baseSubject(text(memo["Subject"]))}`,
    body: `\n\n${introduction}\n${quoted(text(memo["Body"]))}\n`,
    inReplyTo: messageId,
    references: references.length > REFERENCES_MAX ? [references[0]!, ...references.slice(1 - REFERENCES_MAX)] : references,
  };
}

/** A memo passed on. */
export function forward(memo: Document, id: string, head: string): Draft {
  return { ...emptyDraft(id), subject: `Fwd: ${baseSubject(text(memo["Subject"]))}`, body: `\n\n${head}\n\n${text(memo["Body"])}` };
}

/** The fields of a draft as a document has them. `others` are fields that it had and that nobody edits here. */
export function fieldsOf(draft: Draft, from: string, now: string): { [field: string]: Json } {
  const fields: { [field: string]: Json } = {
    Form: "Memo", From: from, SendTo: recipientsOf(draft.to), Subject: draft.subject, Body: draft.body, PostedDate: now, DeliveredDate: now,
    $MessageID: `<${draft.id}@${domainOf(from)}>`,
  };
  if (draft.copy.trim()) fields["CopyTo"] = recipientsOf(draft.copy);
  if (draft.blind.trim()) fields["BlindCopyTo"] = recipientsOf(draft.blind);
  if (draft.inReplyTo) fields["InReplyTo"] = draft.inReplyTo;
  if (draft.references.length > 0) fields["References"] = draft.references;
  return fields;
}

function domainOf(from: string): string {
  const domain = addressOf(from).split("@")[1];
  return domain && /^[\w.-]+$/.test(domain) ? domain : "scrinium.invalid";
}

/** The draft that a document is. */
export function draftOf(memo: Document): Draft {
  const files = Object.entries((memo["_attachments"] ?? {}) as { [name: string]: { length?: number } });
  return {
    id: memo._id, rev: memo._rev, to: text(memo["SendTo"]), copy: text(memo["CopyTo"]), blind: text(memo["BlindCopyTo"]), subject: text(memo["Subject"]), body: text(memo["Body"]),
    inReplyTo: text(memo["InReplyTo"]), references: texts(memo["References"]),
    files: files.filter(([name]) => name !== "message.eml").map(([name, { length }]) => ({ name, length: length ?? 0 })),
  };
}

/** Whether a text speaks of a file that was to be with it. */
export function speaksOfFile(body: string): boolean {
  const own = body.split("\n").filter((line) => !line.startsWith(">")).join("\n");
  return /\b(attach(ed|ment|ments|ing)?|enclosed|anbei|anhang|angehängt|im anhang|beigefügt)\b/i.test(own);
}

/** A piece of text, or an address that it names. */
export type Piece = string | { href: string };

/** Cuts a text at the addresses that it names. They end before what closes a sentence. */
export function linked(body: string): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  for (const found of body.matchAll(/\bhttps?:\/\/[^\s<>"'`]{1,2000}/g)) {
    const href = found[0].replace(/[.,;:!?)\]}]+$/, "");
    if (!URL.canParse(href)) continue;
    if (found.index > at) pieces.push(body.slice(at, found.index));
    pieces.push({ href });
    at = found.index + href.length;
  }
  if (at < body.length) pieces.push(body.slice(at));
  return pieces;
}

/** When, in as few words as tell: the time of today, the day of this year, the date of others. */
export function shortDate(written: string, now: Date, locale: string): string {
  const date = new Date(written);
  if (Number.isNaN(date.getTime())) return "";
  const isToday = date.toDateString() === now.toDateString();
  const options: Intl.DateTimeFormatOptions = isToday
    ? { hour: "2-digit", minute: "2-digit" }
    : date.getFullYear() === now.getFullYear() ? { day: "numeric", month: "short" } : { year: "numeric", month: "2-digit", day: "2-digit" };
  return dateFormat(options, locale).format(date);
}

/** The question to the index of words that what somebody has typed stands for: all of its words, with the fields by mail's names. */
export function questionOf(typed: string): string {
  const FIELDS: { [name: string]: string } = { from: "From", to: "SendTo", cc: "CopyTo", subject: "Subject", filename: "$FileNames" };
  const words = typed.match(/(?:\w+:)?"[^"]*"|\S+/g) ?? [];
  return words.map((word) => {
    const [, name, value] = /^(\w+):(.+)$/.exec(word) ?? [];
    if (name === "has" && value === "attachment") return "+$FileNames:*";
    const field = name ? FIELDS[name.toLowerCase()] : undefined;
    const plain = field ? value! : word;
    const phrase = plain.startsWith('"') ? plain.replace(/"/g, "").trim() : "";
    if (phrase) return `+${field ? `${field}:` : ""}"${phrase}"`;
    const safe = plain.replace(/[^\p{L}\p{N}@._-]+/gu, " ").trim();
    // What mail addresses are made of is cut into words by the index, too.
    return safe.split(/[\s@._-]+/).filter(Boolean).map((part) => `+${field ? `${field}:` : ""}${part}${part.length >= 3 ? "*" : ""}`).join(" ");
  }).filter(Boolean).join(" ");
}
