// Nodes × time on a canvas: a strip for each node, the past as it was watched and as records remember it, a line for
// now, and the future as the timetables and the plan say.
import { jobColor } from "./color.ts";
import { type Past } from "./past.ts";
import { boundaryAfter, runAt, share, type Timetable } from "./run.ts";
import { expectedStart, isFinal, isWaiting, titleOf, type OnNode, type State } from "./state.ts";
import { clockText, element, instantText, reasonText, spanText, stateText } from "./text.ts";

const SECOND = 1e6;
const SPAN_MIN = SECOND;
const SPAN_MAX = 7 * 86400 * SECOND;
const NOW_AT = 0.62; // of the width, while the picture follows the clock
const TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800,
  21600, 43200, 86400, 172800, 604800].map((seconds) => seconds * SECOND);
const THINNEST = 1.5; // px of a slice; below, the strip shows shares
const AXIS = 24;
const GROUP = 22;

interface Row {
  node: string;
  partition: string; // of a heading
  y: number;
  height: number;
}

interface Theme {
  ink: string;
  faint: string;
  line: string;
  strip: string;
  now: string;
  warn: string;
  link: string;
  foreign: string;
  dark: boolean;
}

export interface Picked {
  node: string;
  t: number;
  jobs: { uid: string; at: OnNode; runs: boolean; planned: boolean; isKnown: boolean }[]; // whose turn it was
}

/** What would result of a question: a job that there is not. */
export interface Supposed {
  on: string[];
  from: number;
  to: number;
  hasLimit: boolean;
}

export class NodesView {
  readonly root: HTMLElement;
  private readonly canvas = element("canvas", {
    tabindex: "0",
    role: "img",
    class: "strips",
    "aria-describedby": "strips-help",
  });
  private readonly scroller = element("div", { class: "scroller" });
  private readonly filler = element("div");
  private readonly spoken = element("p", { class: "unseen", role: "status", "aria-live": "polite" });
  private readonly scale = element("span", { class: "scale" });
  private readonly pastNote = element("p", { class: "hint pastnote", role: "status" });
  private readonly empty = element("div", { class: "empty", hidden: "" });
  private readonly context = this.canvas.getContext("2d", { alpha: false })!;
  private rows: Row[] = [];
  private width = 0;
  private height = 0;
  private gutter = 90;
  private span = 0; // µs across the strips
  private from = 0; // of the left edge, if it does not follow
  private follows = true;
  private selected = 0;
  private pointer: { x: number; y: number } | null = null;
  private theme: Theme;
  private timer = 0;
  private drawn = -1;
  private supposed: Supposed | null = null;
  private unsupposed = { span: 0, follows: true, from: 0 }; // where the picture was before

  constructor(
    private readonly state: State,
    private readonly past: Past,
    private readonly tip: HTMLElement,
    private readonly open: (ns: string, name: string) => void,
  ) {
    this.theme = readTheme();
    const button = (label: string, key: string, act: () => void) => {
      const made = element("button", { type: "button", title: `key ${key}` }, label);
      made.addEventListener("click", act);
      return made;
    };
    const tools = element(
      "div",
      { class: "tools" },
      button("Now", "n", () => this.goToNow()),
      button("−", "-", () => this.zoom(1.6)),
      button("+", "+", () => this.zoom(1 / 1.6)),
      this.scale,
    );
    tools.children[1]!.setAttribute("aria-label", "show more time");
    tools.children[2]!.setAttribute("aria-label", "show less time");
    const help = element("p", { id: "strips-help", class: "hint" },
      "Wheel or + and −: zoom. Drag or ← and →: move. ↑ ↓: nodes. Enter or click: the job. n: now.");
    this.scroller.append(this.canvas, this.filler);
    this.root = element("section", { class: "nodes", "aria-label": "Nodes and time" }, tools,
      this.empty, this.scroller, element("div", { class: "foot" }, this.pastNote, help), this.spoken);
    this.listen();
  }

