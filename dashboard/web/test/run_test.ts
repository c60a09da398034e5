// run(t) in the browser, by the examples of timetable/timetable_test.cc, and against brute force.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { depths } from "../src/accounts_view.ts";
import { busyNodes, median, shareText, waits, whoMay } from "../src/cluster_view.ts";
import { giveColors, jobColor } from "../src/color.ts";
import { boundaryAfter, nextSwitch, runAt, runTime, share, type Timetable } from "../src/run.ts";
import { Past } from "../src/past.ts";
import { expectedStart, State, titleOf, type Run } from "../src/state.ts";
import { frozenInTurns, pieces, pieceText } from "../src/life.ts";
import { better } from "../src/sooner.ts";
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
  assert.equal(stopsText({ suspended: 1, requeued: 2, canceled: 0, names: "train and 2 more jobs" }),
    "It would suspend 1 job and requeue 2 jobs: train and 2 more jobs.");
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

test("the life of a job says who stopped it, and for whom it was requeued", () => {
  const pauses = [
    { byUser: true, by: [], from: 4 * S, to: 6 * S },
    { byUser: false, by: ["u", "hidden", "secret"], from: 8 * S, to: 10 * S },
    { byUser: false, by: [], from: 11 * S, to: null },
  ];
  const job = { submit: 0, start: 3 * S, state: "S", end: null, stays: [{ on: ["n1"], from: 2 * S, to: null, pauses }] };
  const name = (uid: string) => (uid === "u" ? "urgent" : "a job that you may not list");
  const told = (more: object, now: number) => pieces({ ...job, ...more } as never, now).flatMap((piece) => pieceText(piece, name));
  assert.deepEqual(told({}, 15 * S), ["waited 2.0 s", "had n1 for 2.0 s", "suspended by its user for 2.0 s", "had n1 for 2.0 s",
    "suspended for urgent and a job that you may not list for 2.0 s", "had n1 for 1.0 s", "suspended for jobs of a higher tier for 4.0 s"]);
  // 12 s since its start, of which it was suspended for 8 s and ran for 1 s.
  assert.equal(frozenInTurns(job as never, 15 * S, S), 3 * S);
  const stays = [{ on: ["n1", "n2"], from: 2 * S, to: 5 * S, endedFor: "u" }];
  assert.deepEqual(told({ state: "PD", stays }, 9 * S), ["waited 2.0 s", "had 2 nodes for 3.0 s", "requeued for urgent", "waited 4.0 s"]);
});

test("why a job is suspended at an instant", () => {
  const state = new State();
  const pauses = [{ byUser: true, by: [], from: -9 * S, to: -5 * S }, { byUser: false, by: ["u"], from: -3 * S, to: null }];
  const job = (name: string, more = {}) => ({ id: 1, ns: "a", name, state: "R", stays: [{ on: ["n1"], from: -20 * S, to: null, ...more }] });
  state.apply({ now: 0, full: true, gone: {}, set: { jobs: { u: job("urgent"), v: job("v", { pauses }) } } });
  const v = state.kinds.jobs.get("v")!;
  assert.equal(state.pausedAt(v, -7 * S), "by its user");
  assert.equal(state.pausedAt(v, -4 * S), "");
  assert.equal(state.pausedAt(v, -1 * S), "for urgent");
});

test("who may use a partition, and how, in words", () => {
  assert.equal(whoMay({ allow: null, deny: null }), "all");
  assert.equal(whoMay({ allow: { namespaces: ["a", "b"], qos: ["high"] }, deny: null }), "namespaces a, b with QOS high");
  assert.equal(whoMay({ allow: null, deny: { namespaces: null, qos: ["low"] } }), "all but QOS low");
  assert.equal(shareText({ policy: "Force", max: null }), "turns of 4");
  assert.equal(shareText({ policy: "OnRequest", max: 2 }), "turns of 2, if asked for");
});

