// To-dos: what is shown of them, and how one is made, changed, done and opened again (RFC 5545, section 3.6.2).

import { copyOf, escapeText, lineOf, parse, setLine, textOf, type Component } from "./content.ts";
import { basic, stamp, timeOf, utcText } from "./event.ts";
import { civilAt, ownZone, type Civil } from "./zone.ts";

export type Todo = {
  href: string; list: string; subject: string; body: string;
  /** The day, or the day and the time by this device's clock, until which it is to be done; empty for none. */
  due: Civil | "";
  isDone: boolean;
  /** 1 is the most urgent, 9 the least; 0 says nothing (section 3.8.1.9). */
  priority: number;
  repeats: boolean;
};

export type TodoFields = Pick<Todo, "subject" | "body"> & { /** A day, or nothing. */ day: string; isUrgent: boolean };

const partOf = (calendar: Component) => calendar.parts.find(({ name }) => name === "VTODO");

/** The to-do in a resource; `undefined` where there is none. */
export function todoOf(source: string, href: string, list: string): Todo | undefined {
  const calendar = parse(source);
  const part = calendar && partOf(calendar);
  if (!part) return undefined;
  const due = timeOf(lineOf(part, "DUE"));
  const status = textOf(part, "STATUS").toUpperCase();
  return {
    href, list, subject: textOf(part, "SUMMARY"), body: textOf(part, "DESCRIPTION"),
    due: !due ? "" : due.isDay ? due.day : civilAt(due.ms, ownZone()),
    isDone: status === "COMPLETED" || status === "CANCELLED" || lineOf(part, "COMPLETED") !== undefined,
    priority: Math.min(9, Math.max(0, Number(lineOf(part, "PRIORITY")?.value) || 0)), repeats: lineOf(part, "RRULE") !== undefined || lineOf(part, "RDATE") !== undefined,
  };
}

/** In the order in which they are to be done: by day, the urgent ones first, those without a day last. */
export function inOrder(all: Todo[]): Todo[] {
  const rank = ({ priority }: Todo) => (priority === 0 ? 5 : priority);
  return [...all].sort((a, b) => (a.due || "9999") .localeCompare(b.due || "9999") || rank(a) - rank(b) || a.subject.localeCompare(b.subject));
}

const URGENT = "1";
export const isUrgent = ({ priority }: Pick<Todo, "priority">): boolean => priority >= 1 && priority <= 4;

function write(part: Component, fields: TodoFields): void {
  const set = (name: string, text: string) => textOf(part, name) !== text && setLine(part, name, text ? escapeText(text) : undefined);
  set("SUMMARY", fields.subject);
  set("DESCRIPTION", fields.body);
  const due = timeOf(lineOf(part, "DUE"));
  const day = !due ? "" : due.isDay ? due.day : civilAt(due.ms, ownZone()).slice(0, 10);
  if (day !== fields.day) setLine(part, "DUE", fields.day ? basic(fields.day) : undefined, [["VALUE", "DATE"]]);
  const before = Number(lineOf(part, "PRIORITY")?.value) || 0;
  if (isUrgent({ priority: before }) !== fields.isUrgent) setLine(part, "PRIORITY", fields.isUrgent ? URGENT : undefined);
}

export function newTodo(fields: TodoFields, uid: string, now: number): Component {
  const part: Component = { name: "VTODO", lines: [], parts: [] };
  setLine(part, "UID", uid);
  setLine(part, "DTSTAMP", utcText(now));
  setLine(part, "CREATED", utcText(now));
  setLine(part, "STATUS", "NEEDS-ACTION");
  write(part, fields);
  return { name: "VCALENDAR", lines: [{ name: "VERSION", parameters: [], value: "2.0" }, { name: "PRODID", parameters: [], value: "-//Scrinium//Client//EN" }], parts: [part] };
}

/** A to-do with other fields, or done, or open again. */
export function changedTodo(source: Component, change: { fields?: TodoFields; isDone?: boolean }, now: number): Component | undefined {
  const calendar = copyOf(source);
  const part = partOf(calendar);
  if (!part) return undefined;
  if (change.fields) write(part, change.fields);
  if (change.isDone !== undefined) {
    setLine(part, "STATUS", change.isDone ? "COMPLETED" : "NEEDS-ACTION");
    setLine(part, "COMPLETED", change.isDone ? utcText(now) : undefined);
    setLine(part, "PERCENT-COMPLETE", change.isDone ? "100" : undefined);
  }
  stamp(part, now);
  return calendar;
}
