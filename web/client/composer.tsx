// Writing: a memo that is kept on the server as it grows, and sent a few seconds after the person said so.

import { signal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiError, ask, documentPath, person, type Document } from "../shared/api.ts";
import { bytes, dateFormat, moment } from "../shared/i18n.ts";
import { attempt, complain, ErrorBox, say } from "../shared/ui.tsx";
import { addFile, currentRevision, database, deliver, flag, folderFor, isAbsent, keepDraft, move, readFolders, round, takeBack } from "./mailbox.ts";
import { answer, draftOf, emptyDraft, fieldsOf, forward, nameOf, recipientsOf, speaksOfFile, text, type Draft } from "./memo.ts";
import { Recipients } from "./recipients.tsx";
import { t } from "./texts.ts";

/** After the last key, on this device and on the server. */
const KEEP_HERE_MS = 400;
const KEEP_THERE_MS = 2500;
/** A memo that was sent can be taken back for as long, and as long as the message that says so is seen. */
const UNDO_MS = 10_000;
/** Files of one memo. */
const FILES_MAX_BYTES = 25 << 20;

/** Documents of memos that are answered here, by their message ids. */
const answeredIds = new Map<string, string>();

export const composing = signal<Draft | undefined>(undefined);
const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const me = () => [person.value?.name ?? ""].map((name) => name.toLowerCase());
const backupKey = (id: string) => `draft ${person.value?.name ?? ""} ${id}`;

export const write = (draft: Draft = emptyDraft(newId())): void => {
  if (!composing.value) composing.value = draft;
};

const introduction = (memo: Document) => t("wrote", { date: moment(text(memo["PostedDate"]) || text(memo["DeliveredDate"])), name: nameOf(text(memo["From"])) });

export function answerTo(memo: Document, toAll: boolean): void {
  answeredIds.set(text(memo["$MessageID"]), memo._id);
  write(answer(memo, newId(), me(), toAll, introduction(memo)));
}

export function forwardOf(memo: Document): void {
  const head = [
    t("forwarded"), `${t("from")}: ${text(memo["From"])}`, `${t("date")}: ${moment(text(memo["PostedDate"]))}`, `${t("to")}: ${text(memo["SendTo"])}`, `${t("subject")}: ${text(memo["Subject"])}`,
  ].join("\n");
  write(forward(memo, newId(), head));
}

/** Opens a draft that is kept, with what this device has of it that the server has not. */
export const editDraft = (id: string): Promise<void> => attempt(async () => {
  const kept = draftOf(await ask<Document>("GET", documentPath(database.value, id)));
  const here = localStorage.getItem(backupKey(id));
  write(here ? { ...kept, ...(JSON.parse(here) as Partial<Draft>), rev: kept.rev, files: kept.files } : kept);
});

/** Keeps drafts, one request after the other, so that none overtakes another. */
class Keeper {
  private last: Promise<unknown> = Promise.resolve();
  rev: string | undefined;
  files: Draft["files"];

  constructor(private readonly id: string, draft: Draft) {
    this.rev = draft.rev;
    this.files = draft.files;
  }

  private queue<T>(work: () => Promise<T>): Promise<T> {
    const next = this.last.then(work, work);
    this.last = next.catch(() => undefined);
    return next;
  }

  keep = (draft: Draft): Promise<void> => this.queue(async () => {
    const fields = fieldsOf(draft, person.value?.name ?? "", new Date().toISOString());
    const store = () => keepDraft(this.id, this.rev, fields, this.files.map(({ name }) => name));
    try {
      this.rev = await store();
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 409)) throw error;
      // Another tab or device has kept it: what is typed last counts, the other one is an earlier revision.
      this.rev = await currentRevision(this.id);
      this.rev = await store();
    }
    localStorage.removeItem(backupKey(this.id));
  });

  add = (file: File): Promise<void> => this.queue(async () => {
    let name = file.name.replace(/^[_.]+/, "") || "file";
    while (this.files.some((known) => known.name === name)) name = `2-${name}`;
    this.rev = await addFile(this.id, this.rev ?? "", name, file);
    this.files = [...this.files, { name, length: file.size }];
  });
}

type Field = "to" | "copy" | "blind" | "subject" | "body";

