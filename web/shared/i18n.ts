// Texts in the person's language. A message is one line of a table, with all languages, so that none can be forgotten.
//
// `{name}` stands for a value; `{n|document|documents}` for a form by the number n, as the language counts.

import { signal } from "@preact/signals";

/** What there is. */
export const LANGUAGES = ["en", "de"] as const;
export type Language = (typeof LANGUAGES)[number];

function preferred(): Language {
  const kept = typeof localStorage === "undefined" ? null : localStorage.getItem("language");
  const wanted = kept ?? (typeof navigator === "undefined" ? "en" : navigator.language);
  return wanted.startsWith("de") ? "de" : "en";
}

export const language = signal<Language>(preferred());

export function setLanguage(chosen: Language): void {
  localStorage.setItem("language", chosen);
  // Titles of columns are made when a page's part is loaded.
  location.reload();
}

export type Values = { [name: string]: string | number };

/** A value, or two forms, in which values may stand. */
const FORMS = /\{(\w+)(?:\|((?:[^{}|]|\{\w+\})*)\|((?:[^{}|]|\{\w+\})*))?\}/g;

/** Fills a pattern in. */
export function fill(pattern: string, values: Values, locale: string): string {
  return pattern.replace(FORMS, (whole, name: string, one?: string, other?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (one === undefined) return typeof value === "number" ? new Intl.NumberFormat(locale).format(value) : value;
    return fill((new Intl.PluralRules(locale).select(Number(value)) === "one" ? one : other) ?? "", values, locale);
  });
}

/** A function that gives the texts of a table. */
export function translator<Table extends { [key: string]: readonly [string, string] }>(table: Table) {
  return (key: keyof Table, values: Values = {}): string => {
    const message = table[key];
    if (!message) return String(key);
    return fill(message[LANGUAGES.indexOf(language.value)] ?? message[0], values, language.value);
  };
}

/** The language as the person's region writes numbers and dates. */
export function locale(): string {
  const region = typeof navigator === "undefined" ? "" : navigator.language;
  return region.startsWith(language.value) ? region : language.value;
}

const dateFormats = new Map<string, Intl.DateTimeFormat>();
const numberFormats = new Map<string, Intl.NumberFormat>();

/** How dates are written. To make a format takes longer than to use it, so each is made once. */
export function dateFormat(options: Intl.DateTimeFormatOptions, place = locale()): Intl.DateTimeFormat {
  const key = `${place} ${JSON.stringify(options)}`;
  let format = dateFormats.get(key);
  if (!format) dateFormats.set(key, (format = new Intl.DateTimeFormat(place, options)));
  return format;
}

function numberFormat(digits: number): Intl.NumberFormat {
  const key = `${locale()} ${digits}`;
  let format = numberFormats.get(key);
  if (!format) numberFormats.set(key, (format = new Intl.NumberFormat(locale(), { maximumFractionDigits: digits })));
  return format;
}

/** A number as the language writes it. */
export function number(value: number | null | undefined, digits = 0): string {
  if (value === null || value === undefined) return "–";
  return numberFormat(digits).format(value);
}

/** Bytes in the unit that suits them, of 1,024 each. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let [amount, unit] = [value, 0];
  while (Math.abs(amount) >= 1024 && unit < units.length - 1) [amount, unit] = [amount / 1024, unit + 1];
  return `${number(amount, unit === 0 || amount >= 100 ? 0 : 1)} ${units[unit]}`;
}

/** A duration in its two largest units. */
export function duration(seconds: number): string {
  const parts: [number, string][] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  let rest = Math.max(0, Math.round(seconds));
  const told: string[] = [];
  for (const [length, unit] of parts) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) told.push(`${number(count)} ${unit}`);
    else if (told.length > 0) break;
    if (told.length === 2) break;
  }
  return told.join(" ") || "0 s";
}

/** A moment, in the person's time zone. */
export function moment(time: string | number | Date): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  return dateFormat({ dateStyle: "short", timeStyle: "medium" }).format(date);
}
