// The Sieve script that answers while a person is away: its text of what they have entered, and what they have entered of its text.

/** One's scripts as the server keeps them. */
export type Scripts = { active: string; scripts: { [name: string]: string }; version: string };

export type Away = { on: boolean; from: string; until: string; subject: string; text: string };

/** The name of the script. */
export const AWAY = "Out of office";

const NOTHING: Away = { on: false, from: "", until: "", subject: "", text: "" };

/** What was entered stands in the first line, as JSON. */
const FIRST = "# out of office: ";

/** In the last line: the name of the script that the answer includes, which goes on sorting mail. */
const INCLUDED = /^include :personal :optional "((?:[^"\\]|\\.)*)";$/;

/** A quoted string of Sieve (RFC 5228, section 2.4.2). */
const quoted = (text: string) => `"${text.replace(/[\\"]/g, "\\$&")}"`;

const oneLine = (text: string) => text.replace(/[\u0000-\u001f\u007f]+/g, " ").trim();

export function awayOf({ active, scripts }: Scripts): Away {
  const first = scripts[AWAY]?.split("\n", 1)[0] ?? "";
  if (!first.startsWith(FIRST)) return NOTHING;
  try {
    return { ...NOTHING, ...(JSON.parse(first.slice(FIRST.length)) as Away), on: active === AWAY };
  } catch {
    return NOTHING;
  }
}

/** The script that sorts mail besides the answer, if there is one. */
function sorter({ active, scripts }: Scripts): string {
  if (active !== AWAY) return active;
  const name = INCLUDED.exec((scripts[AWAY] ?? "").trimEnd().split("\n").at(-1)!)?.[1]?.replace(/\\(.)/g, "$1") ?? "";
  return name in scripts ? name : "";
}

function scriptOf(away: Away, included: string): string {
  const { from, until, subject, text } = away;
  const days = [from && `currentdate :value "ge" "date" ${quoted(from)}`, until && `currentdate :value "le" "date" ${quoted(until)}`].filter(Boolean);
  const answer = `vacation :days 7 ${subject ? `:subject ${quoted(oneLine(subject))} ` : ""}${quoted(text)};`;
  const lines = [
    // A line that a program reads again: no line of it ends early.
    FIRST + JSON.stringify({ ...away, subject: oneLine(subject) }),
    'require ["vacation", "date", "relational", "include"];',
    days.length > 0 ? `if allof (${[...days, "true"].join(", ")}) {\n  ${answer}\n}` : answer,
    included && `include :personal :optional ${quoted(included)};`,
  ];
  return `${lines.filter(Boolean).join("\n")}\n`;
}

/** The scripts with the answer as it was entered. */
export function withAway(scripts: Scripts, away: Away): Scripts {
  const included = sorter(scripts);
  const text = scriptOf(away, included);
  return { ...scripts, active: away.on ? AWAY : included, scripts: { ...scripts.scripts, [AWAY]: text } };
}
