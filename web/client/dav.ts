// Calendars and address books, by CalDAV and CardDAV. What takes place when is the server's to say.

import { ApiError, addressOf, askText, pathOf, person } from "../shared/api.ts";
import type { Occurrence } from "./event.ts";
import { busyIn, occurrencesOf } from "./event.ts";
import { addressIn } from "./meeting.ts";
import { todoOf, type Todo } from "./todo.ts";

/** A calendar or an address book. */
export type Collection = { href: string; name: string; color: string; isWritable: boolean; kinds: string[] };
/** A resource as it is stored, with the tag that it has then. */
export type Resource = { href: string; tag: string; data: string };

const DAV = "DAV:";
const CALDAV = "urn:ietf:params:xml:ns:caldav";
const CARDDAV = "urn:ietf:params:xml:ns:carddav";
const APPLE = "http://apple.com/ns/ical/";
const SPACES = `xmlns="${DAV}" xmlns:c="${CALDAV}" xmlns:d="${CARDDAV}" xmlns:a="${APPLE}"`;

/** Lines of an event that a calendar shows. */
const SHOWN = ["UID", "SUMMARY", "LOCATION", "DESCRIPTION", "ORGANIZER", "DTSTART", "DTEND", "DURATION", "RECURRENCE-ID", "STATUS", "TRANSP", "CLASS"];
const BASIC = /[-:]|\.\d+/g;
const utc = (ms: number) => new Date(ms).toISOString().replace(BASIC, "");

