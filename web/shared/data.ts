// What pages show: fetched when they open, kept while they fetch again, followed while somebody looks.

import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

/** Whether live pages stand still. */
export const paused = signal(false);

export class Resource<T> {
  readonly data: Signal<T | undefined> = signal(undefined);
  readonly error: Signal<unknown> = signal(undefined);
  readonly loading = signal(false);
  private round = 0;

  constructor(private fetcher: () => Promise<T>) {}

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

/** A resource of a component; `every` says in how many milliseconds it is fetched again while the page is seen and not paused. */
export function useResource<T>(key: string, fetcher: () => Promise<T>, every?: number): Resource<T> {
  const resource = useMemo(() => new Resource(fetcher), [key]);
  useEffect(() => {
    void resource.reload();
    if (!every) return;
    const timer = setInterval(() => {
      if (!document.hidden && !paused.value && !resource.loading.value) void resource.reload();
    }, every);
    return () => clearInterval(timer);
  }, [resource, every]);
  return resource;
}
