// One memo: its head, its files, its text. HTML stands in a frame of its own, which can do nothing.

import { useEffect, useState } from "preact/hooks";
import { addressOf as urlOf, documentPath, type Document } from "../shared/api.ts";
import { useResource } from "../shared/data.ts";
import { bytes, language, locale, moment } from "../shared/i18n.ts";
import { bind } from "../shared/keys.ts";
import { hashOf, place } from "../shared/route.ts";
import { ErrorBox, Loaded } from "../shared/ui.tsx";
import { answerTo, forwardOf } from "./composer.tsx";
import type { Actions } from "./list.tsx";
import { bodyPath, calendarFile, database, filePath, forget, mark, openMemo, readConversation, readOutline, round, type Outline } from "./mailbox.ts";
import { addressOf, linked, nameOf, shortDate, text, texts } from "./memo.ts";
import { t } from "./texts.ts";

/** Read this long, a memo counts as read. */
const READ_AFTER_MS = 700;

type Props = { id: string; actions: Actions; isJunk: boolean };

export function Reader({ id, actions, isJunk }: Props) {
  const memo = useResource(`memo ${id}`, () => openMemo(id), undefined, round.value);
  const loaded = memo.data.value;
  useEffect(() => {
    if (!loaded) return;
    const timer = setTimeout(() => void mark([id], true, true), READ_AFTER_MS);
    return () => clearTimeout(timer);
  }, [id, Boolean(loaded)]);
  useEffect(() => bind([
    { keys: "r", what: t("reply"), run: () => loaded && answerTo(loaded, false) },
    { keys: "a", what: t("replyAll"), run: () => loaded && answerTo(loaded, true) },
    { keys: "f", what: t("forward"), run: () => loaded && forwardOf(loaded) },
  ]), [loaded, language.value]);
  return (
    <article class="reader card" aria-label={loaded ? text(loaded["Subject"]) || t("noSubject") : t("loadingMemo")}>
      <Loaded of={memo}>{(document) => <Memo memo={document} actions={actions} isJunk={isJunk} />}</Loaded>
    </article>
  );
}

function Memo({ memo, actions, isJunk }: { memo: Document; actions: Actions; isJunk: boolean }) {
  const isStarred = texts(memo["$Flags"]).some((flag) => flag === "\\Flagged" || flag === "flagged");
  return (
    <>
      <div class="buttons tools" role="toolbar" aria-label={t("mail")}>
        <button type="button" class="plain back" onClick={actions.back} aria-label={t("back")} title={`${t("back")} (u)`}>←</button>
        <button type="button" onClick={() => answerTo(memo, false)} title="r">{t("reply")}</button>
        <button type="button" onClick={() => answerTo(memo, true)} title="a">{t("replyAll")}</button>
        <button type="button" onClick={() => forwardOf(memo)} title="f">{t("forward")}</button>
        <button type="button" onClick={actions.archive} title="e">{t("toArchive")}</button>
        <button type="button" onClick={actions.remove} title="#">{t("delete")}</button>
        <details class="more"><summary aria-label={t("moveTo")}>⋯</summary>
          <div class="menu">
            <button type="button" class="plain" onClick={actions.move}>{t("moveTo")}</button>
            <button type="button" class="plain" onClick={actions.unread}>{t("markUnread")}</button>
            <button type="button" class="plain" onClick={actions.junk}>{isJunk ? t("notJunk") : t("isJunk")}</button>
            <a class="button plain" href={urlOf(`${documentPath(database.value, memo._id)}/message.eml`)} download={`${memo._id}.eml`}>{t("source")}</a>
          </div>
        </details>
        <button type="button" class={`plain star ${isStarred ? "on" : ""}`} aria-pressed={isStarred} aria-label={t("star")} onClick={() => { forget(memo._id); actions.star(!isStarred); }}>{isStarred ? "★" : "☆"}</button>
      </div>
      <Head memo={memo} />
      <Conversation memo={memo} />
      <Content memo={memo} />
    </>
  );
}

function Head({ memo }: { memo: Document }) {
  const from = text(memo["From"]);
  const date = text(memo["PostedDate"]) || text(memo["DeliveredDate"]);
  const to = [...texts(memo["SendTo"]), ...texts(memo["CopyTo"])];
  const notes = texts(memo["$ParseNotes"]).filter((note) => !/is missing$/.test(note));
  return (
    <header class="memo-head">
      <h2 dir="auto">{text(memo["Subject"]) || t("noSubject")}</h2>
      <div class="spread">
        <div><strong dir="auto">{nameOf(from)}</strong> {addressOf(from) !== nameOf(from) && <span class="quiet" dir="auto">&lt;{addressOf(from)}&gt;</span>}</div>
        <time class="quiet" dateTime={date}>{moment(date)}</time>
      </div>
      <details><summary class="quiet" dir="auto">{t("to")}: {to.map(nameOf).join(", ")}</summary>
        <table><tbody>
          {(["From", "Sender", "ReplyTo", "SendTo", "CopyTo", "BlindCopyTo", "PostedDate", "DeliveredDate", "$MessageID", "InReplyTo"] as const).filter((field) => texts(memo[field]).length > 0).map((field) => (
            <tr><th scope="row">{field}</th><td dir="auto">{texts(memo[field]).map((one) => <div>{one}</div>)}</td></tr>
          ))}
        </tbody></table>
      </details>
      {notes.length > 0 && <p class="note warn" dir="auto">{t("damaged", { notes: notes.join("; ") })}</p>}
    </header>
  );
}

