// A text as a QR code (ISO/IEC 18004): bytes, level L, versions 1 to 15, which hold 520 bytes.

/** Of each version: bytes in all, bytes of correction in a block, blocks, and where alignment patterns stand. */
const VERSIONS: [number, number, number, number[]][] = [
  [26, 7, 1, []], [44, 10, 1, [6, 18]], [70, 15, 1, [6, 22]], [100, 20, 1, [6, 26]], [134, 26, 1, [6, 30]], [172, 18, 2, [6, 34]], [196, 20, 2, [6, 22, 38]], [242, 24, 2, [6, 24, 42]],
  [292, 30, 2, [6, 26, 46]], [346, 18, 4, [6, 28, 50]], [404, 20, 4, [6, 30, 54]], [466, 24, 4, [6, 32, 58]], [532, 26, 4, [6, 34, 62]], [581, 30, 4, [6, 26, 46, 66]], [655, 22, 6, [6, 26, 48, 70]],
];

// Powers and logarithms in the field of 256 elements of the code.
const POWERS: number[] = [1];
for (let n = 1; n < 255; n++) POWERS.push((POWERS[n - 1]! << 1) ^ (POWERS[n - 1]! >= 128 ? 0x11d : 0));
const LOGARITHMS = new Map(POWERS.map((power, n): [number, number] => [power, n]));
const times = (a: number, b: number) => (a === 0 || b === 0 ? 0 : POWERS[(LOGARITHMS.get(a)! + LOGARITHMS.get(b)!) % 255]!);

/** The bytes that correct a block. */
function correction(block: number[], length: number): number[] {
  let divisor = [1];
  for (let n = 0; n < length; n++) divisor = [...divisor, 0].map((one, place) => one ^ times(divisor[place - 1] ?? 0, POWERS[n]!));
  const rest = [...block, ...Array<number>(length).fill(0)];
  for (let at = 0; at < block.length; at++) {
    const factor = rest[at]!;
    divisor.forEach((one, place) => (rest[at + place]! ^= times(one, factor)));
  }
  return rest.slice(block.length);
}

/** All bytes of a code, in the order in which they are drawn; `undefined` where the text is too long. */
function bytesOf(text: string): { bytes: number[]; version: number } | undefined {
  const content = [...new TextEncoder().encode(text)];
  const index = VERSIONS.findIndex(([all, ec, blocks], at) => content.length + (at < 9 ? 2 : 3) <= all - ec * blocks);
  if (index < 0) return undefined;
  const [all, ec, count] = VERSIONS[index]!;
  const length = content.length;
  const bits = [...`0100${length.toString(2).padStart(index < 9 ? 8 : 16, "0")}${content.map((byte) => byte.toString(2).padStart(8, "0")).join("")}0000`];
  const data = Array.from({ length: Math.ceil(bits.length / 8) }, (_, at) => parseInt(bits.slice(at * 8, at * 8 + 8).join("").padEnd(8, "0"), 2));
  const room = all - ec * count;
  for (let pad = 0; data.length < room; pad++) data.push(pad % 2 === 0 ? 0xec : 0x11);
  const least = Math.floor(room / count);
  const blocks: number[][] = [];
  for (let at = 0, n = 0; n < count; n++) {
    const size = least + (n >= count - (room % count) ? 1 : 0);
    blocks.push(data.slice(at, at + size));
    at += size;
  }
  const corrections = blocks.map((block) => correction(block, ec));
  const mixed = (parts: number[][]) => Array.from({ length: Math.max(...parts.map((part) => part.length)) }, (_, at) => parts.flatMap((part) => (at < part.length ? [part[at]!] : []))).flat();
  return { bytes: [...mixed(blocks), ...mixed(corrections)], version: index + 1 };
}

type Grid = (boolean | undefined)[][];

