// The tasks of an array: those that have started, a line for those that wait, and the last ones that
// have ended.
import { isFinal, isWaiting, type Job, type State, type TaskJob } from "./state.ts";
import { clockText, element, reasonText, runTimeText, stateText } from "./text.ts";

// As many as have started and not ended at most (docs/arrays.md).
const ROWS_MAX = 1000;

export class TasksTable {
  readonly root = element("div", { class: "tasks" });
  private readonly rest = element("p", { class: "faint" });
  private readonly body = element("tbody");
  private rows = new Map<string, HTMLTableRowElement>();

  constructor(
    private readonly state: State,
    private readonly choose: (task: number) => void,
  ) {
    const heads = ["Task", "Job", "State", "Nodes", "Time"];
    this.root.append(element("h3", {}, "Tasks"), this.rest, element("div", { class: "tablebox" },
      element("table", {}, element("thead", {}, element("tr", {},
        ...heads.map((head) => element("th", { scope: "col" }, head)))), this.body)));
  }

  update(uid: string, array: Job): void {
    const all = this.state.tasksOf(uid);
    // Those that run come first, then those that wait again, then those that have ended, the last one on top.
    const rank = ({ job }: TaskJob) => (isFinal(job) ? 2 : isWaiting(job) ? 1 : 0);
    const shown = [...all].sort((a, b) => rank(a) - rank(b) || (b.job.end ?? 0) - (a.job.end ?? 0) ||
      a.job.task! - b.job.task!).slice(0, ROWS_MAX);
    const facts = array.array!;
    const texts = [reasonText(array)];
    if (facts.waiting) texts.push(`Wait for their first start: ${facts.waiting}`);
    if (facts.failed) texts.push(`Failed: ${facts.failed}`);
    const text = texts.filter((each) => each !== "").join(". ");
    if (this.rest.textContent !== text) this.rest.textContent = text;
    const before = this.rows;
    this.rows = new Map();
    const now = this.state.now();
    const rows = shown.map((task) => this.row(task, now, before));
    const same = rows.length === this.body.children.length &&
      rows.every((row, i) => this.body.children[i] === row);
    if (!same) this.body.replaceChildren(...rows);
    this.body.parentElement!.hidden = rows.length === 0;
  }

  private row({ uid, job }: TaskJob, now: number, before: Map<string, HTMLTableRowElement>): HTMLTableRowElement {
    let row = before.get(uid);
    if (!row) {
      const number = job.task!;
      const button = element("button", { type: "button", class: "plain", title: "act on this task" }, String(number));
      button.addEventListener("click", () => this.choose(number));
      row = element("tr", {}, element("td", {}, button));
      for (let i = 0; i < 4; ++i) row.append(element("td"));
    }
    this.rows.set(uid, row);
    const code = this.state.stateAt(uid, job, now);
    const next = job.state === "R" ? this.state.nextSwitch(uid, now) : null;
    const turn = next === null ? "" : code === "R" ? "takes turns, runs now" : `takes turns, next at ${clockText(next)}`;
    const why = isWaiting(job) ? reasonText(job) : job.message;
    const texts = [
      job.id === null ? "–" : String(job.id),
      turn || [stateText(code), why].filter((text) => text !== "").join(": "),
      job.hostlist || job.stays.at(-1)?.on.join(", ") || "",
      isWaiting(job) ? "" : runTimeText(isFinal(job) ? lastStay(job) : this.state.ranAt(uid, job, now)),
    ];
    texts.forEach((text, i) => {
      const cell = row!.children[i + 1]!;
      if (cell.textContent !== text) cell.textContent = text;
    });
    row.dataset["state"] = code;
    return row;
  }
}

/** How long it had its nodes: nothing else is kept of a task that has ended. */
function lastStay(job: Job): number {
  const stay = job.stays.at(-1);
  return stay?.to ? stay.to - stay.from : 0;
}
