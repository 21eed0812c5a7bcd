// One event: what it is, and the ways to change it.

import { useResource } from "../shared/data.ts";
import { dateFormat } from "../shared/i18n.ts";
import { attempt, Dialog } from "../shared/ui.tsx";
import type { Chosen } from "./calendar.tsx";
import { t } from "./calendar_texts.ts";
import { readMailAddresses } from "./dav.ts";
import { SCOPES, type Occurrence, type Scope } from "./event.ts";
import { erase } from "./events.ts";
import { linked } from "./memo.ts";
import { addDays } from "./zone.ts";

const DELETE_WORDS = { one: "deleteOne", following: "deleteFollowing", all: "deleteAll" } as const;

/** When an event takes place, in words. */
export function whenOf(event: Occurrence): string {
  const days = dateFormat({ dateStyle: "full", timeZone: "UTC" });
  if (event.isDay) {
    const [first, last] = [new Date(`${event.from}T12:00:00Z`), new Date(`${addDays(event.to, -1)}T12:00:00Z`)];
    return days.formatRange(first, last);
  }
  return dateFormat({ weekday: "short", year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit" }).formatRange(event.start, event.end);
}

/** A text with links to what it names. */
export function Linked({ text }: { text: string }) {
  return <>{linked(text).map((piece) => (typeof piece === "string" ? piece : <a href={piece.href} target="_blank" rel="noopener noreferrer">{piece.href}</a>))}</>;
}

export function EventCard({ chosen: { occurrence, calendar }, close, edit }: { chosen: Chosen; close: () => void; edit: () => void }) {
  const own = useResource("own mail addresses", async () => (occurrence.caller ? readMailAddresses() : []));
  // Of somebody else's series one leaves single ones, or all.
  const isOwn = !occurrence.caller || (own.data.value ?? []).includes(occurrence.caller);
  const scopes = SCOPES.filter((scope) => scope !== "following" || isOwn);
  const remove = (scope: Scope) => attempt(async () => {
    close();
    await erase(occurrence, scope);
  });
  return (
    <Dialog title={occurrence.subject || t("noSubject")} close={close}>
      <div class="event-card">
        <p>{whenOf(occurrence)} {occurrence.isCancelled && <span class="pill bad">{t("cancelled")}</span>} {occurrence.isFree && <span class="pill">{t("free")}</span>} {occurrence.isPrivate && <span class="pill">{t("private")}</span>}</p>
        {occurrence.recurrence && <p class="quiet">{t("series")}</p>}
        {occurrence.location && <p dir="auto"><Linked text={occurrence.location} /></p>}
        {occurrence.organizer && <p class="quiet" dir="auto">{t("organizer")}: {occurrence.organizer}</p>}
        {occurrence.body && <p class="plain-body" dir="auto"><Linked text={occurrence.body} /></p>}
        <p class="quiet" dir="auto"><span class="swatch" style={{ background: calendar.color }} aria-hidden="true" /> {calendar.name}</p>
        {calendar.isWritable ? (
          <div class="buttons">
            <button type="button" class="primary" data-first onClick={edit}>{t("edit")}</button>
            {occurrence.recurrence
              ? scopes.map((scope) => <button type="button" key={scope} onClick={() => void remove(scope)}>{t(DELETE_WORDS[scope])}</button>)
              : <button type="button" onClick={() => void remove("all")}>{t("delete")}</button>}
          </div>
        ) : <p class="quiet">{t("readOnly")}</p>}
      </div>
    </Dialog>
  );
}
