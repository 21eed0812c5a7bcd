// All statistics, and the history of one.

import { ask } from "../../shared/api.ts";
import { Chart, type Point } from "../../shared/chart.tsx";
import { useResource } from "../../shared/data.ts";
import { Grid, type Column } from "../../shared/grid.tsx";
import { bytes, number } from "../../shared/i18n.ts";
import { change, place } from "../../shared/route.ts";
import { Loaded } from "../../shared/ui.tsx";
import { flat, type Stats } from "../health.ts";
import { history } from "../history.ts";
import { t } from "../texts.ts";

type Statistic = { name: string; value: number; type: string };

const SPANS = { hour: 60, day: 24 * 60, week: 7 * 24 * 60, year: 365 * 24 * 60 } as const;

const COLUMNS: Column<Statistic>[] = [
  { title: t("name"), width: "minmax(9rem, 3fr)", show: ({ name }) => name },
  { title: t("now"), width: "minmax(6rem, 1fr)", numeric: true, show: ({ name, value }) => formatOf(name)(value) },
];

function formatOf(name: string): (value: number) => string {
  const isBytes = /bytes|Disk\.|BufferPool\.(Used|Peak|Pinned|Memtables|ByPurpose)|Process$/i.test(name);
  return isBytes && !/Megabytes/.test(name) ? bytes : (value) => number(value, 3);
}

export function Page() {
  const statistics = useResource("statistics", async () => flat(await ask<Stats>("GET", "_stats")).sort((a, b) => (a.name < b.name ? -1 : 1)), 5000);
  const { name = "", filter = "", span = "hour" } = place.value.parameters;
  const minutes = SPANS[span as keyof typeof SPANS] ?? 60;
  const past = useResource(`history ${minutes}`, () => history(minutes), 60_000);
  return (
    <>
      <h1>{t("statistics")}</h1>
      <div class="filters">
        <input type="search" aria-label={t("filterStatistics")} placeholder={t("filterStatistics")} value={filter} onInput={(event) => change({ filter: event.currentTarget.value })} />
        <select aria-label={t("since")} value={span} onChange={(event) => change({ span: event.currentTarget.value })}>
          {(Object.keys(SPANS) as (keyof typeof SPANS)[]).map((id) => <option value={id}>{t(id)}</option>)}
        </select>
      </div>
      <section class="card">
        {name ? (
          <Loaded of={past}>{(recorded) => <History name={name} isCounter={statistics.data.value?.find((found) => found.name === name)?.type === "counter"} points={recorded.of(name)} rates={recorded.rate(name)} />}</Loaded>
        ) : <p class="quiet">{t("chooseStatistic")}</p>}
      </section>
      <div class="fills grid-holder">
        <Loaded of={statistics}>{(all) => {
          const shown = all.filter((found) => found.name.toLowerCase().includes(filter.toLowerCase()));
          return <Grid label={t("statistics")} columns={COLUMNS} count={shown.length} source={filter} version={shown.map(({ name, value }) => `${name} ${value}`).join()} pageSize={1000} fetchPage={async (start, limit) => shown.slice(start, start + limit)}
            position={Math.max(0, shown.findIndex((found) => found.name === name))} open={(found) => change({ name: found.name })} />;
        }}</Loaded>
      </div>
    </>
  );
}

function History({ name, isCounter, points, rates }: { name: string; isCounter: boolean; points: Point[]; rates: Point[] }) {
  const shown = isCounter ? rates : points;
  const save = () => {
    const text = ["time,value", ...shown.map(({ time, value }) => `${new Date(time).toISOString()},${value}`)].join("\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = `${name}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  return (
    <>
      <Chart title={isCounter ? t("perMinuteOf", { name }) : name} points={shown} format={formatOf(name)} />
      <div class="buttons end"><button type="button" onClick={save}>{t("csv")}</button></div>
    </>
  );
}