function Conversation({ memo }: { memo: Document }) {
  const told = useResource(`conversation ${memo._id}`, () => readConversation(memo), undefined, round.value);
  const all = told.data.value ?? [];
  if (all.length < 2) return null;
  return (
    <details class="conversation" open={all.length <= 6}>
      <summary>{t("conversationCount", { n: all.length - 1 })}</summary>
      <ol aria-label={t("conversation")}>{all.map((one) => (
        <li aria-current={one.id === memo._id ? "true" : undefined}>
          <a href={hashOf([...place.value.segments.slice(0, 2), one.id], place.value.parameters)}>
            <strong dir="auto">{nameOf(text(one.From))}</strong> <span class="quiet" dir="auto">{text(one.Excerpt).replace(/\s+/g, " ")}</span> <time class="quiet" dateTime={text(one.Date)}>{shortDate(text(one.Date), new Date(), locale())}</time>
          </a>
        </li>
      ))}</ol>
    </details>
  );
}

function Content({ memo }: { memo: Document }) {
  const outline = useResource(`outline ${memo._id} ${memo._rev}`, () => readOutline(memo));
  const [asText, setAsText] = useState(false);
  const [pictures, setPictures] = useState(false);
  const found = outline.data.value;
  if (outline.error.value !== undefined) return <><ErrorBox error={outline.error.value} retry={() => void outline.reload()} /><Plain body={text(memo["Body"])} /></>;
  if (found === undefined) return <div class="bones" aria-busy="true"><span class="bone" /><span class="bone" /></div>;
  const showsHtml = found?.html && !asText;
  return (
    <>
      {calendarFile(found) && <Invited memo={memo} number={calendarFile(found)!.number} />}
      <Files memo={memo} outline={found} />
      {showsHtml && found.remote_pictures > 0 && !pictures && (
        <div class="note spread"><span>{t("pictures", { n: found.remote_pictures })}</span><button type="button" onClick={() => setPictures(true)}>{t("showPictures")}</button></div>
      )}
      {found?.html && <div class="buttons end"><button type="button" class="plain" onClick={() => setAsText(!asText)}>{t(asText ? "showHtml" : "showText")}</button></div>}
      {showsHtml
        ? <iframe class="body" title={t("bodyOf")} sandbox="allow-popups allow-popups-to-escape-sandbox" referrerpolicy="no-referrer" src={urlOf(bodyPath(memo._id), { pictures: pictures || undefined })} />
        : <Plain body={text(memo["Body"])} />}
      {(memo["$BodyTruncated"] === true || found?.cut) && <p class="quiet">{t("cutBody")}</p>}
    </>
  );
}

/** The calendar of a memo; its part of the client is loaded with the first one. */
function Invited({ memo, number }: { memo: Document; number: number }) {
  const part = useResource("part invitation", () => import("./invitation.tsx"));
  const loaded = part.data.value;
  return loaded ? <loaded.InvitationCard memo={memo} number={number} /> : null;
}

/** A text, with links where it names addresses; what is quoted stands back. */
export function Plain({ body }: { body: string }) {
  return (
    <div class="plain-body" dir="auto">
      {body.split("\n").map((line) => (
        <div class={/^\s*>/.test(line) ? "cited" : ""}>
          {line === "" ? <br /> : linked(line).map((piece) => (typeof piece === "string" ? piece : <a href={piece.href} target="_blank" rel="noopener noreferrer">{piece.href}</a>))}
        </div>
      ))}
    </div>
  );
}

function Files({ memo, outline }: { memo: Document; outline: Outline | null }) {
  const attached = Object.entries((memo["_attachments"] ?? {}) as { [name: string]: { length?: number } }).filter(([name]) => name !== "message.eml");
  const parts = outline?.files ?? [];
  if (attached.length + parts.length === 0) return null;
  return (
    <ul class="files" aria-label={t("attachments")}>
      {parts.map((file) => {
        const name = file.name || `${file.content_type.replace("/", "-")}-${file.number + 1}`;
        return <li><a class="button" href={urlOf(filePath(memo._id, file.number))} download={name}><span dir="auto">{name}</span> <span class="quiet">{bytes(file.bytes)}</span></a></li>;
      })}
      {attached.map(([name, { length }]) => (
        <li><a class="button" href={urlOf(`${documentPath(database.value, memo._id)}/${encodeURIComponent(name)}`)} download={name}><span dir="auto">{name}</span> <span class="quiet">{bytes(length)}</span></a></li>
      ))}
    </ul>
  );
}