  start(): void {
    if (this.timer !== 0) return;
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.scroller);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.theme = readTheme();
      this.draw();
    });
    this.resize();
    const tick = () => {
      if (this.root.isConnected && !document.hidden) this.draw();
      this.timer = window.setTimeout(() => requestAnimationFrame(tick), this.pause());
    };
    tick();
  }

  /** Draws a job that there is not, and moves the picture so that it is seen. */
  suppose(what: Supposed | null): void {
    const before = this.supposed;
    this.supposed = what;
    if (!what) {
      if (!before) return;
      Object.assign(this, this.unsupposed);
      this.draw();
      return;
    }
    if (!before) this.unsupposed = { span: this.span, follows: this.follows, from: this.from };
    this.draw(); // rows have their places
    const ahead = (what.to - this.state.now()) * 1.1;
    this.span = Math.min(SPAN_MAX, Math.max(10 * SECOND, ahead / (1 - NOW_AT)));
    this.follows = true;
    const first = this.rows.find((row) => what.on.includes(row.node));
    if (first) this.scroller.scrollTop = Math.max(0, first.y - GROUP - 8);
    this.draw();
  }

  /** As often as something on the screen can move by a pixel, 30 times a second at most. */
  private pause(): number {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const perPixel = this.span / Math.max(1, this.stripsWidth) / 1000;
    return Math.min(1000, Math.max(calm ? 1000 : 33, perPixel));
  }

  private get stripsWidth(): number {
    return Math.max(10, this.width - this.gutter);
  }

  private get left(): number {
    return this.follows ? this.state.now() - NOW_AT * this.span : this.from;
  }

  private xOf(t: number): number {
    return this.gutter + ((t - this.left) / this.span) * this.stripsWidth;
  }

  private tOf(x: number): number {
    return this.left + ((x - this.gutter) / this.stripsWidth) * this.span;
  }

  private resize(): void {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    this.gutter = this.width < 600 ? 64 : 104;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawn = -1;
    this.draw();
  }

  // --- what users do ---

  private goToNow(): void {
    this.follows = true;
    this.draw();
  }

  private zoom(factor: number, x?: number): void {
    const at = x ?? (this.follows ? this.xOf(this.state.now()) : this.gutter + this.stripsWidth / 2);
    const t = this.tOf(at);
    this.span = Math.min(SPAN_MAX, Math.max(SPAN_MIN, this.span * factor));
    if (!this.follows) this.from = t - ((at - this.gutter) / this.stripsWidth) * this.span;
    this.draw();
  }

  private pan(part: number): void {
    this.from = this.left + part * this.span;
    this.follows = false;
    this.draw();
  }

  private listen(): void {
    this.canvas.addEventListener("wheel", (event) => {
      if (event.offsetX < this.gutter) return; // scrolls the nodes
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        this.pan((event.deltaX || event.deltaY) / this.stripsWidth);
      } else {
        this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.004), event.offsetX);
      }
    }, { passive: false });
    let drag: { x: number; from: number; y: number; top: number; moved: boolean } | null = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.offsetX, from: this.left, y: event.offsetY, top: this.scroller.scrollTop, moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      this.pointer = { x: event.offsetX, y: event.offsetY };
      if (drag && (drag.moved || Math.abs(event.offsetX - drag.x) > 4 || Math.abs(event.offsetY - drag.y) > 4)) {
        drag.moved = true;
        this.from = drag.from - ((event.offsetX - drag.x) / this.stripsWidth) * this.span;
        if (Math.abs(event.offsetX - drag.x) > 4) this.follows = false;
        this.scroller.scrollTop = drag.top - (event.offsetY - drag.y);
      }
      this.draw();
    });
    this.canvas.addEventListener("pointerup", () => {
      if (drag && !drag.moved) this.openAtPointer();
      drag = null;
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.tip.hidden = true;
    });
    this.scroller.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const nodes = this.rows.filter((row) => row.node !== "");
    const acts: Record<string, () => void> = {
      "+": () => this.zoom(1 / 1.6),
      "=": () => this.zoom(1 / 1.6),
      "-": () => this.zoom(1.6),
      ArrowLeft: () => this.pan(-0.15),
      ArrowRight: () => this.pan(0.15),
      ArrowUp: () => this.select(this.selected - 1),
      ArrowDown: () => this.select(this.selected + 1),
      Home: () => this.select(0),
      End: () => this.select(nodes.length - 1),
      n: () => this.goToNow(),
      Enter: () => {
        const row = nodes[this.selected];
        const picked = row && this.pick(row.node, this.state.now());
        if (picked) this.openFirst(picked);
      },
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  private select(index: number): void {
    const nodes = this.rows.filter((row) => row.node !== "");
    if (nodes.length === 0) return;
    this.selected = Math.max(0, Math.min(nodes.length - 1, index));
    const row = nodes[this.selected]!;
    const top = this.scroller.scrollTop;
    if (row.y < top) this.scroller.scrollTop = row.y - GROUP;
    if (row.y + row.height > top + this.height - AXIS) {
      this.scroller.scrollTop = row.y + row.height - this.height + AXIS;
    }
    this.spoken.textContent = this.say(this.pick(row.node, this.state.now()));
    this.draw();
  }

  private openAtPointer(): void {
    const picked = this.pointed();
    if (picked) this.openFirst(picked);
  }

  private openFirst(picked: Picked): void {
    const own = picked.jobs.filter(({ at }) => !at.job.foreign);
    const job = own.find((each) => each.runs) ?? own[0];
    if (job) this.open(job.at.job.ns, job.at.job.name);
  }

  // --- what there is at a place ---

  private pointed(): Picked | null {
    if (!this.pointer || this.pointer.x < this.gutter || this.pointer.y < AXIS) return null;
    const y = this.pointer.y - AXIS + this.scroller.scrollTop;
    const row = this.rows.find((each) => each.node !== "" && y >= each.y && y < each.y + each.height);
    return row ? this.pick(row.node, this.tOf(this.pointer.x)) : null;
  }

  pick(node: string, t: number): Picked {
    const now = this.state.now();
    const table = this.tableAt(node, t);
    const jobs: Picked["jobs"] = [];
    for (const at of this.present(node, now)) {
      if (t < at.from || (at.to !== null && t >= at.to)) continue;
      const planned = isWaiting(at.job) && at.from >= now - SECOND;
      const pod = planned || !table ? -1 : table.pods.findIndex((each) => each.job === at.uid);
      const runs = !planned && (pod < 0 || runAt(table!, t).includes(pod));
      jobs.push({ uid: at.uid, at, runs, planned, isKnown: planned || t >= this.state.began });
    }
    return { node, t, jobs };
  }

  private say(picked: Picked): string {
    const trouble = this.state.trouble(picked.node);
    const jobs = picked.jobs.map(({ at: { job }, runs, planned }) => {
      const paused = this.state.pausedAt(job, picked.t);
      const what = planned ? "is planned" : paused ? `is suspended ${paused}` : runs ? "runs" : "is frozen";
      return `${job.foreign ? "" : `job ${job.id ?? ""} `}${titleOf(job)} ${what}`;
    });
    if (this.supposed?.on.includes(picked.node)) jobs.push("your job would run here");
    return `${picked.node}: ${jobs.join(", ") || "no job"}${trouble ? `; ${trouble}` : ""}`;
  }

  /** Stays, with the ends that are expected, and those that are planned. */
  private present(node: string, now: number): OnNode[] {
    const all: OnNode[] = [];
    for (const stay of this.state.staysOn(node)) {
      const to = stay.to ?? this.state.endByLimit(stay.uid, stay.job, now);
      all.push(to === stay.to ? stay : { ...stay, to: to === null ? null : Math.max(to, now) });
    }
    return all.concat(this.planned.get(node) ?? []);
  }

  private isSupposedOn(node: string, t: number): boolean {
    const what = this.supposed;
    return what !== null && t >= what.from && t < what.to && what.on.includes(node);
  }

  private planned = new Map<string, OnNode[]>();

  private readPlans(now: number): void {
    this.planned.clear();
    for (const [uid, job] of this.state.kinds.jobs) {
      const from = expectedStart(job, now);
      if (from === null) continue;
      for (const node of job.planned) {
        const all = this.planned.get(node) ?? [];
        all.push({ uid, job, from, to: from + (job.limit ?? 3600 * SECOND) });
        this.planned.set(node, all);
      }
    }
  }

  private tableAt(node: string, t: number): Timetable | undefined {
    for (const past of this.state.pastOf(node)) if (t >= past.from && t < past.to) return past;
    return t >= this.state.began ? this.state.kinds.nodes.get(node) : undefined;
  }

  // --- the picture ---

  private layOut(): void {
    const groups = this.state.groups();
    const count = groups.reduce((sum, group) => sum + group.nodes.length, 0);
    // As high as they all fit, within what is pleasant.
    const room = (this.height - AXIS - groups.length * (GROUP + 8)) / Math.max(1, count);
    const height = Math.floor(Math.max(12, Math.min(44, room)));
    let y = 0;
    this.rows = [];
    for (const group of groups) {
      this.rows.push({ node: "", partition: group.partition || "other nodes", y, height: GROUP });
      y += GROUP;
      for (const node of group.nodes) {
        this.rows.push({ node, partition: group.partition, y, height });
        y += height;
      }
      y += 8;
    }
    const below = Math.max(0, y + AXIS - this.height);
    this.filler.style.height = `${below}px`;
    this.canvas.setAttribute("aria-label", `${count} nodes and the jobs on them over time`);
    const synced = this.state.kinds.about.get("server")?.synced === true;
    this.empty.hidden = count > 0 || !synced;
    this.scroller.hidden = count === 0 && synced;
    if (this.empty.hidden || this.empty.childElementCount > 0) return;
    this.empty.append(
      element("h2", {}, "No nodes yet"),
      element("p", {}, "A Partition says which nodes jobs may share. Make one, and its nodes are strips here:"),
      element("pre", {}, "kubectl label node NODE pool=batch\nkubectl apply -f examples/partitions.yaml"),
    );
  }

  private firstSpan(): void {
    // Ten turns of the shortest slice, or a minute.
    let slice = Infinity;
    for (const table of this.state.kinds.nodes.values()) {
      if (table.pods.length > 0) slice = Math.min(slice, table.slice);
    }
    this.span = Number.isFinite(slice)
      ? Math.min(3600 * SECOND, Math.max(10 * SECOND, 14 * slice))
      : 60 * SECOND;
  }

  draw(): void {
    if (this.width === 0 || !this.state.hasData) return;
    if (this.span === 0) this.firstSpan();
    const now = this.state.now();
    if (this.drawn !== this.state.version) {
      this.drawn = this.state.version;
      this.layOut();
    }
    this.readPlans(now);
    this.past.want(this.left, Math.min(now, this.left + this.span));
    const note = this.past.note(this.left);
    if (this.pastNote.textContent !== note) this.pastNote.textContent = note;
    const c = this.context;
    const { width, height, theme } = this;
    c.fillStyle = theme.strip;
    c.fillRect(0, 0, width, height);
    const top = this.scroller.scrollTop;
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    this.drawGrid();
    const nodes = this.rows.filter((row) => row.node !== "");
    for (const row of this.rows) {
      const y = AXIS + row.y - top;
      if (y + row.height < AXIS || y > height) continue;
      if (row.node === "") {
        c.fillStyle = theme.faint;
        c.font = "600 12px system-ui, sans-serif";
        c.fillText(row.partition, 8, y + row.height / 2 + 2);
        c.font = "12px system-ui, sans-serif";
        continue;
      }
      this.drawNode(row, y, now, nodes[this.selected] === row);
    }
    this.drawNow(now);
    this.drawAxis(now);
    this.showTip(now);
    this.scale.textContent = `${spanText(this.span)} across`;
  }

  private tick(): number {
    const wanted = (this.span / this.stripsWidth) * 90;
    return TICKS.find((each) => each >= wanted) ?? TICKS[TICKS.length - 1]!;
  }

  private ticks(): number[] {
    const tick = this.tick();
    // Days begin at midnight here, not in Greenwich.
    const zone = tick >= 3600 * SECOND ? new Date().getTimezoneOffset() * 60 * SECOND : 0;
    const first = Math.ceil((this.left - zone) / tick) * tick + zone;
    const all = [];
    for (let t = first; t < this.left + this.span; t += tick) all.push(t);
    return all;
  }

  private drawGrid(): void {
    this.context.fillStyle = this.theme.line;
    for (const t of this.ticks()) {
      this.context.fillRect(Math.round(this.xOf(t)), AXIS, 1, this.height - AXIS);
    }
  }

  private drawAxis(now: number): void {
    const c = this.context;
    c.fillStyle = this.theme.strip;
    c.fillRect(0, 0, this.width, AXIS);
    c.fillStyle = this.theme.line;
    c.fillRect(0, AXIS - 1, this.width, 1);
    c.fillStyle = this.theme.faint;
    c.textAlign = "center";
    const tick = this.tick();
    const digits = tick < SECOND ? 1 : 0;
    for (const t of this.ticks()) {
      const x = this.xOf(t);
      if (x < this.gutter + 20 || x > this.width - 20) continue;
      if (Math.abs(x - this.xOf(now)) < 84) continue;
      const at = new Date(t / 1000);
      const text =
        tick >= 86400 * SECOND
          ? `${at.getDate()}.${at.getMonth() + 1}.`
          : tick >= 60 * SECOND
            ? clockText(t).slice(0, 5)
            : clockText(t, digits);
      c.fillText(text, x, AXIS / 2);
    }
    const x = this.xOf(now);
    if (x > this.gutter && x < this.width) {
      c.font = "600 12px system-ui, sans-serif";
      c.fillStyle = this.theme.now;
      const text = `now ${clockText(now)}`;
      c.fillText(text, Math.min(Math.max(x, this.gutter + 44), this.width - 44), AXIS / 2);
      c.font = "12px system-ui, sans-serif";
    }
    c.textAlign = "left";
  }

  private drawNow(now: number): void {
    const x = this.xOf(now);
    if (x < this.gutter || x > this.width) return;
    this.context.fillStyle = this.theme.now;
    this.context.fillRect(Math.round(x) - 1, AXIS, 2, this.height - AXIS);
  }

  private drawNode(row: Row, y: number, now: number, isSelected: boolean): void {
    const c = this.context;
    const trouble = this.state.trouble(row.node);
    const gap = row.height > 16 ? 3 : 1;
    const stripTop = y + gap;
    const stripHeight = row.height - 2 * gap;
    c.save();
    c.beginPath();
    c.rect(this.gutter, Math.max(stripTop, AXIS), this.stripsWidth, stripHeight);
    c.clip();
    c.fillStyle = this.theme.line;
    c.fillRect(this.gutter, stripTop, this.stripsWidth, stripHeight);
    this.drawJobs(row.node, stripTop, stripHeight, now);
    if (this.supposed?.on.includes(row.node)) this.drawSupposed(this.supposed, stripTop, stripHeight);
    c.restore();
    if (row.height >= 12) {
      c.fillStyle = trouble ? this.theme.warn : this.theme.ink;
      if (isSelected && document.activeElement === this.canvas) {
        c.fillRect(2, y + 4, 3, row.height - 8);
      }
      c.font = row.height < 16 ? "10px system-ui, sans-serif" : "13px system-ui, sans-serif";
      const label = (trouble ? "! " : "") + row.node;
      c.fillText(shorten(c, label, this.gutter - 16), 10, y + row.height / 2 + 1);
      c.font = "12px system-ui, sans-serif";
    }
  }

  private drawJobs(node: string, y: number, height: number, now: number): void {
    const left = this.left;
    const right = left + this.span;
    const here = this.present(node, now).filter((at) => at.from < right && (at.to === null || at.to > left));
    if (here.length === 0) return;
    // Pieces of time in which the same jobs are there under the same timetable.
    const cuts = new Set<number>([left, right, Math.min(right, Math.max(left, now))]);
    const add = (t: number | null) => {
      if (t !== null && t > left && t < right) cuts.add(t);
    };
    for (const at of here) {
      add(at.from);
      add(at.to);
      add(at.job.start);
    }
    // Behind its plan a timetable repeats itself.
    const planEnd = (table: Timetable | undefined) => table?.plan.at(-1)?.until ?? null;
    for (const past of this.state.pastOf(node)) {
      add(past.from);
      add(past.to);
      const end = planEnd(past);
      if (end !== null && end < past.to) add(end);
    }
    add(planEnd(this.state.kinds.nodes.get(node)));
    add(this.state.began);
    const labels: Label[] = [];
    const order = here.map((_, i) => i).sort((a, b) => here[a]!.from - here[b]!.from);
    let next = 0;
    let present: number[] = [];
    const ends = this.farApart([...cuts].sort((a, b) => a - b));
    for (let i = 0; i + 1 < ends.length; ++i) {
      const [from, to] = [ends[i]!, ends[i + 1]!];
      while (next < order.length && here[order[next]!]!.from < to) present.push(order[next++]!);
      present = present.filter((each) => (here[each]!.to ?? Infinity) > from);
      const jobs = present.sort((a, b) => a - b).map((each) => here[each]!);
      if (jobs.length > 0) this.drawPiece(node, jobs, from, to, y, height, now, labels);
    }
    this.drawLabels(labels, y, height);
  }

  /** Instants in their order, less those that no screen tells from the one before. */
  private farApart(instants: number[]): number[] {
    const least = this.span / this.stripsWidth / 2;
    const last = instants[instants.length - 1]!;
    const kept: number[] = [];
    for (const t of instants) if (kept.length === 0 || t - kept[kept.length - 1]! >= least) kept.push(t);
    if (kept[kept.length - 1] !== last) kept.push(last);
    return kept;
  }

  private drawPiece(node: string, jobs: OnNode[], from: number, to: number, y: number,
    height: number, now: number, labels: Label[]): void {
    const c = this.context;
    const table = this.tableAt(node, from);
    const turns: { at: OnNode; pod: number }[] = [];
    const always: OnNode[] = [];
    for (const at of jobs) {
      if (isWaiting(at.job) && at.from >= now) {
        this.drawPlan(at, from, to, y, height);
        continue;
      }
      const pod = table ? table.pods.findIndex((each) => each.job === at.uid) : -1;
      if (pod < 0) always.push(at);
      else turns.push({ at, pod });
    }
    c.globalAlpha = from >= now ? 0.55 : from < this.state.began ? 0.5 : 1;
    if (turns.length === 0 || !table) {
      this.drawSet(always, from, to, y, height, labels);
    } else if ((table.slice / this.span) * this.stripsWidth < THINNEST && from >= (table.plan.at(-1)?.until ?? 0)) {
      this.drawShares(table, turns, always, from, to, y, height);
    } else {
      this.drawTurns(table, turns, always, from, to, y, height, labels);
    }
    c.globalAlpha = 1;
  }

  private drawTurns(table: Timetable, turns: { at: OnNode; pod: number }[], always: OnNode[],
    from: number, to: number, y: number, height: number, labels: Label[]): void {
    const c = this.context;
    const alpha = c.globalAlpha;
    let t = from;
    while (t < to) {
      const run = runAt(table, t);
      const end = Math.min(to, boundaryAfter(table, t));
      const frozen = turns.filter((each) => !run.includes(each.pod));
      // The gangs that stand still are a thin line below: they are still there.
      c.globalAlpha = alpha * 0.45;
      const thin = Math.max(1, Math.min(3, height * 0.12));
      this.fill(frozen.map((each) => each.at), t, end, y + height - thin, thin);
      c.globalAlpha = alpha;
      const runs = always.concat(turns.filter((each) => run.includes(each.pod)).map((each) => each.at));
      this.drawSet(runs, t, end, y, height - (frozen.length > 0 ? thin + 1 : 0), labels);
      t = end;
    }
  }

  /** Where slices are thinner than the screen allows: the part of the time that each has. */
  private drawShares(table: Timetable, turns: { at: OnNode; pod: number }[], always: OnNode[],
    from: number, to: number, y: number, height: number): void {
    const parts = always.map((at) => ({ at, part: 1 }))
      .concat(turns.map(({ at, pod }) => ({ at, part: share(table, pod) })));
    const all = parts.reduce((sum, each) => sum + each.part, 0);
    let top = y;
    for (const { at, part } of parts) {
      const own = all > 0 ? (height * part) / all : 0;
      this.fill([at], from, to, top, own);
      top += own;
    }
  }

  private drawSet(jobs: OnNode[], from: number, to: number, y: number, height: number,
    labels: Label[]): void {
    this.fill(jobs, from, to, y, height);
    const own = height / jobs.length;
    if (own < 14) return;
    jobs.forEach((at, i) => {
      const last = labels.find((each) =>
        each.uid === at.uid && each.to === from && each.lane === i && each.lanes === jobs.length &&
        each.isPale === this.context.globalAlpha < 1);
      if (last) last.to = to;
      else {
        const isPale = this.context.globalAlpha < 1;
        labels.push({ uid: at.uid, text: titleOf(at.job), from, to, lane: i, lanes: jobs.length, isPale });
      }
    });
  }

  /** The jobs below each other. */
  private fill(jobs: OnNode[], from: number, to: number, y: number, height: number): void {
    const c = this.context;
    const x = this.xOf(from);
    const end = this.xOf(to);
    const drawn = jobs.slice(0, Math.max(1, Math.floor(height)));
    const own = height / drawn.length;
    drawn.forEach((at, i) => {
      c.fillStyle = this.colorOf(at);
      const starts = at.job.state === "CF" && at.to === null;
      const alpha = c.globalAlpha;
      if (starts) c.globalAlpha = alpha * 0.5;
      c.fillRect(x, y + i * own, end - x, own);
      c.globalAlpha = alpha;
    });
  }

  private colorOf(at: OnNode): string {
    return at.job.foreign ? this.theme.foreign : jobColor(at.uid, this.theme.dark);
  }

  private drawPlan(at: OnNode, from: number, to: number, y: number, height: number): void {
    const c = this.context;
    c.save();
    c.strokeStyle = this.colorOf(at);
    c.fillStyle = c.strokeStyle;
    c.globalAlpha = 0.18;
    c.fillRect(this.xOf(from), y, this.xOf(to) - this.xOf(from), height);
    c.globalAlpha = 0.9;
    c.setLineDash([4, 3]);
    const x = Math.max(this.xOf(at.from), -10);
    const end = Math.min(this.xOf(at.to ?? to), this.width + 10);
    c.strokeRect(x + 0.5, y + 0.5, end - x - 1, height - 1);
    c.restore();
  }

  private drawSupposed(what: Supposed, y: number, height: number): void {
    const c = this.context;
    const [x, end] = [Math.max(this.xOf(what.from), -10), Math.min(this.xOf(what.to), this.width + 10)];
    c.globalAlpha = 0.3;
    c.fillStyle = this.theme.link;
    c.fillRect(x, y, end - x, height);
    c.globalAlpha = 1;
    c.strokeStyle = this.theme.link;
    c.lineWidth = 2;
    c.strokeRect(x + 1, y + 1, end - x - 2, height - 2);
    c.lineWidth = 1;
    if (height < 14 || end - x < 70) return;
    c.font = "600 12px system-ui, sans-serif";
    c.fillStyle = this.theme.ink;
    c.fillText("your job", x + 7, y + height / 2);
    c.font = "12px system-ui, sans-serif";
  }

  private drawLabels(labels: Label[], y: number, height: number): void {
    const c = this.context;
    for (const label of labels) {
      c.fillStyle = label.isPale && this.theme.dark ? this.theme.ink : "#17202b";
      const x = Math.max(this.xOf(label.from), this.gutter);
      const room = Math.min(this.xOf(label.to), this.width) - x - 12;
      if (room < 24) continue;
      const own = height / label.lanes;
      c.fillText(shorten(c, label.text, room), x + 6, y + own * (label.lane + 0.5));
    }
  }

  private showTip(now: number): void {
    const picked = this.pointed();
    if (!picked || !this.pointer) {
      this.tip.hidden = true;
      return;
    }
    this.tip.replaceChildren(
      element("div", { class: "faint" }, `${picked.node}, ${instantText(picked.t, now)}`),
    );
    for (const { uid, at, runs, planned, isKnown } of picked.jobs) {
      const dot = element("i", { class: "dot" });
      dot.style.background = this.colorOf(at);
      const next = this.state.nextSwitch(uid, now);
      const live = Math.abs(picked.t - now) < this.span / 50;
      const code = this.state.stateAt(uid, at.job, now);
      const paused = this.state.pausedAt(at.job, picked.t);
      const what = planned
        ? `planned from ${instantText(at.from, now)}`
        : !isKnown
          ? `had this node ${instantText(at.from, now)} to ${at.to === null ? "now" : instantText(at.to, now)}` +
            (isFinal(at.job) && at.job.state !== "R" ? `, ${stateText(code)}` : "")
        : code === "CF" || code === "CG"
          ? stateText(code)
        : paused
          ? `suspended ${paused}`
          : (runs ? "runs" : "frozen") +
            (live && next !== null ? `, ${runs ? "until" : "next turn"} ${clockText(next, 1)}` : "");
      this.tip.append(
        element("div", {}, dot, element("b", {}, titleOf(at.job)), at.job.foreign ? "" : ` job ${at.job.id ?? "–"}` +
          (at.job.task === undefined ? "" : `, task ${at.job.task} of an array`) + `, ${at.job.user ? `${at.job.user} in ` : ""}${at.job.ns}`),
        element("div", { class: "faint" }, what),
      );
      const reason = isWaiting(at.job) ? reasonText(at.job) : "";
      if (reason) this.tip.append(element("div", { class: "faint" }, reason));
    }
    const isSupposed = this.isSupposedOn(picked.node, picked.t);
    if (isSupposed) {
      const { from, to, hasLimit } = this.supposed!;
      this.tip.append(element("div", {}, element("b", {}, "your job")),
        element("div", { class: "faint" }, `would run from ${instantText(from, now)}` +
          (hasLimit ? ` to ${instantText(to, now)} at the latest` : "")));
    }
    if (picked.jobs.length === 0 && !isSupposed) this.tip.append(element("div", {}, "no job"));
    const trouble = this.state.trouble(picked.node);
    if (trouble) this.tip.append(element("div", { class: "warn" }, trouble));
    this.tip.hidden = false;
    const box = this.canvas.getBoundingClientRect();
    const x = Math.min(box.left + this.pointer.x + 14, window.innerWidth - this.tip.offsetWidth - 8);
    let y = box.top + this.pointer.y + 16;
    if (y + this.tip.offsetHeight > window.innerHeight - 8) y -= this.tip.offsetHeight + 30;
    this.tip.style.left = `${Math.max(8, x)}px`;
    this.tip.style.top = `${y}px`;
  }
}

interface Label {
  uid: string;
  text: string;
  from: number;
  to: number;
  lane: number;
  lanes: number;
  isPale: boolean;
}

function shorten(c: CanvasRenderingContext2D, text: string, room: number): string {
  if (c.measureText(text).width <= room) return text;
  let length = text.length;
  while (length > 1 && c.measureText(text.slice(0, length) + "…").width > room) length--;
  return length > 1 ? text.slice(0, length) + "…" : "";
}

function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: value("--ink"),
    faint: value("--faint"),
    line: value("--line"),
    strip: value("--paper"),
    now: value("--accent"),
    warn: value("--warn"),
    link: value("--link"),
    foreign: value("--foreign"),
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
  };
}
