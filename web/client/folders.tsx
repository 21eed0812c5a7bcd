// The rail of folders, with what is unread in each.

import { useState } from "preact/hooks";
import { number } from "../shared/i18n.ts";
import { go, hashOf } from "../shared/route.ts";
import { Dialog, Field, Form } from "../shared/ui.tsx";
import { write } from "./composer.tsx";
import { folders, INBOX, makeFolder, shownName, type Folder } from "./mailbox.ts";
import { t } from "./texts.ts";

const ORDER = [null, "drafts", "sent", "archive", "junk", "trash"];
/** With more of them, people look for one by its name. */
const FILTERED = 12;

const rank = ({ name, special_use }: Folder) => (name === INBOX ? -1 : special_use ? ORDER.indexOf(special_use) : ORDER.length);

/** The inbox, those that mail programs know, then the others by name. */
export const sorted = (all: Folder[]) => [...all].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));

export function Folders({ current }: { current: string }) {
  const [filter, setFilter] = useState("");
  const [adding, setAdding] = useState(false);
  const all = sorted(folders.value ?? []);
  const shown = all.filter(({ name }) => shownName(name).toLowerCase().includes(filter.toLowerCase()));
  return (
    <nav class="rail" aria-label={t("folders")}>
      <button type="button" class="primary compose" onClick={() => write()}>✎ <span>{t("compose")}</span></button>
      {all.length > FILTERED && <input type="search" aria-label={t("filterFolders")} placeholder={t("filterFolders")} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />}
      {shown.map((folder) => (
        <a href={hashOf(["mail", folder.name])} aria-current={folder.name.toLowerCase() === current.toLowerCase() ? "page" : undefined} class={folder.unread > 0 ? "has-unread" : ""}>
          <Icon use={folder.name === INBOX ? "inbox" : (folder.special_use ?? "folder")} />
          <span class="name" dir="auto">{shownName(folder.name)}</span>
          {folder.unread > 0 && <span class="count"><span aria-hidden="true">{number(folder.unread)}</span><span class="hidden">{t("unreadCount", { n: folder.unread })}</span></span>}
        </a>
      ))}
      <button type="button" class="plain add" onClick={() => setAdding(true)}>+ <span>{t("newFolder")}</span></button>
      {adding && <Add close={() => setAdding(false)} />}
    </nav>
  );
}

function Add({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const send = async () => {
    await makeFolder(name.trim());
    close();
    go(["mail", name.trim()]);
  };
  return (
    <Dialog title={t("newFolder")} close={close}>
      <Form label={t("create")} send={send}><Field label={t("folderName")} required first maxLength={200} value={name} onInput={(event) => setName(event.currentTarget.value)} /></Form>
    </Dialog>
  );
}

const PATHS: { [use: string]: string } = {
  inbox: "M4 4h16l1 10v6H3v-6zM3 14h5l2 3h4l2-3h5",
  drafts: "M4 20l1-5L16 4l4 4L9 19zM14 6l4 4",
  sent: "M3 11l18-7-7 17-3-7zM11 14l10-10",
  archive: "M4 4h16v5H4zM5 9v11h14V9M9 13h6",
  junk: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM6 6l12 12",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  folder: "M3 6h7l2 2h9v11H3z",
};

function Icon({ use }: { use: string }) {
  return <svg viewBox="0 0 24 24" aria-hidden="true"><path d={PATHS[use] ?? PATHS["folder"]} stroke-linecap="round" stroke-linejoin="round" /></svg>;
}
