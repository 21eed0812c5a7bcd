// The calendar: day, week, month, agenda.

import { useEffect, useState } from "preact/hooks";
import { useResource, useSettled } from "../shared/data.ts";
import { dateFormat, language, locale } from "../shared/i18n.ts";
import { bind } from "../shared/keys.ts";
import { change as changePlace, go, place } from "../shared/route.ts";
import { Dialog, Field, Form, Loaded } from "../shared/ui.tsx";
import { Agenda } from "./agenda.tsx";
import { t } from "./calendar_texts.ts";
import { makeCalendar, readCalendars, type Collection } from "./dav.ts";
import { emptyFields, type Fields, type Occurrence } from "./event.ts";
import { EventCard } from "./event_card.tsx";
import { EventForm } from "./event_form.tsx";
import { calendarRound, hidden, knownOf, loadHidden, readAll, show } from "./events.ts";
import { changes } from "./mailbox.ts";
import { Month } from "./month.tsx";
import { TimeGrid } from "./time_grid.tsx";
import { Todos } from "./todos.tsx";
import { addDays, addMonths, civilAt, firstWeekday, instantOf, ownZone, weekdayOf, weekOf } from "./zone.ts";

const VIEWS = ["day", "week", "month", "agenda", "todos"] as const;
type View = (typeof VIEWS)[number];
/** A view of days. */
type DaysView = Exclude<View, "todos">;
const KEYS: { [view in View]: string } = { day: "d", week: "w", month: "m", agenda: "a", todos: "o" };

/** Days of the agenda. */
const AGENDA_DAYS = 30;
export const todayHere = (): string => civilAt(Date.now(), ownZone()).slice(0, 10);

/** The days that a view shows, and its first one. */
export function daysOf(view: DaysView, day: string, first = firstWeekday(locale())): { from: string; count: number } {
  if (view === "day") return { from: day, count: 1 };
  if (view === "agenda") return { from: day, count: AGENDA_DAYS };
  const monday = (one: string) => addDays(one, -((weekdayOf(one) - first + 7) % 7));
  if (view === "week") return { from: monday(day), count: 7 };
  const from = monday(`${day.slice(0, 8)}01`);
  const last = addDays(addMonths(`${day.slice(0, 8)}01`, 1), -1);
  return { from, count: from <= addDays(last, -35) ? 42 : 35 };
}

/** A mail file in which much happens has events read again no more often than this. */
const SETTLED_MS = 3000;

const step = (view: DaysView, day: string, by: number) => (view === "month" ? addMonths(day, by) : addDays(day, by * { day: 1, week: 7, agenda: AGENDA_DAYS }[view]));

export type Chosen = { occurrence: Occurrence; calendar: Collection };
type Open = { what: "card" | "form"; chosen: Chosen } | { what: "new"; fields: Fields } | undefined;

export function CalendarPage() {
  useEffect(loadHidden, []);
  const calendars = useResource("calendars", readCalendars, undefined, calendarRound.value);
  return (
    <Loaded of={calendars}>{(all) => <Shown calendars={all} reload={() => void calendars.reload()} />}</Loaded>
  );
}

function Shown({ calendars, reload }: { calendars: Collection[]; reload: () => void }) {
  const [, viewNamed, dayNamed] = place.value.segments;
  const named = VIEWS.find((one) => one === viewNamed) ?? "week";
  const day = /^\d{4}-\d\d-\d\d$/.test(dayNamed ?? "") && !Number.isNaN(Date.parse(dayNamed!)) ? dayNamed! : todayHere();
  if (named === "todos") return <TodoPage day={day} />;
  return <Events view={named} day={day} calendars={calendars} reload={reload} />;
}

/** The views that are next to each other. */
function Views({ view, day }: { view: View; day: string }) {
  return (
    <div class="buttons" role="group" aria-label={t("calendar")}>
      {VIEWS.map((one) => <button type="button" aria-pressed={one === view} title={KEYS[one]} onClick={() => go(["calendar", one, day])}>{t(one)}</button>)}
    </div>
  );
}

const bindViews = (day: string) => VIEWS.map((one) => ({ keys: KEYS[one], what: t(one), run: () => go(["calendar", one, day]) }));

function TodoPage({ day }: { day: string }) {
  useEffect(() => bind(bindViews(day)), [day, language.value]);
  return (
    <>
      <div class="spread calendar-head"><h1>{t("todos")}</h1><div class="buttons"><Views view="todos" day={day} /></div></div>
      <div class="fills calendar-page"><Todos /></div>
    </>
  );
}

