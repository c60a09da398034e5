// What the server sends (cli/cluster/page_objects.h), kept up by its events, and what follows from
// it at an instant.
import { giveColors } from "./color.ts";
import { nextSwitch, runAt, runTime, share, type Timetable } from "./run.ts";
import { pauseText } from "./text.ts";

export interface Stay {
  on: string[];
  from: number;
  to: number | null;
  endedFor?: string; // the job that preempted it: its uid, as in `by`
  pauses?: Pause[];
}

/** A time in which a job was suspended, by its user or because jobs of a higher tier ran on its cores. */
export interface Pause {
  byUser: boolean;
  by: string[]; // those: UID, or UID_TASK; only some of them if there are many, none if the reader may not see them
  from: number;
  to: number | null;
}

export interface Job {
  id: number | null;
  ns: string;
  user?: string; // who has submitted it
  name: string;
  batchJob: string;
  partition: string;
  state: string;
  reason: string;
  message: string;
  nodes: number;
  hostlist: string;
  priority: number;
  held: boolean;
  refused: boolean;
  submit: number | null;
  start: number | null;
  end: number | null;
  expected: number | null;
  plannedNodes: string;
  planned: string[];
  limit: number | null;
  ran: { elapsed: number; asOf: number } | null;
  suspended: { elapsed: number; asOf: number } | null;
  exit: number | null;
  stays: Stay[];
  gone?: boolean;
  array?: ArrayFacts;
  task?: number; // its number, of a task of an array
  foreign?: boolean; // known by its pods alone: the reader may not list the jobs of its namespace
}

export interface ArrayFacts {
  tasks: string;
  throttle: number | null;
  summary: string;
  counts: { waiting: number; running: number; succeeded: number; failed: number; canceled: number } | null;
  waiting: string; // tasks that wait for their first start
  failed: string;
  why: string;
}

/** What a task does not share with its array. */
export interface Task extends Partial<Job> {
  of: string;
  task: number;
  stays: Stay[];
}

/** A run that the page has not watched, as records remember it. */
export interface Run {
  key: string;
  uid: string; // of its job, or UID_TASK
  job: Job;
}

/** A task as a job. Its uid is UID_TASK. */
export interface TaskJob {
  uid: string;
  job: Job;
}

export interface Node extends Timetable {
  agent: string;
  stuck: number;
}

export interface Past extends Timetable {
  node: string;
  from: number;
  to: number;
}

export interface Access {
  namespaces: string[] | null;
  qos: string[] | null;
}

export interface Partition {
  on: string[];
  bySelector: boolean;
  default: boolean;
  state: string;
  tier: number;
  maxTime: number | null;
  allow: Access | null;
  deny: Access | null;
  share: { policy: string; max: number | null };
  nodes: number;
  jobs: { pending: number; running: number; suspended: number } | null;
  unusable: { reason: string; message: string; count: number; on: string[] }[];
}

interface Kinds {
  jobs: Map<string, Job>;
  tasks: Map<string, Task>;
  nodes: Map<string, Node>;
  past: Map<string, Past>;
  partitions: Map<string, Partition>;
  notes: Map<string, { text: string; at: number; refused: boolean }>;
  about: Map<string, { began: number; whole: number; ns: string; home: string; synced: boolean }>;
}

export interface Listed {
  table: Timetable;
  pod: number;
}

export interface OnNode {
  uid: string;
  job: Job;
  from: number;
  to: number | null;
}

const FINAL = new Set(["CD", "F", "CA", "TO", "PR", "NF", "OOM", "DL"]);
export const isFinal = (job: Job) => job.gone === true || FINAL.has(job.state);
/** As commands take it: "sweep", "sweep_3". */
export const titleOf = (job: Job) =>
  job.foreign ? `a job of ${job.ns}` : (job.batchJob ? `job/${job.batchJob}` : job.name) + (job.task === undefined ? "" : `_${job.task}`);
/** When a job that waits is expected to start. A begin time that is over says nothing; a plan that is late does. */
export function expectedStart(job: Job, now: number): number | null {
  if (job.expected === null || job.held || !isWaiting(job)) return null;
  return job.expected > now ? job.expected : job.planned.length > 0 ? now : null;
}
export const isWaiting = (job: Job) => !job.gone && job.state === "PD";

