// Whom somebody invites to an event: when each of them has time, a room that is free, and the next time for all.

import { useId, useRef, useState } from "preact/hooks";
import { useResource } from "../shared/data.ts";
import { dateFormat } from "../shared/i18n.ts";
import { Field, Loaded } from "../shared/ui.tsx";
import { t } from "./calendar_texts.ts";
import { Combobox } from "./combobox.tsx";
import { readBusy, type Busy } from "./dav.ts";
import { spanIn, type Fields } from "./event.ts";
import { askedSpan, isFreeIn, nextFree, withoutSpan, WORK_FROM, WORK_TO } from "./free.ts";
import type { Invited } from "./meeting.ts";
import { findRooms, suggestions, type Room, type Suggestion } from "./people.ts";
import { addDays, civilAt, instantOf, ownZone } from "./zone.ts";

type Span = { start: number; end: number };
type Props = {
  fields: Fields; set: (more: Partial<Fields>) => void;
  /** The address from which the person invites. */
  own: string;
  /** When the event takes place as it is stored: for itself that is free. */
  before: Span | undefined;
};

/** More nobody looks at in a form; the server takes more. */
const INVITED_MAX = 100;
/** Rooms are found for any number of people up to this. */
const SEATS_MAX = 100_000;
const KINDS = { person: "INDIVIDUAL", group: "GROUP", room: "ROOM", resource: "RESOURCE" } as const;
const STATUSES = { ACCEPTED: "accepted", DECLINED: "declined", TENTATIVE: "tentative" } as const;

function spanOf(fields: Fields): Span | undefined {
  const span = spanIn(fields);
  if (!span) return undefined;
  const start = span.start.isDay ? instantOf(span.start.day, ownZone()) : span.start.ms;
  return { start, end: start + span.lengthMs };
}

/** Another start, as long as before. */
function movedTo(fields: Fields, start: number, lengthMs: number): Partial<Fields> {
  const [from, to] = [civilAt(start, fields.zone), civilAt(start + lengthMs, fields.zone)];
  return { fromDay: from.slice(0, 10), fromTime: from.slice(11, 16), toDay: to.slice(0, 10), toTime: to.slice(11, 16) };
}

export function Invite({ fields, set, own, before }: Props) {
  const [typed, setTyped] = useState("");
  const [note, setNote] = useState("");
  const id = useId();
  const { invited } = fields;
  const span = spanOf(fields);
  const [from, to] = askedSpan(instantOf(fields.fromDay || civilAt(Date.now(), ownZone()).slice(0, 10), ownZone()));
  const addresses = [own, ...invited.map(({ address }) => address.toLowerCase())];
  const busy = useResource(`busy ${from} ${addresses.join(" ")}`, async () => (invited.length > 0 && Number.isFinite(from) ? readBusy(own, addresses, from, to) : new Map<string, Busy[] | undefined>()));
  const busyOf = (address: string): Busy[] | undefined => {
    const all = busy.data.value?.get(address.toLowerCase());
    return all && withoutSpan(all, before);
  };
  const add = (one: Invited) => {
    setTyped("");
    if (invited.length >= INVITED_MAX || addresses.includes(one.address.toLowerCase())) return;
    set({ invited: [...invited, one], caller: fields.caller || own, ...(one.kind === "ROOM" && !fields.location ? { location: one.name } : {}) });
  };
  const take = ({ address, name, kind }: Suggestion) => add({ address, name, kind: KINDS[kind], status: "NEEDS-ACTION" });
  const enter = (value: string) => {
    const address = value.trim();
    if (!/^[^\s@,;<>"]+@[^\s@,;<>"]+$/.test(address)) return false;
    add({ address, name: address, kind: "INDIVIDUAL", status: "NEEDS-ACTION" });
    return true;
  };
  const leave = (address: string) => set({ invited: invited.filter((one) => one.address !== address) });
  const next = () => {
    const known = addresses.flatMap((address) => [busyOf(address) ?? []]);
    const found = span && nextFree(known, span.end - span.start, Math.max(span.start + 1, Date.now()), ownZone());
    setNote(found === undefined ? t("noCommonTime") : "");
    if (found !== undefined && span) set(movedTo(fields, found, span.end - span.start));
  };
  const whoMay = (value: string) => suggestions(value).then((all) => all.filter(({ address, kind }) => address && kind !== "group"));
  return (
    <fieldset class="field invite"><legend>{t("invited")}</legend>
      <Combobox id={id} label={t("invite")} hint={t("inviteHint")} class="invite-line" value={typed} set={setTyped} ask={whoMay} take={take} enter={enter} />
      {invited.length > 0 && (
        <>
          {busy.error.value !== undefined && <p class="note warn">{t("busyUnknown")}</p>}
          <ul class="invited" aria-busy={busy.loading.value}>
            <Row name={t("you")} busy={busyOf(own)} fields={fields} span={span} />
            {invited.map((one) => <Row key={one.address} name={one.name} address={one.address} status={one.status} busy={busyOf(one.address)} fields={fields} span={span} leave={() => leave(one.address)} />)}
          </ul>
          {!fields.isDay && <div class="buttons"><button type="button" onClick={next}>{t("nextFree")}</button>{note && <span class="quiet" role="status">{note}</span>}</div>}
          {fields.rule && <p class="quiet">{t("busyOfFirst")}</p>}
        </>
      )}
      <Rooms own={own} span={span} before={before} people={1 + invited.filter(({ kind }) => kind === "INDIVIDUAL").length} taken={addresses} add={add} />
    </fieldset>
  );
}

