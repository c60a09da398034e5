// The life of a job as a line: it waited, had nodes, waited again. Its turns are on the strips.
import { isFinal, isWaiting, type Job, type Run } from "./state.ts";
import { element, instantText, spanText } from "./text.ts";

export interface Piece {
  what: "waited" | "ran";
  from: number;
  to: number;
  on: string; // nodes
}

/** From its submission to its end, or to now; `earlier` are runs of it before those that were watched. */
export function pieces(job: Job, now: number, earlier: Run[] = []): Piece[] {
  if (job.submit === null) return [];
  const end = isFinal(job) ? (job.end ?? job.stays.at(-1)?.to ?? now) : now;
  const all: Piece[] = [];
  let at = Math.min(job.submit, ...earlier.map((run) => run.job.submit ?? Infinity));
  const stays = [...earlier.flatMap((run) => run.job.stays), ...job.stays].sort((a, b) => a.from - b.from);
  for (const stay of stays) {
    if (stay.from > at) all.push({ what: "waited", from: at, to: stay.from, on: "" });
    const to = Math.max(stay.from, stay.to ?? end);
    all.push({ what: "ran", from: stay.from, to, on: stay.on.length === 1 ? stay.on[0]! : `${stay.on.length} nodes` });
    at = to;
  }
  if (isWaiting(job) && now > at) all.push({ what: "waited", from: at, to: now, on: "" });
  return all.filter((piece) => piece.to > piece.from);
}

export class LifeLine {
  readonly root = element("div", { class: "life" });
  private shown = "";

  update(job: Job, now: number, color: string, earlier: Run[]): void {
    const all = job.array ? [] : pieces(job, now, earlier);
    this.root.hidden = all.length === 0;
    const key = JSON.stringify(all.map((piece) => [piece.what, piece.from, Math.round(piece.to / 5e6)]));
    if (this.root.hidden || key === this.shown) return;
    this.shown = key;
    const bar = element("div", { class: "lifebar", "aria-hidden": "true" });
    const whole = all.at(-1)!.to - all[0]!.from;
    const words = all.map((piece) => {
      const part = element("i", { class: piece.what, title: `${piece.what} ${spanText(piece.to - piece.from)}` });
      part.style.flexGrow = String(Math.max(0.01, (piece.to - piece.from) / whole));
      if (piece.what === "ran") part.style.background = color;
      bar.append(part);
      return piece.what === "waited" ? `waited ${spanText(piece.to - piece.from)}` : `had ${piece.on} for ${spanText(piece.to - piece.from)}`;
    });
    // Only the last of many requeues are shown.
    const told = words.length > 6 ? ["…", ...words.slice(-5)] : words;
    this.root.replaceChildren(bar, element("p", { class: "hint" },
      `Submitted ${instantText(all[0]!.from, now)}; ${told.join(", ")}${isFinal(job) ? "; ended" : ""}.`));
  }
}