const collator = new Intl.Collator("en", { numeric: true });
export const naturally = (a: string, b: string) => collator.compare(a, b);

/** Pods of a task are those of UID_TASK. */
function nameTasks(tables: Timetable[]): void {
  for (const table of tables) {
    for (const pod of table.pods) if (pod.task !== undefined) pod.job += `_${pod.task}`;
  }
}

export class State {
  readonly kinds: Kinds = {
    jobs: new Map(),
    tasks: new Map(),
    nodes: new Map(),
    past: new Map(),
    partitions: new Map(),
    notes: new Map(),
    about: new Map(),
  };
  version = 0;
  hasData = false;
  private ahead = 0; // of the server's clock, µs
  private indexed = -1;
  private listed = new Map<string, Listed>();
  private stays = new Map<string, OnNode[]>();
  private pasts = new Map<string, Past[]>();
  private places = new Map<Job, number>();
  private tasks = new Map<string, TaskJob[]>();
  private recorded = new Map<string, Run>();

  /** Microseconds since the epoch by the server's clock. */
  now(): number {
    return Math.round((performance.timeOrigin + performance.now()) * 1000) + this.ahead;
  }

  apply(update: {
    now: number;
    full: boolean;
    set: Record<string, Record<string, unknown>>;
    gone: Record<string, string[]>;
  }): void {
    const ahead = update.now - Math.round((performance.timeOrigin + performance.now()) * 1000);
    // A message can only be late, so the least delay is the truest; a clock that was set is
    // believed.
    if (!this.hasData || ahead > this.ahead || this.ahead - ahead > 1e6) this.ahead = ahead;
    const kinds = this.kinds as unknown as Record<string, Map<string, unknown>>;
    if (update.full) for (const kind of Object.values(kinds)) kind.clear();
    for (const [kind, objects] of Object.entries(update.set)) {
      for (const [name, object] of Object.entries(objects)) kinds[kind]?.set(name, object);
      if (kind === "nodes" || kind === "past") nameTasks(Object.values(objects) as Timetable[]);
    }
    for (const [kind, names] of Object.entries(update.gone)) {
      for (const name of names) kinds[kind]?.delete(name);
    }
    const byNumber = Object.entries(update.set["jobs"] ?? {}) as [string, Job][];
    if (byNumber.length > 0) {
      const active = [...this.kinds.jobs].filter(([, job]) => !isFinal(job)).map(([uid]) => uid);
      byNumber.sort(([, a], [, b]) => (a.id ?? Infinity) - (b.id ?? Infinity));
      giveColors(byNumber.map(([uid]) => uid), new Set(active));
    }
    this.hasData = true;
    this.version++;
  }

  /** Forgets all: the reader has no session. */
  clear(): void {
    for (const kind of Object.values(this.kinds)) kind.clear();
    this.hasData = false;
    this.version++;
  }

  get began(): number {
    return this.kinds.about.get("server")?.began ?? 0;
  }

  /** What has ended since then is there without records. */
  get whole(): number {
    return this.kinds.about.get("server")?.whole ?? this.began;
  }

  /** Instead of those before. */
  setRecorded(runs: Run[]): void {
    if (runs.length === 0 && this.recorded.size === 0) return;
    this.recorded = new Map(runs.map((run) => [run.key, run]));
    this.version++;
  }

  /** Runs that only records know. */
  *runs(): Iterable<Run> {
    for (const run of this.recorded.values()) if (!this.isWatched(run)) yield run;
  }

  /** Whether the run is one of those that the page has seen itself. */
  isWatched({ uid, job }: Run): boolean {
    const seen = this.kinds.jobs.get(uid)?.stays ?? this.kinds.tasks.get(uid)?.stays ?? [];
    return job.stays.some(({ from, to }) => seen.some((stay) => stay.from < (to ?? Infinity) && (stay.to ?? Infinity) > from));
  }