/** From when to when a row shows: the hours of work, and those of the event. */
function shownSpan(fields: Fields): Span | undefined {
  const zone = ownZone();
  const span = spanOf(fields);
  if (!span) return undefined;
  const [from, to] = [civilAt(span.start, zone), civilAt(span.end - 1, zone)];
  if (fields.isDay) return span;
  const hour = (day: string, at: number) => (at >= 24 ? instantOf(addDays(day, 1), zone) : instantOf(`${day}T${String(at).padStart(2, "0")}:00:00`, zone));
  return {
    start: hour(from.slice(0, 10), Math.max(0, Math.min(WORK_FROM - 1, Number(from.slice(11, 13)) - 1))),
    end: hour(to.slice(0, 10), Math.min(24, Math.max(WORK_TO + 2, Number(to.slice(11, 13)) + 2))),
  };
}

function Row({ name, address, status, busy, fields, span, leave }: { name: string; address?: string; status?: string; busy: Busy[] | undefined; fields: Fields; span: Span | undefined; leave?: () => void }) {
  const shown = shownSpan(fields);
  const word = status && status in STATUSES ? t(STATUSES[status as keyof typeof STATUSES]) : "";
  return (
    <li>
      <span class="who" title={address}><span dir="auto">{name}</span> {word && <span class="pill">{word}</span>}</span>
      {span && <State busy={busy} span={span} />}
      {leave && <button type="button" class="plain" aria-label={t("uninvite", { name })} onClick={leave}>✕</button>}
      {shown && span && <Bar name={name} busy={busy} shown={shown} span={span} />}
    </li>
  );
}

/** Whether somebody has time at the time of the event. */
function State({ busy, span }: { busy: Busy[] | undefined; span: Span }) {
  if (!busy) return <span class="pill">{t("notSaid")}</span>;
  return isFreeIn(busy, span.start, span.end) ? <span class="pill good">{t("free")}</span> : <span class="pill bad">{t("busy")}</span>;
}