/** The part of a person's home that collections lie in. */
const homeOf = (area: "calendars" | "contacts") => `_dav/${area}/${pathOf(person.value?.name ?? "")}/`;
/** The server names its resources by whole paths; requests are made below the place that this page came from. */
const below = (href: string) => href.replace(/^\//, "");

/** One answer for a resource of a multistatus. */
type Told = { href: string; properties: Element[] };

/** Asks by XML, and gives what is said of each resource. The browser's own reader of answers makes a document of it, in which nothing runs. */
async function told(method: string, href: string, body: string, depth: string): Promise<Told[]> {
  const { answer, text } = await askText(method, below(href), body, { "Content-Type": "application/xml; charset=utf-8", Depth: depth }, true);
  if (!answer) throw new ApiError(0, "no_xml", text.slice(0, 300), `${method} /${below(href)}`, "");
  return [...answer.getElementsByTagNameNS(DAV, "response")].map((response) => {
    const sound = [...response.getElementsByTagNameNS(DAV, "propstat")].filter((part) => / 200 /.test(`${part.getElementsByTagNameNS(DAV, "status")[0]?.textContent ?? ""} `));
    const properties = sound.flatMap((part) => [...(part.getElementsByTagNameNS(DAV, "prop")[0]?.children ?? [])]);
    return { href: response.getElementsByTagNameNS(DAV, "href")[0]?.textContent ?? "", properties };
  });
}

const property = ({ properties }: Told, space: string, name: string) => properties.find((one) => one.namespaceURI === space && one.localName === name);
const textOf = (one: Told, space: string, name: string) => property(one, space, name)?.textContent?.trim() ?? "";

/** Colours of calendars that have none: dark enough for white text. */
const COLORS = ["#2757c9", "#1b7a43", "#a3335c", "#8a5600", "#6a3fb5", "#0f6f7c"];

async function collections(area: "calendars" | "contacts", kind: string, space: string): Promise<Collection[]> {
  const names = `<resourcetype/><displayname/><current-user-privilege-set/><c:supported-calendar-component-set/><a:calendar-color/>`;
  const all = await told("PROPFIND", homeOf(area), `<propfind ${SPACES}><prop>${names}</prop></propfind>`, "1");
  return all.filter((one) => property(one, DAV, "resourcetype")?.getElementsByTagNameNS(space, kind).length).map((one, number) => ({
    href: one.href,
    name: textOf(one, DAV, "displayname") || decodeURIComponent(one.href.split("/").filter(Boolean).at(-1) ?? ""),
    color: /^#[0-9a-f]{6}/i.exec(textOf(one, APPLE, "calendar-color"))?.[0] ?? COLORS[number % COLORS.length]!,
    isWritable: (property(one, DAV, "current-user-privilege-set")?.getElementsByTagNameNS(DAV, "write-content").length ?? 0) > 0 || (property(one, DAV, "current-user-privilege-set")?.getElementsByTagNameNS(DAV, "write").length ?? 0) > 0,
    kinds: [...(property(one, CALDAV, "supported-calendar-component-set")?.getElementsByTagNameNS(CALDAV, "comp") ?? [])].map((part) => part.getAttribute("name") ?? ""),
  }));
}

/** The person's calendars; those that are for tasks alone are left out. */
export async function readCalendars(): Promise<Collection[]> {
  return (await collections("calendars", "calendar", CALDAV)).filter(({ kinds }) => kinds.length === 0 || kinds.includes("VEVENT"));
}

/** The person's calendars that take to-dos. */
export async function readTaskLists(): Promise<Collection[]> {
  return (await collections("calendars", "calendar", CALDAV)).filter(({ kinds }) => kinds.includes("VTODO"));
}

/** The to-dos of a calendar: those that are open, or all. */
export async function readTodos(list: Collection, withDone: boolean): Promise<Todo[]> {
  const open = withDone ? "" : `<c:prop-filter name="COMPLETED"><c:is-not-defined/></c:prop-filter>`;
  const filter = `<c:filter><c:comp-filter name="VCALENDAR"><c:comp-filter name="VTODO">${open}</c:comp-filter></c:comp-filter></c:filter>`;
  const all = await told("REPORT", list.href, `<c:calendar-query ${SPACES}><prop><c:calendar-data/></prop>${filter}</c:calendar-query>`, "1");
  const found = all.flatMap((one) => todoOf(textOf(one, CALDAV, "calendar-data"), one.href, list.href) ?? []);
  return withDone ? found : found.filter(({ isDone }) => !isDone);
}

export const readBooks = (): Promise<Collection[]> => collections("contacts", "addressbook", CARDDAV);

/** What takes place in a calendar, series taken apart by the server. */
export async function readOccurrences(calendar: Collection, from: number, to: number): Promise<Occurrence[]> {
  const [start, end] = [utc(from), utc(to)];
  const lines = SHOWN.map((name) => `<c:prop name="${name}"/>`).join("");
  const data = `<c:calendar-data><c:comp name="VCALENDAR"><c:comp name="VEVENT">${lines}</c:comp></c:comp><c:expand start="${start}" end="${end}"/></c:calendar-data>`;
  const filter = `<c:filter><c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT"><c:time-range start="${start}" end="${end}"/></c:comp-filter></c:comp-filter></c:filter>`;
  const all = await told("REPORT", calendar.href, `<c:calendar-query ${SPACES}><prop>${data}</prop>${filter}</c:calendar-query>`, "1");
  return all.flatMap((one) => occurrencesOf(textOf(one, CALDAV, "calendar-data"), one.href, calendar.href));
}

/** When an instance may take place that is counted. */
const ALL_TIMES = `start="19000101T000000Z" end="22000101T000000Z"`;

/** All of a series that ends; `undefined` where that is more than the server writes out. */
export async function readInstances(href: string): Promise<Occurrence[] | undefined> {
  const filter = `<c:filter><c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT"/></c:comp-filter></c:filter>`;
  const all = await told("REPORT", href, `<c:calendar-query ${SPACES}><prop><c:calendar-data><c:expand ${ALL_TIMES}/></c:calendar-data></prop>${filter}</c:calendar-query>`, "0");
  const data = all[0] && textOf(all[0], CALDAV, "calendar-data");
  return data ? occurrencesOf(data, href, "") : undefined;
}

const escaped = (text: string) => text.replace(/[<>&"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

/** The resource of a person's calendars that has a UID, if one has. */
export async function findByUid(uid: string): Promise<Resource | undefined> {
  const filter = `<c:filter><c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT"><c:prop-filter name="UID"><c:text-match collation="i;octet">${escaped(uid)}</c:text-match></c:prop-filter></c:comp-filter></c:comp-filter></c:filter>`;
  for (const calendar of await readCalendars()) {
    const all = await told("REPORT", calendar.href, `<c:calendar-query ${SPACES}><prop><getetag/><c:calendar-data/></prop>${filter}</c:calendar-query>`, "1");
    const found = all.find((one) => property(one, CALDAV, "calendar-data"));
    if (found) return { href: found.href, tag: textOf(found, DAV, "getetag"), data: textOf(found, CALDAV, "calendar-data") };
  }
  return undefined;
}

/** The addresses under which a person is invited, in lower case. */
export async function readOwnAddresses(): Promise<string[]> {
  const principal = `_dav/principals/${pathOf(person.value?.name ?? "")}/`;
  const all = await told("PROPFIND", principal, `<propfind ${SPACES}><prop><c:calendar-user-address-set/></prop></propfind>`, "0");
  const set = all[0] && property(all[0], CALDAV, "calendar-user-address-set");
  return [...(set?.getElementsByTagNameNS(DAV, "href") ?? [])].map((one) => (one.textContent ?? "").trim().toLowerCase());
}

/** The person's mail addresses, in small letters; from the first one they invite. None where that cannot be found out. */
export async function readMailAddresses(): Promise<string[]> {
  const all = await readOwnAddresses().catch(() => []);
  return all.filter((one) => one.startsWith("mailto:")).map(addressIn);
}

/** All cards of an address book. */
export async function readCards(book: Collection): Promise<Resource[]> {
  const all = await told("REPORT", book.href, `<d:addressbook-query ${SPACES}><prop><getetag/><d:address-data/></prop><d:filter/></d:addressbook-query>`, "1");
  return all.filter((one) => property(one, CARDDAV, "address-data")).map((one) => ({ href: one.href, tag: textOf(one, DAV, "getetag"), data: textOf(one, CARDDAV, "address-data") }));
}

/** A time that somebody has no time. */
export type Busy = { start: number; end: number; isTentative: boolean };

/**
 * When people have no time, by their addresses in small letters; `undefined` for those who do not say. Asked in the person's outbox
 * (RFC 6638, section 5).
 */
export async function readBusy(own: string, addresses: string[], from: number, to: number): Promise<Map<string, Busy[] | undefined>> {
  const attendees = addresses.map((address) => `ATTENDEE:mailto:${address.replace(/[\r\n]/g, "")}\r\n`).join("");
  const question = `BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Scrinium//Client//EN\r\nMETHOD:REQUEST\r\nBEGIN:VFREEBUSY\r\nUID:${crypto.randomUUID()}\r\nDTSTAMP:${utc(Date.now())}\r\nDTSTART:${utc(from)}\r\nDTEND:${utc(to)}\r\nORGANIZER:mailto:${own}\r\n${attendees}END:VFREEBUSY\r\nEND:VCALENDAR\r\n`;
  const { answer } = await askText("POST", `${homeOf("calendars")}outbox/`, question, { "Content-Type": "text/calendar; charset=utf-8" }, true);
  const found = new Map<string, Busy[] | undefined>();
  for (const response of answer?.getElementsByTagNameNS(CALDAV, "response") ?? []) {
    const inside = (name: string) => response.getElementsByTagNameNS(CALDAV, name)[0]?.textContent?.trim() ?? "";
    const data = inside("calendar-data");
    found.set(addressIn(inside("recipient")).toLowerCase(), data && /^2\./.test(inside("request-status")) ? busyIn(data) : undefined);
  }
  return found;
}

/** Makes a calendar of one's own. */
export async function makeCalendar(name: string, color: string): Promise<void> {
  const path = `${homeOf("calendars")}${pathOf(crypto.randomUUID())}/`;
  await askText("MKCALENDAR", path, `<c:mkcalendar ${SPACES}><set><prop><displayname>${escaped(name)}</displayname><a:calendar-color>${color}</a:calendar-color></prop></set></c:mkcalendar>`, { "Content-Type": "application/xml; charset=utf-8" });
}

export async function read(href: string): Promise<Resource> {
  const { text, tag } = await askText("GET", below(href));
  return { href, tag, data: text };
}

/** Stores a resource: a new one where no tag is given, else only what still is as it was read. Gives its tag. */
export async function put(href: string, data: string, tag: string | undefined): Promise<string> {
  const type = /\.vcf$/.test(href) ? "text/vcard" : "text/calendar";
  const stored = await askText("PUT", below(href), data, { "Content-Type": `${type}; charset=utf-8`, ...(tag ? { "If-Match": tag } : { "If-None-Match": "*" }) });
  // What the server has changed on its way has no tag in the answer (RFC 4791, section 5.3.4).
  return stored.tag || (await read(href)).tag;
}

export async function remove(href: string, tag: string): Promise<void> {
  await askText("DELETE", below(href), undefined, tag ? { "If-Match": tag } : {});
}

/** Moves a resource into another calendar, under the name that it has. */
export async function move(href: string, to: Collection): Promise<string> {
  const target = `${to.href}${href.split("/").at(-1)}`;
  await askText("MOVE", below(href), undefined, { Destination: new URL(addressOf(below(target))).href, Overwrite: "F" });
  return target;
}

/** Whether somebody else has changed or taken away what was to be stored. */
export const isOutdated = (error: unknown): boolean => error instanceof ApiError && (error.status === 412 || error.status === 404 || error.status === 409);
