// The queue as a table: position, reason in words, expected start, waited so far. What is shown
// stands in the URL, so a view can be kept and sent.
import { jobColor } from "./color.ts";
import { expectedStart, isFinal, isWaiting, naturally, titleOf, type Job, type State } from "./state.ts";
import { canBeSooner } from "./sooner.ts";
import { clockText, element, instantText, reasonText, runTimeText, spanText, stateText } from "./text.ts";

const ROWS_MAX = 500;
const TASKS_MAX = 100; // of an array that is open; its own view has all
const RANK = ["PD", "CF", "R", "S", "CG"];

export interface Filter {
  text: string;
  partition: string;
  state: string; // "", "waiting", "running", "ended"
  open: string[]; // UIDs of arrays whose tasks are shown
}

export function readFilter(parameters: URLSearchParams): Filter {
  return {
    text: parameters.get("q") ?? "",
    partition: parameters.get("partition") ?? "",
    state: parameters.get("state") ?? "",
    open: (parameters.get("open") ?? "").split(",").filter((uid) => uid !== ""),
  };
}

function fits(job: Job, filter: Filter): boolean {
  if (filter.partition && !job.partition.split(",").includes(filter.partition)) return false;
  if (filter.state === "waiting" && !isWaiting(job)) return false;
  if (filter.state === "running" && (isWaiting(job) || isFinal(job))) return false;
  if (filter.state === "ended" ? !isFinal(job) : isFinal(job)) return false;
  const text = filter.text.toLowerCase();
  return !text || `${job.id ?? ""} ${job.name} ${job.batchJob} ${job.ns} ${job.user ?? ""}`.toLowerCase().includes(text);
}

function sinceText(job: Job, now: number): string {
  if (job.submit === null) return "";
  const span = spanText(Math.max(0, now - job.submit));
  return isWaiting(job) ? `waited ${span}` : `submitted ${span} ago`;
}

export class QueueView {
  readonly root: HTMLElement;
  private readonly body = element("tbody");
  private readonly count = element("p", { class: "hint", role: "status" });
  private readonly empty = element("div", { class: "empty", hidden: "" });
  private readonly table: HTMLTableElement;
  private readonly search = element("input", {
    type: "search", placeholder: "Name, number or user", "aria-label": "Find jobs",
  });
  private readonly partition = element("select", { "aria-label": "Partition" });
  private readonly kind = element("select", { "aria-label": "State" });
  private cells = new Map<string, HTMLTableRowElement>();
  private opened: string[] = [];

  constructor(
    private readonly state: State,
    private readonly change: (parameters: Record<string, string>) => void,
    private readonly open: (ns: string, name: string) => void,
    private readonly sooner: (ns: string, name: string) => void, // opens it, and asks what would make it sooner
  ) {
    const heads = ["", "Job", "Name", "Namespace", "Partition", "State", "Nodes", "Expected start", "Time"];
    this.table = element("table", {},
      element("thead", {}, element("tr", {}, ...heads.map((head, i) =>
        element("th", i === 0 ? { scope: "col", "aria-label": "Position" } : { scope: "col" }, head)))),
      this.body);
    for (const [value, label] of [["", "Queue"], ["waiting", "Waiting"], ["running", "Running"], ["ended", "Ended"]]) {
      this.kind.append(element("option", { value: value! }, label!));
    }
    this.search.addEventListener("input", () => this.change({ q: this.search.value }));
    this.partition.addEventListener("change", () => this.change({ partition: this.partition.value }));
    this.kind.addEventListener("change", () => this.change({ state: this.kind.value }));
    this.root = element("section", { class: "queue", "aria-label": "Queue" },
      element("div", { class: "tools" }, this.search, this.partition, this.kind, this.count),
      this.empty, element("div", { class: "tablebox" }, this.table));
  }

  focus(): void {
    this.search.focus();
  }

