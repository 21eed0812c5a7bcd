// The frame around mail: folders, search, the person, keys.

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Account, KeysPage } from "../shared/account.tsx";
import { isAdministrator, needsSignIn, person } from "../shared/api.ts";
import { useResource } from "../shared/data.ts";
import { language } from "../shared/i18n.ts";
import { bind } from "../shared/keys.ts";
import { Mark } from "../shared/mark.tsx";
import { go, place } from "../shared/route.ts";
import { SignInAgain, SignInPage } from "../shared/sign_in.tsx";
import { attempt, Loaded, Messages, undoLast } from "../shared/ui.tsx";
import { Composer, composing, write } from "./composer.tsx";
import { follow } from "./feed.ts";
import { Folders } from "./folders.tsx";
import { FolderPage } from "./list.tsx";
import { changes, database, folderFor, folders, INBOX, readFolders, round, type Use } from "./mailbox.ts";
import { Away, Scripts } from "./scripts.tsx";
import { SearchPage } from "./search.tsx";
import { t } from "./texts.ts";

const open = signal<"" | "keys" | "account" | "away" | "scripts">("");

/** Parts of the client that are loaded when somebody first opens them. */
const PARTS: { [section: string]: () => Promise<ComponentType> } = {
  calendar: () => import("./calendar.tsx").then(({ CalendarPage }) => CalendarPage),
  contacts: () => import("./contacts.tsx").then(({ ContactsPage }) => ContactsPage),
  databases: () => import("./databases.tsx").then(({ DatabasesPage }) => DatabasesPage),
  settings: () => import("./settings.tsx").then(({ SettingsPage }) => SettingsPage),
};

function Part({ section }: { section: string }) {
  const loaded = useResource(`part ${section}`, async () => ({ Page: await PARTS[section]!() }));
  return <Loaded of={loaded}>{({ Page }) => <Page />}</Loaded>;
}

export function App() {
  if (person.value === undefined) return <Messages />;
  if (person.value === null) return <><SignInPage /><Messages /></>;
  return <Shell />;
}

const toUse = (use: Use) => go(["mail", folderFor(use)?.name ?? INBOX]);

function useGlobalKeys() {
  useEffect(() => bind([
    { keys: "g i", what: t("goInbox"), run: () => go(["mail", INBOX]) },
    { keys: "g d", what: t("goDrafts"), run: () => toUse("drafts") },
    { keys: "g t", what: t("goSent"), run: () => toUse("sent") },
    { keys: "g a", what: t("goArchive"), run: () => toUse("archive") },
    { keys: "g c", what: t("goCalendar"), run: () => go(["calendar"]) },
    { keys: "g p", what: t("goContacts"), run: () => go(["contacts"]) },
    { keys: "g b", what: t("goDatabases"), run: () => go(["databases"]) },
    { keys: "g s", what: t("goSettings"), run: () => go(["settings"]) },
    { keys: "c", what: t("compose"), run: () => write() },
    { keys: "/", what: t("search"), run: () => document.querySelector<HTMLInputElement>(".top input[type=search]")?.focus() },
    { keys: "z", what: t("undo"), run: undoLast },
    { keys: "N", what: t("refresh"), run: () => void look() },
    { keys: "?", what: t("keys"), run: () => (open.value = "keys") },
  ]), [language.value]);
}

async function look(): Promise<void> {
  await attempt(readFolders);
  round.value++;
}

function Shell() {
  useGlobalKeys();
  useEffect(() => {
    void attempt(readFolders);
    // What fails here is tried again with the next change; what the person asks for says why it fails.
    return follow(database.value, (isFirst) => {
      void readFolders().catch(() => undefined);
      if (!isFirst) changes.value++;
    });
  }, [database.value]);
  const [section = "mail", name = INBOX] = place.value.segments;
  const unread = folders.value?.find((folder) => folder.name === INBOX)?.unread ?? 0;
  useEffect(() => {
    document.title = `${unread > 0 ? `(${unread}) ` : ""}${t("mail")} – Scrinium`;
  });
  const close = () => (open.value = "");
  const isMail = !(section in PARTS);
  return (
    <div class={`shell mail-shell ${isMail ? "" : "wide-shell"}`}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.querySelector<HTMLElement>("main")?.focus(); }}>{t("skip")}</a>
      <Top section={section} />
      {isMail && <Folders current={section === "mail" ? name : ""} />}
      <div class="behind" />
      <main id="main" tabIndex={-1}>
        {!isMail ? <Part key={section} section={section} /> : section === "search" ? <SearchPage /> : <FolderPage key={name} name={name} />}
      </main>
      {composing.value && <Composer key={composing.value.id} />}
      {open.value === "keys" && <KeysPage close={close} />}
      {open.value === "away" && <Away close={close} />}
      {open.value === "scripts" && <Scripts close={close} />}
      {open.value === "account" && (
        <Account close={close} showKeys={() => (open.value = "keys")}>
          <div class="buttons">
            <button type="button" onClick={() => (open.value = "away")}>{t("away")}</button>
            <button type="button" onClick={() => (open.value = "scripts")}>{t("scripts")}</button>
            <a class="button" href="#/settings" onClick={close}>{t("settings")}</a>
            {isAdministrator() && <a class="button" href="../_utils/">{t("toConsole")}</a>}
          </div>
        </Account>
      )}
      {needsSignIn.value && <SignInAgain />}
      <Messages />
    </div>
  );
}

const SECTIONS = [
  { id: "mail", path: "M3 6h18v13H3zM3 7l9 7 9-7" },
  { id: "calendar", path: "M4 6h16v15H4zM4 10h16M8 3v4M16 3v4" },
  { id: "contacts", path: "M12 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-8 16-8 16 0" },
  { id: "databases", path: "M4 5h16v4H4zM4 10h16v4H4zM4 15h16v4H4z" },
] as const;

function Sections({ section }: { section: string }) {
  const current = section === "search" ? "mail" : section;
  return (
    <nav class="sections" aria-label={t("sections")}>
      {SECTIONS.map(({ id, path }) => (
        <a href={id === "mail" ? "#/mail/Inbox" : `#/${id}`} aria-current={current === id ? "page" : undefined}><svg viewBox="0 0 24 24" aria-hidden="true"><path d={path} stroke-linejoin="round" stroke-linecap="round" /></svg><span>{t(id)}</span></a>
      ))}
    </nav>
  );
}

function Top({ section }: { section: string }) {
  const [typed, setTyped] = useState(place.value.parameters["q"] ?? "");
  return (
    <header class="top">
      <a class="brand" href="#/mail/Inbox"><Mark /> <span>Scrinium</span></a>
      <Sections section={section} />
      <form role="search" class="search" onSubmit={(event) => { event.preventDefault(); if (typed.trim()) go(["search"], { q: typed.trim() }); }}>
        <input type="search" aria-label={t("search")} placeholder={t("search")} title={t("searchHint")} value={typed} onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()} />
      </form>
      <span class="grow" />
      <button type="button" class="account" aria-label={t("account", { name: person.value?.name ?? "" })} onClick={() => (open.value = "account")}>
        <svg viewBox="0 0 24 24" aria-hidden="true"><path d="M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-9 16-9 16 0" /></svg><span>{person.value?.name}</span>
      </button>
    </header>
  );
}
