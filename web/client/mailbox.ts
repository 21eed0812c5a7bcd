// A person's mail file: folders, rows, memos, and what is done with them. Everything that is done can be done again: the server is
// told what shall be, not what to change.

import { computed, signal } from "@preact/signals";
import { ApiError, ask, documentPath, pathOf, person, serverNow, type Document, type Json } from "../shared/api.ts";
import { attempt, say } from "../shared/ui.tsx";
import { texts } from "./memo.ts";
import { t } from "./texts.ts";

export type Use = "archive" | "drafts" | "junk" | "sent" | "trash";
export type Folder = { name: string; total: number; unread: number; update_seq: string; special_use: string | null; columns: { title: string; formula: string; sort?: string }[] };
export type Row = { id: string; uid?: number; unread?: boolean; value: { [title: string]: Json } };
export type File = { number: number; name: string; content_type: string; bytes: number };
/** What a memo has besides its fields. */
export type Outline = { html: boolean; remote_pictures: number; cut: boolean; bytes: number; files: File[] };
export type Told = { id: string; Date: string; From: string; Excerpt: string };

export const INBOX = "Inbox";
/** Names of the folders that mail programs know, for those that a mail file does not have yet. */
const USUAL: { [use in Use]: string } = { archive: "Archive", drafts: "Drafts", junk: "Junk", sent: "Sent", trash: "Trash" };
/** What a row shows. */
const COLUMNS: Json[] = [
  { title: "Date", formula: "DeliveredDate", sort: "asc" },
  { title: "From", formula: "From" },
  { title: "Subject", formula: "Subject" },
  { title: "Categories", formula: "Categories" },
  { title: "To", formula: "SendTo" },
  { title: "Flags", formula: "$Flags" },
  { title: "Files", formula: "$FileNames" },
];
/** What folders have that nobody gave columns, or that mail programs have made. */
const USUAL_COLUMNS = ["Date,From,Subject,Categories", "Date,From,Subject,Size"];
/** Asked of a folder at once. */
const IDS_AT_ONCE = 10_000;
/** More memos are not taken at once. */
export const SELECTED_MAX = 100_000;

export const folders = signal<Folder[] | undefined>(undefined);
/** The person's mail file does not exist until mail comes. */
export const isAbsent = signal(false);
export const selected = signal<ReadonlySet<string>>(new Set());
/** Counts what was done here, so that lists look again. */
export const round = signal(0);

/** Counts changes of the mail file, no matter who made them: calendars and contacts lie in it, too. */
export const changes = signal(0);

export const database = computed(() => `mail/${person.value?.name ?? ""}`);
const path = (...segments: string[]) => [pathOf(database.value), ...segments.map((segment) => (segment.startsWith("_") ? segment : pathOf(segment)))].join("/");
const folderPath = (name: string) => `${path("_folder")}/${pathOf(name)}`;

export const folderNamed = (name: string) => folders.value?.find((folder) => folder.name.toLowerCase() === name.toLowerCase());
export const folderFor = (use: Use) => folders.value?.find(({ special_use }) => special_use === use) ?? folderNamed(USUAL[use]);
export const isOf = (name: string, use: Use) => folderFor(use)?.name.toLowerCase() === name.toLowerCase();

/** Reads the list of folders. */
export async function readFolders(): Promise<void> {
  try {
    folders.value = (await ask<{ folders: Folder[] }>("GET", path("_folder"))).folders;
    isAbsent.value = false;
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
    isAbsent.value = true;
    folders.value = [];
  }
}

/** Whether the newest rows stand at the end of a folder as it is sorted. */
const isAscending = (folder: Folder) => folder.columns.find(({ sort }) => sort)?.sort !== "desc";

/** Rows by their place, the newest first. */
export async function readRows(folder: Folder, start: number, limit: number): Promise<Row[]> {
  const parameters = { start, limit, descending: isAscending(folder) || undefined };
  return (await ask<{ rows: Row[] }>("GET", folderPath(folder.name), parameters)).rows;
}

/** Ids of all that is in a folder. */
export async function readIds(name: string): Promise<string[]> {
  const ids: string[] = [];
  let since = 0;
  while (ids.length < SELECTED_MAX) {
    const page = await ask<{ members: { id: string }[]; last_uid: number; more?: boolean }>("GET", `${folderPath(name)}/_members`, { since_uid: since, limit: IDS_AT_ONCE });
    ids.push(...page.members.map(({ id }) => id));
    if (!page.more) break;
    since = page.last_uid;
  }
  return ids;
}

