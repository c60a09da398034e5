// The page in Chromium, against a devcluster with the demo's two gangs and a job that waits. What it shows is
// compared with `kubectl gang queue -o json` at one instant; it is looked at in three widths.
import assert from "node:assert/strict";
import { spawn, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import puppeteer from "puppeteer-core";

const { CHROMIUM, BUILD, SHOTS } = process.env;
const bin = join(BUILD, "bin");
const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const folder = mkdtempSync(join(tmpdir(), "kubegang-page-"));
const children = [];

function start(name, words, env = {}) {
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

async function until(what, condition, seconds = 90) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

function objects() {
  const read = (file) => readFileSync(join(root, "examples/demo", file), "utf8");
  const waits = `
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
      - {name: main, image: kubegang/probe, command: [kubegang-probe]}
`;
  const file = join(folder, "objects.yaml");
  writeFileSync(file, [read("scheduler-config.yaml"), read("partitions.yaml"), read("gang-jobs.yaml"), waits].join("\n---\n"));
  return file;
}

async function shot(page, name, width, height, dark, hash) {
  if (!SHOTS) return;
  await page.setViewport({ width, height, deviceScaleFactor: 1 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
  await page.evaluate((to) => (location.hash = to), hash);
  await new Promise((done) => setTimeout(done, 1500));
  await page.screenshot({ path: join(SHOTS, `${name}.png`) });
}

const stateOf = (page) =>
  page.evaluate(() => {
    const { state } = window.kubegang;
    const now = state.now();
    return [...state.kinds.jobs].map(([uid, job]) => ({ name: job.name, code: state.stateAt(uid, job, now) }));
  });

async function test(browser, kubeconfig) {
  const env = { KUBECONFIG: kubeconfig };
  const server = start("kubectl-gang", ["dashboard", "-A"], env);
  const address = await until("an address", () => server.lines.find((line) => line.startsWith("http://")));
  const page = await browser.newPage();
  const failures = [];
  page.on("pageerror", (error) => failures.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/40[134]/.test(message.text())) failures.push(message.text());
  });
  await page.setViewport({ width: 1280, height: 720 });
  await page.goto(address);
  assert.ok(!page.url().includes(address.split("#")[1]), "the code is taken out of the address");

  await until("two gangs that run", async () => {
    const jobs = await page.evaluate(() =>
      window.kubegang?.state.hasData ? [...window.kubegang.state.kinds.jobs.values()].filter((job) => job.state === "R").length : 0);
    return jobs === 2;
  });
  console.log("ok: the page shows two gangs");

  // Each is seen to run and to stand still, and never both run, once both take turns.
  const seen = { first: new Set(), second: new Set() };
  await until("turns of both gangs", async () => {
    for (const { name, code } of await stateOf(page)) seen[name]?.add(code);
    return seen.first.has("R") && seen.first.has("S") && seen.second.has("R") && seen.second.has("S");
  });
  console.log("ok: turns move in the browser");

  const queue = JSON.parse(execFileSync(join(bin, "kubectl-gang"), ["queue", "-A", "-o", "json"], { env: { ...process.env, ...env } }));
  const shown = await page.evaluate((asOf) => {
    const { state } = window.kubegang;
    const t = Math.round(asOf * 1e6);
    return [...state.kinds.jobs].map(([uid, job]) => ({
      jobID: job.id, name: job.name, namespace: job.ns, partition: job.partition, nodes: job.nodes,
      hostlist: job.hostlist || null, reason: job.reason || null, priority: job.priority,
      state: state.stateAt(uid, job, t), runSeconds: state.ranAt(uid, job, t) / 1e6,
    }));
  }, queue.asOf);
  for (const want of queue.jobs) {
    const got = shown.find((job) => job.name === want.name);
    assert.ok(got, want.name);
    for (const field of Object.keys(got)) {
      if (field === "runSeconds") assert.ok(Math.abs(got[field] - want[field]) < 1e-3, `${want.name}: ${got[field]} s, want ${want[field]}`);
      else assert.equal(got[field], want[field], `${want.name}.${field}`);
    }
  }
  assert.equal(shown.length, queue.jobs.length);
  console.log("ok: it agrees with kubectl gang queue -o json at one instant");

  // The strips: two colors in the past, and both change places.
  const colors = await page.evaluate(() => {
    const canvas = document.querySelector("canvas");
    const data = canvas.getContext("2d").getImageData(0, 60, canvas.width, 1).data;
    const found = new Map();
    for (let i = 0; i < data.length; i += 4) {
      const key = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      found.set(key, (found.get(key) ?? 0) + 1);
    }
    return [...found.values()].filter((count) => count > 30).length;
  });
  assert.ok(colors >= 3, `${colors} colors in a strip`);
  await page.focus("canvas");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await until("the job's panel", () => page.evaluate(() => document.querySelector("#panel .now")?.textContent.includes("takes turns") && document.querySelectorAll("#panel dt").length > 3));
  await until("its pods", () => page.evaluate(() => document.querySelectorAll("#panel tbody tr").length === 5));
  console.log("ok: the keyboard opens a job, with explain's lines and its pods");
  await shot(page, "job", 1280, 720, false, (await page.evaluate(() => location.hash)));
  await page.keyboard.press("Escape");

  await page.evaluate(() => (location.hash = "#/queue?state=waiting"));
  await until("the job that waits", () => page.evaluate(() => {
    const rows = [...document.querySelectorAll(".queue tbody tr")];
    return rows.length === 1 && rows[0].textContent.includes("held by its user");
  }));
  console.log("ok: the queue is filtered by the address, and says why a job waits");

  // A hostile name stays a name, wherever it is shown.
  const hostile = "<img src=x onerror=document.title='caught'>";
  await page.evaluate((name) => {
    const { state } = window.kubegang;
    const [, like] = [...state.kinds.jobs][0];
    const job = { ...like, name, ns: name, partition: name, message: name, state: "PD", stays: [], priority: 9e9 };
    state.apply({ now: state.now(), full: false, set: { jobs: { hostile: job } }, gone: {} });
    location.hash = `#/queue?${new URLSearchParams({ job: `${name}/${name}` })}`;
  }, hostile);
  await until("the hostile name as text", () => page.evaluate((name) =>
    document.querySelector(".queue tbody").textContent.includes(name) &&
    document.querySelector("#panel h2").textContent.includes(name) &&
    document.querySelector("#panel code")?.textContent.includes(`'${name.replaceAll("'", "'\\''")}'`), hostile));
  assert.equal(await page.evaluate(() => document.querySelectorAll("main img, #panel img").length), 0);
  assert.equal(await page.title(), "kubegang");
  await page.evaluate(() => {
    const { state } = window.kubegang;
    state.apply({ now: state.now(), full: false, set: {}, gone: { jobs: ["hostile"] } });
  });
  console.log("ok: a hostile name is text");

  // A second browser needs its own code.
  const other = await (await browser.createBrowserContext()).newPage();
  await other.goto(address);
  await until("a refusal", () => other.evaluate(() => document.body.textContent.includes("This address has been used")));
  await other.close();
  console.log("ok: an address opens one browser");

  // The server goes away.
  await new Promise((done) => setTimeout(done, SHOTS ? 20_000 : 0));
  await shot(page, "wide", 1440, 600, false, "#/");
  await shot(page, "wide-dark", 1440, 600, true, "#/");
  await shot(page, "middle", 900, 600, false, "#/");
  await shot(page, "narrow", 400, 720, false, "#/");
  await shot(page, "queue", 1280, 480, false, "#/queue");
  await shot(page, "queue-narrow-dark", 400, 720, true, "#/queue");
  server.child.kill();
  await until("a word of the server's end", () => page.evaluate(() => document.querySelector("#live").textContent.includes("does not answer")));
  console.log("ok: the page says when its server is gone");
  const second = start("kubectl-gang", ["dashboard", "-A", "--port", new URL(address).port], env);
  const next = await until("a new address", () => second.lines.find((line) => line.startsWith("http://")));
  await until("a word of the new server", () => page.evaluate(() => document.body.textContent.includes("This page has ended")));
  // Two rounds of the page's own clock.
  await new Promise((done) => setTimeout(done, 1200));
  assert.ok(await page.evaluate(() => document.body.textContent.includes("This page has ended")), "the word stays");
  await page.goto("about:blank");
  await page.goto(next);
  await until("the page again", () => page.evaluate(() => window.kubegang?.state.hasData));
  console.log("ok: a server that was started again wants its own code");
  assert.deepEqual(failures.filter((text) => !/ERR_CONNECTION|ERR_EMPTY|ERR_INCOMPLETE/.test(text)), []);
}

let failed = null;
let browser = null;
try {
  if (SHOTS) mkdirSync(SHOTS, { recursive: true });
  const cluster = start("kubegang-devcluster", ["up", "--dir", join(folder, "cluster"), "--apply", objects()]);
  await until("a devcluster", () => {
    if (cluster.child.exitCode !== null) throw new Error(cluster.lines.join("\n"));
    return cluster.lines.some((line) => line.startsWith("devcluster:"));
  });
  browser = await puppeteer.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${join(folder, "chromium")}`],
  });
  await test(browser, join(folder, "cluster", "kubeconfig"));
} catch (error) {
  failed = error;
  console.error(error);
} finally {
  await browser?.close();
  for (const child of children.reverse()) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const over = new Promise((done) => child.on("exit", done));
    child.kill("SIGTERM");
    await over;
  }
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
