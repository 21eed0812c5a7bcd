// What can be said of a Mango selector without asking the server.

import type { Json } from "../shared/api.ts";

/** The fields that it names outside of `$or` and `$not`: those that an index could serve; equal ones come first. */
export function fieldsOf(selector: Json): string[] {
  const exact = new Set<string>();
  const ranged = new Set<string>();
  const visit = (part: Json, prefix: string, depth: number) => {
    if (part === null || typeof part !== "object" || Array.isArray(part) || depth > 20) return;
    for (const [name, condition] of Object.entries(part)) {
      if (name === "$and" && Array.isArray(condition)) condition.forEach((one) => visit(one, prefix, depth + 1));
      else if (!name.startsWith("$")) note(prefix + name, condition, depth);
    }
  };
  const note = (field: string, condition: Json, depth: number) => {
    const isObject = condition !== null && typeof condition === "object" && !Array.isArray(condition);
    const operators = isObject ? Object.keys(condition) : ["$eq"];
    if (operators.length > 0 && operators.every((name) => !name.startsWith("$"))) visit(condition, `${field}.`, depth + 1);
    else if (operators.includes("$eq")) exact.add(field);
    else if (operators.some((name) => ["$gt", "$gte", "$lt", "$lte", "$in", "$beginsWith", "$regex"].includes(name))) ranged.add(field);
  };
  visit(selector, "", 0);
  return [...exact, ...ranged].filter((field) => field !== "_id");
}
