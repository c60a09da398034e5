// Words, numbers and elements. Text of objects gets into the page as text nodes alone.
import type { ArrayFacts, Job, Pause } from "./state.ts";

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export const NO_ANSWER = "the page's server does not answer";
/** Why a question to the page's server has no answer. It is not there if fetch fails with a TypeError. */
export const failureText = (failure: unknown) => (failure instanceof TypeError ? NO_ANSWER : (failure as Error).message);

const two = (n: number) => String(n).padStart(2, "0");

/** "0:09", "2:03:04", "1-02:03:04", as squeue writes a run time. */
export function runTimeText(micros: number): string {
  const all = Math.floor(micros / 1e6);
  const seconds = two(all % 60);
  const minutes = Math.floor(all / 60) % 60;
  const hours = Math.floor(all / 3600) % 24;
  const days = Math.floor(all / 86400);
  if (days > 0) return `${days}-${two(hours)}:${two(minutes)}:${seconds}`;
  return hours > 0 ? `${hours}:${two(minutes)}:${seconds}` : `${minutes}:${seconds}`;
}

/** "1.3 s", "12 min", "3 h 20 min". */
export function spanText(micros: number): string {
  const seconds = micros / 1e6;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function clockText(micros: number, fraction = 0): string {
  const at = new Date(micros / 1000);
  const text = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  if (fraction === 0) return text;
  return text + (((micros / 1e6) % 1).toFixed(fraction).slice(1));
}

/** "14:03:05", with the date if it is not today. */
export function instantText(micros: number, now: number): string {
  const at = new Date(micros / 1000);
  const today = new Date(now / 1000);
  if (at.toDateString() === today.toDateString()) return clockText(micros);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clockText(micros)}`;
}

const STATES: Record<string, string> = {
  PD: "waiting",
  CF: "starting",
  R: "running",
  S: "suspended",
  CG: "ending",
  CD: "completed",
  F: "failed",
  CA: "canceled",
  TO: "time limit",
  PR: "preempted",
  NF: "node failed",
  OOM: "out of memory",
  DL: "deadline",
};
export const stateText = (code: string) => STATES[code] ?? code;

const REASONS: Record<string, string> = {
  None: "the scheduler has not looked at it yet",
  Priority: "jobs of higher priority are before it",
  Resources: "its nodes are not free yet",
  JobArrayTaskLimit: "as many of its tasks run as may at a time",
  JobHeldUser: "held by its user",
  JobHeldAdmin: "held by an administrator",
  BeginTime: "its begin time has not come",
  Dependency: "it waits for another job",
  PartitionDown: "its partition starts no jobs",
  PartitionInactive: "its partition takes no jobs",
  PartitionTimeLimit: "its time limit is longer than the partition's",
  PartitionNodeLimit: "it asks for more nodes than the partition gives",
  ReqNodeNotAvail: "nodes that it asks for are not available",
  Cleaning: "its last run is being cleared away",
  Licenses: "its licenses are not free yet",
};

/** What its tasks do, and why those that are left wait. */
export function arrayText(array: ArrayFacts, message: string): string {
  const why = message || REASONS[array.why] || (array.why === "None" ? "" : array.why);
  const isLimited = array.throttle !== null && array.why !== "JobArrayTaskLimit";
  const limit = isLimited ? `at most ${array.throttle} at a time` : "";
  return [array.summary, limit, array.counts?.waiting === 0 ? "" : why].filter((text) => text !== "").join("; ");
}

/** Why it waits, or what happened to it. */
export function reasonText(job: Job): string {
  if (job.array) return arrayText(job.array, job.message);
  return job.message || REASONS[job.reason] || (job.reason === "None" ? "" : job.reason);
}

/** A word of a shell: as it is if it is plain, else in single quotes. */
export function shellWord(word: string): string {
  return /^[A-Za-z0-9._:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** "by its user", "for urgent and a job that you may not list"; `name`: of a job, by its uid. */
export function pauseText({ byUser, by }: Pause, name: (uid: string) => string): string {
  if (byUser) return "by its user";
  return `for ${[...new Set(by.map(name))].join(" and ") || "jobs of a higher tier"}`;
}