function Events({ view, day, calendars, reload }: { view: DaysView; day: string; calendars: Collection[]; reload: () => void }) {
  const { from, count } = daysOf(view, day);
  const seen = calendars.filter(({ href }) => !hidden.value.has(href));
  const zone = ownZone();
  const span: [number, number] = [instantOf(from, zone), instantOf(addDays(from, count), zone)];
  const events = useResource(`events ${from} ${count} ${seen.map(({ href }) => href).join()}`, () => readAll(seen, ...span), undefined, `${calendarRound.value} ${useSettled(changes.value, SETTLED_MS)}`, knownOf(seen, ...span));
  const [open, setOpen] = useState<Open>();
  const to = (nextView: View, nextDay: string) => go(["calendar", nextView, nextDay]);
  const create = (fields = emptyFields(view === "month" || view === "agenda" ? day : day < from ? from : day)) => setOpen({ what: "new", fields });
  useEffect(() => bind([
    ...bindViews(day),
    { keys: "t", what: t("today"), run: () => to(view, todayHere()) },
    { keys: "n", what: t("later"), run: () => to(view, step(view, day, 1)) },
    { keys: "p", what: t("earlier"), run: () => to(view, step(view, day, -1)) },
    { keys: "c", what: t("newEvent"), run: () => create() },
  ]), [view, day, language.value]);
  const choose = (occurrence: Occurrence) => {
    const calendar = calendars.find(({ href }) => href === occurrence.calendar);
    if (calendar) setOpen({ what: "card", chosen: { occurrence, calendar } });
  };
  const close = () => setOpen(undefined);
  const parts = { from, count, day, colors: new Map(calendars.map(({ href, color }) => [href, color])), choose, create, toDay: (one: string) => to("day", one), toPlace: (one: string) => to(view, one), canWrite: (href: string) => calendars.some((one) => one.href === href && one.isWritable) };
  return (
    <>
      <Head view={view} day={day} from={from} count={count} create={() => create()} />
      <Calendars calendars={calendars} reload={reload} />
      <div class="fills calendar-page">
        <Loaded of={events}>{(all) => (view === "month" ? <Month {...parts} events={all} /> : view === "agenda" ? <Agenda {...parts} events={all} /> : <TimeGrid {...parts} events={all} />)}</Loaded>
      </div>
      {open?.what === "card" && <EventCard chosen={open.chosen} close={close} edit={() => setOpen({ what: "form", chosen: open.chosen })} />}
      {open?.what === "form" && <EventForm calendars={calendars} chosen={open.chosen} close={close} />}
      {open?.what === "new" && <EventForm calendars={calendars} fields={open.fields} close={close} />}
    </>
  );
}

/** The days in words. */
function titleOf(view: DaysView, day: string, from: string, count: number): string {
  const date = (one: string) => new Date(`${one}T12:00:00Z`);
  const words = (options: Intl.DateTimeFormatOptions) => dateFormat({ ...options, timeZone: "UTC" });
  if (view === "month") return words({ month: "long", year: "numeric" }).format(date(day));
  if (view === "day") return words({ dateStyle: "full" }).format(date(day));
  return words({ day: "numeric", month: "long", year: "numeric" }).formatRange(date(from), date(addDays(from, count - 1)));
}

function Head({ view, day, from, count, create }: { view: DaysView; day: string; from: string; count: number; create: () => void }) {
  const to = (nextView: View, nextDay: string) => go(["calendar", nextView, nextDay]);
  return (
    <div class="spread calendar-head">
      <h1 dir="auto">{titleOf(view, day, from, count)} {view === "week" && <small class="quiet">{t("weekNumber", { n: weekOf(addDays(from, 3)) })}</small>}</h1>
      <div class="buttons">
        <button type="button" class="primary" title="c" onClick={create}>+ {t("newEvent")}</button>
        <button type="button" title="t" onClick={() => to(view, todayHere())}>{t("today")}</button>
        <button type="button" title="p" aria-label={t("earlier")} onClick={() => to(view, step(view, day, -1))}>‹</button>
        <button type="button" title="n" aria-label={t("later")} onClick={() => to(view, step(view, day, 1))}>›</button>
        <input type="date" aria-label={t("goTo")} value={day} onChange={(event) => event.currentTarget.value && to(view, event.currentTarget.value)} />
        <Views view={view} day={day} />
      </div>
    </div>
  );
}

function Calendars({ calendars, reload }: { calendars: Collection[]; reload: () => void }) {
  const isAdding = place.value.parameters["new"] === "calendar";
  return (
    <div class="filters calendars" role="group" aria-label={t("calendars")}>
      {calendars.map(({ href, name, color }) => (
        <label class="check"><input type="checkbox" checked={!hidden.value.has(href)} onChange={(event) => show(href, event.currentTarget.checked)} /><span class="swatch" style={{ background: color }} aria-hidden="true" /><span dir="auto">{name}</span></label>
      ))}
      <button type="button" class="plain" onClick={() => changePlace({ new: "calendar" })}>+ {t("newCalendar")}</button>
      {isAdding && <AddCalendar close={() => changePlace({ new: "" })} added={reload} />}
    </div>
  );
}

function AddCalendar({ close, added }: { close: () => void; added: () => void }) {
  const [name, setName] = useState("");
  const [color, setColor] = useState("#1b7a43");
  const send = async () => {
    await makeCalendar(name.trim(), color);
    close();
    added();
  };
  return (
    <Dialog title={t("newCalendar")} close={close}>
      <Form label={t("create")} send={send}>
        <Field label={t("calendarName")} required first maxLength={100} value={name} onInput={(event) => setName(event.currentTarget.value)} />
        <Field label={t("color")} type="color" value={color} onInput={(event) => setColor(event.currentTarget.value)} />
      </Form>
    </Dialog>
  );
}
