// Values of settings as people write them: `4 GB` and `1 min`, which the server's data has as numbers.

const plain = (value: string) => (/^".*"$/.test(value) ? value.slice(1, -1) : value);

/** Of all keys, from the text of `show configuration`. */
export function writtenValues(text: string): Map<string, string> {
  const found = new Map<string, string>();
  let section = "";
  for (const line of text.split("\n")) {
    section = /^\[(.+)\]$/.exec(line)?.[1] ?? section;
    const [, key, value] = /^(\w+) = (.*\S)\s+# [^#]*$/.exec(line) ?? [];
    if (key !== undefined && value !== undefined) found.set(`${section}.${key}`, plain(value));
  }
  return found;
}

/** Of one key, from the text of `show configuration KEY`. */
export function writtenValue(text: string): string | undefined {
  const value = /^\S+ = (.*\S)\s+\([^()]*\)$/m.exec(text)?.[1];
  return value === undefined ? undefined : plain(value);
}
