// One database: its head, and the tabs of its parts.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, pathOf } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { bytes } from "../../shared/i18n.ts";
import { hashOf, place } from "../../shared/route.ts";
import { ErrorBox, Tabs } from "../../shared/ui.tsx";
import { t } from "../texts.ts";

export type Info = {
  db_name: string; doc_count: number | null; doc_del_count: number | null; update_seq: string; purge_seq: string | null; uuid: string; disk_format_version: number;
  sizes: { file: number; external: number; active: number } | null; compact_running: boolean; volume: string; instance_start_time: string;
};

export type PartProps = { name: string; info: Info | undefined; reload: () => Promise<void> };

const PARTS: { id: "documents" | "views" | "query" | "folders" | "changes" | "access" | "properties"; load: () => Promise<{ Part: ComponentType<PartProps> }> }[] = [
  { id: "documents", load: () => import("./documents.tsx") },
  { id: "views", load: () => import("./views.tsx") },
  { id: "query", load: () => import("./query.tsx") },
  { id: "folders", load: () => import("./folders.tsx") },
  { id: "changes", load: () => import("./changes.tsx") },
  { id: "access", load: () => import("./access.tsx") },
  { id: "properties", load: () => import("./properties.tsx") },
];

export function DatabasePage({ name }: { name: string }) {
  const info = useResource(`database ${name}`, () => ask<Info>("GET", pathOf(name)), 10_000);
  const current = PARTS.find(({ id }) => id === place.value.segments[2]) ?? PARTS[0]!;
  const told = info.data.value;
  return (
    <>
      <div class="spread">
        <div>
          <p class="crumbs"><a href={hashOf(["databases"])}>{t("databases")}</a> /</p>
          <h1 dir="auto">{name}</h1>
        </div>
        <p class="quiet">{told && [told.doc_count !== null && t("documentsCounted", { n: told.doc_count }), bytes(told.sizes?.file), told.volume].filter(Boolean).join(" · ")}</p>
      </div>
      <Tabs label={t("parts", { name })} current={current.id} tabs={PARTS.map(({ id }) => ({ id, title: t(id), href: hashOf(["databases", name, id]) }))} />
      {info.error.value !== undefined && <ErrorBox error={info.error.value} retry={() => void info.reload()} />}
      {(told || info.error.value === undefined) && <Lazy key={current.id} load={current.load} name={name} info={told} reload={info.reload} />}
    </>
  );
}

function Lazy({ load, ...props }: PartProps & { load: () => Promise<{ Part: ComponentType<PartProps> }> }) {
  const [part, setPart] = useState<{ Part: ComponentType<PartProps> }>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    load().then(setPart, setError);
  }, []);
  if (error) return <ErrorBox error={error} retry={() => location.reload()} />;
  return part ? <part.Part {...props} /> : null;
}
