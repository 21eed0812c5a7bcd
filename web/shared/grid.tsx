// A list of any length: rows of one height, of which those on the screen are made, in pages that are fetched by position.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Pages, scrollFor, windowOf } from "./window.ts";
import { ErrorBox } from "./ui.tsx";

export type Column<T> = {
  title: string;
  width?: string;
  numeric?: boolean;
  /** Left out where there is little room. */
  wide?: boolean;
  show: (row: T) => ComponentChildren;
};

type Props<T> = {
  label: string;
  columns: Column<T>[];
  count: number;
  /** Another one is another list: it is shown from its beginning. */
  source: string;
  /** Another one is the same list with other rows: they take the places of those that are shown; place and focus stay. */
  version?: unknown;
  fetchPage: (start: number, limit: number) => Promise<T[]>;
  open?: (row: T, position: number) => void;
  /** Told of the row that has the place of the keyboard, once it is there. */
  atRow?: (row: T, position: number) => void;
  /** Rows open as the keyboard comes to them. */
  opensOnMove?: boolean;
  /** Keys on a row, besides those that move. */
  onKey?: (key: string, row: T) => boolean;
  pageSize?: number;
  /** A row to show first, or to go to when it changes. */
  position?: number | undefined;
  level?: (row: T) => { level: number; expanded?: boolean } | undefined;
  rowClass?: (row: T) => string;
};

const ROW_HEIGHT = 36;

export function Grid<T>(props: Props<T>) {
  const { label, columns, count, source, version, fetchPage, open, pageSize = 100 } = props;
  const body = useRef<HTMLDivElement>(null);
  const pages = useMemo(() => new Pages<T>(pageSize), [source]);
  const asked = useMemo(() => new Set<number>(), [source, version]);
  const [, redraw] = useState(0);
  const [error, setError] = useState<unknown>();
  const [scrolled, setScrolled] = useState(0);
  const [seen, setSeen] = useState(600);
  const [active, setActive] = useState(0);
  const wantsFocus = useRef(false);
  /** A row that was opened before it had come. */
  const wantsOpen = useRef<number | undefined>(undefined);
  const newest = useRef(version);
  newest.current = version;
  const shown = windowOf(count, ROW_HEIGHT, scrolled, seen);

  useLayoutEffect(() => {
    const element = body.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSeen(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    setError(undefined);
    wantsOpen.current = undefined;
    setActive(props.position ?? 0);
    show(props.position ?? 0, true);
  }, [source, props.position]);

  useEffect(() => {
    pages.expire();
    setActive((row) => Math.max(0, Math.min(count - 1, row)));
    redraw((round) => round + 1);
  }, [version]);

  useEffect(() => {
    let cancelled = false;
    // One that scrolls past asks for nothing.
    const timer = setTimeout(() => {
      for (let page = Math.floor(shown.first / pageSize); page * pageSize < shown.last; page++) {
        if (pages.has(page) || asked.has(page)) continue;
        asked.add(page);
        fetchPage(page * pageSize, pageSize)
          .then((rows) => {
            if (newest.current === version) pages.put(page, rows);
          })
          .catch((reason) => !cancelled && setError(reason))
          .finally(() => {
            asked.delete(page);
            redraw((round) => round + 1);
          });
      }
    }, 15);
    return () => {
      cancelled = true;
      clearTimeout(timer);
    };
  }, [shown.first, shown.last, source, version, error]);

  useEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    body.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  });

  useEffect(() => {
    const position = wantsOpen.current;
    const row = position === undefined ? undefined : pages.row(position);
    if (position === undefined || row === undefined) return;
    wantsOpen.current = undefined;
    if (position === active && body.current?.contains(document.activeElement)) open?.(row, position);
  });

  const current = pages.row(active);
  useEffect(() => {
    if (current !== undefined) props.atRow?.(current, active);
  }, [current, active]);

  function show(row: number, atTop = false) {
    const element = body.current;
    if (!element) return;
    const target = scrollFor(row, count, ROW_HEIGHT, element.scrollTop, element.clientHeight);
    if (target === undefined && !(atTop && row === 0)) return;
    element.scrollTop = target ?? 0;
    setScrolled(element.scrollTop);
  }

  function move(to: number) {
    const row = Math.max(0, Math.min(count - 1, to));
    wantsFocus.current = true;
    if (props.opensOnMove && row !== active) wantsOpen.current = row;
    setActive(row);
    show(row);
  }

  function key(event: KeyboardEvent) {
    const page = Math.max(1, Math.floor(seen / ROW_HEIGHT) - 1);
    const row = pages.row(active);
    const moves: { [key: string]: number } = {
      ArrowDown: active + 1, j: active + 1, ArrowUp: active - 1, k: active - 1,
      PageDown: active + page, PageUp: active - page, Home: 0, End: count - 1,
    };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.target as HTMLElement).matches("button, a, input")) return;
    if (event.key in moves) move(moves[event.key]!);
    else if (event.key === "Enter" && row !== undefined) open?.(row, active);
    else if (event.key === "Enter" && open) wantsOpen.current = active;
    else if (row === undefined || !props.onKey?.(event.key, row)) return;
    event.preventDefault();
  }

  const widths = columns.map((column) => column.width ?? "minmax(6rem, 1fr)").join(" ");
  const rows = [];
  for (let position = shown.first; position < shown.last; position++) {
    const row = pages.row(position);
    const tree = row !== undefined ? props.level?.(row) : undefined;
    rows.push(
      <div
        key={position}
        role="row"
        class={`row ${position === active ? "active" : ""} ${row !== undefined ? (props.rowClass?.(row) ?? "") : "waiting"}`}
        style={{ gridTemplateColumns: widths }}
        aria-rowindex={position + 2}
        aria-level={tree ? tree.level + 1 : undefined}
        aria-expanded={tree?.expanded}
        tabIndex={position === active ? 0 : -1}
        onFocus={() => setActive(position)}
        onClick={() => {
          setActive(position);
          if (row !== undefined) open?.(row, position);
          else if (open) wantsOpen.current = position;
        }}
      >
        {columns.map((column, index) => (
          <div role="gridcell" class={cellClass(column)} style={index === 0 && tree ? { paddingInlineStart: `${tree.level * 1.2 + 0.6}rem` } : undefined}>
            {row === undefined ? <span class="bone" /> : column.show(row)}
          </div>
        ))}
      </div>,
    );
  }
  return (
    <div class="grid" role={props.level ? "treegrid" : "grid"} aria-label={label} aria-rowcount={count + 1} aria-colcount={columns.length} onKeyDown={key}>
      {error !== undefined && <ErrorBox error={error} retry={() => setError(undefined)} />}
      <div role="rowgroup" class="grid-head">
        <div role="row" aria-rowindex={1} class="row head" style={{ gridTemplateColumns: widths }}>
          {columns.map((column) => <div role="columnheader" class={cellClass(column)}>{column.title}</div>)}
        </div>
      </div>
      <div role="rowgroup" class="grid-body" ref={body} onScroll={(event) => setScrolled(event.currentTarget.scrollTop)}>
        <div role="presentation" style={{ height: `${shown.height}px` }}>
          <div role="presentation" style={{ transform: `translateY(${shown.offset}px)` }}>{rows}</div>
        </div>
      </div>
    </div>
  );
}

function cellClass<T>(column: Column<T>): string {
  return `cell ${column.numeric ? "numeric" : ""} ${column.wide ? "wide" : ""}`;
}