/** The patterns that all codes of a version have; places of the format are taken. */
function frame(version: number): Grid {
  const size = version * 4 + 17;
  const grid: Grid = Array.from({ length: size }, () => Array<boolean | undefined>(size).fill(undefined));
  const set = (x: number, y: number, isDark: boolean) => x >= 0 && y >= 0 && x < size && y < size && (grid[y]![x] = isDark);
  for (let n = 0; n < size; n++) {
    set(n, 6, n % 2 === 0);
    set(6, n, n % 2 === 0);
  }
  const places = VERSIONS[version - 1]![3];
  const last = places.at(-1);
  for (const x of places) for (const y of places) {
    if ((x === 6 && y === 6) || (x === 6 && y === last) || (x === last && y === 6)) continue;
    for (let dx = -2; dx <= 2; dx++) for (let dy = -2; dy <= 2; dy++) set(x + dx, y + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
  }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]] as const) for (let dx = -4; dx <= 4; dx++) for (let dy = -4; dy <= 4; dy++) {
    const ring = Math.max(Math.abs(dx), Math.abs(dy));
    set(x + dx, y + dy, ring !== 2 && ring !== 4);
  }
  for (const [x, y] of formatPlaces(size).flat()) grid[y]![x] ??= false;
  set(8, size - 8, true);
  if (version >= 7) {
    let rest = version << 12;
    for (let n = 5; n >= 0; n--) if (rest & (1 << (n + 12))) rest ^= 0x1f25 << n;
    const information = (version << 12) | rest;
    for (let n = 0; n < 18; n++) {
      const isDark = ((information >> n) & 1) === 1;
      set(size - 11 + (n % 3), Math.floor(n / 3), isDark);
      set(Math.floor(n / 3), size - 11 + (n % 3), isDark);
    }
  }
  return grid;
}

/** Where the two copies of the format stand, from its lowest bit on. */
function formatPlaces(size: number): [number, number][][] {
  const first: [number, number][] = [], second: [number, number][] = [];
  for (let n = 0; n < 15; n++) {
    first.push(n < 6 ? [8, n] : n < 8 ? [8, n + 1] : n === 8 ? [7, 8] : [14 - n, 8]);
    second.push(n < 8 ? [size - 1 - n, 8] : [8, size - 15 + n]);
  }
  return [first, second];
}

const MASKS: ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0, (_, y) => y % 2 === 0, (x) => x % 3 === 0, (x, y) => (x + y) % 3 === 0, (x, y) => (Math.floor(y / 2) + Math.floor(x / 3)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0, (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

function filled(base: Grid, bytes: number[], mask: number): boolean[][] {
  const size = base.length;
  const grid = base.map((row) => [...row]);
  let bit = 0;
  for (let right = size - 1, upward = true; right > 0; right -= 2, upward = !upward) {
    if (right === 6) right--;
    for (let step = 0; step < size; step++) for (const x of [right, right - 1]) {
      const y = upward ? size - 1 - step : step;
      if (base[y]![x] !== undefined) continue;
      const isDark = (((bytes[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1) === 1;
      grid[y]![x] = isDark !== MASKS[mask]!(x, y);
      bit++;
    }
  }
  // Level L is 01.
  const format = (1 << 3) | mask;
  let rest = format << 10;
  for (let n = 4; n >= 0; n--) if (rest & (1 << (n + 10))) rest ^= 0x537 << n;
  const information = ((format << 10) | rest) ^ 0x5412;
  for (const places of formatPlaces(size)) places.forEach(([x, y], n) => (grid[y]![x] = ((information >> n) & 1) === 1));
  grid[size - 8]![8] = true;
  return grid as boolean[][];
}

/** How hard a code is to read: what is alike, looks like a corner, or is too dark or too light. */
function penalty(grid: boolean[][]): number {
  const size = grid.length;
  const lines = [...grid, ...grid.map((_, x) => grid.map((row) => row[x]!))].map((line) => line.map(Number).join(""));
  let points = 0;
  for (const line of lines) {
    for (const [run] of line.matchAll(/0{5,}|1{5,}/g)) points += run.length - 2;
    points += 40 * ([...line.matchAll(/(?=10111010000)/g)].length + [...line.matchAll(/(?=00001011101)/g)].length);
  }
  for (let y = 1; y < size; y++) for (let x = 1; x < size; x++) {
    const [a, b, c, d] = [grid[y]![x], grid[y - 1]![x], grid[y]![x - 1], grid[y - 1]![x - 1]];
    if (a === b && b === c && c === d) points += 3;
  }
  const dark = grid.flat().filter(Boolean).length / (size * size);
  return points + 10 * Math.floor(Math.abs(dark * 20 - 10));
}

/** The dark places of a code, row by row; `undefined` where the text is too long. */
export function modulesOf(text: string): boolean[][] | undefined {
  const made = bytesOf(text);
  if (!made) return undefined;
  const base = frame(made.version);
  const all = MASKS.map((_, mask) => filled(base, made.bytes, mask));
  return all.reduce((best, one) => (penalty(one) < penalty(best) ? one : best));
}
