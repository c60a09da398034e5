// What if: when and where would such a job start, and whom would it stop? The operator answers
// (cli/cluster/page_whatif.h); what would result is drawn on the strips below. The question stands in the URL.
import { NodesView } from "./nodes_view.ts";
import { naturally, type State } from "./state.ts";
import { element, failureText, instantText, shellWord, spanText } from "./text.ts";

interface Answer {
  asOf: number | null;
  start: number | null;
  limit: number | null;
  partition: string;
  hostlist: string;
  on: string[];
  nodes: number;
  cpus: number;
  message: string;
  stops: { suspended: number; requeued: number; canceled: number; names: string } | null;
}

const FIELDS = [
  { name: "nodes", label: "Nodes", hint: "4", option: "-N" },
  { name: "time", label: "For", hint: "2:00:00", option: "-t" },
  { name: "partition", label: "Partition", hint: "default", option: "-p" },
  { name: "qos", label: "QOS", hint: "default", option: "-q" },
  { name: "cpus", label: "CPUs per node", hint: "all", option: "--ntasks-per-node=1 -c" },
  { name: "gpus", label: "GPUs per node", hint: "none", option: "--gres=gpu:" },
  { name: "ns", label: "Namespace", hint: "default", option: "-n" },
] as const;
type Field = (typeof FIELDS)[number]["name"];
type Question = Partial<Record<Field, string>>;

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** The command that submits such a job. */
export function submitText(question: Question): string {
  const words = ["kubectl gang submit"];
  for (const { name, option } of FIELDS) {
    const value = question[name];
    if (!value) continue;
    if (name === "ns") words.push(`--namespace=${shellWord(value)}`);
    else words.push(option + (option.endsWith(":") ? "" : " ") + shellWord(value));
  }
  return `${words.join(" ")} job.sh`;
}

export function stopsText(stops: Answer["stops"]): string {
  if (!stops) return "It would stop no other job.";
  const parts = [["suspend", stops.suspended], ["requeue", stops.requeued], ["cancel", stops.canceled]] as const;
  const text = parts.filter(([, count]) => count > 0).map(([verb, count]) => `${verb} ${counted(count, "job")}`);
  return `It would ${text.join(" and ")}: ${stops.names}.`;
}

export class WhatIfView {
  readonly root: HTMLElement;
  private readonly inputs = new Map<Field, HTMLInputElement>();
  private readonly choices = new Map<Field, HTMLDataListElement>();
  private readonly answer = element("div", { class: "answer", role: "status" });
  private readonly ask = element("button", { type: "submit", class: "main" }, "Ask");
  private asked = ""; // as it stands in the URL
  private turn = 0;

