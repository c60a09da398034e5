// What the tests in a browser share: a devcluster, programs that end with the test, and waiting.
import { spawn, execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { request } from "node:https";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const bin = join(process.env.BUILD, "bin");
export const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
export const folder = mkdtempSync(join(tmpdir(), "kubegang-page-"));
const children = [];

export function start(name, words, env = {}) {
  const child = spawn(join(bin, name), words, { env: { ...process.env, ...env }, cwd: root });
  const lines = [];
  let rest = "";
  const hear = (data) => {
    rest += data;
    for (let end; (end = rest.indexOf("\n")) >= 0; rest = rest.slice(end + 1)) lines.push(rest.slice(0, end));
  };
  child.stdout.on("data", hear);
  child.stderr.on("data", hear);
  children.push(child);
  return { child, lines };
}

/** What `kubectl gang …` prints. */
export const gang = (env, ...words) => execFileSync(join(bin, "kubectl-gang"), words, { env: { ...process.env, ...env }, encoding: "utf8" });

/** What one of Slurm's commands prints. */
export function slurm(env, name, ...words) {
  const program = join(folder, name);
  if (!existsSync(program)) symlinkSync(join(bin, "kubectl-gang"), program);
  return execFileSync(program, words, { env: { ...process.env, ...env }, encoding: "utf8" });
}

/** Ends a process that the devcluster runs, as its supervisor would. */
export function endAgent(env, node) {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      const parent = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]);
      return words[0].endsWith("kubegang-agent") && words.includes(env.KUBECONFIG) && words.includes(node) &&
        children.some(({ pid: own }) => own === parent);
    } catch {
      return false;
    }
  });
  if (pids.length !== 1) throw new Error(`the agent of ${node}: ${pids.length} processes`);
  process.kill(Number(pids[0]), "SIGTERM");
}

export async function until(what, condition, seconds = 90) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

// Of partitions of higher tiers; the demo has none.
const PREEMPTION = `  preemptType: PartitionPriority
  preemptMode: Suspend
`;

const HELD_JOB = `
apiVersion: kubegang.io/v1alpha1
kind: Job
metadata: {name: waits, namespace: default}
spec:
  partitions: [batch]
  resources: {nodes: {min: 5}}
  control: {hold: true}
  template:
    spec:
      containers:
      - {name: main, image: kubegang/probe, command: [kubegang-probe]}`;

/** The demo's two gangs, a job that is held, and `more`. Returns the environment for its user. */
export async function startCluster(more = []) {
  const read = (file) => readFileSync(join(root, "examples/demo", file), "utf8");
  const file = join(folder, "objects.yaml");
  writeFileSync(file, [read("scheduler-config.yaml") + PREEMPTION, read("partitions.yaml"), read("gang-jobs.yaml"), HELD_JOB, ...more].join("\n---\n"));
  const cluster = start("kubegang-devcluster", ["up", "--dir", join(folder, "cluster"), "--apply", file]);
  await until("a devcluster", () => {
    if (cluster.child.exitCode !== null) throw new Error(cluster.lines.join("\n"));
    return cluster.lines.some((line) => line.startsWith("devcluster:"));
  });
  return { KUBECONFIG: join(folder, "cluster", "kubeconfig") };
}

/** Where the API server is, and what its administrator shows it. */
export function kubeconfigOf(env) {
  const config = readFileSync(env.KUBECONFIG, "utf8");
  const data = (name) => Buffer.from(new RegExp(`${name}: "?([^"\\s]+)`).exec(config)[1], "base64");
  const own = { ca: data("certificate-authority-data"), cert: data("client-certificate-data"), key: data("client-key-data"), checkServerIdentity: () => {} };
  return { server: /server: "?([^"\s]+)/.exec(config)[1], own };
}

/** One request as the administrator, about kubegang's kinds. */
export async function callApi(env, method, path, body) {
  const { server, own } = kubeconfigOf(env);
  const status = await new Promise((done, fail) => {
    const call = request(`${server}/apis/kubegang.io/v1alpha1/${path}`, { ...own, method, headers: { "Content-Type": "application/json" } },
      (answer) => answer.resume().on("end", () => done(answer.statusCode)));
    call.on("error", fail);
    call.end(body && JSON.stringify(body));
  });
  if (status >= 300) throw new Error(`${method} ${path}: ${status}`);
}