  private index(): void {
    if (this.indexed === this.version) return;
    this.indexed = this.version;
    this.listed.clear();
    this.stays.clear();
    this.pasts.clear();
    this.readPlaces();
    this.readTasks();
    for (const table of this.kinds.nodes.values()) {
      table.pods.forEach((pod, i) => {
        if (!this.listed.has(pod.job)) this.listed.set(pod.job, { table, pod: i });
      });
    }
    for (const past of this.kinds.past.values()) {
      const all = this.pasts.get(past.node) ?? [];
      all.push(past);
      this.pasts.set(past.node, all);
    }
    for (const all of this.pasts.values()) all.sort((a, b) => a.from - b.from);
    for (const [uid, job] of this.kinds.jobs) this.addStays(uid, job);
    for (const tasks of this.tasks.values()) for (const { uid, job } of tasks) this.addStays(uid, job);
    for (const { uid, job } of this.runs()) this.addStays(uid, job);
    this.addForeign();
    for (const all of this.stays.values()) {
      all.sort((a, b) => (a.job.id ?? Infinity) - (b.job.id ?? Infinity) || (a.uid < b.uid ? -1 : 1));
    }
  }

  private addStays(uid: string, job: Job): void {
    for (const stay of job.stays) {
      for (const node of stay.on) {
        const all = this.stays.get(node) ?? [];
        all.push({ uid, job, from: stay.from, to: stay.to });
        this.stays.set(node, all);
      }
    }
  }

  /** Jobs of which there are only pods that take turns: without them their nodes would look free. */
  private addForeign(): void {
    for (const [node, table] of this.kinds.nodes) {
      for (const pod of table.pods) {
        if (this.kinds.jobs.has(pod.job.split("_")[0]!)) continue;
        const job: Job = { id: null, ns: pod.ns, name: "", batchJob: "", partition: "", state: "R", reason: "",
          message: "", nodes: 1, hostlist: node, priority: 0, held: false, refused: false, submit: null, start: null,
          end: null, expected: null, plannedNodes: "", planned: [], limit: null, ran: null, suspended: null,
          exit: null, stays: [], foreign: true };
        const all = this.stays.get(node) ?? [];
        all.push({ uid: pod.job, job, from: this.began, to: null });
        this.stays.set(node, all);
      }
    }
  }

  private readTasks(): void {
    this.tasks.clear();
    for (const [uid, task] of this.kinds.tasks) {
      const array = this.kinds.jobs.get(task.of);
      if (!array) continue;
      const { array: facts, expected, plannedNodes, planned, ...shared } = array;
      const own = { expected: null, plannedNodes: "", planned: [] };
      const all = this.tasks.get(task.of) ?? [];
      all.push({ uid, job: { ...shared, ...own, ...task } });
      this.tasks.set(task.of, all);
    }
    for (const all of this.tasks.values()) all.sort((a, b) => a.job.task! - b.job.task!);
  }

  /** The tasks of an array that have started, by number, and the last ones that have ended. */
  tasksOf(array: string): TaskJob[] {
    this.index();
    return this.tasks.get(array) ?? [];
  }

  listedAs(uid: string): Listed | undefined {
    this.index();
    return this.listed.get(uid);
  }

  /** For a sentence; a job that the reader may not list has no name here. */
  nameOf(uid: string): string {
    const job = this.kinds.jobs.get(uid);
    const task = this.kinds.tasks.get(uid);
    const array = task && this.kinds.jobs.get(task.of);
    return job ? titleOf(job) : array ? titleOf({ ...array, task: task.task }) : "a job that you may not list";
  }

  /** Why it was suspended at `t`, if not between its turns: "by its user", "for urgent"; "" if it was not. */
  pausedAt(job: Job, t: number): string {
    const covers = ({ from, to }: { from: number; to: number | null }) => from <= t && (to === null || t < to);
    const pause = job.stays.flatMap((stay) => (covers(stay) ? (stay.pauses ?? []) : [])).find(covers);
    return pause ? pauseText(pause, (uid) => this.nameOf(uid)) : "";
  }

  staysOn(node: string): OnNode[] {
    this.index();
    return this.stays.get(node) ?? [];
  }

  pastOf(node: string): Past[] {
    this.index();
    return this.pasts.get(node) ?? [];
  }

  /** squeue's code at an instant; turns follow from the timetables. */
  stateAt(uid: string, job: Job, t: number): string {
    if (job.gone || job.state !== "R") return job.state;
    const listed = this.listedAs(uid);
    if (!listed) return "R";
    return runAt(listed.table, t).includes(listed.pod) ? "R" : "S";
  }