  constructor(
    private readonly state: State,
    private readonly nodes: NodesView,
    private readonly change: (parameters: Record<string, string>) => void,
  ) {
    const form = element("form", { class: "question", "aria-label": "A job that might be" });
    for (const { name, label, hint } of FIELDS) {
      const input = element("input", { id: `ask-${name}`, name, type: "text", placeholder: hint, maxlength: "200",
        autocomplete: "off", spellcheck: "false", list: `choices-${name}` });
      if (name === "nodes" || name === "cpus" || name === "gpus") input.inputMode = "numeric";
      const choices = element("datalist", { id: `choices-${name}` });
      this.inputs.set(name, input);
      this.choices.set(name, choices);
      form.append(element("label", { class: `field ${name}`, for: input.id }, element("span", {}, label), input, choices));
    }
    for (const time of ["30:00", "1:00:00", "2:00:00", "12:00:00", "1-0"]) {
      this.choices.get("time")!.append(element("option", { value: time }));
    }
    form.append(this.ask);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.asked = "";
      const question: Record<string, string> = {};
      for (const [name, input] of this.inputs) question[name] = input.value.trim();
      this.change({ ...question, asked: "1" });
    });
    this.root = element("section", { class: "whatif", "aria-label": "What if" }, form, this.answer);
    this.teach();
  }

  focus(): void {
    this.inputs.get("nodes")!.focus();
  }

  /** The strips are shared with the nodes' view, so they are fetched each time. */
  update(parameters: URLSearchParams): void {
    if (this.nodes.root.parentElement !== this.root) this.root.append(this.nodes.root);
    this.nodes.start();
    const question: Question = {};
    for (const { name } of FIELDS) question[name] = parameters.get(name) ?? "";
    this.fillChoices();
    const text = parameters.get("asked") === "1" ? JSON.stringify(question) : "";
    if (text === this.asked) return;
    this.asked = text;
    for (const [name, input] of this.inputs) input.value = question[name] ?? "";
    if (text === "") {
      this.teach();
      return;
    }
    if (!question.ns) question.ns = this.home();
    void this.send(question);
  }

  /** On the way to another view. */
  leave(): void {
    this.nodes.suppose(null);
    this.asked = "";
    this.turn++;
  }

  private home(): string {
    const about = this.state.kinds.about.get("server");
    return about?.ns || about?.home || "default";
  }

  private teach(): void {
    this.nodes.suppose(null);
    this.answer.replaceChildren(element("p", { class: "faint" },
      "How many nodes, and for how long? The scheduler says when and where such a job would start, and which jobs it would stop. Nothing is run."));
  }

  private fillChoices(): void {
    const namespaces = new Set([...this.state.kinds.jobs.values()].map((job) => job.ns)).add(this.home());
    this.inputs.get("ns")!.placeholder = this.home();
    const fill = (field: Field, names: Iterable<string>) => {
      const list = this.choices.get(field)!;
      const wanted = [...names].sort(naturally);
      if ([...list.options].map((each) => each.value).join("\n") === wanted.join("\n")) return;
      list.replaceChildren(...wanted.map((value) => element("option", { value })));
    };
    fill("ns", namespaces);
    fill("partition", this.state.kinds.partitions.keys());
  }

  private async send(question: Question): Promise<void> {
    const turn = ++this.turn;
    this.ask.disabled = true;
    this.nodes.suppose(null);
    this.answer.replaceChildren(element("p", { class: "faint" }, "Asking the scheduler…"));
    let shown: Node[];
    let answer: Answer | null = null;
    try {
      const reply = await fetch("whatif", { method: "POST", body: JSON.stringify(question) });
      if (!reply.ok) throw new Error((await reply.text()).trim());
      answer = (await reply.json()) as Answer;
      shown = this.say(answer, question);
    } catch (failure) {
      shown = [element("p", { class: "warn" }, failureText(failure))];
    }
    if (turn !== this.turn) return;
    this.ask.disabled = false;
    this.answer.replaceChildren(...shown);
    if (answer && answer.start !== null) {
      const from = Math.max(answer.start, this.state.now());
      this.nodes.suppose({ on: answer.on, from, to: from + (answer.limit ?? 3600e6), hasLimit: answer.limit !== null });
    }
  }

  private say(answer: Answer, question: Question): Node[] {
    if (answer.start === null) return [element("p", {}, element("b", {}, "It would not start: "), answer.message)];
    const now = this.state.now();
    const isNow = answer.start <= (answer.asOf ?? now);
    const when = isNow ? "now" : `at ${instantText(answer.start, now)}, in ${spanText(Math.max(0, answer.start - now))}`;
    const command = submitText(question);
    return [
      element("p", {}, "It would start ", element("b", {}, when), `, in partition ${answer.partition}, on `,
        element("b", {}, answer.hostlist), ` (${counted(answer.nodes, "node")}, ${counted(answer.cpus, "CPU")}). `,
        element("span", { class: answer.stops ? "warn" : "" }, stopsText(answer.stops))),
      element("p", { class: "faint" }, "If every job uses its time limit and nothing else comes. To submit it: ",
        element("code", {}, command)),
    ];
  }
}
