// Hold, release and cancel: asked for in a dialog that names the job. Nothing is shown as done before
// the stream says so. The server knows what can be asked for (cli/cluster/page_control.h).
import type { Job } from "./state.ts";
import { element, failureText } from "./text.ts";

export type Refusals = Record<string, string>; // why not, by verb; "" if it may be asked for

const VERBS = ["hold", "release", "cancel"] as const;
type Verb = (typeof VERBS)[number];

const WORDS: Record<Verb, { label: string; follows: string; asked: string }> = {
  hold: { label: "Hold", follows: "It does not start until it is released.", asked: "Hold is asked for." },
  release: { label: "Release", follows: "It may start when it is its turn in the queue.", asked: "Release is asked for." },
  cancel: { label: "Cancel", follows: "Its pods are ended. This cannot be undone.", asked: "Cancel is asked for." },
};

export class Actions {
  readonly root = element("div", { class: "actions" });
  private readonly buttons = new Map<Verb, HTMLButtonElement>();
  private readonly tools = element("div", { class: "tools" });
  private readonly tasks = element("input", {
    type: "text", inputmode: "numeric", placeholder: "all tasks, or 3,5-7", "aria-label": "Tasks to act on", maxlength: "500",
  });
  private readonly said = element("p", { class: "faint", role: "status" });
  private readonly dialog = element("dialog", { "aria-labelledby": "ask-title" });
  private job: Job | null = null;
  private uid = "";
  private refusals: Refusals = {};

  constructor(private readonly done: () => void) {
    for (const verb of VERBS) {
      const button = element("button", { type: "button", "data-verb": verb }, WORDS[verb].label);
      button.addEventListener("click", () => this.ask(verb));
      this.buttons.set(verb, button);
      this.tools.append(button);
    }
    this.tools.prepend(this.tasks);
    this.root.append(this.tools, this.said);
    document.body.append(this.dialog);
  }

  /** Of another job: what was typed and said is gone. */
  reset(): void {
    this.tasks.value = "";
    this.said.textContent = "";
    this.root.hidden = true;
    if (this.dialog.open) this.dialog.close();
  }

  choose(task: number): void {
    this.tasks.value = String(task);
    this.buttons.get("cancel")!.focus();
  }

  update(uid: string, job: Job, refusals: Refusals): void {
    this.job = job;
    this.uid = uid;
    this.refusals = refusals;
    this.root.hidden = false;
    const reasons = new Set(VERBS.map((verb) => refusals[verb] ?? ""));
    const only = reasons.size === 1 ? [...reasons][0]! : "";
    // Without any right, or once it has ended, there is nothing to choose.
    this.tools.hidden = only !== "";
    this.tasks.hidden = job.array === undefined;
    if (only !== "") this.said.textContent = `No actions: ${only}.`;
    for (const [verb, button] of this.buttons) {
      const why = refusals[verb] ?? "";
      button.setAttribute("aria-disabled", String(why !== ""));
      button.title = why;
    }
  }

  private ask(verb: Verb): void {
    const job = this.job;
    if (!job) return;
    const tasks = job.array ? this.tasks.value.replaceAll(/\s/g, "") : "";
    const why = this.refusals[verb] ?? "";
    if (why !== "" && tasks === "") {
      this.said.textContent = `${WORDS[verb].label}: ${why}.`;
      return;
    }
    this.said.textContent = "";
    const number = job.id === null ? "" : ` ${job.id}`;
    const word = /^\d+$/.test(tasks) ? "task" : "tasks";
    const what = tasks !== "" ? `${word} ${tasks} of array${number}` : job.array ? `array${number}` : `job${number}`;
    const facts = [
      element("p", {}, element("b", {}, job.name), ` in namespace ${job.ns}`),
      element("p", {}, WORDS[verb].follows),
    ];
    const counts = tasks === "" ? job.array?.counts : undefined;
    if (counts) facts.push(element("p", {}, `All its tasks: ${counts.waiting} wait, ${counts.running} run.`));
    const error = element("p", { class: "warn", role: "alert" });
    const back = element("button", { type: "button", autofocus: "" }, "Leave it");
    const go = element("button", { type: "button", class: verb === "cancel" ? "grave" : "", "data-verb": verb },
      `${WORDS[verb].label} ${tasks !== "" ? `the ${word}` : job.array ? "the array" : "the job"}`);
    back.addEventListener("click", () => this.dialog.close());
    const wish = JSON.stringify({ verb, ns: job.ns, name: job.name, uid: this.uid, tasks });
    go.addEventListener("click", () => void this.send(wish, verb, go, error));
    this.dialog.replaceChildren(
      element("h2", { id: "ask-title" }, `${WORDS[verb].label} ${what}?`), ...facts, error,
      element("div", { class: "tools" }, back, go));
    this.dialog.showModal();
  }

  private async send(wish: string, verb: Verb, go: HTMLButtonElement, error: HTMLElement): Promise<void> {
    go.disabled = true;
    error.textContent = "";
    try {
      const answer = await fetch("control", { method: "POST", body: wish });
      if (!answer.ok) throw new Error((await answer.text()).trim());
      if (go.isConnected) this.dialog.close();
      this.said.textContent = WORDS[verb].asked;
      this.tasks.value = "";
      this.done();
    } catch (failure) {
      const hint = failure instanceof TypeError ? "; look at the job before you try again" : "";
      error.textContent = failureText(failure) + hint;
    }
    go.disabled = false;
  }
}
