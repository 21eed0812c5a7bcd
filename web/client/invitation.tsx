// An invitation in a memo: what it asks, in words. What a stranger's calendar holds is shown as text and nothing else.

import { useState } from "preact/hooks";
import { askText, type Document } from "../shared/api.ts";
import { useResource } from "../shared/data.ts";
import { attempt, say } from "../shared/ui.tsx";
import { t } from "./calendar_texts.ts";
import { parse, write } from "./content.ts";
import { findByUid, put, readCalendars, readOwnAddresses, remove } from "./dav.ts";
import { answeredBy, invitationOf, type Invitation } from "./event.ts";
import { whenOf } from "./event_card.tsx";
import { filePath } from "./mailbox.ts";

const METHODS = { REQUEST: "invites", CANCEL: "cancels", REPLY: "answers", COUNTER: "proposes", PUBLISH: "publishes" } as const;
const STATUSES = { ACCEPTED: "accepted", DECLINED: "declined", TENTATIVE: "tentative" } as const;

const ANSWERS = ["ACCEPTED", "TENTATIVE", "DECLINED"] as const;
type Answer = (typeof ANSWERS)[number];
const REPLIES = { ACCEPTED: "accept", TENTATIVE: "acceptTentatively", DECLINED: "decline" } as const;

export function InvitationCard({ memo, number }: { memo: Document; number: number }) {
  const found = useResource(`invitation ${memo._id} ${number}`, async () => ({ invitation: invitationOf((await askText("GET", filePath(memo._id, number))).text) }));
  const invitation = found.data.value?.invitation;
  return invitation ? <Told invitation={invitation} /> : null;
}

function Told({ invitation }: { invitation: Invitation }) {
  const { method, subject, location, organizer, attendees, occurrence, repeats } = invitation;
  const [isKept, setIsKept] = useState(false);
  const [answer, setAnswer] = useState("");
  const own = useResource("own addresses", async () => ({ addresses: await readOwnAddresses() }));
  const isInvited = method === "REQUEST" && answeredBy(invitation.calendar, own.data.value?.addresses ?? [], "ACCEPTED") !== undefined;
  const reply = (given: Answer) => attempt(async () => {
    await answered(invitation, own.data.value?.addresses ?? [], given);
    setAnswer(given);
    say(t("answerSent"));
  });
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
      {isInvited && <div class="buttons" role="group" aria-label={t("answer")}>
        {ANSWERS.map((one) => <button type="button" key={one} aria-pressed={answer === one} onClick={() => void reply(one)}>{t(REPLIES[one])}</button>)}
      </div>}
      {(method === "REQUEST" || method === "PUBLISH") && !isInvited && occurrence && !isKept && <div class="buttons"><button type="button" onClick={() => void keep()}>{t("addToCalendar")}</button></div>}
    </section>
  );
}

/** Answers an invitation: in the copy that the server has filed, or else in one's own. The server tells the organizer. */
async function answered({ calendar }: Invitation, addresses: string[], answer: Answer): Promise<void> {
  const uid = calendar.parts.flatMap(({ lines }) => lines).find(({ name }) => name === "UID")?.value ?? "";
  const stored = await findByUid(uid);
  const known = stored && parse(stored.data);
  const own = answeredBy(known ?? { ...calendar, lines: calendar.lines.filter(({ name }) => name !== "METHOD") }, addresses, answer);
  if (!own) throw new Error(t("notInvited"));
  const target = stored ? undefined : (await readCalendars()).find(({ isWritable }) => isWritable);
  if (!stored && !target) throw new Error(t("noCalendar"));
  await put(stored?.href ?? `${target!.href}${crypto.randomUUID()}.ics`, write(own), stored?.tag);
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
