// The cluster as a whole: how much of it is used, how long jobs wait, and its partitions. From what has been watched, and
// what records remember of the time before.
import { Chart } from "./chart.ts";
import { jobColor } from "./color.ts";
import { type Past } from "./past.ts";
import { isFinal, isWaiting, naturally, type Job, type Partition, type State } from "./state.ts";
import { clockText, element, runTimeText, spanText } from "./text.ts";

const SPANS = [["10 min", 600e6], ["1 h", 3600e6], ["6 h", 6 * 3600e6], ["1 day", 86400e6]] as const;
const WAITS = [1e6, 10e6, 60e6, 600e6, 3600e6, 6 * 3600e6, 86400e6, 7 * 86400e6];
const WAIT_TEXTS = ["1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d", "7 d"];
const REFRESH_MS = 1000;

export interface Step {
  at: number;
  busy: number;
}

/** How many nodes have a job, from instant to instant. */
export function busyNodes(state: State, nodes: string[], from: number, to: number): Step[] {
  const changes = new Map<number, number>();
  const add = (t: number, by: number) => changes.set(t, (changes.get(t) ?? 0) + by);
  for (const node of nodes) {
    let end = -Infinity; // of the stays so far
    const stays = state.staysOn(node).filter((stay) => stay.from < to && (stay.to === null || stay.to > from))
      .map((stay) => [Math.max(stay.from, from), Math.min(stay.to ?? to, to)] as const).sort((a, b) => a[0] - b[0]);
    for (const [begin, until] of stays) {
      if (begin > end) {
        if (end > -Infinity) add(end, -1);
        add(begin, 1);
        end = until;
      } else end = Math.max(end, until);
    }
    if (end > -Infinity) add(end, -1);
  }
  const steps: Step[] = [{ at: from, busy: 0 }];
  let busy = 0;
  for (const [at, by] of [...changes].sort((a, b) => a[0] - b[0])) {
    busy += by;
    if (at === steps.at(-1)!.at) steps.at(-1)!.busy = busy;
    else if (at < to && by !== 0) steps.push({ at, busy });
  }
  return steps;
}

/** Of all jobs that have started; an array's are its tasks. */
export function waits(state: State): { uid: string; start: number; wait: number; partition: string }[] {
  const all: { uid: string; start: number; wait: number; partition: string }[] = [];
  const add = (uid: string, job: Job) => {
    if (job.start === null || job.submit === null || job.array) return;
    all.push({ uid, start: job.start, wait: Math.max(0, job.start - job.submit), partition: job.partition });
  };
  for (const [uid, job] of state.kinds.jobs) {
    add(uid, job);
    if (job.array) for (const task of state.tasksOf(uid)) add(task.uid, task.job);
  }
  for (const { uid, job } of state.runs()) add(uid, job);
  return all;
}

export function median(values: number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)]!;
}

/** "all", "namespaces a, b", "all but QOS low". */
export function whoMay({ allow, deny }: Pick<Partition, "allow" | "deny">): string {
  const say = (list: Partition["allow"]) => [list?.namespaces ? `namespaces ${list.namespaces.join(", ")}` : "",
    list?.qos ? `QOS ${list.qos.join(", ")}` : ""].filter((text) => text !== "");
  const but = say(deny);
  return (say(allow).join(" with ") || "all") + (but.length > 0 ? ` but ${but.join(", ")}` : "");
}

/** How jobs share its cores. */
export function shareText({ policy, max }: Partition["share"]): string {
  if (policy === "Exclusive") return "whole nodes";
  if (policy === "Never") return "no turns";
  return `turns of ${max ?? 4}${policy === "OnRequest" ? ", if asked for" : ""}`;
}

const HEADS = ["Partition", "State", "Tier", "Sharing", "Who may", "Nodes", "No new jobs", "Running", "Suspended", "Waiting", "Median wait", "Longest job"];

export class ClusterView {
  readonly root: HTMLElement;
  private readonly tiles = element("dl", { class: "tiles" });
  private readonly use = new Chart("Nodes in use", element("p", { class: "hint" }));
  private readonly waiting = new Chart("How long jobs waited that started then", element("p", { class: "hint" }));
  private readonly body = element("tbody");
  private readonly span = element("select", { "aria-label": "Time that the charts show" });
  private drawn = 0;

  constructor(private readonly state: State, private readonly past: Past) {
    for (const [label, micros] of SPANS) this.span.append(element("option", { value: String(micros) }, label));
    this.span.value = String(SPANS[1][1]);
    this.span.addEventListener("change", () => this.update(true));
    this.root = element("section", { class: "cluster", "aria-label": "Cluster" },
      element("div", { class: "tools" }, this.tiles, this.span),
      element("div", { class: "charts" }, this.use.root, this.waiting.root),
      element("div", { class: "tablebox" }, element("table", { class: "partitions" },
        element("thead", {}, element("tr", {}, ...HEADS.map((head) => element("th", { scope: "col" }, head)))), this.body)));
  }

  update(atOnce = false): void {
    const clock = performance.now();
    if (!atOnce && clock - this.drawn < REFRESH_MS) return;
    this.drawn = clock;
    const now = this.state.now();
    this.past.want(this.from, now);
    const nodes = this.state.groups().flatMap((group) => group.nodes);
    const all = waits(this.state);
    this.drawUse(nodes, now);
    this.drawWaits(all, now);
    this.showTiles(nodes, now);
    this.showPartitions(all);
  }

