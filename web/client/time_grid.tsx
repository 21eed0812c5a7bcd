// Days next to each other, with the hours below each other.

import { useEffect, useRef } from "preact/hooks";
import { dateFormat } from "../shared/i18n.ts";
import { byDay, clock, longDay, Unseen, type ViewProps } from "./agenda.tsx";
import { t } from "./calendar_texts.ts";
import { moveTo, useDrag } from "./drag.tsx";
import { emptyFields, type Occurrence } from "./event.ts";
import { columnsOf, LEAST_MS } from "./layout.ts";
import { addDays, civilAt, DAY_MS, instantOf, ownZone } from "./zone.ts";

const HOUR_PIXELS = 44;
const HOURS = Array.from({ length: 24 }, (_, hour) => hour);
/** Seen first. */
const FIRST_HOUR = 7;
/** What is drawn and dragged begins at these minutes. */
const STEP_MINUTES = 15;

/** The minute of a day that a place in its column means. */
function minuteAt(column: HTMLElement, y: number): number {
  const { top, height } = column.getBoundingClientRect();
  const minute = ((y - top) / height) * 1440;
  return Math.max(0, Math.min(1440 - STEP_MINUTES, Math.round(minute / STEP_MINUTES) * STEP_MINUTES));
}

const timeAt = (minute: number) => `${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;

export function TimeGrid(props: ViewProps) {
  const { events, from, count, colors, choose, create, toDay } = props;
  const body = useRef<HTMLDivElement>(null);
  const today = civilAt(Date.now(), ownZone()).slice(0, 10);
  const days = [...byDay(events, from, count)];
  const isWhole = (event: Occurrence) => event.isDay || event.end - event.start >= DAY_MS;
  useEffect(() => {
    if (body.current) body.current.scrollTop = FIRST_HOUR * HOUR_PIXELS;
  }, [from, count]);
  const { begin, asking } = useDrag(props, (event, target, { x, y }, grabbed) => {
    const column = target?.closest<HTMLElement>("[data-day]");
    const day = column?.dataset["day"];
    if (!column || !day) return undefined;
    if (!column.classList.contains("hours")) return moveTo(event, day);
    void x;
    return moveTo(event, day, timeAt(minuteAt(column, y - grabbed)));
  });
  const draw = (click: MouseEvent, day: string) => {
    const column = click.currentTarget as HTMLElement;
    if ((click.target as HTMLElement).closest("button")) return;
    const minute = Math.floor(minuteAt(column, click.clientY) / 30) * 30;
    const end = minute + 60;
    create({ ...emptyFields(day, timeAt(minute), timeAt(end % 1440)), toDay: end >= 1440 ? addDays(day, 1) : day });
  };
  const narrow = { gridTemplateColumns: `3.2rem repeat(${count}, minmax(0, 1fr))` };
  const short = dateFormat({ weekday: "short", day: "numeric", timeZone: "UTC" });
  return (
    <div class="time-grid card">
      <div class="days-head" style={narrow}>
        <span />
        {days.map(([day]) => <button type="button" class={`plain ${day === today ? "is-today" : ""}`} title={longDay(day)} aria-current={day === today ? "date" : undefined} onClick={() => toDay(day)}>{short.format(new Date(`${day}T12:00:00Z`))}</button>)}
      </div>
      <div class="whole-days" style={narrow}>
        <span class="quiet">{t("allDay")}</span>
        {days.map(([day, all]) => (
          <div data-day={day} role="group" aria-label={`${t("allDay")}, ${longDay(day)}`}>{all.filter(isWhole).map((event) => (
            <button type="button" key={event.href + event.recurrence} class={`plain chip ${event.isCancelled ? "cancelled" : ""}`} style={{ borderInlineStartColor: colors.get(event.calendar) }} onPointerDown={(down) => begin(down, event)} onClick={() => choose(event)}><span dir="auto">{event.subject || t("noSubject")}</span><Unseen event={event} /></button>
          ))}</div>
        ))}
      </div>
      <div class="hours-body" ref={body} tabIndex={0} role="group" aria-label={t("hours")}>
        <div class="hours-grid" style={{ ...narrow, height: `${24 * HOUR_PIXELS}px` }}>
          <div class="hour-names" aria-hidden="true">{HOURS.map((hour) => <span class="quiet" style={{ insetBlockStart: `${hour * HOUR_PIXELS}px` }}>{hour > 0 && timeAt(hour * 60)}</span>)}</div>
          {days.map(([day, all]) => (
            <div class="hours" data-day={day} role="group" aria-label={t("eventsOf", { day: longDay(day) })} onClick={(click) => draw(click, day)}>
              <Column day={day} events={all.filter((event) => !isWhole(event))} colors={colors} choose={choose} begin={begin} />
              {day === today && <Now day={day} />}
            </div>
          ))}
        </div>
      </div>
      {asking}
    </div>
  );
}

function Column({ day, events, colors, choose, begin }: { day: string; events: Occurrence[]; colors: Map<string, string>; choose: (event: Occurrence) => void; begin: (down: PointerEvent, event: Occurrence) => void }) {
  const zone = ownZone();
  const [start, end] = [instantOf(day, zone), instantOf(addDays(day, 1), zone)];
  const length = end - start;
  return (
    <>{columnsOf(events).map(({ item, column, columns }) => {
      const [top, bottom] = [Math.max(item.start, start), Math.min(Math.max(item.end, item.start + LEAST_MS), end)];
      const style = {
        insetBlockStart: `${((top - start) / length) * 100}%`, blockSize: `${((bottom - top) / length) * 100}%`,
        insetInlineStart: `${(column / columns) * 100}%`, inlineSize: `calc(${100 / columns}% - 2px)`, borderInlineStartColor: colors.get(item.calendar),
      };
      return (
        <button type="button" key={item.href + item.recurrence} class={`plain chip timed ${item.isCancelled ? "cancelled" : ""} ${item.isFree ? "free" : ""}`} style={style} onPointerDown={(down) => begin(down, item)} onClick={() => choose(item)}>
          <strong dir="auto">{item.subject || t("noSubject")}</strong> <span class="quiet">{clock(item.start)}{item.location && ` · ${item.location}`}</span><Unseen event={item} />
        </button>
      );
    })}</>
  );
}

function Now({ day }: { day: string }) {
  const start = instantOf(day, ownZone());
  return <span class="now" aria-hidden="true" style={{ insetBlockStart: `${((Date.now() - start) / DAY_MS) * 100}%` }} />;
}
