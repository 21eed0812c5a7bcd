// The form of an event: a new one, one of a series, or all of it.

import { useEffect, useId, useState } from "preact/hooks";
import { useResource } from "../shared/data.ts";
import { Dialog, Field, Form, Loaded } from "../shared/ui.tsx";
import type { Chosen } from "./calendar.tsx";
import { t } from "./calendar_texts.ts";
import { parse } from "./content.ts";
import { read, readMailAddresses, type Collection } from "./dav.ts";
import { fieldsOf, ruleOf, SCOPES, simpleRule, spanIn, type Fields, type Occurrence, type Scope } from "./event.ts";
import { add, change } from "./events.ts";
import { Invite } from "./invite.tsx";
import { addDays, daysBetween } from "./zone.ts";

type Props = { calendars: Collection[]; close: () => void; chosen?: Chosen; fields?: Fields };

export function EventForm({ calendars, close, chosen, fields }: Props) {
  const title = t(chosen ? "event" : "newEvent");
  const source = useResource(`form ${chosen?.occurrence.href ?? ""}`, async () => {
    if (!chosen) return fields!;
    const calendar = parse((await read(chosen.occurrence.href)).data);
    const found = calendar && fieldsOf(calendar, chosen.occurrence);
    if (!found) throw new Error(t("goneAway"));
    return found;
  });
  // Without an address of one's own nobody can be invited; all else goes on.
  const own = useResource("own mail addresses", readMailAddresses);
  return (
    <Dialog title={title} close={close}>
      <Loaded of={source}>{(first) => <Loaded of={own}>{(addresses) => <Filled first={first} calendars={calendars} close={close} occurrence={chosen?.occurrence} addresses={addresses} />}</Loaded>}</Loaded>
    </Dialog>
  );
}

const ZONES = (): string[] => (Intl as { supportedValuesOf?: (key: "timeZone") => string[] }).supportedValuesOf?.("timeZone") ?? [];
const ALARMS = ["", "0", "5", "10", "15", "30", "60", "120", "1440"];
/** What of a series is meant, in words. */
export const SCOPE_WORDS = { one: "scopeOne", following: "scopeFollowing", all: "scopeAll" } as const;
const FREQUENCIES = { DAILY: "daily", WEEKLY: "weekly", MONTHLY: "monthly", YEARLY: "yearly" } as const;

type FilledProps = { first: Fields; calendars: Collection[]; close: () => void; occurrence: Occurrence | undefined; addresses: string[] };

