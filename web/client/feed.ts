// What changes on the server while somebody looks: one stream of events for a page. Where there is none, the page asks now and then.

import { addressOf, ask, type Json } from "../shared/api.ts";

/** A stream that was refused is tried again so often; until then the page asks by itself. */
const AGAIN_MS = 15_000;
/** A page that nobody sees keeps its stream for so long. */
const HIDDEN_MS = 60_000;
const HEARTBEAT_MS = 25_000;
/** A session ends when nothing is asked for ten minutes, and somebody who reads asks for nothing. */
const ALIVE_MS = 240_000;

/**
 * Calls `changed` when a database has changed, until the function that it gives is called; and once when the stream begins, since what
 * the page has read may be older.
 */
export function follow(database: string, changed: (isFirst: boolean) => void): () => void {
  const address = addressOf("_feed", { databases: [database] as Json, heartbeat: HEARTBEAT_MS });
  let source: EventSource | undefined;
  let reached: string | null | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const told = (event: MessageEvent<string>) => {
    const { seq } = JSON.parse(event.data) as { seq: string | null };
    const isFirst = reached === undefined;
    if (seq === reached) return;
    reached = seq;
    changed(isFirst);
  };
  const open = () => {
    clearTimeout(timer);
    if (source && source.readyState !== EventSource.CLOSED) return;
    source = new EventSource(address);
    source.onmessage = told;
    source.onerror = () => {
      // A connection that broke is opened again by the browser; one that was refused is not.
      if (source?.readyState !== EventSource.CLOSED) return;
      changed(false);
      timer = setTimeout(open, AGAIN_MS);
    };
  };
  const seen = () => {
    clearTimeout(timer);
    if (!document.hidden) open();
    else timer = setTimeout(() => source?.close(), HIDDEN_MS);
  };
  const alive = setInterval(() => !document.hidden && void ask("GET", "_session").catch(() => undefined), ALIVE_MS);
  document.addEventListener("visibilitychange", seen);
  open();
  return () => {
    clearTimeout(timer);
    clearInterval(alive);
    document.removeEventListener("visibilitychange", seen);
    source?.close();
  };
}
