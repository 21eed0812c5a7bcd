// The person's calendars and what takes place in them; what is done to events, and the way back.

import { signal } from "@preact/signals";
import { person } from "../shared/api.ts";
import { say } from "../shared/ui.tsx";
import { t } from "./calendar_texts.ts";
import { parse, write, type Component } from "./content.ts";
import { isOutdated, move, put, read, readInstances, readOccurrences, remove, type Collection } from "./dav.ts";
import { changed, newEvent, without, type Fields, type Occurrence, type Scope } from "./event.ts";
import { countFrom, endedBefore, following, isCounted } from "./series.ts";
import { withZones } from "./zone_definition.ts";

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

/** What was read of spans lately, so that who goes back and forth sees it at once; it is read again meanwhile. */
const seen = new Map<string, Occurrence[]>();
/** As many spans are kept. */
const SEEN_MAX = 12;

const spanKey = (calendars: Collection[], from: number, to: number) => `${person.value?.name ?? ""} ${from} ${to} ${calendars.map(({ href }) => href).join(" ")}`;

/** What took place in calendars when it was read last, if it was. */
export const knownOf = (calendars: Collection[], from: number, to: number): Occurrence[] | undefined => seen.get(spanKey(calendars, from, to));

/** What takes place in calendars, in the order of its beginning. */
export async function readAll(calendars: Collection[], from: number, to: number): Promise<Occurrence[]> {
  const all = (await Promise.all(calendars.map((calendar) => readOccurrences(calendar, from, to)))).flat();
  all.sort((a, b) => a.start - b.start || b.end - a.end || (a.subject < b.subject ? -1 : 1));
  const key = spanKey(calendars, from, to);
  seen.delete(key);
  seen.set(key, all);
  for (const oldest of seen.keys()) if (seen.size > SEEN_MAX) seen.delete(oldest);
  return all;
}

/** Has pages read again what was changed here. */
export function looked(): void {
  seen.clear();
  calendarRound.value++;
}

/** A calendar as it is stored: with what its zones are. */
const stored = (calendar: Component): string => write(withZones(calendar));

/** Changes are tried again where somebody else was quicker: each is made of what is stored then. */
const ROUNDS = 3;

/** Carries out what somebody else may be quicker at. */
export async function again<T>(work: () => Promise<T>): Promise<T> {
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
  const tag = await put(href, stored(made), undefined);
  looked();
  say(t("saved"), async () => {
    await remove(href, tag);
    looked();
  });
}

/** Changes an event, or what is meant of a series; it goes into another calendar where one is given. */
export async function change(occurrence: Occurrence, fields: Fields, scope: Scope, words: string, target?: Collection): Promise<void> {
  if (scope === "following" && (await cut(occurrence, fields, words, target))) return;
  let before = "";
  let { href } = occurrence;
  if (target && target.href !== occurrence.calendar) href = await move(href, target);
  const tag = await again(async () => {
    const resource = await read(href);
    const calendar = parse(resource.data);
    const next = calendar && changed(calendar, occurrence, fields, scope === "one" ? "one" : "all", Date.now());
    if (!next) throw new Error(t(calendar ? "wrongSpan" : "goneAway"));
    before = resource.data;
    return put(href, stored(next), resource.tag);
  });
  looked();
  say(words, async () => {
    await put(href, before, tag);
    looked();
  });
}

/**
 * Ends a series before one of it, and begins another one with it. False where the series begins there: then all of it is meant. The
 * first step is taken back where the second fails. Who has a room gives it back before the new series asks for it.
 */
async function cut(occurrence: Occurrence, fields: Fields, words: string, target?: Collection): Promise<boolean> {
  const { href, recurrence } = occurrence;
  const uid = crypto.randomUUID();
  const other = `${target?.href ?? occurrence.calendar}${uid}.ics`;
  const done = await again(async () => {
    const resource = await read(href);
    const calendar = parse(resource.data);
    if (!calendar) throw new Error(t("goneAway"));
    const ended = endedBefore(calendar, recurrence, Date.now());
    if (!ended) return undefined;
    const instances = isCounted(calendar) ? await readInstances(href) : [];
    if (!instances) throw new Error(t("seriesTooLong"));
    const left = countFrom(calendar, recurrence, instances);
    const next = following(calendar, occurrence, fields, left, uid, Date.now());
    if (!next) throw new Error(t("wrongSpan"));
    const shortened = await put(href, stored(ended), resource.tag);
    try {
      return { before: resource.data, shortened, begun: await put(other, stored(next), undefined) };
    } catch (error) {
      await put(href, resource.data, shortened);
      throw error;
    }
  });
  if (!done) return false;
  looked();
  say(words, async () => {
    await remove(other, done.begun);
    await put(href, done.before, done.shortened);
    looked();
  });
  return true;
}

/** Deletes an event, or what is meant of a series. */
export async function erase(occurrence: Occurrence, scope: Scope): Promise<void> {
  const { href, recurrence } = occurrence;
  let before = "";
  const tag = await again(async () => {
    const resource = await read(href);
    before = resource.data;
    const calendar = parse(resource.data);
    const shorten = { one: without, following: endedBefore, all: () => undefined }[scope];
    const next = recurrence && calendar ? shorten(calendar, recurrence, Date.now()) : undefined;
    if (next) return put(href, stored(next), resource.tag);
    await remove(href, resource.tag);
    return undefined;
  });
  looked();
  say(t("deleted"), async () => {
    await put(href, before, tag);
    looked();
  });
}
