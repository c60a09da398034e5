// The past that the page has not watched: runs that records remember (cli/cluster/page_records.h), asked for once the screen
// gets there. One window of time is kept, wider than the screen, so that moving about in it asks nothing.
import { naturally, type Job, type Run, type State } from "./state.ts";
import { clockText, failureText, instantText } from "./text.ts";

const RUNS_MAX = 10_000;
const PAGES_MAX = 50; // of one window: also those without a run are bounded
const NAMESPACES_MAX = 20;
const PATIENCE_MS = 250; // while one still scrolls
const ASK_AGAIN_MS = 30_000; // of what could not be read

interface Span {
  from: number;
  to: number;
}

interface Page {
  since: number;
  next: string;
  runs: { uid: string; restart: number; task?: number; job: Job }[];
}

type Ask = (question: object) => Promise<Response>;
const post: Ask = (question) => fetch("records", { method: "POST", body: JSON.stringify(question) });

class Refused extends Error {}

function runsOf(page: Page): Run[] {
  return page.runs.map(({ uid, restart, task, job }) => {
    const own = task === undefined ? uid : `${uid}_${task}`;
    return { key: `${own}/${restart}`, uid: own, job: { ...job, gone: true, ...(task === undefined ? {} : { task }) } };
  });
}

export class Past {
  private kept: (Span & { isCut: boolean; isWhole: boolean; readAt: number }) | null = null; // isWhole: up to what is watched
  private wanted: Span | null = null;
  private isReading = false;
  private timer = 0;
  private failure = ""; // why nothing could be read
  private failedAt = -Infinity;
  private since: number | null = null; // when records begin
  private namespaces: string[] | null = null; // those that may be read, if not all may
  private turn = 0;

  constructor(
    private readonly state: State,
    private readonly ask: Ask = post,
    private readonly clock: () => number = () => performance.now(),
  ) {}

