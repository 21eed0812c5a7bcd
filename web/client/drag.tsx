// Events that are dragged to another time, by a mouse or a pen; a finger scrolls. Who cannot drag edits the event.

import { useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { attempt, Dialog } from "../shared/ui.tsx";
import type { ViewProps } from "./agenda.tsx";
import { t } from "./calendar_texts.ts";
import { parse } from "./content.ts";
import { read } from "./dav.ts";
import { fieldsOf, type Fields, type Occurrence, type Scope } from "./event.ts";
import { change } from "./events.ts";
import { addDays, daysBetween, instantOf, ownZone, civilAt } from "./zone.ts";

/** Less is a click. */
const DRAGGED_PIXELS = 5;

/** Another day, and another time of it; no time leaves it as it is. */
export type Target = { day: string; time: string | undefined };

/** Where an event goes that is dropped; `undefined` where it lies already. */
export function moveTo(event: Occurrence, day: string, time?: string): Target | undefined {
  if (day === event.from.slice(0, 10) && (time === undefined || time === event.from.slice(11, 16))) return undefined;
  return { day, time };
}

/** The fields of an event that begins somewhere else, as long as before. */
export function movedFields(fields: Fields, { day, time }: Target): Fields {
  if (fields.isDay) return { ...fields, fromDay: day, toDay: addDays(day, daysBetween(fields.fromDay, fields.toDay)) };
  const zone = ownZone();
  const [from, to] = [instantOf(`${fields.fromDay}T${fields.fromTime}:00`, fields.zone), instantOf(`${fields.toDay}T${fields.toTime}:00`, fields.zone)];
  const start = instantOf(`${day}T${time ?? civilAt(from, zone).slice(11, 16)}:00`, zone);
  const [first, last] = [civilAt(start, fields.zone), civilAt(start + to - from, fields.zone)];
  return { ...fields, fromDay: first.slice(0, 10), fromTime: first.slice(11, 16), toDay: last.slice(0, 10), toTime: last.slice(11, 16) };
}

type Drop = (event: Occurrence, target: Element | null, point: { x: number; y: number }, grabbed: number) => Target | undefined;

async function carry(event: Occurrence, target: Target, scope: Scope): Promise<void> {
  const calendar = parse((await read(event.href)).data);
  const fields = calendar && fieldsOf(calendar, event);
  if (!fields) throw new Error(t("goneAway"));
  await change(event, movedFields(fields, target), scope, t("wasMoved"));
}

/** What begins a drag, and the question that may end it: one of a series, this and those after it, or all? */
export function useDrag({ canWrite }: Pick<ViewProps, "canWrite">, drop: Drop): { begin: (down: PointerEvent, event: Occurrence) => void; asking: ComponentChildren } {
  const [asked, setAsked] = useState<{ event: Occurrence; target: Target }>();
  const newest = useRef(drop);
  newest.current = drop;
  const begin = (down: PointerEvent, event: Occurrence) => {
    if (down.button !== 0 || down.pointerType === "touch" || !canWrite(event.calendar)) return;
    follow(down, event, newest, (target) => {
      if (event.recurrence) setAsked({ event, target });
      else void attempt(() => carry(event, target, "all"));
    });
  };
  const answer = (scope: Scope) => {
    const { event, target } = asked!;
    setAsked(undefined);
    void attempt(() => carry(event, target, scope));
  };
  const asking = asked && (
    <Dialog title={t("scope")} close={() => setAsked(undefined)}>
      <div class="buttons">
        <button type="button" data-first onClick={() => answer("one")}>{t("scopeOne")}</button>
        {/* A meeting is cut in its form, where it is known who calls it. */}
        {!asked.event.caller && <button type="button" onClick={() => answer("following")}>{t("scopeFollowing")}</button>}
        <button type="button" onClick={() => answer("all")}>{t("scopeAll")}</button>
      </div>
    </Dialog>
  );
  return { begin, asking };
}

function follow(down: PointerEvent, event: Occurrence, drop: { current: Drop }, dropped: (target: Target) => void): void {
  const element = down.currentTarget as HTMLElement;
  const grabbed = down.clientY - element.getBoundingClientRect().top;
  let isDragged = false;
  const controller = new AbortController();
  const { signal } = controller;
  const end = () => {
    controller.abort();
    element.classList.remove("dragged");
    element.style.translate = "";
  };
  addEventListener("pointermove", (move) => {
    const [x, y] = [move.clientX - down.clientX, move.clientY - down.clientY];
    isDragged ||= Math.abs(x) + Math.abs(y) > DRAGGED_PIXELS;
    if (!isDragged) return;
    element.classList.add("dragged");
    element.style.translate = `${x}px ${y}px`;
  }, { signal });
  addEventListener("pointerup", (up) => {
    end();
    if (!isDragged) return;
    // The click that follows does not count.
    const swallow = (click: Event) => click.stopPropagation();
    addEventListener("click", swallow, { capture: true, once: true });
    setTimeout(() => removeEventListener("click", swallow, { capture: true }), 0);
    element.style.pointerEvents = "none";
    const target = drop.current(event, document.elementFromPoint(up.clientX, up.clientY), { x: up.clientX, y: up.clientY }, grabbed);
    element.style.pointerEvents = "";
    if (target) dropped(target);
  }, { signal });
  addEventListener("keydown", (key) => key.key === "Escape" && end(), { signal });
  addEventListener("pointercancel", end, { signal });
}
