// One job: what the page knows, what can be done with it, the tasks of an array, then what `kubectl gang explain` says, its pods, and commands to
// copy.
import { Actions, type Refusals } from "./actions.ts";
import { jobColor } from "./color.ts";
import { LifeLine } from "./life.ts";
import { nextSwitch, share } from "./run.ts";
import { type Past } from "./past.ts";
import { SoonerView } from "./sooner.ts";
import { isWaiting, type Job, type Run, type State } from "./state.ts";
import { TasksTable } from "./tasks_table.ts";
import { NO_ANSWER, clockText, element, instantText, reasonText, runTimeText, shellWord, stateText } from "./text.ts";

interface Details {
  explain: { lines: { label: string; text: string }[] };
  pods: { name: string; node: string; phase: string; reason: string }[];
  uid: string;
  refusals: Refusals;
}

const REFRESH_MS = 5000;

export class JobPanel {
  private shown = "";
  private details: Details | string = "";
  private readonly now = element("p", { class: "now", role: "status" });
  private readonly facts = element("div");
  private life = new LifeLine();
  private readonly actions: Actions;
  private readonly sooner = new SoonerView();
  private readonly tasks: TasksTable;
  private timer = 0;
  private readBy = 0;
  private awaited: Job | null = null; // as it was when something was asked for
  private runs: Run[] = []; // by records

  constructor(
    private readonly root: HTMLElement,
    private readonly state: State,
    private readonly past: Past,
    private readonly close: () => void,
  ) {
    this.actions = new Actions(() => (this.awaited = this.find()?.[1] ?? null));
    this.tasks = new TasksTable(state, (task) => this.actions.choose(task));
    document.addEventListener("keydown", (event) => {
      // Esc in a dialog closes that.
      if (event.key === "Escape" && !root.hidden && !document.querySelector("dialog[open]")) this.close();
    });
  }

  /** "ns/name"; "" closes it. */
  show(name: string): void {
    if (name === this.shown) return;
    this.shown = name;
    this.details = "";
    this.awaited = null;
    this.runs = [];
    this.life = new LifeLine();
    this.actions.reset();
    this.sooner.reset();
    this.tasks.root.hidden = true;
    window.clearTimeout(this.timer);
    this.root.hidden = name === "";
    document.body.classList.toggle("has-panel", name !== "");
    if (name === "") return;
    const [ns, own] = [name.slice(0, name.indexOf("/")), name.slice(name.indexOf("/") + 1)];
    const dot = element("i", { class: "dot" });
    const found = this.find();
    if (found) dot.style.background = jobColor(found[0], matchMedia("(prefers-color-scheme: dark)").matches);
    const close = element("button", { type: "button", class: "close", "aria-label": "Close" }, "×");
    close.addEventListener("click", () => this.close());
    const title = element("h2", { tabindex: "-1" }, dot, own);
    this.root.replaceChildren(close, title, element("p", { class: "faint" }, `namespace ${ns}${found?.[1].user ? `, submitted by ${found[1].user}` : ""}`),
      this.now, this.life.root, this.sooner.root, this.actions.root, this.tasks.root, this.facts);
    this.facts.replaceChildren(element("p", { class: "loading" }, "Reading the job…"));
    title.focus();
    this.update();
    void this.read(ns, own);
    if (found && found[1].id !== null && !found[1].array) void this.readRuns(found[1]);
  }

  /** What records know of the job, such as runs before it was requeued. */
  private async readRuns({ ns, id }: Job): Promise<void> {
    const { shown } = this;
    const runs = await this.past.ofJob(ns, id!);
    if (this.shown !== shown || runs.length === 0) return;
    this.runs = runs;
    this.update();
  }

  askSooner(): void {
    void this.sooner.ask();
  }

  private find(): [string, Job] | undefined {
    for (const [uid, job] of this.state.kinds.jobs) {
      if (`${job.ns}/${job.name}` === this.shown && !job.gone) return [uid, job];
    }
    for (const [uid, job] of this.state.kinds.jobs) {
      if (`${job.ns}/${job.name}` === this.shown) return [uid, job];
    }
    // One whose object is gone: its last run, by records.
    let last: Run | undefined;
    for (const run of this.state.runs()) {
      if (`${run.job.ns}/${run.job.name}` !== this.shown) continue;
      if (!last || (run.job.start ?? 0) > (last.job.start ?? 0)) last = run;
    }
    return last && [last.uid, last.job];
  }

  private async read(ns: string, name: string): Promise<void> {
    window.clearTimeout(this.timer);
    const turn = ++this.readBy;
    let details: Details | string;
    try {
      const answer = await fetch(`job?${new URLSearchParams({ ns, name })}`);
      details = answer.ok ? ((await answer.json()) as Details) : (await answer.text()).trim();
    } catch {
      details = NO_ANSWER;
    }
    if (turn !== this.readBy || this.shown !== `${ns}/${name}`) return;
    const isNews = JSON.stringify(details) !== JSON.stringify(this.details);
    this.details = details;
    if (isNews) this.showDetails(ns, name);
    const found = this.find();
    if (found && typeof details !== "string") this.actions.update(details.uid, found[1], details.refusals);
    this.timer = window.setTimeout(() => void this.read(ns, name), REFRESH_MS);
  }

