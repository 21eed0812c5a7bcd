// Search by the index of words: all of the mail file, the newest first.

import { useEffect, useState } from "preact/hooks";
import { useResource } from "../shared/data.ts";
import { locale } from "../shared/i18n.ts";
import { hashOf, place } from "../shared/route.ts";
import { attempt, Empty, Loaded } from "../shared/ui.tsx";
import { search, type Hit } from "./mailbox.ts";
import { nameOf, questionOf, shortDate, text } from "./memo.ts";
import { Reader } from "./reader.tsx";
import type { Actions } from "./list.tsx";
import { forSearch } from "./search_actions.ts";
import { t } from "./texts.ts";

/** Shown of a memo's beginning. */
const EXCERPT = 140;

export function SearchPage() {
  const { q = "" } = place.value.parameters;
  const id = place.value.segments[1];
  const [more, setMore] = useState<{ hits: Hit[]; bookmark: string } | undefined>();
  const question = questionOf(q);
  const found = useResource(`search ${q}`, async () => (question ? search(question) : { hits: [], total: 0, bookmark: "" }));
  useEffect(() => setMore(undefined), [q]);
  const next = (bookmark: string, before: Hit[]) => attempt(async () => {
    const page = await search(question, bookmark);
    setMore({ hits: [...before, ...page.hits], bookmark: page.bookmark });
  });
  const actions: Actions = forSearch(id ?? "", q);
  return (
    <>
      <h1 dir="auto">{t("search")}: {q}</h1>
      <div class={`fills split ${id ? "has-detail" : "single"}`}>
        <Loaded of={found}>{({ hits, total, bookmark }) => {
          const all = [...hits, ...(more?.hits ?? [])];
          if (all.length === 0) return <Empty title={t("foundNone")}><p>{t("searchHint")}</p></Empty>;
          return (
            <div class="hits card">
              <p class="quiet" role="status">{t("found", { n: total })}</p>
              <ol>{all.map(({ id: hit, doc }) => (
                <li aria-current={hit === id ? "true" : undefined}>
                  <a href={hashOf(["search", hit], { q })}>
                    <span class="spread"><strong dir="auto">{nameOf(text(doc["From"]))}</strong><time class="quiet" dateTime={text(doc["DeliveredDate"])}>{shortDate(text(doc["DeliveredDate"]), new Date(), locale())}</time></span>
                    <span dir="auto">{text(doc["Subject"]) || t("noSubject")}</span>
                    <span class="quiet" dir="auto">{text(doc["Body"]).slice(0, EXCERPT).replace(/\s+/g, " ")}</span>
                  </a>
                </li>
              ))}</ol>
              {all.length < total && <button type="button" onClick={() => void next(more?.bookmark ?? bookmark, more?.hits ?? [])}>{t("moreHits")}</button>}
            </div>
          );
        }}</Loaded>
        {id && <Reader key={id} id={id} actions={actions} isJunk={false} />}
      </div>
    </>
  );
}
