// The life of a job as a line: it waited, had nodes, was suspended there, waited again. Its single turns are on the strips.
import { isFinal, isWaiting, type Job, type Pause, type Run, type Stay } from "./state.ts";
import { element, instantText, pauseText, spanText } from "./text.ts";

export interface Piece {
  what: "waited" | "ran" | "paused";
  from: number;
  to: number;
  on: string; // nodes
  pause?: Pause;
  after?: Stay; // it waited after it had these nodes
}

const placeText = (on: string[]) => (on.length === 1 ? on[0]! : `${on.length} nodes`);

/** From its submission to its end, or to now; `earlier` are runs of it before those that were watched. */
export function pieces(job: Job, now: number, earlier: Run[] = []): Piece[] {
  if (job.submit === null) return [];
  const end = isFinal(job) ? (job.end ?? job.stays.at(-1)?.to ?? now) : now;
  const all: Piece[] = [];
  let at = Math.min(job.submit, ...earlier.map((run) => run.job.submit ?? Infinity));
  let after: Stay | undefined;
  const stays = [...earlier.flatMap((run) => run.job.stays), ...job.stays].sort((a, b) => a.from - b.from);
  const wait = (to: number) => {
    if (to > at) all.push({ what: "waited", from: at, to, on: "", ...(after && { after }) });
  };
  for (const stay of stays) {
    wait(stay.from);
    const on = placeText(stay.on);
    const to = Math.max(stay.from, stay.to ?? end);
    let ran = stay.from;
    for (const pause of stay.pauses ?? []) {
      all.push({ what: "ran", from: ran, to: pause.from, on });
      ran = Math.max(pause.from, pause.to ?? end);
      all.push({ what: "paused", from: pause.from, to: ran, on, pause });
    }
    all.push({ what: "ran", from: ran, to, on });
    at = to;
    after = stay;
  }
  if (isWaiting(job)) wait(now);
  return all.filter((piece) => piece.to > piece.from);
}

/** How long it stood still between its turns on the nodes that it had last; `ran`: in all, of its last start. */
export function frozenInTurns(job: Job, now: number, ran: number): number {
  const last = job.stays.at(-1);
  if (!last || job.start === null) return 0;
  const end = last.to ?? now;
  const paused = (last.pauses ?? []).reduce((sum, { from, to }) => sum + Math.max(0, (to ?? end) - from), 0);
  const frozen = end - Math.max(last.from, job.start) - paused - ran;
  return frozen > 1e6 ? frozen : 0;
}

/** "waited 3 min", "requeued for urgent", "suspended by its user for 20 s"; `name`: of a job, by its uid. */
export function pieceText({ what, from, to, on, pause, after }: Piece, name: (uid: string) => string): string[] {
  const span = spanText(to - from);
  if (what === "ran") return [`had ${on} for ${span}`];
  if (what === "waited") {
    const why = after?.endedFor ? [`requeued for ${name(after.endedFor)}`] : after ? ["requeued"] : [];
    return [...why, `waited ${span}`];
  }
  return [`suspended ${pauseText(pause!, name)} for ${span}`];
}

export class LifeLine {
  readonly root = element("div", { class: "life" });
  private shown = "";

  /** `ran`: how long in its last start. */
  update(job: Job, now: number, color: string, earlier: Run[], ran: number, name: (uid: string) => string): void {
    const all = job.array ? [] : pieces(job, now, earlier);
    this.root.hidden = all.length === 0;
    const words = all.map((piece) => pieceText(piece, name));
    const key = JSON.stringify(all.map(({ what, from, to }, i) => [what, from, Math.round(to / 1e6), words[i]!.length]));
    if (this.root.hidden || key === this.shown) return;
    this.shown = key;
    const bar = element("div", { class: "lifebar", "aria-hidden": "true" });
    const whole = all.at(-1)!.to - all[0]!.from;
    all.forEach((piece, i) => {
      const part = element("i", { class: piece.what, title: words[i]!.join(", ") });
      part.style.flexGrow = String(Math.max(0.01, (piece.to - piece.from) / whole));
      if (piece.what === "ran") part.style.background = color;
      if (piece.what === "paused") part.style.color = color;
      bar.append(part);
    });
    const last = job.stays.at(-1);
    if (last?.endedFor && isFinal(job)) words.push([`ended for ${name(last.endedFor)}`]);
    else if (isFinal(job)) words.push(["ended"]);
    const flat = words.flat();
    // Only the last of many requeues are shown.
    const told = flat.length > 7 ? ["…", ...flat.slice(-6)] : flat;
    const frozen = frozenInTurns(job, now, ran);
    const turns = frozen > 0 ? ` Other jobs had their turns for ${spanText(frozen)} of that.` : "";
    this.root.replaceChildren(bar, element("p", { class: "hint" },
      `Submitted ${instantText(all[0]!.from, now)}; ${told.join(", ")}.${turns}`));
  }
}
