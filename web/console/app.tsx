// The frame around the pages: rail, search, person, messages, keys.

import { signal } from "@preact/signals";
import { type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Account, KeysPage } from "../shared/account.tsx";
import { command, isAdministrator, needsSignIn, person } from "../shared/api.ts";
import { paused, useResource } from "../shared/data.ts";
import { language } from "../shared/i18n.ts";
import { bind } from "../shared/keys.ts";
import { Mark } from "../shared/mark.tsx";
import { go, hashOf, place } from "../shared/route.ts";
import { SignInAgain, SignInPage } from "../shared/sign_in.tsx";
import { Empty, ErrorBox, Messages, undoLast } from "../shared/ui.tsx";
import { CommandBox } from "./command_box.tsx";
import { Icon } from "./icons.tsx";
import { t } from "./texts.ts";

type Section = { id: "overview" | "databases" | "people" | "mail" | "replication" | "tasks" | "log" | "statistics" | "backups" | "configuration"; key: string; load: () => Promise<{ Page: ComponentType }> };

/** The sections, with the key that follows `g`, in the order of the rail. */
export const SECTIONS: Section[] = [
  { id: "overview", key: "o", load: () => import("./pages/overview.tsx") },
  { id: "databases", key: "d", load: () => import("./pages/databases.tsx") },
  { id: "people", key: "p", load: () => import("./pages/people.tsx") },
  { id: "mail", key: "m", load: () => import("./pages/mail.tsx") },
  { id: "replication", key: "r", load: () => import("./pages/replication.tsx") },
  { id: "tasks", key: "t", load: () => import("./pages/tasks.tsx") },
  { id: "log", key: "l", load: () => import("./pages/log.tsx") },
  { id: "statistics", key: "s", load: () => import("./pages/statistics.tsx") },
  { id: "backups", key: "b", load: () => import("./pages/backups.tsx") },
  { id: "configuration", key: "c", load: () => import("./pages/configuration.tsx") },
];

const open = signal<"" | "search" | "keys" | "account">("");

function useGlobalKeys() {
  useEffect(() => bind([
    ...SECTIONS.map(({ id, key }) => ({ keys: `g ${key}`, what: t(id), run: () => go([id]) })),
    { keys: "Ctrl+k", what: t("search"), run: () => (open.value = "search") },
    { keys: "/", what: t("filter"), run: () => document.querySelector<HTMLInputElement>("main input[type=search]")?.focus() },
    { keys: ".", what: t("pause"), run: () => (paused.value = !paused.value) },
    { keys: "z", what: t("undo"), run: undoLast },
    { keys: "?", what: t("keys"), run: () => (open.value = "keys") },
  ]), [language.value]);
}

export function App() {
  if (person.value === undefined) return <Messages />;
  if (person.value === null) return <><SignInPage /><Messages /></>;
  return <Shell />;
}

function Shell() {
  useGlobalKeys();
  const sections = isAdministrator() ? SECTIONS : SECTIONS.filter(({ id }) => id === "databases");
  const wanted = place.value.segments[0] ?? sections[0]!.id;
  const section = sections.find(({ id }) => id === wanted);
  useEffect(() => {
    const names = place.value.segments.slice(section ? 1 : 0).join(" / ");
    document.title = [names, section && t(section.id), "Scrinium"].filter(Boolean).join(" – ");
  });
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.querySelector<HTMLElement>("main")?.focus(); }}>{t("skip")}</a>
      <Top />
      <nav class="rail" aria-label={t("sections")}>
        {sections.map(({ id }) => (
          <a href={hashOf([id])} title={t(id)} aria-current={section?.id === id ? "page" : undefined}><Icon name={id} /><span>{t(id)}</span></a>
        ))}
      </nav>
      <div class="behind" />
      <main id="main" tabIndex={-1}>
        {section ? <Lazy key={section.id} load={section.load} /> : <Empty title={t("notFound")} />}
      </main>
      {open.value === "search" && <CommandBox close={() => (open.value = "")} sections={sections.map(({ id }) => ({ id, title: t(id) }))} />}
      {open.value === "keys" && <KeysPage close={() => (open.value = "")} />}
      {open.value === "account" && <Account close={() => (open.value = "")} showKeys={() => (open.value = "keys")} />}
      {needsSignIn.value && <SignInAgain />}
      <Messages />
    </div>
  );
}

function Lazy({ load }: { load: () => Promise<{ Page: ComponentType }> }) {
  const [page, setPage] = useState<{ Page: ComponentType }>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    load().then(setPage, setError);
  }, []);
  if (error) return <ErrorBox error={error} retry={() => location.reload()} />;
  return page ? <page.Page /> : null;
}

function Top() {
  const server = useResource("server", async () => (isAdministrator() ? (await command<{ name: string }>("show server")).data : { name: location.host }));
  return (
    <header class="top">
      <a class="brand" href="#/"><Mark /> Scrinium <small>{server.data.value?.name}</small></a>
      <button type="button" class="go" onClick={() => (open.value = "search")}><span>{t("search")}</span><kbd aria-hidden="true">Ctrl K</kbd></button>
      <span class="grow" />
      <button type="button" aria-pressed={paused.value} title={t("pause")} onClick={() => (paused.value = !paused.value)}>
        <span class={`dot ${paused.value ? "warn" : "good"}`} />{paused.value ? t("paused") : t("live")}
      </button>
      <button type="button" class="account" aria-label={t("account", { name: person.value?.name ?? "" })} onClick={() => (open.value = "account")}>
        <svg viewBox="0 0 24 24" aria-hidden="true"><path d="M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-9 16-9 16 0" /></svg><span>{person.value?.name}</span>
      </button>
    </header>
  );
}
