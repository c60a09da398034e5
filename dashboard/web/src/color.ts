// Colors of jobs that keep: from the UID, so they are the same in every browser but where two jobs
// that are there together would have the same one.
const HUES = [212, 28, 152, 268, 46, 338, 186, 96, 238, 8, 310, 66];

function hash(text: string): number {
  let value = 2166136261;
  for (let i = 0; i < text.length; ++i) {
    value ^= text.charCodeAt(i);
    value = Math.imul(value, 16777619);
  }
  // The last bits of similar texts are similar.
  value ^= value >>> 15;
  value = Math.imul(value, 2246822507);
  return (value ^ (value >>> 13)) >>> 0;
}

const COLORS = HUES.length * 2;
const known = new Map<string, number>();

/** Gives each of these jobs its color: the one of its UID, or the next that no job of `present` has. */
export function giveColors(uids: Iterable<string>, present: ReadonlySet<string>): void {
  const taken = new Set<number>();
  for (const other of present) {
    const color = known.get(other);
    if (color !== undefined) taken.add(color);
  }
  for (const uid of uids) {
    if (known.has(uid)) continue;
    const own = hash(uid) % COLORS;
    let color = own;
    // Steps of five lead through all of them, and neighbors differ much.
    for (let i = 0; i < COLORS && taken.has(color); ++i) color = (color + 5) % COLORS;
    if (taken.has(color)) color = own;
    known.set(uid, color);
    if (present.has(uid)) taken.add(color);
  }
}

/** Tasks have the color of their array: their uid is that of the array, "_" and a number. */
export function jobColor(of: string, dark: boolean): string {
  const uid = of.split("_")[0]!;
  const color = known.get(uid) ?? hash(uid) % COLORS;
  const hue = HUES[color % HUES.length]!;
  const strong = color < HUES.length;
  const lightness = dark ? (strong ? 66 : 75) : strong ? 69 : 78;
  return `hsl(${hue} ${strong ? 58 : 44}% ${lightness}%)`;
}
