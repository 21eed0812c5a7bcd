// What changed in a database, newest first, as it happens.

import { ask, pathOf } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { Grid, type Column } from "../../shared/grid.tsx";
import { go } from "../../shared/route.ts";
import { Empty, Loaded } from "../../shared/ui.tsx";
import type { PartProps } from "./database.tsx";
import { t } from "../texts.ts";

type Change = { seq: string | number; id: string; changes: { rev: string }[]; deleted?: boolean };

/** As many as one looks through; all of them are in `_changes`. */
const CHANGES_MAX = 500;

const COLUMNS: Column<Change>[] = [
  { title: t("sequence"), width: "7rem", numeric: true, show: ({ seq }) => <span class="mono">{Number.parseInt(String(seq), 10)}</span> },
  { title: t("id"), width: "minmax(8rem, 2fr)", show: ({ id }) => <span class="mono" dir="auto">{id}</span> },
  { title: t("revision"), width: "minmax(6rem, 1fr)", wide: true, show: ({ changes }) => <span class="mono quiet">{changes.map(({ rev }) => rev).join(" ")}</span> },
  { title: t("state"), width: "6rem", show: ({ deleted }) => (deleted ? <span class="pill">{t("deleted")}</span> : "") },
];

export function Part({ name }: PartProps) {
  const changes = useResource(`changes ${name}`, () => ask<{ results: Change[] }>("GET", `${pathOf(name)}/_changes`, { descending: true, limit: CHANGES_MAX }), 2000);
  return (
    <>
      <p class="quiet">{t("newest")}</p>
      <div class="fills grid-holder">
        <Loaded of={changes}>{({ results }) => results.length === 0 ? <Empty title={t("noChanges")} /> : (
          <Grid label={t("changes")} columns={COLUMNS} count={results.length} source={name} version={results[0]?.seq} fetchPage={async (start, limit) => results.slice(start, start + limit)}
            rowClass={({ deleted }) => (deleted ? "gone" : "")} open={({ id }) => go(["databases", name, "documents", id])} />
        )}</Loaded>
      </div>
    </>
  );
}