/** The folder for a use, made if it is missing. */
async function made(use: Use): Promise<string> {
  const found = folderFor(use);
  if (found) return found.name;
  await ask("PUT", folderPath(USUAL[use]), {}, { body: { columns: COLUMNS, special_use: use } });
  await readFolders();
  return USUAL[use];
}

export async function makeFolder(name: string): Promise<void> {
  await ask("PUT", folderPath(name), {}, { body: { columns: COLUMNS } });
  await readFolders();
}

/** Gives a folder that the server made the columns that a row shows. Its rows are made again, once. */
export async function refineFolder(folder: Folder): Promise<void> {
  if (!USUAL_COLUMNS.includes(folder.columns.map(({ title }) => title).join())) return;
  await ask("PUT", folderPath(folder.name), {}, { body: { columns: COLUMNS } });
  await readFolders();
}

const memos = new Map<string, Promise<Document>>();
const outlines = new Map<string, Promise<Outline | null>>();
const KEPT = 60;

function kept<T>(cache: Map<string, Promise<T>>, id: string, fetcher: () => Promise<T>): Promise<T> {
  const known = cache.get(id);
  if (known) return known;
  const fetched = fetcher();
  cache.set(id, fetched);
  fetched.catch(() => cache.delete(id));
  for (const oldest of cache.keys()) {
    if (cache.size <= KEPT) break;
    cache.delete(oldest);
  }
  return fetched;
}

/** A memo; what was read of late is there at once. */
export const readMemo = (id: string): Promise<Document> => kept(memos, id, () => ask<Document>("GET", documentPath(database.value, id)));

export function readOutline(memo: Document): Promise<Outline | null> {
  const attachments = (memo["_attachments"] ?? {}) as { [name: string]: Json };
  if (!attachments["message.eml"]) return Promise.resolve(null);
  return outlineOf(memo._id);
}

const outlineOf = (id: string) => kept(outlines, id, () => ask<Outline | null>("GET", `${documentPath(database.value, id)}/_message`));

/** A memo, while what else it has is fetched as well: nearly every one has a source. */
export function openMemo(id: string): Promise<Document> {
  outlineOf(id).catch(() => undefined);
  return readMemo(id);
}

export function forget(id: string): void {
  memos.delete(id);
}

/** The view that keeps conversations together; its owner's client makes it. */
const CONVERSATIONS: Json = {
  language: "formula",
  views: {
    conversations: {
      columns: [
        { title: "Root", formula: '@If(References != ""; @Subset(References; 1); InReplyTo != ""; InReplyTo; $MessageID)', sort: "asc" },
        { title: "Date", formula: "DeliveredDate", sort: "asc" },
        { title: "From", formula: "From" },
        { title: "Excerpt", formula: "@Left(Body; 140)" },
      ],
    },
  },
};
const DESIGN = "_design/conversations";
/** Shown of one conversation. */
const CONVERSATION_MAX = 200;

/** The memos of one conversation, the oldest first. */
export async function readConversation(memo: Document): Promise<Told[]> {
  const root = [...texts(memo["References"]), ...texts(memo["InReplyTo"]), ...texts(memo["$MessageID"])][0];
  if (!root) return [];
  const read = () => ask<{ rows: { id: string; value: Told }[] }>("GET", `${path()}/${DESIGN}/_view/conversations`, { startkey: [root], endkey: [root, {}], limit: CONVERSATION_MAX });
  const rows = await read().catch(async (error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
    await ask("PUT", `${path()}/${DESIGN}`, {}, { body: CONVERSATIONS });
    return read();
  });
  return rows.rows.map(({ id, value }) => ({ ...value, id }));
}

/** Carries something out for memos, looks again, and offers the way back. */
async function done(words: string, work: () => Promise<unknown>, back?: () => Promise<unknown>): Promise<void> {
  await work();
  const look = async () => {
    round.value++;
    await readFolders();
  };
  await look();
  if (words) say(words, back && (async () => { await back(); await look(); }));
}

