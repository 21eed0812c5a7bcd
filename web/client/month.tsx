// A month: weeks of days, each with what fits. One day has the keyboard; the arrow keys move it, and its events come next in the order of Tab.

import { useEffect, useRef } from "preact/hooks";
import { dateFormat } from "../shared/i18n.ts";
import { byDay, clock, longDay, Unseen, type ViewProps } from "./agenda.tsx";
import { t } from "./calendar_texts.ts";
import type { Occurrence } from "./event.ts";
import { moveTo, useDrag } from "./drag.tsx";
import { addDays, civilAt, ownZone, weekOf } from "./zone.ts";

/** Events of a day that are made; the others are counted. */
const SHOWN_MAX = 4;

export function Month(props: ViewProps) {
  const { events, from, count, day, colors, choose, toDay, toPlace } = props;
  const days = byDay(events, from, count);
  const today = civilAt(Date.now(), ownZone()).slice(0, 10);
  const table = useRef<HTMLTableElement>(null);
  const wantsFocus = useRef(false);
  const { begin, asking } = useDrag(props, (event, target) => {
    const to = target?.closest<HTMLElement>("[data-day]")?.dataset["day"];
    return to ? moveTo(event, to) : undefined;
  });
  useEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    table.current?.querySelector<HTMLElement>('td[tabindex="0"]')?.focus();
  }, [day]);
  const key = (event: KeyboardEvent) => {
    const moves: { [key: string]: number } = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 };
    if (!(event.target as HTMLElement).matches("td") || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Enter") toDay(day);
    else if (event.key in moves) {
      wantsFocus.current = true;
      toPlace(addDays(day, moves[event.key]!));
    } else return;
    event.preventDefault();
  };
  const weekdays = Array.from({ length: 7 }, (_, index) => new Date(`${addDays(from, index)}T12:00:00Z`));
  const name = (style: "short" | "long") => dateFormat({ weekday: style, timeZone: "UTC" });
  return (
    <>
      <table class="month" role="grid" aria-label={t("month")} ref={table} onKeyDown={key}>
        <thead><tr><th scope="col" class="week-number"><span class="hidden">{t("week")}</span></th>{weekdays.map((one) => <th scope="col" abbr={name("long").format(one)}>{name("short").format(one)}</th>)}</tr></thead>
        <tbody>{Array.from({ length: count / 7 }, (_, week) => (
          <tr key={week}>
            <th scope="row" class="week-number quiet" aria-label={t("weekNumber", { n: weekOf(addDays(from, week * 7 + 3)) })}>{weekOf(addDays(from, week * 7 + 3))}</th>
            {Array.from({ length: 7 }, (_, weekday) => {
              const one = addDays(from, week * 7 + weekday);
              return <Cell key={one} day={one} events={days.get(one) ?? []} isActive={one === day} isToday={one === today} isOther={one.slice(0, 7) !== day.slice(0, 7)} colors={colors} choose={choose} toDay={toDay} begin={begin} />;
            })}
          </tr>
        ))}</tbody>
      </table>
      {asking}
    </>
  );
}

type CellProps = {
  day: string; events: Occurrence[]; isActive: boolean; isToday: boolean; isOther: boolean; colors: Map<string, string>; choose: (event: Occurrence) => void; toDay: (day: string) => void;
  begin: (down: PointerEvent, event: Occurrence) => void;
};

function Cell({ day, events, isActive, isToday, isOther, colors, choose, toDay, begin }: CellProps) {
  const shown = events.length > SHOWN_MAX ? events.slice(0, SHOWN_MAX - 1) : events;
  const left = events.length - shown.length;
  return (
    <td data-day={day} tabIndex={isActive ? 0 : -1} aria-current={isToday ? "date" : undefined} class={`${isToday ? "is-today" : ""} ${isOther ? "other" : ""}`} onDblClick={() => toDay(day)}>
      <span class="date" aria-hidden="true">{Number(day.slice(8))}</span><span class="hidden">{longDay(day)}</span>
      {shown.map((event) => (
        <button type="button" key={event.href + event.recurrence} tabIndex={isActive ? 0 : -1} class={`plain chip ${event.isCancelled ? "cancelled" : ""}`} style={{ borderInlineStartColor: colors.get(event.calendar) }} onPointerDown={(down) => begin(down, event)} onClick={() => choose(event)}>
          {!event.isDay && event.from.slice(0, 10) === day && <span class="quiet">{clock(event.start)}</span>} <span dir="auto">{event.subject || t("noSubject")}</span><Unseen event={event} />
        </button>
      ))}
      {left > 0 && <button type="button" tabIndex={isActive ? 0 : -1} class="plain chip rest" onClick={() => toDay(day)}>{t("more", { n: left })}</button>}
    </td>
  );
}
