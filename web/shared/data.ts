// What pages show: fetched when they open, kept while they fetch again, followed while somebody looks.

import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

/** Whether live pages stand still. */
export const paused = signal(false);

export class Resource<T> {
  readonly data: Signal<T | undefined>;
  readonly error: Signal<unknown> = signal(undefined);
  readonly loading = signal(false);
  private round = 0;

  constructor(public fetcher: () => Promise<T>, known?: T) {
    this.data = signal(known);
  }

  /** Fetches; what was there stays until the answer comes, and longer if it fails. */
  reload = async (): Promise<void> => {
    const round = ++this.round;
    this.loading.value = true;
    try {
      const data = await this.fetcher();
      if (round !== this.round) return;
      this.data.value = data;
      this.error.value = undefined;
    } catch (error) {
      if (round === this.round) this.error.value = error;
    } finally {
      if (round === this.round) this.loading.value = false;
    }
  };
}

/**
 * A resource of a component. Another `key` is another thing: what was there goes. Another `version` of it is fetched while what
 * was there stays, and so it is after each `every` milliseconds while the page is seen and not paused. What is `known` of it is shown
 * until the first answer comes.
 */
export function useResource<T>(key: string, fetcher: () => Promise<T>, every?: number, version: string | number = "", known?: T): Resource<T> {
  const resource = useMemo(() => new Resource(fetcher, known), [key]);
  resource.fetcher = fetcher;
  useEffect(() => void resource.reload(), [resource, version]);
  useEffect(() => {
    if (!every) return;
    const timer = setInterval(() => {
      if (!document.hidden && !paused.value && !resource.loading.value) void resource.reload();
    }, every);
    return () => clearInterval(timer);
  }, [resource, every]);
  return resource;
}

/** A value that changes no more often than each `ms` milliseconds; the last one always comes. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  const at = useRef(0);
  useEffect(() => {
    if (value === settled) return;
    const timer = setTimeout(() => {
      at.current = Date.now();
      setSettled(value);
    }, Math.max(0, at.current + ms - Date.now()));
    return () => clearTimeout(timer);
  }, [value, settled]);
  return settled;
}