  update(filter: Filter): void {
    if (document.activeElement !== this.search) this.search.value = filter.text;
    this.fillPartitions(filter.partition);
    this.kind.value = filter.state;
    const now = this.state.now();
    const shown = [...this.state.kinds.jobs].filter(([, job]) => fits(job, filter));
    const key = ([uid, job]: [string, Job]) => [
      job.partition,
      RANK.indexOf(this.state.stateAt(uid, job, now)),
      -job.priority,
      job.id ?? Infinity,
    ] as const;
    if (filter.state === "ended") {
      shown.sort(([, a], [, b]) => (b.end ?? 0) - (a.end ?? 0));
    } else {
      // A turn must not move rows: those that have nodes are in one rank.
      shown.sort((x, y) => {
        const [a, b] = [key(x), key(y)];
        const rank = (n: number) => (n > 1 ? 2 : n);
        return naturally(a[0], b[0]) || rank(a[1]) - rank(b[1]) || a[2] - b[2] || a[3] - b[3];
      });
    }
    this.count.textContent = shown.length > ROWS_MAX
      ? `${ROWS_MAX} of ${shown.length} jobs; narrow the search to see others`
      : `${shown.length} ${shown.length === 1 ? "job" : "jobs"}`;
    this.opened = filter.open;
    const before = this.cells;
    this.cells = new Map();
    const row = (uid: string, job: Job) => this.row(uid, job, now, before);
    const rows = shown.slice(0, ROWS_MAX).flatMap(([uid, job]) =>
      job.array && filter.open.includes(uid)
        ? [row(uid, job), ...this.taskRows(uid, job, row, before)] : [row(uid, job)]);
    const same = rows.length === this.body.children.length &&
      rows.every((row, i) => this.body.children[i] === row);
    if (!same) this.body.replaceChildren(...rows);
    this.teach(shown.length, filter);
  }

  private fillPartitions(wanted: string): void {
    const names = new Set([...this.state.kinds.partitions.keys()]);
    if (wanted) names.add(wanted);
    const all = ["", ...[...names].sort(naturally)];
    const has = [...this.partition.options].map((each) => each.value);
    if (has.join("\n") !== all.join("\n")) {
      this.partition.replaceChildren(
        ...all.map((name) => element("option", { value: name }, name || "All partitions")));
    }
    this.partition.value = wanted;
  }

  private teach(count: number, filter: Filter): void {
    this.empty.hidden = count > 0;
    this.table.hidden = count === 0;
    if (count > 0) return;
    const isFiltered = filter.text || filter.partition || filter.state;
    this.empty.replaceChildren(
      element("h2", {}, isFiltered ? "No job fits" : "The queue is empty"),
      element("p", {}, isFiltered ? "No job has all that the search asks for." : "Submit two gangs and watch them take turns:"),
      ...(isFiltered ? [] : [element("pre", {}, "kubectl apply -f examples/gang-jobs.yaml")]),
    );
  }

  /** The tasks that have nodes or wait again, then a line for the others. */
  private taskRows(uid: string, job: Job, row: (uid: string, job: Job) => HTMLTableRowElement,
    before: Map<string, HTMLTableRowElement>): HTMLTableRowElement[] {
    const begun = this.state.tasksOf(uid).filter((task) => !isFinal(task.job));
    const rows = begun.slice(0, TASKS_MAX).map((task) => row(task.uid, task.job));
    const texts = [];
    if (begun.length > TASKS_MAX) texts.push(`${begun.length - TASKS_MAX} more tasks have begun: open the job to see them`);
    if (job.array!.waiting) texts.push(`tasks ${job.array!.waiting} wait for their first start`);
    if (texts.length === 0 && rows.length === 0) texts.push("no task is left");
    if (texts.length === 0) return rows;
    const key = `${uid}_rest`;
    const rest = before.get(key) ??
      element("tr", { class: "task rest" }, element("td"), element("td"), element("td", { colspan: "7" }));
    this.cells.set(key, rest);
    const text = `${texts.join("; ")}.`;
    if (rest.children[2]!.textContent !== text) rest.children[2]!.textContent = text;
    return [...rows, rest];
  }

  private sayTasks(row: HTMLTableRowElement, uid: string, job: Job): void {
    const button = row.querySelector("button")!;
    const isOpen = this.opened.includes(uid);
    const text = `${isOpen ? "▾" : "▸"} array`;
    if (button.textContent !== text) button.textContent = text;
    button.setAttribute("aria-expanded", String(isOpen));
    button.setAttribute("aria-label", `Tasks of ${job.name}`);
  }