export function Composer() {
  const first = composing.value!;
  const [draft, setDraft] = useState(first);
  const [shownCopies, setShownCopies] = useState(Boolean(first.copy || first.blind));
  const [keptAt, setKeptAt] = useState<number | undefined>(first.rev ? Date.now() : undefined);
  const [problem, setProblem] = useState<"" | "noRecipient" | "forgotFile">("");
  const [error, setError] = useState<unknown>();
  const [keeper] = useState(() => new Keeper(first.id, first));
  const element = useRef<HTMLElement>(null);
  const newest = useRef(draft);
  newest.current = { ...draft, files: keeper.files };
  const changed = useRef(!first.rev && Boolean(first.body || first.to));
  const id = useId();

  const keep = async () => {
    changed.current = false;
    try {
      await keeper.keep(newest.current);
      setKeptAt(Date.now());
      setError(undefined);
    } catch (reason) {
      changed.current = true;
      setError(reason);
      throw reason;
    }
  };
  useEffect(() => {
    const empty = element.current?.querySelector<HTMLElement>(first.to ? "textarea" : "input");
    empty?.focus();
    if (empty instanceof HTMLTextAreaElement) empty.setSelectionRange(0, 0);
  }, []);
  useEffect(() => {
    if (!changed.current || isAbsent.value) return;
    const here = setTimeout(() => localStorage.setItem(backupKey(first.id), JSON.stringify({ ...newest.current, files: [] })), KEEP_HERE_MS);
    const there = setTimeout(() => void keep().catch(() => undefined), KEEP_THERE_MS);
    return () => {
      clearTimeout(here);
      clearTimeout(there);
    };
  }, [draft]);
  const set = (field: Field, value: string) => {
    changed.current = true;
    setProblem("");
    setDraft({ ...newest.current, [field]: value });
  };
  const close = () => attempt(async () => {
    if (changed.current) await keep();
    composing.value = undefined;
    await readFolders();
    round.value++;
  });
  const discard = () => attempt(async () => {
    composing.value = undefined;
    localStorage.removeItem(backupKey(first.id));
    const drafts = folderFor("drafts");
    const trash = folderFor("trash")?.name;
    if (!keeper.rev || !drafts) return;
    if (trash) await move([first.id], drafts.name, trash);
    else await ask("DELETE", documentPath(database.value, first.id), { rev: keeper.rev });
    await readFolders();
  });
  const addFiles = (list: FileList | null) => attempt(async () => {
    if (!keeper.rev) await keep();
    for (const file of list ?? []) {
      const length = keeper.files.reduce((sum, known) => sum + known.length, file.size);
      if (length > FILES_MAX_BYTES) throw new Error(t("fileTooLarge", { name: file.name, size: bytes(file.size), limit: bytes(FILES_MAX_BYTES) }));
      await keeper.add(file);
      setDraft({ ...newest.current, files: keeper.files });
    }
  });
  const removeFile = (name: string) => attempt(async () => {
    keeper.files = keeper.files.filter((known) => known.name !== name);
    setDraft({ ...newest.current, files: keeper.files });
    await keep();
  });
  const send = (sure = false) => attempt(async () => {
    const recipients = [draft.to, draft.copy, draft.blind].flatMap(recipientsOf);
    if (recipients.length === 0) return setProblem("noRecipient");
    if (!sure && keeper.files.length === 0 && speaksOfFile(draft.body)) return setProblem("forgotFile");
    await keep();
    composing.value = undefined;
    await sendSoon({ ...newest.current, rev: keeper.rev });
  });
  const key = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send(problem === "forgotFile");
    else if (event.key === "Escape") void close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const people = (field: "to" | "copy" | "blind", label: string) => <Recipients id={`${id}-${field}`} label={label} value={draft[field]} set={(value) => set(field, value)} />;
  return (
    <section class="composer card" role="dialog" aria-label={t("newMemo")} ref={element} onKeyDown={key}>
      <div class="spread"><h2 dir="auto">{draft.subject || t("newMemo")}</h2><button type="button" class="plain" aria-label={t("minimise")} onClick={() => void close()}>✕</button></div>
      {people("to", t("to"))}
      {shownCopies ? <>{people("copy", t("cc"))}{people("blind", t("bcc"))}</> : <button type="button" class="plain copies" onClick={() => setShownCopies(true)}>{t("copies")}</button>}
      <div class="compose-line"><label for={`${id}-subject`}>{t("subject")}</label>
        <input id={`${id}-subject`} dir="auto" value={draft.subject} autocomplete="off" onInput={(event) => set("subject", event.currentTarget.value)} /></div>
      <textarea aria-label={t("text")} dir="auto" value={draft.body} onInput={(event) => set("body", event.currentTarget.value)} />
      {keeper.files.length > 0 && <ul class="files" aria-label={t("attachments")}>{keeper.files.map(({ name, length }) => <li><span class="pill"><span dir="auto">{name}</span> {bytes(length)} <button type="button" class="plain" aria-label={t("removeFile", { name })} onClick={() => void removeFile(name)}>✕</button></span></li>)}</ul>}
      {problem && <p class="note warn" role="alert">{t(problem)}</p>}
      {error !== undefined && <ErrorBox error={error} retry={() => void keep().catch(() => undefined)} />}
      <div class="buttons">
        <button type="button" class="primary" title="Ctrl+Enter" onClick={() => void send(problem === "forgotFile")}>{problem === "forgotFile" ? t("sendAnyway") : t("send")}</button>
        <label class="button">{t("attach")}<input type="file" multiple class="hidden" onChange={(event) => void addFiles(event.currentTarget.files)} /></label>
        <button type="button" onClick={() => void discard()}>{t("discard")}</button>
        <span class="quiet" role="status">{keptAt ? t("draftKept", { time: dateFormat({ timeStyle: "short" }).format(keptAt) }) : draft.body || draft.to ? t("draftUnsaved") : ""}</span>
      </div>
    </section>
  );
}

/** Hands a memo over. The server keeps it for a moment, so that it can be taken back, whatever becomes of this page. */
async function sendSoon(draft: Draft): Promise<void> {
  let posting: string;
  try {
    posting = await deliver(draft.id, UNDO_MS);
  } catch (error) {
    complain(error);
    return write(draft);
  }
  say(t("sending"), async () => write(draftOf(await takeBack(draft.id, posting))));
  await answered(draft.inReplyTo);
}

/** Marks what was answered, where it is at hand; that it is not so marked harms nobody. */
async function answered(messageId: string): Promise<void> {
  const id = answeredIds.get(messageId);
  if (id) await flag(id, "answered", true).catch(() => undefined);
}
