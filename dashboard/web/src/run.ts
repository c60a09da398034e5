// run(t) of a node's timetable, as the agents compute it (timetable/timetable.h): a plan, then a
// cycle on the grid of slot numbers since the epoch. All instants are whole microseconds, which a
// number holds exactly.

export interface Timetable {
  asOf: number | null;
  slice: number;
  pods: { job: string; ns: string; ran: number; task?: number }[];
  plan: { until: number; run: number[] }[];
  cycle: number[][];
}

const slotOf = (t: number, slice: number) => Math.floor(t / slice);

function cycleAt(table: Timetable, slot: number): number[] {
  const length = table.cycle.length;
  return table.cycle[((slot % length) + length) % length]!;
}

/** The pods that run at t. */
export function runAt(table: Timetable, t: number): number[] {
  const entry = table.plan.find((each) => t < each.until);
  return entry ? entry.run : cycleAt(table, slotOf(t, table.slice));
}

/** The end of the entry or slot that t is in. */
export function boundaryAfter(table: Timetable, t: number): number {
  const entry = table.plan.find((each) => t < each.until);
  return entry ? entry.until : (slotOf(t, table.slice) + 1) * table.slice;
}

/** How long a pod runs in [from, to): the plan entry by entry, then whole rounds of the cycle. */
export function runTime(table: Timetable, pod: number, from: number, to: number): number {
  let total = 0;
  let at = from;
  for (const entry of table.plan) {
    if (entry.until <= at) continue;
    if (at >= to) break;
    const end = Math.min(entry.until, to);
    if (entry.run.includes(pod)) total += end - at;
    at = end;
  }
  if (at >= to) return total;
  const { slice, cycle } = table;
  const own = cycle.filter((turn) => turn.includes(pod)).length;
  const round = slice * cycle.length;
  const rounds = Math.floor((to - at) / round);
  total += rounds * own * slice;
  at += rounds * round;
  while (at < to) {
    const end = Math.min((slotOf(at, slice) + 1) * slice, to);
    if (cycleAt(table, slotOf(at, slice)).includes(pod)) total += end - at;
    at = end;
  }
  return total;
}

/** The next instant at which this pod is frozen or thawed; null if it never is. */
export function nextSwitch(table: Timetable, pod: number, now: number): number | null {
  const runs = runAt(table, now).includes(pod);
  let at = now;
  for (let i = 0; i <= table.plan.length + table.cycle.length; ++i) {
    at = boundaryAfter(table, at);
    if (runAt(table, at).includes(pod) !== runs) return at;
  }
  return null;
}

/** The part of the time in which a pod runs, once the plan is over. */
export function share(table: Timetable, pod: number): number {
  return table.cycle.filter((turn) => turn.includes(pod)).length / table.cycle.length;
}