/** The most memos that one request names. */
function* portions(ids: string[]): Generator<string[]> {
  for (let at = 0; at < ids.length; at += IDS_AT_ONCE) yield ids.slice(at, at + IDS_AT_ONCE);
}

async function moveAll(ids: string[], from: string, to: string): Promise<void> {
  for (const some of portions(ids)) await ask("POST", folderPath(from), {}, { body: { move: { to, ids: some } } });
}

export function move(ids: string[], from: string, to: string): Promise<void> {
  selected.value = new Set();
  return attempt(() => done(t("moved", { n: ids.length, folder: shownName(to) }), () => moveAll(ids, from, to), () => moveAll(ids, to, from)));
}

export function moveTo(ids: string[], from: string, use: Use): Promise<void> {
  return attempt(async () => move(ids, from, await made(use)));
}

/** Marks memos as read or unread. */
export function mark(ids: string[], read: boolean, silent = false): Promise<void> {
  const send = async (value: boolean) => {
    for (const some of portions(ids)) await ask("POST", path("_unread"), {}, { body: { [value ? "read" : "unread"]: some } });
  };
  const words = silent ? "" : t(read ? "markedRead" : "markedUnread", { n: ids.length });
  return attempt(() => done(words, () => send(read), () => send(!read)));
}

export function markFolder(name: string): Promise<void> {
  return attempt(() => done(t("folderRead"), () => ask("POST", path("_unread"), {}, { body: { folder: name, read: true } })));
}

/** Sets or takes away a star. Somebody else may change the document meanwhile: it is read again then. */
export function star(ids: string[], on: boolean): Promise<void> {
  const set = async (value: boolean) => {
    for (const id of ids) await flag(id, "\\Flagged", value);
  };
  return attempt(() => done(ids.length > 1 ? t(on ? "starred" : "unstarred", { n: ids.length }) : "", () => set(on), () => set(!on)));
}

const ROUNDS = 4;

export async function flag(id: string, name: string, on: boolean): Promise<void> {
  for (let attempts = 1; ; attempts++) {
    const memo = await ask<Document>("GET", documentPath(database.value, id));
    // What earlier releases wrote for a flag, by the name that mail programs know.
    const names: { [word: string]: string } = { answered: "\\Answered", flagged: "\\Flagged", draft: "\\Draft", forwarded: "$Forwarded" };
    const flags = texts(memo["$Flags"]).map((flag) => names[flag] ?? flag);
    if (flags.includes(name) === on) return;
    const wanted = on ? [...flags, name] : flags.filter((known) => known !== name);
    try {
      // One's own change leaves it read.
      await ask("PUT", documentPath(database.value, id), { read_by: person.value?.name }, { body: { ...memo, $Flags: wanted } });
      forget(id);
      return;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 409) || attempts === ROUNDS) throw error;
    }
  }
}

/** Deletes memos for ever. */
export async function destroy(ids: string[]): Promise<void> {
  selected.value = new Set();
  await done(t("destroyed", { n: ids.length }), async () => {
    for (let at = 0; at < ids.length; at += 500) {
      const keys = ids.slice(at, at + 500);
      const { rows } = await ask<{ rows: { id?: string; value?: { rev: string; deleted?: boolean } }[] }>("POST", path("_all_docs"), {}, { body: { keys } });
      const docs = rows.flatMap(({ id, value }) => (id && value && !value.deleted ? [{ _id: id, _rev: value.rev, _deleted: true }] : []));
      await ask("POST", path("_bulk_docs"), {}, { body: { docs } });
    }
  });
}

export type Hit = { id: string; doc: Document };

/** The best hits of a question to the index of words, and how many there are. */
export async function search(question: string, bookmark?: string): Promise<{ hits: Hit[]; total: number; bookmark: string }> {
  const body: { [name: string]: Json } = { q: question, limit: 50, include_docs: true, sort: "-DeliveredDate" };
  if (bookmark) body["bookmark"] = bookmark;
  const found = await ask<{ hits: Hit[]; total_hits: number; bookmark: string }>("POST", path("_fulltext"), {}, { body });
  return { hits: found.hits, total: found.total_hits, bookmark: found.bookmark };
}

/** Larger calendars are files like others. */
const CALENDAR_MAX_BYTES = 200_000;

