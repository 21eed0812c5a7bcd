// An invitation in a memo: what it asks, in words. What a stranger's calendar holds is shown as text and nothing else.

import { useState } from "preact/hooks";
import { askText, type Document } from "../shared/api.ts";
import { useResource } from "../shared/data.ts";
import { attempt, say } from "../shared/ui.tsx";
import { t } from "./calendar_texts.ts";
import { write } from "./content.ts";
import { put, readCalendars, remove } from "./dav.ts";
import { invitationOf, type Invitation } from "./event.ts";
import { whenOf } from "./event_card.tsx";
import { filePath } from "./mailbox.ts";

const METHODS = { REQUEST: "invites", CANCEL: "cancels", REPLY: "answers", COUNTER: "proposes", PUBLISH: "publishes" } as const;
const STATUSES = { ACCEPTED: "accepted", DECLINED: "declined", TENTATIVE: "tentative" } as const;

export function InvitationCard({ memo, number }: { memo: Document; number: number }) {
  const found = useResource(`invitation ${memo._id} ${number}`, async () => ({ invitation: invitationOf((await askText("GET", filePath(memo._id, number))).text) }));
  const invitation = found.data.value?.invitation;
  return invitation ? <Told invitation={invitation} /> : null;
}

function Told({ invitation }: { invitation: Invitation }) {
  const { method, subject, location, organizer, attendees, occurrence, repeats } = invitation;
  const [isKept, setIsKept] = useState(false);
  const words = METHODS[method as keyof typeof METHODS] ?? METHODS.PUBLISH;
  const status = (written: string) => (written in STATUSES ? ` (${t(STATUSES[written as keyof typeof STATUSES])})` : "");
  const keep = () => attempt(async () => {
    const remove = await kept(invitation);
    setIsKept(true);
    say(t("addedToCalendar"), async () => { await remove(); setIsKept(false); });
  });
  return (
    <section class="invitation" aria-label={t("invitation")}>
      <p class="quiet">{t(words)}</p>
      <h3 dir="auto">{subject || t("noSubject")}</h3>
      {occurrence && <p>{whenOf(occurrence)} {repeats && <span class="pill">{t("series")}</span>} {occurrence.isCancelled && <span class="pill bad">{t("cancelled")}</span>}</p>}
      {location && <p dir="auto">{location}</p>}
      {organizer && <p class="quiet" dir="auto">{t("organizer")}: {organizer}</p>}
      {attendees.length > 0 && <p class="quiet" dir="auto">{t("invited")}: {attendees.slice(0, 20).map(({ name, status: is }) => `${name}${status(is)}`).join(", ")}{attendees.length > 20 && " …"}</p>}
      {(method === "REQUEST" || method === "PUBLISH") && occurrence && !isKept && <div class="buttons"><button type="button" onClick={() => void keep()}>{t("addToCalendar")}</button></div>}
    </section>
  );
}

/** Puts the event into the person's first calendar; gives the way back. */
async function kept({ calendar }: Invitation): Promise<() => Promise<void>> {
  const target = (await readCalendars()).find(({ isWritable }) => isWritable);
  if (!target) throw new Error(t("noCalendar"));
  const uid = calendar.parts.flatMap(({ lines }) => lines).find(({ name }) => name === "UID")?.value;
  const parts = calendar.parts.filter(({ name, lines }) => name === "VTIMEZONE" || (name === "VEVENT" && lines.find((line) => line.name === "UID")?.value === uid));
  const stored = { ...calendar, lines: calendar.lines.filter(({ name }) => name !== "METHOD"), parts };
  const href = `${target.href}${crypto.randomUUID()}.ics`;
  const tag = await put(href, write(stored), undefined);
  return () => remove(href, tag);
}
