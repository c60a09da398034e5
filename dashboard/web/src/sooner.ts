// What would make a waiting job start sooner: answers of the scheduler to questions that differ from it in one thing each
// (cli/cluster/page_sooner.h), asked for by a button.
import { isWaiting, type Job } from "./state.ts";
import { element, failureText, instantText, spanText } from "./text.ts";

interface Answer {
  start: number | null;
  partition: string;
  stops: boolean;
}

export interface Sooner {
  asOf: number | null;
  same: Answer;
  variants: (Answer & { change: string })[];
}

/** Those that start before the job would, the earliest first; of equal ones the first, which changes least. */
export function better({ same, variants }: Sooner, expected: number | null): Sooner["variants"] {
  const now = Math.min(same.start ?? Infinity, expected ?? Infinity);
  return variants.filter((each) => each.start !== null && each.start < now - 1e6).sort((a, b) => a.start! - b.start!);
}

/** Whether it waits for its turn, so that a change of it could help. */
export const canBeSooner = (job: Job) => isWaiting(job) && !job.held && !job.refused && job.array === undefined && job.task === undefined;

export class SoonerView {
  readonly root = element("div", { class: "sooner" });
  private readonly button = element("button", { type: "button" }, "What would make it sooner?");
  private readonly said = element("div", { role: "status" });
  private job: Job | null = null;
  private turn = 0;

  constructor() {
    this.button.addEventListener("click", () => void this.ask());
    this.root.append(this.button, this.said);
    this.root.hidden = true;
  }

  reset(): void {
    this.turn++;
    this.button.disabled = false;
    this.said.replaceChildren();
    this.root.hidden = true;
  }

  update(job: Job): void {
    this.job = job;
    this.root.hidden = !canBeSooner(job);
  }

  async ask(): Promise<void> {
    const { job } = this;
    if (!job) return;
    const turn = ++this.turn;
    this.button.disabled = true;
    this.said.replaceChildren(element("p", { class: "faint" }, "Asking the scheduler…"));
    let shown: Node[];
    try {
      const reply = await fetch("sooner", { method: "POST", body: JSON.stringify({ ns: job.ns, name: job.name }) });
      if (!reply.ok) throw new Error((await reply.text()).trim());
      shown = this.say((await reply.json()) as Sooner, job);
    } catch (failure) {
      shown = [element("p", { class: "warn" }, failureText(failure))];
    }
    if (turn !== this.turn) return;
    this.button.disabled = false;
    this.said.replaceChildren(...shown);
  }

  private say(answer: Sooner, job: Job): Node[] {
    const asOf = answer.asOf ?? job.submit ?? 0;
    const when = (start: number) => (start <= asOf ? "now" : `at ${instantText(start, asOf)}, in ${spanText(start - asOf)}`);
    const all = better(answer, job.expected);
    const note = element("p", { class: "faint" }, "If it were submitted now with that change, every job uses its time limit, and nothing else comes.");
    if (all.length === 0) {
      const tried = answer.variants.map((each) => each.change).join(", ");
      return [element("p", {}, tried ? `None of these would: ${tried}.` : "It has no time limit, and no node or partition to do without."), note];
    }
    return [element("ul", {}, ...all.map(({ change, start, stops }) =>
      element("li", {}, element("b", {}, change), `: ${when(start!)}`, stops ? element("span", { class: "warn" }, ", and it would stop other jobs") : ""))), note];
  }
}