/** The first calendar that came with a memo. */
export const calendarFile = (outline: Outline | null): File | undefined => outline?.files.find(({ content_type, bytes }) => /^text\/calendar\b/i.test(content_type) && bytes <= CALENDAR_MAX_BYTES);

/** The address of a memo's text as a page for a frame. */
export const bodyPath = (id: string) => `${documentPath(database.value, id)}/_body`;
export const filePath = (id: string, number: number) => `${documentPath(database.value, id)}/_file/${number}`;

/** Keeps a draft, in the folder of drafts; gives its revision. */
export async function keepDraft(id: string, rev: string | undefined, fields: { [field: string]: Json }, files: string[]): Promise<string> {
  const folder = await made("drafts");
  const stubs = Object.fromEntries(files.map((name) => [name, { stub: true }]));
  const body = { ...fields, $Flags: ["\\Draft"], ...(files.length > 0 ? { _attachments: stubs } : {}), ...(rev ? { _rev: rev } : {}) } as { [field: string]: Json };
  const kept = await ask<{ rev: string }>("PUT", documentPath(database.value, id), { folder: rev ? undefined : folder, read_by: person.value?.name }, { body });
  forget(id);
  return kept.rev;
}

export async function currentRevision(id: string): Promise<string | undefined> {
  try {
    return (await ask<Document>("GET", documentPath(database.value, id)))._rev;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

export async function addFile(id: string, rev: string, name: string, content: Blob): Promise<string> {
  const headers = { "Content-Type": content.type || "application/octet-stream" };
  return (await ask<{ rev: string }>("PUT", `${documentPath(database.value, id)}/${pathOf(name)}`, { rev }, { body: content, headers })).rev;
}

/**
 * Hands a draft over to be delivered, once whatever happens, and keeps it among what was sent. It goes in a moment: until then its sender can take it back, by the
 * id that is given. It is another one of each revision: one that was taken back is never used again.
 */
export async function deliver(id: string, afterMs: number): Promise<string> {
  const memo = await ask<Document>("GET", documentPath(database.value, id), { attachments: true });
  const { _id, _rev, $Flags: _, ...fields } = memo as { [member: string]: Json };
  const attachments = Object.entries((fields["_attachments"] ?? {}) as { [name: string]: { content_type: string; data: string } });
  const files = Object.fromEntries(attachments.map(([name, { content_type, data }]) => [name, { content_type, data }]));
  const posted = { ...fields, ...(attachments.length > 0 ? { _attachments: files } : {}), NotBefore: serverNow() + afterMs } as { [member: string]: Json };
  const posting = `${id}-${String(_rev).split("-")[0]}`;
  try {
    await ask("PUT", pathOf("mail.box", posting), {}, { body: posted });
  } catch (error) {
    // It was handed over before, and the answer was lost.
    if (!(error instanceof ApiError && error.status === 409)) throw error;
  }
  const stubs = Object.fromEntries(attachments.map(([name]) => [name, { stub: true }]));
  const sent = { ...fields, ...(attachments.length > 0 ? { _attachments: stubs } : {}), _id: _id!, _rev: _rev! } as { [member: string]: Json };
  const [drafts, folder] = [await made("drafts"), await made("sent")];
  await ask("PUT", documentPath(database.value, id), { read_by: person.value?.name }, { body: sent });
  await moveAll([id], drafts, folder);
  forget(id);
  round.value++;
  await readFolders();
  return posting;
}

/** Takes a memo back that has not gone yet: it is a draft as before. */
export async function takeBack(id: string, posting: string): Promise<Document> {
  await ask("DELETE", `_held_mail/${pathOf(posting)}`);
  const [drafts, sent] = [await made("drafts"), await made("sent")];
  await flag(id, "\\Draft", true);
  await moveAll([id], sent, drafts);
  forget(id);
  round.value++;
  await readFolders();
  return ask<Document>("GET", documentPath(database.value, id));
}

/** A folder's name as people read it; what lies within another one has that name before it. */
export function shownName(name: string): string {
  const folder = folderNamed(name);
  const key = folder?.name === INBOX ? "inbox" : folder?.special_use;
  const NAMES = { inbox: "inbox", archive: "archive", drafts: "drafts", junk: "junk", sent: "sent", trash: "trash" } as const;
  return key && key in NAMES ? t(NAMES[key as keyof typeof NAMES]) : name.replace(/\\/g, " / ");
}