function Filled({ first, calendars, close, occurrence, addresses }: FilledProps) {
  const writable = calendars.filter(({ isWritable }) => isWritable);
  const [fields, setFields] = useState(first);
  const [scope, setScope] = useState<Scope>("one");
  // The dialog was there before its form.
  useEffect(() => document.querySelector<HTMLElement>("dialog[open] [data-first]")?.focus(), []);
  const [where, setWhere] = useState(occurrence?.calendar ?? writable[0]?.href ?? "");
  const id = useId();
  const isOne = Boolean(occurrence?.recurrence) && scope === "one";
  const isOthers = first.caller !== "" && !addresses.includes(first.caller.toLowerCase());
  const own = addresses[0] ?? "";
  const set = (more: Partial<Fields>) => setFields({ ...fields, ...more });
  const setFrom = (fromDay: string) => {
    const days = daysBetween(fields.fromDay, fields.toDay);
    set({ fromDay, ...(fromDay && days >= 0 ? { toDay: addDays(fromDay, days) } : {}) });
  };
  const send = async () => {
    const target = writable.find(({ href }) => href === where);
    if (!target) throw new Error(t("noCalendar"));
    if (!spanIn(fields)) throw new Error(t("wrongSpan"));
    if (occurrence) await change(occurrence, fields, occurrence.recurrence ? scope : "all", t("saved"), isOne ? undefined : target);
    else await add(target, fields);
    close();
  };
  const check = (name: "isDay" | "isFree" | "isPrivate", label: string) => (
    <label class="check"><input type="checkbox" checked={fields[name]} onChange={(event) => set({ [name]: event.currentTarget.checked })} />{label}</label>
  );
  const zones = [...new Set([fields.zone, ...ZONES()])];
  return (
    <Form label={t("save")} send={send}>
      {occurrence?.recurrence && (
        <fieldset class="field"><legend>{t("scope")}</legend>
          {SCOPES.filter((one) => one !== "following" || !isOthers).map((one) => <label class="check"><input type="radio" name={`${id}-scope`} checked={scope === one} onChange={() => setScope(one)} />{t(SCOPE_WORDS[one])}</label>)}
        </fieldset>
      )}
      <Field label={t("subject")} first maxLength={1000} dir="auto" value={fields.subject} onInput={(event) => set({ subject: event.currentTarget.value })} />
      <div class="field">{check("isDay", t("allDay"))}</div>
      <div class="pair">
        <Field label={t("startDay")} type="date" required value={fields.fromDay} onChange={(event) => setFrom(event.currentTarget.value)} />
        {!fields.isDay && <Field label={t("startTime")} type="time" required value={fields.fromTime} onChange={(event) => set({ fromTime: event.currentTarget.value })} />}
      </div>
      <div class="pair">
        <Field label={t("endDay")} type="date" required value={fields.toDay} onChange={(event) => set({ toDay: event.currentTarget.value })} />
        {!fields.isDay && <Field label={t("endTime")} type="time" required value={fields.toTime} onChange={(event) => set({ toTime: event.currentTarget.value })} />}
      </div>
      {!fields.isDay && (
        <div class="field"><label for={`${id}-zone`}>{t("zone")}</label>
          <select id={`${id}-zone`} value={fields.zone} onChange={(event) => set({ zone: event.currentTarget.value })}>{zones.map((zone) => <option value={zone}>{zone.replace(/_/g, " ")}</option>)}</select></div>
      )}
      <Field label={t("location")} maxLength={1000} dir="auto" value={fields.location} onInput={(event) => set({ location: event.currentTarget.value })} />
      {isOthers
        ? fields.invited.length > 0 && <p class="quiet" dir="auto">{t("invited")}: {fields.invited.map(({ name }) => name).join(", ")}</p>
        : own ? <Invite fields={fields} set={set} own={own} before={occurrence && { start: occurrence.start, end: occurrence.end }} /> : <p class="quiet">{t("noOwnAddress")}</p>}
      {!isOne && <Repeats fields={fields} set={(rule) => set({ rule })} />}
      <div class="pair">
        <div class="field"><label for={`${id}-alarm`}>{t("reminder")}</label>
          <select id={`${id}-alarm`} value={fields.alarm} onChange={(event) => set({ alarm: event.currentTarget.value })}>
            {[...new Set([...ALARMS, fields.alarm])].map((minutes) => <option value={minutes}>{minutes === "" ? t("reminderNone") : t("minutesBefore", { n: Number(minutes) })}</option>)}
          </select></div>
        {!isOne && (
          <div class="field"><label for={`${id}-calendar`}>{t("calendar")}</label>
            <select id={`${id}-calendar`} value={where} onChange={(event) => setWhere(event.currentTarget.value)}>{writable.map(({ href, name }) => <option value={href}>{name}</option>)}</select></div>
        )}
      </div>
      <div class="buttons">{check("isFree", t("isFree"))}{check("isPrivate", t("isPrivate"))}</div>
      <div class="field"><label for={`${id}-body`}>{t("notes")}</label>
        <textarea id={`${id}-body`} class="notes" dir="auto" rows={3} maxLength={100_000} value={fields.body} onInput={(event) => set({ body: event.currentTarget.value })} /></div>
    </Form>
  );
}

function Repeats({ fields, set }: { fields: Fields; set: (rule: string) => void }) {
  const id = useId();
  const simple = simpleRule(fields.rule);
  if (fields.rule && !simple) return <p class="quiet">{t("ruleKept", { rule: fields.rule })} <button type="button" onClick={() => set("")}>{t("never")}</button></p>;
  const { frequency, interval, until } = simple ?? { frequency: "", interval: "1", until: "" };
  const change = (more: { frequency?: string; interval?: string; until?: string }) => set(ruleOf({ frequency, interval, until, ...more }, fields));
  return (
    <div class="pair">
      <div class="field"><label for={`${id}-frequency`}>{t("repeats")}</label>
        <select id={`${id}-frequency`} value={frequency} onChange={(event) => change({ frequency: event.currentTarget.value })}>
          <option value="">{t("never")}</option>
          {Object.entries(FREQUENCIES).map(([value, name]) => <option value={value}>{t(name)}</option>)}
        </select></div>
      {frequency && <Field label={t("every")} type="number" min={1} max={999} value={interval} onChange={(event) => change({ interval: event.currentTarget.value })} />}
      {frequency && <Field label={t("until")} type="date" value={until} onChange={(event) => change({ until: event.currentTarget.value })} />}
    </div>
  );
}
