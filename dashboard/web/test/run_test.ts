// run(t) in the browser, by the examples of timetable/timetable_test.cc, and against brute force.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { depths } from "../src/accounts_view.ts";
import { busyNodes, median, waits } from "../src/cluster_view.ts";
import { giveColors, jobColor } from "../src/color.ts";
import { boundaryAfter, nextSwitch, runAt, runTime, share, type Timetable } from "../src/run.ts";
import { State, titleOf } from "../src/state.ts";
import { pieces } from "../src/life.ts";
import { runTimeText, shellWord } from "../src/text.ts";
import { stopsText, submitText } from "../src/whatif_view.ts";

const S = 1e6;
const pod = (job: string) => ({ job, ns: "a", ran: 0 });
const two: Timetable = {
  asOf: null,
  slice: 2 * S,
  pods: [pod("a"), pod("b")],
  plan: [{ until: 5 * S, run: [0, 1] }],
  cycle: [[0], [1]],
};

test("a plan comes first, then the cycle on the grid since the epoch", () => {
  assert.deepEqual(runAt(two, 5 * S - 1), [0, 1]);
  assert.deepEqual(runAt(two, 5 * S), [0]); // slot 2
  assert.deepEqual(runAt(two, 6 * S), [1]);
  assert.equal(boundaryAfter(two, 5 * S), 6 * S);
  assert.equal(boundaryAfter(two, 0), 5 * S);
  assert.deepEqual(runAt({ ...two, plan: [] }, -1), [1]); // slots before the epoch
});

test("slots are exact today, at every slice", () => {
  for (const slice of [100_000, 999_983, 2 * S, 65533 * S]) {
    const table = { ...two, plan: [], slice };
    const slot = Math.floor(1_795_000_000_000_000 / slice);
    assert.deepEqual(runAt(table, slot * slice), [slot % 2]);
    assert.deepEqual(runAt(table, slot * slice - 1), [(slot + 1) % 2]);
    assert.equal(boundaryAfter(table, slot * slice), (slot + 1) * slice);
  }
});

test("run time in closed form is that of small steps", () => {
  let seed = 7;
  const draw = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 300; ++round) {
    const table: Timetable = {
      asOf: null,
      slice: 1 + draw(5),
      pods: [pod("a"), pod("b")],
      plan: draw(2) ? [{ until: 3 + draw(9), run: draw(2) ? [0] : [] }] : [],
      cycle: Array.from({ length: 1 + draw(4) }, () => (draw(2) ? [0] : [1])),
    };
    const from = draw(30);
    const to = from + draw(60);
    let want = 0;
    for (let t = from; t < to; ++t) want += runAt(table, t).includes(0) ? 1 : 0;
    assert.equal(runTime(table, 0, from, to), want, JSON.stringify({ table, from, to }));
  }
});

test("the next switch is the first instant at which the pod changes", () => {
  assert.equal(nextSwitch(two, 0, 0), 6 * S); // goes on in slot 2
  assert.equal(nextSwitch(two, 1, 0), 5 * S);
  assert.equal(nextSwitch({ ...two, plan: [], cycle: [[0, 1]] }, 0, 0), null);
  assert.equal(share(two, 0), 0.5);
});

test("a color is that of the UID, and differs from those of the jobs beside it", () => {
  const uids = Array.from({ length: 24 }, (_, i) => `beside-${i}`);
  giveColors(uids, new Set(uids));
  assert.equal(new Set(uids.map((uid) => jobColor(uid, false))).size, 24);
  giveColors(["one more"], new Set(uids));
  assert.ok(jobColor("one more", false));
  assert.equal(jobColor("u1", false), jobColor("u1", false));
  const colors = new Set(Array.from({ length: 200 }, (_, i) => jobColor(`uid-${i}`, false)));
  assert.ok(colors.size > 20, `${colors.size} colors of 24`);
});

test("tasks are jobs beside their array, in its color", () => {
  const state = new State();
  const array = { id: 7, ns: "a", name: "sweep", batchJob: "", state: "R", stays: [], priority: 5, expected: 9,
    array: { waiting: "2-9" } };
  const task = (of: string, number: number) =>
    ({ of, task: number, id: 100 + number, state: "R", stays: [{ on: ["n1"], from: 0, to: null }] });
  const pod = (number: number) => ({ job: "u", ns: "a", ran: 0, task: number });
  const n1 = { ...two, plan: [], pods: [pod(1), pod(0)] };
  state.apply({ now: 0, full: true, gone: {}, set: {
    jobs: { u: array }, nodes: { n1 }, tasks: { u_1: task("u", 1), u_0: task("u", 0), v_3: task("v", 3) } } });
  const [first, second] = state.tasksOf("u");
  assert.deepEqual([first!.uid, titleOf(first!.job), first!.job.id, first!.job.array], ["u_0", "sweep_0", 100, undefined]);
  assert.deepEqual(state.staysOn("n1").map(({ uid }) => uid), ["u_0", "u_1"]);
  // u_1 has the even slots.
  assert.deepEqual([first, second].map((each) => state.stateAt(each!.uid, each!.job, 0)), ["S", "R"]);
  assert.equal(jobColor("u_1", false), jobColor("u", false));
  assert.deepEqual(state.tasksOf("v"), []);
});

test("words of a shell and times are written as elsewhere", () => {
  assert.equal(shellWord("team-a"), "team-a");
  assert.equal(shellWord("a'; rm -rf"), "'a'\\''; rm -rf'");
  assert.equal(runTimeText(9 * S), "0:09");
  assert.equal(runTimeText((86400 + 3600) * S), "1-01:00:00");
});