function Bar({ name, busy, shown, span }: { name: string; busy: Busy[] | undefined; shown: Span; span: Span }) {
  const length = shown.end - shown.start;
  const place = ({ start, end }: Span) => ({ insetInlineStart: `${(Math.max(0, start - shown.start) / length) * 100}%`, inlineSize: `${((Math.min(end, shown.end) - Math.max(start, shown.start)) / length) * 100}%` });
  const within = (busy ?? []).filter(({ start, end }) => start < shown.end && end > shown.start);
  const time = dateFormat({ hour: "2-digit", minute: "2-digit" });
  const times = within.map(({ start, end }) => time.formatRange(start, end)).join(", ");
  const words = !busy ? t("notSaidOf", { name }) : times ? t("busyAt", { name, times }) : t("freeAt", { name });
  return (
    <span class={`busy-bar ${busy ? "" : "unknown"}`} role="img" aria-label={words} title={words}>
      {within.map((one) => <span class={one.isTentative ? "tentative" : ""} style={place(one)} />)}
      <span class="meant" style={place(span)} />
    </span>
  );
}

type RoomsProps = {
  own: string; span: Span | undefined; before: Span | undefined;
  /** Who comes, with who calls. */
  people: number;
  /** Addresses of those who are invited already. */
  taken: string[]; add: (one: Invited) => void;
};

function Rooms(props: RoomsProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details class="rooms" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{t("chooseRoom")}</summary>
      {isOpen && <RoomList {...props} />}
    </details>
  );
}

function RoomList({ own, span, before, people, taken, add }: RoomsProps) {
  const [site, setSite] = useState("");
  const [seats, setSeats] = useState(people);
  const sites = useRef<string[]>([]);
  const id = useId();
  const found = useResource(`rooms ${site} ${seats} ${span?.start} ${span?.end}`, async () => {
    const { people: rooms, sites: all } = await findRooms(site, seats);
    sites.current = all;
    const asked = rooms.flatMap(({ address }) => (address ? [address] : []));
    const busy = span && asked.length > 0 ? await readBusy(own, asked, span.start, span.end) : new Map<string, Busy[] | undefined>();
    return { rooms, busy };
  });
  return (
    <>
      <div class="pair">
        <div class="field"><label for={`${id}-site`}>{t("site")}</label>
          <select id={`${id}-site`} value={site} onChange={(event) => setSite(event.currentTarget.value)}><option value="">{t("anySite")}</option>{sites.current.map((one) => <option value={one}>{one}</option>)}</select></div>
        <Field label={t("seats")} type="number" min={0} max={SEATS_MAX} value={seats} onChange={(event) => setSeats(Math.max(0, Math.min(SEATS_MAX, Math.floor(Number(event.currentTarget.value)) || 0)))} />
      </div>
      <Loaded of={found}>{({ rooms, busy }) => (rooms.length === 0 ? <p class="quiet">{t("noRooms")}</p> : (
        <ul class="invited">{rooms.map((room) => <RoomRow key={room.short_name} room={room} busy={busy.get(room.address?.toLowerCase() ?? "")} span={span} before={before} isTaken={taken.includes(room.address?.toLowerCase() ?? "")} add={add} />)}</ul>
      ))}</Loaded>
    </>
  );
}

function RoomRow({ room, busy, span, before, isTaken, add }: { room: Room; busy: Busy[] | undefined; span: Span | undefined; before: Span | undefined; isTaken: boolean; add: (one: Invited) => void }) {
  const { name, address, kind, site, capacity } = room;
  const details = [site, capacity !== null && t("seatsOf", { n: capacity })].filter(Boolean).join(" · ");
  const book = () => address && add({ address, name, kind: KINDS[kind], status: "NEEDS-ACTION" });
  return (
    <li>
      <span class="who"><span dir="auto">{name}</span> <span class="quiet" dir="auto">{details}</span></span>
      {span && <State busy={busy && withoutSpan(busy, isTaken ? before : undefined)} span={span} />}
      <button type="button" disabled={isTaken || !address} aria-label={t("bookRoom", { name })} onClick={book}>{t("book")}</button>
    </li>
  );
}