  /** How long it has run, without suspended time: view/job_time.cc in the browser. */
  ranAt(uid: string, job: Job, t: number): number {
    if (job.state === "CF" || job.state === "PD") return 0;
    const listed = this.listedAs(uid);
    if (job.state === "R" && listed) {
      const { table, pod } = listed;
      const ran = table.pods[pod]!.ran;
      if (table.asOf === null) return ran;
      const sign = table.asOf <= t ? 1 : -1;
      const between = runTime(table, pod, Math.min(table.asOf, t), Math.max(table.asOf, t));
      return Math.max(0, ran + sign * between);
    }
    const runs = job.state === "R";
    if (!job.ran) return runs && job.start !== null ? Math.max(0, t - job.start) : 0;
    return job.ran.elapsed + (runs ? Math.max(0, t - job.ran.asOf) : 0);
  }

  /** When its time limit ends it, by its share of the turns; null if nothing does. */
  endByLimit(uid: string, job: Job, now: number): number | null {
    if (job.limit === null) return null;
    const left = Math.max(0, job.limit - this.ranAt(uid, job, now));
    const listed = this.listedAs(uid);
    const part = listed ? share(listed.table, listed.pod) : 1;
    return part > 0 ? now + left / part : null;
  }

  nextSwitch(uid: string, now: number): number | null {
    const listed = this.listedAs(uid);
    return listed ? nextSwitch(listed.table, listed.pod, now) : null;
  }

  /** The node's partitions, by name. */
  partitionsOf(node: string): string[] {
    const names = [];
    for (const [name, partition] of this.kinds.partitions) {
      if (partition.on.includes(node)) names.push(name);
    }
    return names.sort(naturally);
  }

  /** All nodes that anything speaks of, in groups of partitions. */
  groups(): { partition: string; nodes: string[] }[] {
    this.index();
    const first = new Map<string, string>();
    const partitions = [...this.kinds.partitions].sort(
      ([a, x], [b, y]) => Number(y.default) - Number(x.default) || naturally(a, b),
    );
    for (const [name, partition] of partitions) {
      for (const node of partition.on) if (!first.has(node)) first.set(node, name);
    }
    // Members by a selector are unknown to users who may not read nodes; jobs show some of them.
    const only = partitions.length === 1 ? partitions[0]![0] : "";
    for (const node of [...this.kinds.nodes.keys(), ...this.stays.keys()]) {
      if (first.has(node)) continue;
      const shown = this.stays.get(node)?.find((stay) => this.kinds.partitions.has(stay.job.partition));
      first.set(node, shown?.job.partition ?? only);
    }
    const groups = new Map<string, string[]>();
    for (const [name] of partitions) groups.set(name, []);
    groups.set("", []);
    for (const [node, partition] of first) groups.get(partition)!.push(node);
    return [...groups]
      .filter(([, nodes]) => nodes.length > 0)
      .map(([partition, nodes]) => ({ partition, nodes: nodes.sort(naturally) }));
  }

  /** Why a node takes no new jobs; "" if it does. */
  trouble(node: string): string {
    for (const partition of this.kinds.partitions.values()) {
      for (const group of partition.unusable) {
        if (group.on.includes(node)) return group.message || group.reason;
      }
    }
    return this.kinds.nodes.get(node)?.agent ?? "";
  }

  /** Waiting jobs before it that share a partition with it and may start, plus one. */
  place(job: Job): number | null {
    this.index();
    return this.places.get(job) ?? null;
  }

  /** In the order of the queue, with a count for each set of partitions that jobs ask for. */
  private readPlaces(): void {
    this.places.clear();
    const queue = [...this.kinds.jobs.values()].filter(
      (job) => isWaiting(job) && !job.held && !job.refused,
    );
    queue.sort((a, b) => b.priority - a.priority || (a.id ?? Infinity) - (b.id ?? Infinity));
    const names = new Map(queue.map((job) => [job.partition, job.partition.split(",")]));
    const counts = new Map<string, number>();
    for (const job of queue) {
      const own = names.get(job.partition)!;
      this.places.set(job, (counts.get(job.partition) ?? 0) + 1);
      for (const [key, others] of names) {
        if (others.some((name) => own.includes(name))) counts.set(key, (counts.get(key) ?? 0) + 1);
      }
    }
  }
}
