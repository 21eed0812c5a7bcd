// The person's calendars and what takes place in them; what is done to events, and the way back.

import { signal } from "@preact/signals";
import { person } from "../shared/api.ts";
import { say } from "../shared/ui.tsx";
import { t } from "./calendar_texts.ts";
import { parse, write } from "./content.ts";
import { isOutdated, move, put, read, readOccurrences, remove, type Collection } from "./dav.ts";
import { changed, newEvent, without, type Fields, type Occurrence, type Scope } from "./event.ts";

/** Counts what was done here, so that pages look again. */
export const calendarRound = signal(0);

const HIDDEN = () => `calendars hidden ${person.value?.name ?? ""}`;
const kept = (): string[] => {
  try {
    return JSON.parse(localStorage.getItem(HIDDEN()) ?? "[]") as string[];
  } catch {
    return [];
  }
};

/** Calendars that somebody does not want to see. */
export const hidden = signal<ReadonlySet<string>>(new Set());

export function loadHidden(): void {
  hidden.value = new Set(kept());
}

export function show(href: string, isShown: boolean): void {
  const next = new Set(hidden.value);
  if (isShown) next.delete(href);
  else next.add(href);
  hidden.value = next;
  localStorage.setItem(HIDDEN(), JSON.stringify([...next]));
}

/** What takes place in calendars, in the order of its beginning. */
export async function readAll(calendars: Collection[], from: number, to: number): Promise<Occurrence[]> {
  const all = await Promise.all(calendars.map((calendar) => readOccurrences(calendar, from, to)));
  return all.flat().sort((a, b) => a.start - b.start || b.end - a.end || (a.subject < b.subject ? -1 : 1));
}

const looked = () => void calendarRound.value++;

/** Changes are tried again where somebody else was quicker: each is made of what is stored then. */
const ROUNDS = 3;

async function again<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ROUNDS || !isOutdated(error)) throw error;
    }
  }
}

/** Adds an event. */
export async function add(calendar: Collection, fields: Fields): Promise<void> {
  const uid = crypto.randomUUID();
  const made = newEvent(fields, uid, Date.now());
  if (!made) throw new Error(t("wrongSpan"));
  const href = `${calendar.href}${uid}.ics`;
  const tag = await put(href, write(made), undefined);
  looked();
  say(t("saved"), async () => {
    await remove(href, tag);
    looked();
  });
}

/** Changes an event, or one of a series; it goes into another calendar where one is given. */
export async function change(occurrence: Occurrence, fields: Fields, scope: Scope, words: string, target?: Collection): Promise<void> {
  let before = "";
  let { href } = occurrence;
  if (target && target.href !== occurrence.calendar) href = await move(href, target);
  const tag = await again(async () => {
    const resource = await read(href);
    const calendar = parse(resource.data);
    const next = calendar && changed(calendar, occurrence, fields, scope, Date.now());
    if (!next) throw new Error(t(calendar ? "wrongSpan" : "goneAway"));
    before = resource.data;
    return put(href, write(next), resource.tag);
  });
  looked();
  say(words, async () => {
    await put(href, before, tag);
    looked();
  });
}

/** Deletes an event, one of a series, or all of it. */
export async function erase(occurrence: Occurrence, scope: Scope): Promise<void> {
  const { href, recurrence } = occurrence;
  let before = "";
  const tag = await again(async () => {
    const resource = await read(href);
    before = resource.data;
    const calendar = parse(resource.data);
    const next = scope === "one" && recurrence && calendar ? without(calendar, recurrence, Date.now()) : undefined;
    if (next) return put(href, write(next), resource.tag);
    await remove(href, resource.tag);
    return undefined;
  });
  looked();
  say(t("deleted"), async () => {
    await put(href, before, tag);
    looked();
  });
}
