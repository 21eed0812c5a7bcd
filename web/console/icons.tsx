// Pictures of the sections, as lines.

const PATHS: { [name: string]: string } = {
  overview: "M3 12h4l3 7 4-14 3 7h4",
  databases: "M4 6c0-4 16-4 16 0v12c0 4-16 4-16 0zM4 6c0 4 16 4 16 0M4 12c0 4 16 4 16 0",
  people: "M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM2 21c0-8 14-8 14 0M17 11a3 3 0 1 0 0-6M18 14c3 0 4 3 4 7",
  mail: "M3 6h18v12H3zM3 7l9 7 9-7",
  replication: "M4 9h13l-3-3M20 15H7l3 3",
  backups: "M4 4h16v5H4zM5 9v11h14V9M9 13h6",
  tasks: "M4 6l2 2 3-4M4 13l2 2 3-4M4 20l2 2 3-4M13 6h8M13 13h8M13 20h8",
  log: "M5 3h14v18H5zM9 8h6M9 12h6M9 16h4",
  statistics: "M4 20V4M4 20h17M8 16v-4M12 16V8M16 16v-6M20 16V6",
  configuration: "M4 7h9M19 7h1M4 17h1M11 17h9M16 4v6M8 14v6",
};

export function Icon({ name }: { name: string }) {
  return <svg viewBox="0 0 24 24" aria-hidden="true"><path d={PATHS[name] ?? ""} stroke-linecap="round" stroke-linejoin="round" /></svg>;
}