  /** What is looked at. Asks for what is missing of it, soon. */
  want(from: number, to: number): void {
    this.wanted = this.missing({ from, to });
    if (!this.wanted || this.isReading || this.timer !== 0) return;
    if (this.clock() - this.failedAt < ASK_AGAIN_MS) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      void this.read();
    }, PATIENCE_MS) as unknown as number;
  }

  /** Another reader, or the same one once more. */
  reset(): void {
    this.turn++;
    clearTimeout(this.timer);
    this.timer = 0;
    this.kept = this.wanted = this.since = this.namespaces = null;
    this.isReading = false;
    this.failure = "";
    this.failedAt = -Infinity;
    this.state.setRecorded([]);
  }

  /** A sentence on what is not seen of the time since `from`; "" if nothing is missing. */
  note(from: number): string {
    const { whole, began } = this.state;
    if (from >= whole || !this.state.hasData) return "";
    const now = this.state.now();
    if (this.failure) {
      const begins = whole > began ? `Some of what ended before ${instantText(whole, now)} is not shown` :
        `The past begins at ${instantText(began, now)}, when this page's server did`;
      return `${begins}: ${this.failure}.`;
    }
    if (!this.kept || this.missing({ from, to: whole })) return "Reading records…";
    if (this.kept.isCut) return `There are more than ${RUNS_MAX} runs in this time: zoom in to see all of them.`;
    const of = this.namespaces && !this.state.kinds.about.get("server")?.ns ? ` of ${this.namespaces.join(", ")}` : "";
    if (this.since !== null && from < this.since) return `Records${of} begin at ${instantText(this.since, now)}.`;
    return `Before ${clockText(whole)}: by records${of}, without turns.`;
  }

  /** Since when all runs are there, at `from` or later. */
  knownSince(from: number): number {
    const { kept } = this;
    if (!kept || kept.isCut || !kept.isWhole) return this.state.whole;
    return Math.max(from, kept.from, this.since ?? 0);
  }

  /** The runs of one job, also those before it was requeued. None if they cannot be read. */
  async ofJob(ns: string, id: number): Promise<Run[]> {
    try {
      const page = await this.page({ from: 0, until: this.state.now(), ns, jobs: [id] });
      return runsOf(page).filter((run) => run.job.id === id);
    } catch {
      return [];
    }
  }

  /** What the screen needs of records; null if it has it. */
  private missing({ from, to }: Span): Span | null {
    const need = { from: Math.max(0, Math.floor(from), this.since ?? 0), to: Math.ceil(Math.min(to, this.state.whole)) };
    const { kept } = this;
    // A busy server drops runs all the time, and each is one more that only records know.
    if (kept?.isWhole && this.clock() - kept.readAt < ASK_AGAIN_MS) need.to = Math.min(need.to, kept.to);
    if (need.to <= need.from) return null;
    if (!kept || need.from < kept.from || need.to > kept.to) return need;
    return kept.isCut && need.to - need.from < (kept.to - kept.from) / 2 ? need : null;
  }

  private async read(): Promise<void> {
    const wanted = this.wanted;
    if (!wanted) return;
    const turn = ++this.turn;
    this.isReading = true;
    const margin = wanted.to - wanted.from;
    const { whole } = this.state;
    const wide = { from: Math.max(0, wanted.from - margin), to: Math.min(whole, wanted.to + margin) };
    try {
      let span = wide;
      let { runs, isCut } = await this.runsIn(span, turn);
      if (isCut && turn === this.turn) {
        span = wanted;
        ({ runs, isCut } = await this.runsIn(span, turn));
      }
      if (turn !== this.turn) return;
      this.kept = { ...span, isCut, isWhole: !isCut && span.to >= whole, readAt: this.clock() };
      this.failure = "";
      this.state.setRecorded(runs);
    } catch (failure) {
      if (turn !== this.turn) return;
      this.failure = failureText(failure);
      this.failedAt = this.clock();
    }
    this.isReading = false;
  }

  private async runsIn({ from, to }: Span, turn: number): Promise<{ runs: Run[]; isCut: boolean }> {
    const question = { from, until: to };
    const only = this.state.kinds.about.get("server")?.ns;
    if (only) return this.runsOfAll(question, [only], turn);
    if (!this.namespaces) {
      try {
        return await this.runsOfAll(question, [""], turn);
      } catch (failure) {
        if (!(failure instanceof Refused)) throw failure;
      }
    }
    return this.runsOfAll(question, this.known(), turn);
  }

  /** Namespaces whose records the reader may be allowed to read: those that they see anything of. */
  private known(): string[] {
    const names = new Set([...this.state.kinds.jobs.values()].map((job) => job.ns));
    const home = this.state.kinds.about.get("server")?.home;
    if (home) names.add(home);
    return [...names].sort(naturally).slice(0, NAMESPACES_MAX);
  }

  private async runsOfAll(question: object, namespaces: string[], turn: number): Promise<{ runs: Run[]; isCut: boolean }> {
    const runs: Run[] = [];
    const readable: string[] = [];
    let refusal: Refused | null = null;
    let pages = 0;
    for (const ns of namespaces) {
      let next = "";
      try {
        do {
          if (turn !== this.turn) return { runs, isCut: false };
          if (runs.length >= RUNS_MAX || pages++ >= PAGES_MAX) return { runs: runs.slice(0, RUNS_MAX), isCut: true };
          const page = await this.page({ ...question, ...(ns ? { ns } : {}), ...(next ? { next } : {}) });
          if (turn === this.turn) this.since = page.since;
          runs.push(...runsOf(page));
          next = page.next;
        } while (next !== "");
        readable.push(ns);
      } catch (failure) {
        if (!(failure instanceof Refused)) throw failure;
        refusal = failure;
      }
    }
    if (readable.length === 0 && refusal) throw refusal;
    if (namespaces[0] !== "") this.namespaces = readable;
    return { runs, isCut: false };
  }

  private async page(question: object): Promise<Page> {
    const answer = await this.ask(question);
    if (answer.status === 403) throw new Refused("you may not list records");
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return (await answer.json()) as Page;
  }
}
