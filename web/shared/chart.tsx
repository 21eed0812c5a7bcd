// A chart of values over time, drawn as SVG, with the same values as a table.

import { useId, useState } from "preact/hooks";
import { bytes, moment, number } from "./i18n.ts";
import { t } from "./texts.ts";

export type Point = { time: number; value: number };
type Props = { title: string; points: Point[]; format?: (value: number) => string; objective?: number | undefined };

/** What a tick is a round number of: 1, or the unit of bytes. */
function unitOf(format: Props["format"], largest: number): number {
  return format === bytes && largest >= 1024 ? 1024 ** Math.floor(Math.log(largest) / Math.log(1024)) : 1;
}

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [640, 180, 64, 22];

/** Steps of an axis that are easily read: at most `most`, from 0. */
export function ticks(largest: number, most = 4): number[] {
  if (!(largest > 0)) return [0, 1];
  const rough = largest / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? 10 * power;
  const count = Math.ceil(largest / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

/** At most `most` points: of each part of the time the largest value, so that no peak is lost. */
export function thinned(points: Point[], most: number): Point[] {
  if (points.length <= most) return points;
  const size = points.length / most;
  return Array.from({ length: most }, (_, index) => {
    const part = points.slice(Math.floor(index * size), Math.floor((index + 1) * size));
    return part.reduce((largest, point) => (point.value > largest.value ? point : largest));
  });
}

export function Chart({ title, points, format = (value) => number(value, 1), objective }: Props) {
  const [near, setNear] = useState<Point>();
  const id = useId();
  if (points.length < 2) return <figure class="chart"><figcaption>{title}</figcaption><p class="quiet">{t("chartNone")}</p></figure>;
  const shown = thinned(points, 300);
  const [from, to] = [shown[0]!.time, shown.at(-1)!.time];
  const most = Math.max(...shown.map((point) => point.value), objective ?? 0);
  const unit = unitOf(format, most);
  const axis = ticks(most / unit).map((tick) => tick * unit);
  const largest = axis.at(-1)!;
  const x = (time: number) => LEFT + ((time - from) / (to - from || 1)) * (WIDTH - LEFT - 8);
  const y = (value: number) => HEIGHT - BOTTOM - (value / largest) * (HEIGHT - BOTTOM - 10);
  const line = shown.map((point, index) => `${index ? "L" : "M"}${x(point.time).toFixed(1)} ${y(point.value).toFixed(1)}`).join("");
  const last = shown.at(-1)!;
  const pick = (event: PointerEvent) => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    const time = from + (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - 8) * (to - from);
    setNear(shown.reduce((best, point) => (Math.abs(point.time - time) < Math.abs(best.time - time) ? point : best)));
  };
  const label = (time: number) => (to - from > 86_400_000 ? moment(time).split(",")[0]! : new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }));
  return (
    <figure class="chart" aria-labelledby={id}>
      <figcaption id={id}>{title}<output>{near ? `${moment(near.time)}  ${format(near.value)}` : format(last.value)}</output></figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true" onPointerMove={pick} onPointerLeave={() => setNear(undefined)}>
        {axis.map((value) => (
          <g><line class="rule" x1={LEFT} x2={WIDTH - 8} y1={y(value)} y2={y(value)} /><text x={LEFT - 6} y={y(value) + 4} text-anchor="end">{format(value)}</text></g>
        ))}
        <path class="area" d={`${line}L${x(to)} ${y(0)}L${x(from)} ${y(0)}Z`} />
        <path class="line" d={line} />
        {objective !== undefined && <line class="objective" x1={LEFT} x2={WIDTH - 8} y1={y(objective)} y2={y(objective)} />}
        {near && <circle class="near" cx={x(near.time)} cy={y(near.value)} r="4" />}
        <text x={LEFT} y={HEIGHT - 4}>{label(from)}</text>
        <text x={WIDTH - 8} y={HEIGHT - 4} text-anchor="end">{label(to)}</text>
      </svg>
      <details>
        <summary>{t("chartTable")}</summary>
        <div class="scrolls" tabIndex={0} role="region" aria-label={title}>
          <table><thead><tr><th scope="col">{t("time")}</th><th scope="col" class="numeric">{title}</th></tr></thead>
            <tbody>{thinned(points, 60).map((point) => <tr><td>{moment(point.time)}</td><td class="numeric">{format(point.value)}</td></tr>)}</tbody></table>
        </div>
      </details>
    </figure>
  );
}
