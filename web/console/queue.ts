// The queue of outgoing mail, as the server tells it.

/** Its states, in the order in which an entry goes through them. */
export const QUEUES = ["incoming", "active", "deferred", "hold", "dead"] as const;
export type QueueName = (typeof QUEUES)[number];
export type Destination = { destination: string; recipients: number; bytes: number; oldest: string; next: string; why: string | null } & { [queue in QueueName]: number };
export type Entry = { id: string; queue: QueueName; from: string; to: string; attempts: number; next: string; why: string; message_id: string | null; bytes: number };
export type Queued = { destinations: Destination[]; entries: Entry[]; more: number };

/** Destinations whose oldest message has waited for longer than this are worth a look. */
const LONG_MS = 3_600_000;

/** Where mail has waited long, the longest first. */
export function stuck(destinations: Destination[], now: number): Destination[] {
  const waits = ({ incoming, active, deferred }: Destination) => incoming + active + deferred > 0;
  return destinations
    .filter((one) => waits(one) && one.why && now - Date.parse(one.oldest) > LONG_MS)
    .sort((a, b) => Date.parse(a.oldest) - Date.parse(b.oldest));
}