test("a begin time that is over and a plan before a hold are no expected start", () => {
  const job = (more: object) => ({ state: "PD", held: false, expected: 50 * S, planned: [], ...more }) as never;
  assert.equal(expectedStart(job({}), 40 * S), 50 * S);
  assert.equal(expectedStart(job({}), 60 * S), null);
  assert.equal(expectedStart(job({ planned: ["n1"] }), 60 * S), 60 * S);
  assert.equal(expectedStart(job({ held: true, planned: ["n1"] }), 40 * S), null);
  assert.equal(expectedStart(job({ state: "R" }), 40 * S), null);
});

test("only what starts sooner than the job is advice", () => {
  const one = (change: string, start: number | null) => ({ change, start, partition: "x", stops: false });
  const answer = { asOf: 0, same: one("", 90 * S), variants: [one("shorter", 50 * S), one("fewer", 10 * S), one("same", 80 * S), one("never", null)] };
  assert.deepEqual(better(answer, 80 * S).map((each) => each.change), ["fewer", "shorter"]);
  assert.deepEqual(better({ ...answer, same: one("", null) }, null).map((each) => each.change), ["fewer", "shorter", "same"]);
});

// --- records ---

const BEGAN = 1000 * S;
const about = { server: { began: BEGAN, whole: BEGAN, ns: "", home: "a", synced: true } };
const recordedJob = (id: number, from: number, to: number, more = {}) =>
  ({ id, ns: "a", name: `j${id}`, partition: "x", state: "CD", submit: from - S, start: from, end: to, stays: [{ on: ["n1"], from, to }], ...more });
const reply = (status: number, body: unknown) =>
  ({ status, ok: status < 300, json: async () => body, text: async () => String(body) }) as Response;
const settled = async (condition: () => boolean) => {
  while (!condition()) await new Promise((done) => setTimeout(done, 10));
};

function withPast(answer: (question: any) => Response, clock = () => 0) {
  const state = new State();
  state.apply({ now: BEGAN + 60 * S, full: true, gone: {}, set: { about, jobs: { u: { ...recordedJob(1, 0, 0), ns: "b", stays: [], state: "PD" } } } });
  const asked: any[] = [];
  const past = new Past(state, async (question) => {
    asked.push(question);
    return answer(question);
  }, clock);
  return { state, past, asked };
}

test("records are asked for when the screen gets there, once, with room to move", async () => {
  const { state, past, asked } = withPast(() =>
    reply(200, { since: 100 * S, next: "", runs: [{ uid: "r", restart: 0, job: recordedJob(7, 850 * S, 860 * S) }] }));
  past.want(BEGAN, BEGAN + 50 * S); // all of it was watched
  assert.equal(past.note(BEGAN), "");
  past.want(900 * S, 1060 * S);
  past.want(800 * S, 960 * S); // still scrolling
  assert.equal(past.note(800 * S), "Reading records…");
  await settled(() => state.staysOn("n1").length > 0);
  assert.deepEqual(asked, [{ from: 640 * S, until: BEGAN }]); // what was looked at last, 160 s wide, and as much beside it
  assert.deepEqual(state.staysOn("n1").map(({ uid, job }) => [uid, job.name, job.gone]), [["r", "j7", true]]);
  assert.match(past.note(800 * S), /^Before .*: by records, without turns\.$/);
  past.want(650 * S, 990 * S);
  await new Promise((done) => setTimeout(done, 400));
  assert.equal(asked.length, 1);
  past.want(50 * S, 300 * S);
  await settled(() => asked.length === 2);
  assert.equal(asked[1].until, 500 * S); // records begin at 100 s, so 200 s are looked at
  assert.match(past.note(50 * S), /^Reading|^Records begin at/);
});