  /** The sentence that changes with the turns. */
  update(): void {
    if (this.root.hidden) return;
    const found = this.find();
    let text = "not in the queue";
    if (found) {
      const [uid, job] = found;
      const now = this.state.now();
      const code = this.state.stateAt(uid, job, now);
      const ranFor = this.state.ranAt(uid, job, now);
      const ran = runTimeText(ranFor);
      const paused = this.state.pausedAt(job, now);
      text = `${stateText(code)}${paused && ` ${paused}`}, ran ${ran}`;
      const listed = this.state.listedAs(uid);
      const next = listed && job.state === "R" ? nextSwitch(listed.table, listed.pod, now) : null;
      if (listed && next !== null) {
        const part = Math.round(share(listed.table, listed.pod) * 100);
        text = `takes turns, ${part} % of the time: ` +
          (code === "R" ? `runs until ${clockText(next)}` : `frozen, next turn at ${clockText(next)}`) +
          `; ran ${ran}`;
      }
      if (isWaiting(job)) text = `waiting: ${reasonText(job) || job.reason}`;
      if (job.array) text = stateText(code);
      const earlier = this.runs.filter((run) => !this.state.isWatched(run) && run.job.end !== job.end);
      this.life.update(job, now, jobColor(uid, matchMedia("(prefers-color-scheme: dark)").matches), earlier, ranFor,
        (other) => this.state.nameOf(other));
      this.sooner.update(job);
      this.tasks.root.hidden = job.array === undefined;
      if (job.array) this.tasks.update(uid, job);
      // What can be asked for has changed with the job.
      if (this.awaited && this.awaited !== job) {
        this.awaited = null;
        void this.read(job.ns, job.name);
      }
    }
    if (this.now.textContent !== text) this.now.textContent = text;
  }

  private showDetails(ns: string, name: string): void {
    const found = this.find();
    if (typeof this.details === "string" && found?.[1].gone) {
      this.facts.replaceChildren(this.remembered(found[1]));
      return;
    }
    if (typeof this.details === "string") {
      this.facts.replaceChildren(element("p", { class: "warn" }, this.details), ...this.commands(ns, name));
      return;
    }
    const list = element("dl");
    for (const { label, text } of this.details.explain.lines) {
      list.append(element("dt", {}, label), element("dd", {}, text));
    }
    const pods = this.details.pods.map((pod) =>
      element("tr", {}, element("td", {}, pod.name), element("td", {}, pod.node),
        element("td", {}, pod.reason || pod.phase)));
    this.facts.replaceChildren(list);
    if (pods.length > 0) {
      this.facts.append(element("h3", {}, "Pods"), element("div", { class: "tablebox" },
        element("table", {}, element("thead", {}, element("tr", {},
          ...["Pod", "Node", "Phase"].map((head) => element("th", { scope: "col" }, head)))),
          element("tbody", {}, ...pods))));
    }
    this.facts.append(...this.commands(ns, name));
  }

  /** Of a job whose object is gone. */
  private remembered(job: Job): HTMLElement {
    const now = this.state.now();
    const at = (instant: number | null) => (instant === null ? "–" : instantText(instant, now));
    const rows = [["Object", "gone; this is what was seen of it"], ["Number", String(job.id ?? "–")],
      ["Partition", job.partition], ["Nodes", job.hostlist || job.stays.at(-1)?.on.join(", ") || "–"],
      ["Submitted", at(job.submit)], ["Started", at(job.start)], ["Ended", at(job.end ?? job.stays.at(-1)?.to ?? null)],
      ["Exit code", String(job.exit ?? "–")]];
    const list = element("dl");
    for (const [label, text] of rows) list.append(element("dt", {}, label!), element("dd", {}, text!));
    return list;
  }

  private commands(ns: string, name: string): HTMLElement[] {
    const where = `-n ${shellWord(ns)}`;
    const own = shellWord(name);
    const lines = [
      `kubectl gang explain ${where} ${own}`,
      `kubectl gang logs ${where} -f ${own}`,
      `kubectl get gjob ${where} ${own} -o yaml`,
    ];
    return [
      element("h3", {}, "Commands"),
      ...lines.map((line) => {
        const button = element("button", { type: "button" }, "Copy");
        button.setAttribute("aria-label", `Copy ${line}`);
        button.addEventListener("click", () => {
          void navigator.clipboard.writeText(line).then(() => {
            button.textContent = "Copied";
            window.setTimeout(() => (button.textContent = "Copy"), 1500);
          });
        });
        return element("div", { class: "command" }, element("code", {}, line), button);
      }),
    ];
  }
}
