// Who is invited to an event, in its lines (RFC 5545, section 3.8.4). The server sends what each of them is to know.

import { lineOf, parameterOf, setLine, type Component, type Line } from "./content.ts";

export const KINDS = ["INDIVIDUAL", "GROUP", "ROOM", "RESOURCE"] as const;

export type Invited = {
  address: string;
  name: string;
  kind: (typeof KINDS)[number];
  /** What they have answered: `ACCEPTED`, `NEEDS-ACTION` and others. */
  status: string;
};

/** The address in a value such as `mailto:ada@acme.example`. */
export const addressIn = (value: string): string => value.trim().replace(/^mailto:/i, "");

const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/** Who calls; empty where nobody is invited. */
export const callerOf = (component: Component): string => addressIn(lineOf(component, "ORGANIZER")?.value ?? "");

/** Who is invited, but for who calls. */
export function invitedTo(component: Component): Invited[] {
  const caller = callerOf(component);
  return component.lines.filter(({ name }) => name === "ATTENDEE").map((line): Invited => {
    const kind = parameterOf(line, "CUTYPE").toUpperCase();
    const address = addressIn(line.value);
    return { address, name: parameterOf(line, "CN") || address, kind: KINDS.find((one) => one === kind) ?? "INDIVIDUAL", status: parameterOf(line, "PARTSTAT").toUpperCase() || "NEEDS-ACTION" };
  }).filter(({ address }) => !isSame(address, caller));
}

/** Resources answer by themselves, and take no part. */
function lineFor({ address, name, kind }: Invited): Line {
  const role = kind === "ROOM" || kind === "RESOURCE" ? "NON-PARTICIPANT" : "REQ-PARTICIPANT";
  const parameters: [string, string][] = [["CUTYPE", kind], ["ROLE", role], ["PARTSTAT", "NEEDS-ACTION"], ["RSVP", "TRUE"]];
  if (name && name !== address) parameters.push(["CN", name]);
  return { name: "ATTENDEE", parameters, value: `mailto:${address}` };
}

/** Invites who came to a list of people, and takes those out who left it; the lines of others stay as they are. */
export function changeInvited(component: Component, before: Invited[], after: Invited[], caller: string): void {
  const has = (all: Invited[], address: string) => all.some((one) => isSame(one.address, address));
  component.lines = component.lines.filter(({ name, value }) => name !== "ATTENDEE" || !has(before, addressIn(value)) || has(after, addressIn(value)));
  const present = invitedTo(component);
  component.lines.push(...after.filter(({ address }) => !has(before, address) && !has(present, address)).map(lineFor));
  const hasAttendees = component.lines.some(({ name }) => name === "ATTENDEE");
  if (hasAttendees && !lineOf(component, "ORGANIZER") && caller) setLine(component, "ORGANIZER", `mailto:${caller}`);
  if (!hasAttendees && before.length > 0) setLine(component, "ORGANIZER", undefined);
}

/** Everybody is asked once more: the meeting is another one. */
export function askAgain(component: Component): void {
  component.lines = component.lines.map((line) => {
    if (line.name !== "ATTENDEE") return line;
    const caller = callerOf(component);
    const kept = line.parameters.filter(([name]) => !["PARTSTAT", "RSVP", "SCHEDULE-STATUS"].includes(name));
    const asked: [string, string][] = isSame(addressIn(line.value), caller) ? [["PARTSTAT", "ACCEPTED"]] : [["PARTSTAT", "NEEDS-ACTION"], ["RSVP", "TRUE"]];
    return { name: line.name, parameters: [...kept, ...asked], value: line.value };
  });
}
