import type { PartProps } from "./database.tsx";
export function Part(_: PartProps) { return null; }
