// The memos of a folder, and one of them next to it.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Grid, type Column } from "../shared/grid.tsx";
import { language, locale, number } from "../shared/i18n.ts";
import { bind } from "../shared/keys.ts";
import { go, place } from "../shared/route.ts";
import { attempt, complain, Dialog, Empty, Form } from "../shared/ui.tsx";
import { editDraft } from "./composer.tsx";
import { sorted } from "./folders.tsx";
import {
  destroy, folderNamed, folders, INBOX, isAbsent, isOf, mark, markFolder, move, moveTo, readIds, readMemo, readOutline, readRows, refineFolder, round, selected, SELECTED_MAX, shownName, star, type Folder, type Row,
} from "./mailbox.ts";
import { nameOf, shortDate, text, texts } from "./memo.ts";
import { Reader } from "./reader.tsx";
import { t } from "./texts.ts";

export function FolderPage({ name }: { name: string }) {
  const folder = folderNamed(name);
  useEffect(() => {
    if (folder) void refineFolder(folder).catch(() => undefined);
    selected.value = new Set();
  }, [folder?.name]);
  if (folders.value === undefined) return <div class="bones" aria-busy="true"><span class="bone" /><span class="bone" /></div>;
  if (isAbsent.value || (!folder && name === INBOX)) return <><h1>{t("inbox")}</h1><Empty title={t("emptyInbox")}><p>{t("noMailYet")}</p></Empty></>;
  if (!folder) return <Empty title={t("noFolder")} />;
  return <Folderful folder={folder} />;
}

/** What a key or a button does to memos: the selected ones, else the one that is read, else the one at the keyboard's place. */
function useTargets(row: { current: { row: Row; position: number } | undefined }): () => string[] {
  return () => {
    if (selected.value.size > 0) return [...selected.value];
    const id = place.value.segments[2] ?? row.current?.row.id;
    return id ? [id] : [];
  };
}

const toggled = (id: string) => {
  const next = new Set(selected.value);
  if (!next.delete(id)) next.add(id);
  selected.value = next;
};

function Folderful({ folder }: { folder: Folder }) {
  const id = place.value.segments[2];
  const position = Number(place.value.parameters["at"] ?? "0") || 0;
  const row = useRef<{ row: Row; position: number } | undefined>(undefined);
  const targets = useTargets(row);
  const [asking, setAsking] = useState<"" | "move" | "destroy">("");
  const isDrafts = isOf(folder.name, "drafts");
  const openAt = (found: Row, at: number) => {
    if (isDrafts) return void editDraft(found.id);
    go(["mail", folder.name, found.id], { at: String(at) });
  };
  /** Goes to the memo at a place, if there is one; else back to the list. */
  const goTo = (at: number) => attempt(async () => {
    const [found] = at >= 0 ? await readRows(folder, at, 1) : [];
    if (found) go(["mail", folder.name, found.id], { at: String(at) });
    else go(["mail", folder.name]);
  });
  /** Does something that takes memos out of the folder; the memo that came next is read then. */
  const take = (work: (ids: string[]) => Promise<void>) => {
    const ids = targets();
    if (ids.length === 0) return;
    const next = id && ids.includes(id) ? position : undefined;
    void work(ids).then(() => (next === undefined ? undefined : goTo(next)));
  };
  const remove = () => (isOf(folder.name, "trash") || isDrafts ? setAsking("destroy") : take((ids) => moveTo(ids, folder.name, "trash")));
  const actions: Actions = {
    archive: () => take((ids) => moveTo(ids, folder.name, "archive")),
    remove,
    junk: () => take((ids) => (isOf(folder.name, "junk") ? move(ids, folder.name, INBOX) : moveTo(ids, folder.name, "junk"))),
    move: () => targets().length > 0 && setAsking("move"),
    read: () => void mark(targets(), true),
    unread: () => {
      void mark(targets(), false);
      if (id) go(["mail", folder.name]);
    },
    star: (on?: boolean) => {
      const ids = targets();
      if (ids.length === 0) return;
      void (on === undefined ? isStarred(ids[0]!).then((is) => star(ids, !is)) : star(ids, on));
    },
    next: () => void goTo(id ? position + 1 : position),
    previous: () => void (id ? goTo(position - 1) : undefined),
    back: () => go(["mail", folder.name]),
  };
  useKeys(actions, Boolean(id), row);
  // What comes next is there at once.
  useEffect(() => {
    if (!id || isDrafts) return;
    void readRows(folder, Math.max(0, position - 1), 3).then((near) => near.forEach((one) => void readMemo(one.id).then(readOutline).catch(() => undefined)), () => undefined);
  }, [id, position]);
  return (
    <>
      <ListHead folder={folder} actions={actions} hasTarget={Boolean(id)} />
      <div class={`fills split ${id ? "has-detail" : "single"}`}>
        {folder.total === 0
          ? <Empty title={folder.name === INBOX ? t("emptyInbox") : t("emptyFolder")} />
          : <List folder={folder} open={openAt} atRow={(found, at) => (row.current = { row: found, position: at })} toRemove={remove} />}
        {id && <Reader key={id} id={id} actions={actions} isJunk={isOf(folder.name, "junk")} />}
      </div>
      {asking === "move" && <MoveDialog from={folder.name} close={() => setAsking("")} chosen={(to) => { setAsking(""); take((ids) => move(ids, folder.name, to)); }} />}
      {asking === "destroy" && <DestroyDialog count={targets().length} close={() => setAsking("")} agreed={async () => { const ids = targets(); await destroy(ids); setAsking(""); if (id && ids.includes(id)) void goTo(position); }} />}
    </>
  );
}

