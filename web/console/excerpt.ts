// Documents in a line, and what differs between two of them.

import type { Json } from "../shared/api.ts";

/** The members of a document in one line, shortened. */
export function excerpt(document: { [member: string]: Json }, most = 240): string {
  const parts: string[] = [];
  let length = 0;
  for (const [name, value] of Object.entries(document)) {
    if (name === "_id" || name === "_rev") continue;
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const part = `${name}: ${text.slice(0, 120)}`;
    parts.push(part);
    length += part.length;
    if (length > most) break;
  }
  return parts.join("  ·  ").slice(0, most);
}

/** Members of two documents side by side; those that are equal come last. */
export function compare(mine: { [member: string]: Json }, theirs: { [member: string]: Json }): { name: string; mine: string; theirs: string; differs: boolean }[] {
  const shown = (value: Json | undefined) => (value === undefined ? "" : JSON.stringify(value, null, 1));
  const names = [...new Set([...Object.keys(mine), ...Object.keys(theirs)])].filter((name) => !["_rev", "_conflicts", "_revs_info", "_revisions"].includes(name));
  const rows = names.map((name) => ({ name, mine: shown(mine[name]), theirs: shown(theirs[name]), differs: shown(mine[name]) !== shown(theirs[name]) }));
  return rows.sort((a, b) => Number(b.differs) - Number(a.differs));
}