test("what the server drops meanwhile is read now and then, not at once", async () => {
  let seconds = 0;
  const { state, past, asked } = withPast(() => reply(200, { since: 0, next: "", runs: [] }), () => seconds * 1000);
  past.want(900 * S, BEGAN);
  await settled(() => /by records/.test(past.note(900 * S)));
  const drop = (whole: number) => state.apply({ now: BEGAN + 60 * S, full: false, gone: {}, set: { about: { server: { ...about.server, whole } } } });
  for (let i = 1; i < 5; ++i) {
    drop(BEGAN + i * S);
    past.want(900 * S, BEGAN + 50 * S);
  }
  await new Promise((done) => setTimeout(done, 400));
  assert.equal(asked.length, 1);
  assert.equal(past.knownSince(900 * S), 900 * S);
  seconds = 31;
  past.want(900 * S, BEGAN + 50 * S);
  await settled(() => asked.length === 2);
  assert.equal(asked[1].until, BEGAN + 4 * S);
});

test("pages are followed, and too many runs are cut until one zooms in", async () => {
  const { state, past, asked } = withPast(({ from, next }) => {
    const at = Number(next ?? 0);
    const runs = Array.from({ length: 1000 }, (_, i) => ({ uid: `r${at + i}`, restart: 0, job: recordedJob(at + i, from, from + S) }));
    return reply(200, { since: 0, next: at + 1000 < 12_000 ? String(at + 1000) : "", runs });
  });
  past.want(900 * S, BEGAN);
  await settled(() => /more than 10000/.test(past.note(900 * S)));
  assert.equal([...state.runs()].length, 10_000);
  assert.equal(asked.length, 20); // with room, then without
  assert.equal(asked[10].from, 900 * S);
  past.want(900 * S, BEGAN);
  past.want(940 * S, 960 * S);
  await settled(() => asked.length > 20);
  past.reset();
  assert.equal([...state.runs()].length, 0);
});

test("a reader gets the records of the namespaces that they may read", async () => {
  const { state, past, asked } = withPast(({ ns }) => (ns === "b"
    ? reply(200, { since: 0, next: "", runs: [{ uid: "r", restart: 0, task: 3, job: recordedJob(7, 850 * S, 860 * S) }] }) : reply(403, "no")));
  past.want(900 * S, BEGAN);
  await settled(() => state.staysOn("n1").length > 0);
  assert.deepEqual(asked.map((each) => each.ns), [undefined, "a", "b"]);
  assert.deepEqual(state.staysOn("n1").map(({ uid, job }) => [uid, job.task]), [["r_3", 3]]);
  assert.match(past.note(900 * S), /by records of b/);
});

test("without records there is a sentence, and no question after question", async () => {
  let seconds = 0;
  const { past, asked } = withPast(() => reply(404, "this cluster keeps no records\n"), () => seconds * 1000);
  const said = () => past.note(900 * S);
  past.want(900 * S, BEGAN);
  await settled(() => said().includes("keeps no records"));
  assert.match(said(), /^The past begins at .*, when this page's server did: this cluster keeps no records\.$/);
  past.want(800 * S, BEGAN);
  await new Promise((done) => setTimeout(done, 400));
  assert.equal(asked.length, 1);
  seconds = 31; // they may have been switched on
  past.want(800 * S, BEGAN);
  await settled(() => asked.length === 2);
});

test("a run that the page has seen itself is not drawn twice", () => {
  const state = new State();
  const seen = { ...recordedJob(1, 0, 0), state: "R", stays: [{ on: ["n1"], from: 500 * S, to: null }] };
  state.apply({ now: 0, full: true, gone: {}, set: { about, jobs: { u: seen } } });
  const run = (restart: number, from: number, to: number): Run => ({ key: `u/${restart}`, uid: "u", job: recordedJob(1, from, to) as never });
  state.setRecorded([run(0, 100 * S, 200 * S), run(1, 500 * S, 900 * S)]);
  assert.deepEqual(state.staysOn("n1").map(({ from }) => from / S).sort(), [100, 500]);
  assert.deepEqual([...state.runs()].map(({ key }) => key), ["u/0"]);
  const life = pieces(seen as never, 600 * S, [run(0, 100 * S, 200 * S)]).map((p) => [p.what, p.from / S, p.to / S]);
  assert.deepEqual(life, [["waited", -1, 100], ["ran", 100, 200], ["waited", 200, 500], ["ran", 500, 600]]);
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
