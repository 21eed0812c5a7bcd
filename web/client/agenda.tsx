// The agenda: what comes, day by day.

import { dateFormat } from "../shared/i18n.ts";
import { Empty } from "../shared/ui.tsx";
import { t } from "./calendar_texts.ts";
import type { Occurrence } from "./event.ts";
import { lastDayOf } from "./layout.ts";
import { addDays, civilAt, ownZone } from "./zone.ts";

export type ViewProps = {
  events: Occurrence[]; from: string; count: number; day: string; colors: Map<string, string>;
  choose: (occurrence: Occurrence) => void; create: (fields?: import("./event.ts").Fields) => void; toDay: (day: string) => void;
  /** The same view around another day. */
  toPlace: (day: string) => void; canWrite: (calendar: string) => boolean;
};

/** Events by the days that they touch, of those that are shown. */
export function byDay(events: Occurrence[], from: string, count: number): Map<string, Occurrence[]> {
  const days = new Map<string, Occurrence[]>(Array.from({ length: count }, (_, index) => [addDays(from, index), []]));
  const end = addDays(from, count);
  for (const event of events) {
    const last = lastDayOf(event, (day) => addDays(day, -1));
    for (let day = event.from.slice(0, 10) < from ? from : event.from.slice(0, 10); day <= last && day < end; day = addDays(day, 1)) days.get(day)?.push(event);
  }
  return days;
}

/** A time of the day as people write it. */
export const clock = (ms: number): string => dateFormat({ hour: "2-digit", minute: "2-digit" }).format(ms);

/** What a reader of screens says of an event after what is seen of it. */
export function Unseen({ event, isTimed = true }: { event: Occurrence; isTimed?: boolean }) {
  const marks = [event.isCancelled && t("cancelled"), event.isFree && t("free"), event.isPrivate && t("private")];
  const all = [isTimed && !event.isDay && `${clock(event.start)} – ${clock(event.end)}`, ...marks].filter(Boolean).join(", ");
  return all ? <span class="hidden">, {all}</span> : null;
}

export const longDay = (day: string): string => dateFormat({ weekday: "long", day: "numeric", month: "long", timeZone: "UTC" }).format(new Date(`${day}T12:00:00Z`));

export function Agenda({ events, from, count, colors, choose, toDay }: ViewProps) {
  const days = [...byDay(events, from, count)].filter(([, all]) => all.length > 0);
  const today = civilAt(Date.now(), ownZone()).slice(0, 10);
  if (days.length === 0) return <Empty title={t("noEvents")} />;
  return (
    <div class="agenda card">
      {days.map(([day, all]) => (
        <section key={day}>
          <h2><button type="button" class={`plain ${day === today ? "is-today" : ""}`} onClick={() => toDay(day)}>{longDay(day)}</button></h2>
          <ul>{all.map((event) => (
            <li key={event.href + event.recurrence}>
              <button type="button" class={`plain chip ${event.isCancelled ? "cancelled" : ""}`} style={{ borderInlineStartColor: colors.get(event.calendar) }} onClick={() => choose(event)}>
                <span class="quiet when">{event.isDay ? t("allDay") : `${clock(event.start)} – ${clock(event.end)}`}</span>
                <span dir="auto">{event.subject || t("noSubject")}</span>
                {event.location && <span class="quiet" dir="auto">{event.location}</span>}
                <Unseen event={event} isTimed={false} />
              </button>
            </li>
          ))}</ul>
        </section>
      ))}
    </div>
  );
}