  private get from(): number {
    return this.state.now() - Number(this.span.value);
  }

  private showTiles(nodes: string[], now: number): void {
    let [waiting, active, longest] = [0, 0, 0];
    for (const job of this.state.kinds.jobs.values()) {
      if (isWaiting(job)) {
        waiting++;
        if (!job.held) longest = Math.max(longest, now - (job.submit ?? now));
      } else if (!isFinal(job)) active++;
    }
    const busy = nodes.filter((node) => this.state.staysOn(node).some((stay) => stay.to === null)).length;
    const bad = nodes.filter((node) => this.state.trouble(node) !== "").length;
    const texts: [string, string][] = [
      ["nodes in use", `${busy} of ${nodes.length}`],
      ["jobs with nodes", String(active)],
      ["jobs waiting", String(waiting)],
      ["longest wait now", longest > 0 ? spanText(longest) : "–"],
      ["nodes without new jobs", String(bad)],
    ];
    const key = JSON.stringify(texts);
    if (this.tiles.dataset["shown"] === key) return;
    this.tiles.dataset["shown"] = key;
    this.tiles.replaceChildren(...texts.map(([label, value]) =>
      element("div", {}, element("dt", {}, label), element("dd", {}, value))));
  }

  private drawUse(nodes: string[], now: number): void {
    const from = this.from;
    const steps = busyNodes(this.state, nodes, from, now);
    const max = Math.max(1, nodes.length);
    const watched = Math.max(from, this.past.knownSince(from));
    let sum = 0;
    steps.forEach((step, i) => {
      const end = steps[i + 1]?.at ?? now;
      sum += step.busy * Math.max(0, end - Math.max(step.at, watched));
    });
    const part = now > watched ? Math.round((sum / (now - watched) / max) * 100) : 0;
    const ticks = [0, 0.5, 1].map((each) => ({ at: each * max, text: `${each * 100} %` }));
    const text = `${part} % of the nodes had a job, on average since ${clockText(watched)}. ${this.past.note(from)}`.trim();
    this.use.draw({ from, to: now, max, scale: (v) => v / max, ticks }, text, (c, x, y, style) => {
      c.fillStyle = style.getPropertyValue("--link");
      steps.forEach((step, i) => {
        const ends = steps[i + 1]?.at ?? now;
        for (const [a, b] of [[step.at, Math.min(ends, watched)], [Math.max(step.at, watched), ends]] as const) {
          if (b <= a) continue;
          c.globalAlpha = b <= watched ? 0.22 : 0.6;
          c.fillRect(x(a), y(step.busy), Math.max(1, x(b) - x(a)), y(0) - y(step.busy));
        }
      });
      c.globalAlpha = 1;
    });
  }

  private drawWaits(all: ReturnType<typeof waits>, now: number): void {
    const from = this.from;
    const shown = all.filter((each) => each.start >= from);
    const most = Math.max(60e6, ...shown.map((each) => each.wait));
    const max = WAITS.find((each) => each >= most) ?? most;
    // Waits differ by orders of magnitude.
    const scale = (wait: number) => Math.log10(1 + wait / 1e6) / Math.log10(1 + max / 1e6);
    const ticks = [0, ...WAITS.filter((each) => each <= max)].map((at) => ({ at, text: WAIT_TEXTS[WAITS.indexOf(at)] ?? "0" }));
    const middle = median(shown.map((each) => each.wait));
    const text = middle === null ? "No job has started in this time." :
      `${shown.length} ${shown.length === 1 ? "job" : "jobs"} started; half of them waited ${spanText(middle)} or less, the longest ${spanText(Math.max(...shown.map((each) => each.wait)))}.`;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    this.waiting.draw({ from, to: now, max, scale, ticks }, text, (c, x, y) => {
      for (const { uid, start, wait } of shown) {
        c.fillStyle = jobColor(uid, dark);
        c.beginPath();
        c.arc(x(start), y(wait), 4, 0, 2 * Math.PI);
        c.fill();
      }
    });
  }

  private showPartitions(all: ReturnType<typeof waits>): void {
    const rows = [...this.state.kinds.partitions].sort(([a], [b]) => naturally(a, b)).map(([name, partition]) => {
      const middle = median(all.filter((each) => each.partition === name).map((each) => each.wait));
      const unusable = partition.unusable.reduce((sum, group) => sum + group.count, 0);
      const why = partition.unusable.map((group) => group.message || group.reason).join("; ");
      return [name + (partition.default ? " (default)" : ""), partition.state, String(partition.tier), shareText(partition.share), whoMay(partition),
        String(partition.nodes || partition.on.length), unusable > 0 ? `${unusable}: ${why}` : "0",
        ...[partition.jobs?.running, partition.jobs?.suspended, partition.jobs?.pending].map((count) => String(count ?? "–")),
        middle === null ? "–" : spanText(middle), partition.maxTime === null ? "no limit" : runTimeText(partition.maxTime)];
    });
    const key = JSON.stringify(rows);
    if (this.body.dataset["shown"] === key) return;
    this.body.dataset["shown"] = key;
    this.body.replaceChildren(...rows.map((texts) => element("tr", {}, ...texts.map((text, i) => {
      return element("td", { "data-head": i === 0 ? "" : HEADS[i]! }, text);
    }))));
  }
}
