// Dark and light.

import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const system = matchMedia("(prefers-color-scheme: dark)");
export const theme = signal<Theme>((localStorage.getItem("theme") as Theme | null) ?? "system");

/** Sets what the style looks at. */
export function applyTheme(): void {
  const dark = theme.value === "dark" || (theme.value === "system" && system.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  localStorage.setItem("theme", chosen);
  applyTheme();
}

system.addEventListener("change", applyTheme);