  private toggle(uid: string): void {
    const others = this.opened.filter((each) => each !== uid);
    this.change({ open: (others.length < this.opened.length ? others : [...others, uid]).join(",") });
  }

  private row(uid: string, job: Job, now: number, before: Map<string, HTMLTableRowElement>): HTMLTableRowElement {
    let row = before.get(uid);
    if (!row) {
      row = element("tr", { "data-uid": uid, class: job.task === undefined ? "" : "task" });
      for (let i = 0; i < 9; ++i) row.append(element("td"));
      const link = element("a");
      row.children[2]!.append(link);
      const dot = element("i", { class: "dot" });
      dot.style.background = jobColor(uid, matchMedia("(prefers-color-scheme: dark)").matches);
      row.children[0]!.append(dot, element("span"));
      row.children[5]!.append(element("b"), element("span", { class: "faint" }));
      const sooner = element("button", { type: "button", class: "link", "aria-label": `What would make ${job.name} sooner?` }, "sooner?");
      sooner.addEventListener("click", (event) => {
        event.stopPropagation();
        this.sooner(job.ns, job.name);
      });
      row.children[7]!.append(element("span"), sooner);
      row.addEventListener("click", () => this.open(job.ns, job.name));
      if (job.array) {
        const button = element("button", { type: "button", class: "disclosure" });
        button.addEventListener("click", (event) => {
          event.stopPropagation();
          this.toggle(uid);
        });
        row.children[2]!.append(button);
      }
    }
    this.cells.set(uid, row);
    const code = this.state.stateAt(uid, job, now);
    const place = this.state.place(job);
    // "suspended" of a gang whose turn comes in a second would read as if it were stuck.
    const next = job.state === "R" ? this.state.nextSwitch(uid, now) : null;
    const turn = next === null ? "" : code === "R" ? "runs now" : `next turn at ${clockText(next)}`;
    const what = turn ? "takes turns" : stateText(code);
    // A gang that has just begun is in no timetable that would say when.
    const stopped = code === "S" && job.reason === "Timeslice" ? "until its turn" : "";
    const why = isWaiting(job) || isFinal(job) || job.array ? reasonText(job) : turn || this.state.pausedAt(job, now) || stopped;
    const put = (i: number, text: string) => {
      const cell = row.children[i]!;
      if (cell.textContent !== text) cell.textContent = text;
    };
    const position = row.children[0]!.lastChild!;
    const number = place === null ? "" : `${place}.`;
    if (position.textContent !== number) position.textContent = number;
    put(1, job.id === null ? "–" : String(job.id));
    const link = row.children[2]!.firstElementChild as HTMLAnchorElement;
    const name = titleOf(job);
    if (link.textContent !== name) link.textContent = name;
    link.href = `#/queue?${new URLSearchParams({ job: `${job.ns}/${job.name}` })}`;
    put(3, job.ns);
    put(4, job.partition);
    const state = row.children[5]!;
    row.dataset["state"] = code;
    if (state.firstChild!.textContent !== what) state.firstChild!.textContent = what;
    const reason = why ? ` ${why}` : "";
    if (state.lastChild!.textContent !== reason) state.lastChild!.textContent = reason;
    put(6, job.hostlist || (job.array ? `${job.nodes} each` : `${job.nodes} wanted`));
    if (job.array) this.sayTasks(row, uid, job);
    const [start, sooner] = row.children[7]!.children as unknown as [HTMLElement, HTMLElement];
    const at = expectedStart(job, now);
    const expected = at === null ? "" : at <= now ? "now " : `${instantText(at, now)}, in ${spanText(at - now)} `;
    if (start.textContent !== expected) start.textContent = expected;
    sooner.hidden = !canBeSooner(job);
    put(8, isWaiting(job) || job.array
      ? sinceText(job, now)
      : `ran ${runTimeText(this.state.ranAt(uid, job, now))}`);
    return row;
  }
}