async function isStarred(id: string): Promise<boolean> {
  return texts((await readMemo(id))["$Flags"]).some((flag) => flag === "\\Flagged" || flag === "flagged");
}

export type Actions = {
  archive: () => void; remove: () => void; junk: () => void; move: () => unknown; read: () => void; unread: () => void; star: (on?: boolean) => void;
  next: () => void; previous: () => void; back: () => void;
};

function useKeys(actions: Actions, isReading: boolean, row: { current: { row: Row; position: number } | undefined }) {
  const newest = useRef(actions);
  newest.current = actions;
  useEffect(() => {
    const call = (name: keyof Actions) => () => void newest.current[name]();
    return bind([
      { keys: "e", what: t("toArchive"), run: call("archive") },
      { keys: "#", what: t("delete"), run: call("remove") },
      { keys: "Delete", what: t("delete"), run: call("remove") },
      { keys: "!", what: t("isJunk"), run: call("junk") },
      { keys: "v", what: t("moveTo"), run: call("move") },
      { keys: "I", what: t("markRead"), run: call("read") },
      { keys: "U", what: t("markUnread"), run: call("unread") },
      { keys: "s", what: t("star"), run: () => newest.current.star() },
      { keys: "j", what: t("next"), run: call("next") },
      { keys: "k", what: t("previous"), run: call("previous") },
      { keys: "x", what: t("select"), run: () => row.current && toggled(row.current.row.id) },
      { keys: "* n", what: t("selectNone"), run: () => (selected.value = new Set()) },
      ...(isReading ? [{ keys: "u", what: t("back"), run: call("back") }, { keys: "Escape", what: t("back"), run: call("back") }] : []),
    ]);
  }, [isReading, language.value]);
}

function ListHead({ folder, actions, hasTarget }: { folder: Folder; actions: Actions; hasTarget: boolean }) {
  const count = selected.value.size;
  const all = () => attempt(async () => {
    const ids = await readIds(folder.name);
    selected.value = new Set(ids);
    if (ids.length >= SELECTED_MAX) complain(new Error(t("tooMany", { n: SELECTED_MAX })));
  });
  return (
    <div class="spread list-head">
      <h1 dir="auto">{shownName(folder.name)} <small class="quiet">{number(folder.total)}{folder.unread > 0 && ` · ${t("unreadCount", { n: folder.unread })}`}</small></h1>
      <div class="buttons">
        {count > 0 ? (
          <>
            <span class="quiet" role="status">{t("selectedCount", { n: count })}</span>
            <button type="button" onClick={actions.archive}>{t("toArchive")}</button>
            <button type="button" onClick={actions.remove}>{t("delete")}</button>
            <button type="button" onClick={actions.move}>{t("moveTo")}</button>
            <button type="button" onClick={actions.read}>{t("markRead")}</button>
            <button type="button" onClick={() => (selected.value = new Set())}>{t("selectNone")}</button>
          </>
        ) : !hasTarget && folder.unread > 0 && <button type="button" onClick={() => void markFolder(folder.name)}>{t("allRead")}</button>}
        {folder.total > count && !hasTarget && <button type="button" onClick={() => void all()}>{t("selectAll", { n: folder.total })}</button>}
      </div>
    </div>
  );
}

type ListProps = { folder: Folder; open: (row: Row, position: number) => void; atRow: (row: Row, position: number) => void; toRemove: () => void };