/** The same cluster with records: they are answered here, as kubegang-records does behind an API server; all else goes on. */
export async function withRecords(env, records) {
  const { server, own } = kubeconfigOf(env);
  const instant = (ms) => new Date(ms).toISOString().replace("Z", "000Z");
  const list = (url) => {
    const [from, until] = ["from", "until"].map((name) => Date.parse(url.searchParams.get(name)));
    const jobs = url.searchParams.get("jobs")?.split(",").map(Number);
    const found = records.filter((each) => each.startTime < until && each.endTime > from && (!jobs || jobs.includes(each.jobID)));
    return { kind: "RecordList", metadata: { recordedSince: instant(0) }, items: found.map((each) => ({ record: { ...each,
      submitTime: instant(each.submitTime), startTime: instant(each.startTime), endTime: instant(each.endTime), elapsed: `${each.elapsed / 1000}s` } })) };
  };
  const front = createServer((asked, answer) => {
    const url = new URL(asked.url, "http://x");
    const say = (body) => answer.setHeader("Content-Type", "application/json").end(JSON.stringify(body));
    if (url.pathname === "/apis") return say({ groups: [{ name: "records.kubegang.io" }] });
    if (url.pathname.startsWith("/apis/records.kubegang.io/")) return say(list(url));
    const on = request(server + asked.url, { ...own, method: asked.method, headers: asked.headers }, (from) => {
      answer.writeHead(from.statusCode, from.headers);
      from.pipe(answer);
    });
    on.on("error", () => answer.destroy());
    answer.on("close", () => on.destroy());
    return asked.pipe(on);
  });
  front.unref();
  await new Promise((done) => front.listen(0, "127.0.0.1", done));
  const file = join(folder, "with-records");
  writeFileSync(file, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:${front.address().port}"}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`);
  return { KUBECONFIG: file };
}

/** Runs the test, and ends with 0 if it has passed; nothing is left. */
export async function main(test) {
  let failed = null;
  try {
    await test();
  } catch (error) {
    failed = error;
    console.error(error);
  }
  for (const child of children.reverse()) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const over = new Promise((done) => child.on("exit", done));
    child.kill("SIGTERM");
    await over;
  }
  rmSync(folder, { recursive: true, force: true });
  process.exit(failed ? 1 : 0);
}

// --- what is asked of the page; each of these functions runs in it ---

export const runningJobs = () =>
  window.kubegang?.state.hasData ? [...window.kubegang.state.kinds.jobs.values()].filter((job) => job.state === "R").length : 0;

export const statesNow = () => {
  const { state } = window.kubegang;
  const now = state.now();
  return [...state.kinds.jobs].map(([uid, job]) => ({ name: job.name, code: state.stateAt(uid, job, now) }));
};

/** As the queue of the command has it, at the same instant. */
export const jobsAt = (asOf) => {
  const { state } = window.kubegang;
  const t = Math.round(asOf * 1e6);
  return [...state.kinds.jobs].map(([uid, job]) => ({
    jobID: job.id, name: job.name, namespace: job.ns, partition: job.partition, nodes: job.nodes,
    hostlist: job.hostlist || null, reason: job.reason || null, priority: job.priority,
    state: state.stateAt(uid, job, t), runSeconds: state.ranAt(uid, job, t) / 1e6,
  }));
};

/** How many pixels the view is wider than the window. */
export const overflow = async (view) => {
  location.hash = `#/${view}`;
  await new Promise((done) => setTimeout(done, 100));
  return document.documentElement.scrollWidth - window.innerWidth;
};
export const WIDTHS = [[1440, 720], [900, 640], [400, 760]];
export const VIEWS = ["", "queue", "whatif", "accounts", "cluster"];

/** What differs between the page and the command; [] if they agree. */
export function differences(queue, shown) {
  const all = [];
  for (const want of queue.jobs) {
    const got = shown.find((job) => job.name === want.name);
    if (!got) all.push(`${want.name} is missing`);
    for (const [field, value] of Object.entries(got ?? {})) {
      const same = field === "runSeconds" ? Math.abs(value - want[field]) < 1e-3 : value === want[field];
      if (!same) all.push(`${want.name}.${field}: ${value}, want ${want[field]}`);
    }
  }
  if (shown.length !== queue.jobs.length) all.push(`${shown.length} jobs, want ${queue.jobs.length}`);
  return all;
}