test("a place in the queue counts jobs that share a partition and may start", () => {
  const state = new State();
  const job = (id: number, partition: string, priority: number, held = false) =>
    ({ id, partition, priority, held, refused: false, state: "PD", stays: [] });
  const jobs = { a: job(1, "x", 5), b: job(2, "x,y", 9), c: job(3, "y", 7), d: job(4, "x", 5), e: job(5, "x", 9, true) };
  state.apply({ now: 0, full: true, set: { jobs }, gone: {} });
  const place = (uid: string) => state.place(state.kinds.jobs.get(uid)!);
  assert.deepEqual(["a", "b", "c", "d", "e"].map(place), [2, 1, 2, 3, null]);
});

test("a node with several jobs is in use once", () => {
  const state = new State();
  const job = (submit: number, start: number, stays: object[]) =>
    ({ id: 1, partition: "x", priority: 1, state: "R", submit, start, stays });
  const jobs = {
    a: job(0, 10 * S, [{ on: ["n1", "n2"], from: 10 * S, to: 30 * S }]),
    b: job(5 * S, 20 * S, [{ on: ["n1"], from: 20 * S, to: null }]),
    c: job(0, 90 * S, [{ on: ["n3"], from: 90 * S, to: null }]), // after what is asked about
  };
  state.apply({ now: 0, full: true, set: { jobs }, gone: {} });
  const steps = busyNodes(state, ["n1", "n2", "n3"], 0, 50 * S);
  assert.deepEqual(steps, [{ at: 0, busy: 0 }, { at: 10 * S, busy: 2 }, { at: 30 * S, busy: 1 }]);
  assert.equal(busyNodes(state, ["n1"], 15 * S, 50 * S)[0]!.busy, 1);
  assert.deepEqual(waits(state).map((each) => each.wait / S), [10, 15, 90]);
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([]), null);
});

test("pods of jobs that the reader may not list are drawn, and nobody's name is in them", () => {
  const state = new State();
  const n1 = { ...two, plan: [], pods: [pod("own"), pod("hidden")] };
  state.apply({ now: 0, full: true, set: { jobs: { own: { id: 1, state: "R", stays: [] } }, nodes: { n1 } }, gone: {} });
  assert.deepEqual(state.staysOn("n1").map(({ uid, job }) => [uid, titleOf(job)]), [["hidden", "a job of a"]]);
});

test("the question of what if is a command, and its answer a sentence", () => {
  assert.equal(submitText({ nodes: "4", time: "2:00:00", gpus: "2", cpus: "8", ns: "team-a" }),
    "kubectl gang submit -N 4 -t 2:00:00 --ntasks-per-node=1 -c 8 --gres=gpu:2 --namespace=team-a job.sh");
  assert.equal(stopsText(null), "It would stop no other job.");
  assert.equal(stopsText({ suspended: 1, requeued: 2, canceled: 0, names: "train and 2 jobs of others" }),
    "It would suspend 1 job and requeue 2 jobs: train and 2 jobs of others.");
});

test("accounts stand below their parents", () => {
  const one = (account: string, parent?: string, namespace?: string) =>
    ({ account, ...(parent ? { parent } : {}), ...(namespace ? { namespace } : {}), normShares: 0, usageSeconds: 0, effectiveUsage: 0 });
  assert.deepEqual(depths([one("root"), one("physics", "root"), one("physics", undefined, "team-a"), one("optics", "physics")]), [0, 1, 2, 2]);
});

test("the life of a job is what it waited and where it was", () => {
  const job = { submit: 0, state: "PD", end: null, stays: [{ on: ["n1", "n2"], from: 5 * S, to: 9 * S }] };
  const told = (now: number, more: object) => pieces({ ...job, ...more } as never, now).map((p) => [p.what, p.from / S, p.to / S]);
  assert.deepEqual(told(12 * S, {}), [["waited", 0, 5], ["ran", 5, 9], ["waited", 9, 12]]); // requeued
  assert.deepEqual(told(12 * S, { state: "CD", end: 9 * S }), [["waited", 0, 5], ["ran", 5, 9]]);
  assert.deepEqual(told(12 * S, { submit: null }), []);
});

/** WCAG: the ratio of the luminances of two colors. */
function contrast(a: string, b: string): number {
  const light = (hex: string) => {
    const [r, g, bl] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r! + 0.7152 * g! + 0.0722 * bl!;
  };
  const [x, y] = [light(a), light(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

test("text has the contrast of WCAG AA, dark and light", () => {
  const css = readFileSync(process.env["PAGE_CSS"] ?? "app.css", "utf8");
  const [light, dark] = [...css.matchAll(/:root \{([^}]*)\}/g)].slice(0, 2).map(([, body]) =>
    Object.fromEntries([...body!.matchAll(/--([a-z]+): (#[0-9a-f]{6})/g)].map(([, name, value]) => [name!, value!])));
  for (const theme of [light!, dark!]) {
    for (const text of ["ink", "faint", "accent", "link", "warn", "good"]) {
      for (const ground of ["paper", "card", "line"]) {
        const ratio = contrast(theme[text]!, theme[ground]!);
        assert.ok(ratio >= 4.5, `${text} on ${ground}: ${ratio.toFixed(2)}`);
      }
    }
    assert.ok(contrast(theme["card"]!, theme["link"]!) >= 4.5, "the main button");
  }
});