function List({ folder, open, atRow, toRemove }: ListProps) {
  const showsRecipient = isOf(folder.name, "sent") || isOf(folder.name, "drafts");
  const chosen = selected.value;
  const columns = useMemo(() => columnsOf(showsRecipient), [showsRecipient, language.value]);
  const { at } = place.value.parameters;
  return (
    <Grid label={t("memos", { folder: shownName(folder.name) })} columns={columns} count={folder.total} source={`${folder.name} ${folder.columns.length}`} version={`${folder.update_seq} ${folder.unread} ${round.value} ${chosen.size}`}
      fetchPage={(start, limit) => readRows(folder, start, limit)} open={open} opensOnMove={place.value.segments[2] !== undefined} atRow={atRow} position={at === undefined ? undefined : Number(at) || 0}
      rowClass={(row) => `${row.unread ? "unread" : ""} ${chosen.has(row.id) ? "chosen" : ""} ${row.id === place.value.segments[2] ? "read-now" : ""}`}
      onKey={(key, row) => {
        if (key === " " || key === "x") toggled(row.id);
        else if (key === "o") open(row, 0);
        else if (key === "Delete") toRemove();
        else return false;
        return true;
      }} />
  );
}

const value = (row: Row, title: string) => text(row.value[title]);

function columnsOf(showsRecipient: boolean): Column<Row>[] {
  const who = (row: Row) => (showsRecipient && value(row, "To") ? texts(row.value["To"]).map(nameOf).join(", ") : nameOf(value(row, "From")));
  const subject = (row: Row) => value(row, "Subject") || t("noSubject");
  return [
    { title: "", width: "2.4rem", show: (row) => (
      <input type="checkbox" tabIndex={-1} aria-label={t("selectMemo", { subject: subject(row) })} checked={selected.value.has(row.id)} onClick={(event) => event.stopPropagation()} onChange={() => toggled(row.id)} />
    ) },
    { title: "", width: "3rem", wide: true, show: (row) => {
      const on = texts(row.value["Flags"]).some((flag) => flag === "\\Flagged" || flag === "flagged");
      return <button type="button" tabIndex={-1} class={`plain star ${on ? "on" : ""}`} aria-pressed={on} aria-label={t("starMemo", { subject: subject(row) })} onClick={(event) => { event.stopPropagation(); void star([row.id], !on); }}>{on ? "★" : "☆"}</button>;
    } },
    { title: showsRecipient ? t("to") : t("from"), width: "minmax(6rem, 13rem)", show: (row) => <span dir="auto">{row.unread && <span class="hidden">{t("unread")} </span>}{who(row)}</span> },
    { title: t("subject"), width: "minmax(7rem, 1fr)", show: (row) => <span dir="auto">{subject(row)}{texts(row.value["Files"]).length > 0 && <span class="clip"> <svg viewBox="0 0 24 24" aria-hidden="true"><path d="M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.7L9.500 17a1.700 1.700 0 0 1-2.400-2.400l7.500-7.600" stroke-linecap="round" /></svg><span class="hidden">{t("withFiles")}</span></span>}</span> },
    { title: t("date"), width: "6.2rem", numeric: true, show: (row) => <time dateTime={value(row, "Date")}>{shortDate(value(row, "Date"), new Date(), locale())}</time> },
  ];
}

function MoveDialog({ from, close, chosen }: { from: string; close: () => void; chosen: (to: string) => void }) {
  const [filter, setFilter] = useState("");
  const all = sorted(folders.value ?? []).filter(({ name }) => name !== from && shownName(name).toLowerCase().includes(filter.toLowerCase()));
  return (
    <Dialog title={t("moveTo")} close={close}>
      <form onSubmit={(event) => { event.preventDefault(); if (all[0]) chosen(all[0].name); }}>
        <input type="search" data-first style={{ width: "100%" }} aria-label={t("filterFolders")} placeholder={t("filterFolders")} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
      </form>
      <div class="results choices">{all.map(({ name }) => <button type="button" class="plain" dir="auto" onClick={() => chosen(name)}>{shownName(name)}</button>)}</div>
    </Dialog>
  );
}

function DestroyDialog({ count, close, agreed }: { count: number; close: () => void; agreed: () => Promise<void> }) {
  if (count === 0) return null;
  return <Dialog title={t("deleteForEver")} close={close}><Form label={t("deleteForEver")} danger send={agreed}><p>{t("deleteSure", { n: count })}</p><br /></Form></Dialog>;
}

