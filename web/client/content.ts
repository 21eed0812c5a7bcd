// Content lines of iCalendar (RFC 5545) and vCard (RFC 6350). What nobody changes is written back as it came.

/** `raw` is the line as it was read. */
export type Line = { name: string; parameters: [string, string][]; value: string; raw?: string };
export type Component = { name: string; lines: Line[]; parts: Component[] };

/** More is no calendar of anybody. */
const LINES_MAX = 100_000;
const DEPTH_MAX = 20;
/** Bytes of a written line, without its end (RFC 5545, section 3.1). */
const LINE_BYTES_MAX = 75;

/** Reads one line; `undefined` for what cannot be read. */
export function readLine(text: string): Line | undefined {
  const pieces: string[] = [];
  let [start, quoted] = [0, false];
  let end = -1;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (letter === '"') quoted = !quoted;
    if (quoted || (letter !== ";" && letter !== ":")) continue;
    pieces.push(text.slice(start, at));
    start = at + 1;
    if (letter === ":") {
      end = at;
      break;
    }
  }
  // A group of vCard stands before the name.
  const name = (pieces[0] ?? "").split(".").at(-1)!.toUpperCase();
  if (end < 0 || !/^[A-Z0-9-]+$/.test(name)) return undefined;
  const parameters = pieces.slice(1).map((piece): [string, string] => {
    const cut = piece.indexOf("=");
    return cut < 0 ? ["TYPE", piece] : [piece.slice(0, cut).toUpperCase(), piece.slice(cut + 1).replace(/^"(.*)"$/, "$1")];
  });
  return { name, parameters, value: text.slice(end + 1), raw: text };
}

/** Reads a text of one component; lines that cannot be read are left out. `undefined` for another text. */
export function parse(text: string): Component | undefined {
  const lines = text.replace(/\r?\n[ \t]/g, "").split(/\r?\n/, LINES_MAX);
  const open: Component[] = [];
  let whole: Component | undefined;
  for (const written of lines) {
    const line = readLine(written);
    if (!line) continue;
    const here = open.at(-1);
    if (line.name === "BEGIN") {
      if (open.length >= DEPTH_MAX || (!here && whole)) return undefined;
      const part: Component = { name: line.value.trim().toUpperCase(), lines: [], parts: [] };
      if (here) here.parts.push(part);
      else whole = part;
      open.push(part);
    } else if (line.name === "END") {
      if (open.pop()?.name !== line.value.trim().toUpperCase()) return undefined;
    } else here?.lines.push(line);
  }
  return open.length === 0 ? whole : undefined;
}

function written(line: Line): string {
  if (line.raw !== undefined) return line.raw;
  const parameters = line.parameters.map(([name, value]) => {
    const clean = value.replace(/["\r\n]/g, "");
    return `;${name}=${/[,;:]/.test(clean) && !/^[\w.-]+(,[\w.-]+)*$/.test(clean) ? `"${clean}"` : clean}`;
  });
  return `${line.name}${parameters.join("")}:${line.value.replace(/[\r\n]/g, "")}`;
}

/** Breaks a line that is too long, never within a letter. */
export function fold(line: string): string {
  const pieces: string[] = [];
  let [piece, bytes] = ["", 0];
  for (const letter of line) {
    const code = letter.codePointAt(0)!;
    const length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (bytes + length > LINE_BYTES_MAX) {
      pieces.push(piece);
      [piece, bytes] = [" ", 1];
    }
    piece += letter;
    bytes += length;
  }
  return [...pieces, piece].join("\r\n");
}

/** A component as it is stored. */
export function write(component: Component): string {
  const lines = component.lines.map((line) => `${fold(written(line))}\r\n`);
  return `BEGIN:${component.name}\r\n${lines.join("")}${component.parts.map(write).join("")}END:${component.name}\r\n`;
}

/** A text within a value (RFC 5545, section 3.3.11). */
export const escapeText = (text: string): string => text.replace(/\\/g, "\\\\").replace(/;/g, "\\;").replace(/,/g, "\\,").replace(/\r\n|\r|\n/g, "\\n");
export const unescapeText = (value: string): string => value.replace(/\\([\\;,nN])/g, (_, letter: string) => (letter === "n" || letter === "N" ? "\n" : letter));

/** The values of a list, cut where no backslash stands before the mark. */
export function values(value: string, mark: "," | ";"): string[] {
  const found = [""];
  for (let at = 0; at < value.length; at++) {
    const letter = value[at]!;
    if (letter === mark) found.push("");
    else found[found.length - 1] += letter === "\\" ? letter + (value[++at] ?? "") : letter;
  }
  return found;
}

export const lineOf = (component: Component, name: string): Line | undefined => component.lines.find((line) => line.name === name);
export const textOf = (component: Component, name: string): string => unescapeText(lineOf(component, name)?.value ?? "");
export const parameterOf = (line: Line | undefined, name: string): string => line?.parameters.find(([known]) => known === name)?.[1] ?? "";

/** Puts a line in the place of all of its name; without a value they go. */
export function setLine(component: Component, name: string, value: string | undefined, parameters: [string, string][] = []): void {
  const place = component.lines.findIndex((line) => line.name === name);
  component.lines = component.lines.filter((line) => line.name !== name);
  if (value === undefined) return;
  component.lines.splice(place < 0 ? component.lines.length : place, 0, { name, parameters, value });
}

/** Another copy, which may be changed. */
export const copyOf = (component: Component): Component => structuredClone(component);
