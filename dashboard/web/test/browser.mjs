// The page in Chromium, against a devcluster with the demo's two gangs, a job that waits and an array that is held
// at first. What it shows is compared with `kubectl gang queue -o json` at one instant; what is asked for by its
// buttons is seen to happen; it is looked at in three widths.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import puppeteer from "puppeteer-core";
import { callApi, differences, endAgent, folder, gang, jobsAt, main, overflow, runningJobs, slurm, start, startCluster, statesNow, until, VIEWS, WIDTHS, withRecords } from "./world.mjs";

const { CHROMIUM, SHOTS } = process.env;

const SWEEP = `
apiVersion: kubegang.io/v1alpha1
kind: Job
metadata: {name: sweep, namespace: default}
spec:
  partitions: [batch]
  array: {tasks: 0-99, parallelism: 2}
  resources: {nodes: {min: 2}}
  control: {hold: true}
  template:
    spec:
      containers:
      - {name: main, image: busybox, command: [sleep, "900"]}`;

const URGENT = { apiVersion: "kubegang.io/v1alpha1", kind: "Partition", metadata: { name: "urgent" },
  spec: { nodes: { hostlist: "n[12-16]" }, priorityTier: 9, overSubscribe: { policy: "Force", maxShare: 4 } } };

async function shot(page, name, width, height, dark, hash) {
  if (!SHOTS) return;
  await page.setViewport({ width, height, deviceScaleFactor: 1 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
  await page.evaluate((to) => (location.hash = to), hash);
  await new Promise((done) => setTimeout(done, 1500));
  await page.screenshot({ path: join(SHOTS, `${name}.png`) });
}

const jobOf = (page, name) => page.evaluate((of) => {
  const { state } = window.kubegang;
  const [uid, job] = [...state.kinds.jobs].find(([, each]) => each.name === of);
  const tasks = state.tasksOf(uid).map(({ job: task }) => ({ task: task.task, state: task.state, on: task.hostlist }));
  return { uid, state: job.state, held: job.held, reason: job.reason, array: job.array, tasks };
}, name);

/** Opens the job, asks for it by its button and says yes to the dialog, which must name the job. */
async function ask(page, name, verb, tasks = "") {
  await page.evaluate((job) => (location.hash = `#/queue?${new URLSearchParams({ job: `default/${job}` })}`), name);
  const button = `#panel [data-verb=${verb}]`;
  await until(`${verb} of ${name} can be asked for`, () => page.evaluate((of) =>
    document.querySelector(of)?.checkVisibility() && document.querySelector(of).getAttribute("aria-disabled") === "false", button));
  if (tasks) await page.type("#panel .actions input", tasks);
  await page.click(button);
  const text = await page.evaluate(() => document.querySelector("dialog[open]").textContent);
  assert.ok(text.includes(name) && text.includes(" of array") === (tasks !== "") && text.includes(tasks), text);
  await shot(page, `ask-${verb}`, 1440, 720, false, await page.evaluate(() => location.hash));
  await page.click(`dialog [data-verb=${verb}]`);
}

async function testActions(page, env, origin) {
  const before = await jobOf(page, "sweep");
  assert.equal(before.array.waiting, "0-99");
  // Another page of this very machine, for which the browser sends the cookie along: cookies know no ports.
  const wish = JSON.stringify({ verb: "cancel", ns: "default", name: "sweep", uid: before.uid });
  const evil = createServer((_, answer) => {
    answer.setHeader("Content-Type", "text/html");
    answer.end("<title>evil</title>");
  });
  await new Promise((done) => evil.listen(0, "127.0.0.1", done));
  const other = await page.browser().newPage();
  await other.goto(`http://127.0.0.1:${evil.address().port}/`);
  for (const path of ["/control", "/session"]) {
    const outcome = await other.evaluate(async (to, body) => {
      await fetch(to, { method: "POST", body, mode: "no-cors", credentials: "include" }).catch(() => {});
      return fetch(to, { method: "POST", body, credentials: "include" }).then(() => "read", () => "not to be read");
    }, origin + path, wish);
    assert.equal(outcome, "not to be read");
  }
  await other.close();
  evil.close();
  assert.equal(await page.evaluate(async () => (await fetch("control", { method: "POST", body: "{}" })).status), 400);

  await ask(page, "sweep", "release");
  await until("two tasks that run", async () => (await jobOf(page, "sweep")).tasks.filter((each) => each.state === "R").length === 2);
  console.log("ok: another site's page cancels nothing; the page releases an array, and its tasks run");
  const { uid } = await jobOf(page, "sweep");
  await page.evaluate((array) => (location.hash = `#/queue?open=${array}`), uid);
  await until("the array's rows", () => page.evaluate(() => {
    const rows = [...document.querySelectorAll(".queue tbody tr.task")].map((row) => row.textContent);
    return rows.length === 3 && rows[0].includes("sweep_0") && rows[1].includes("sweep_1") && rows[2].includes("tasks 2-99 wait");
  }));
  const queue = JSON.parse(gang(env, "queue", "-A", "-o", "json"));
  const { reason } = queue.jobs.find((job) => job.name === "sweep");
  assert.match(reason, /^0 of 100 done, 2 run/);
  await until("the queue's reason", async () => (await jobOf(page, "sweep")).reason === reason);
  const titles = await page.evaluate((name) => {
    const { nodes, state } = window.kubegang;
    return nodes.pick(name, state.now()).jobs.map(({ at }) => `${at.job.name} ${at.job.task}`);
  }, (await jobOf(page, "sweep")).tasks[0].on.replace(/^n\[(\d+).*/, "n$1"));
  assert.ok(titles.includes("sweep 0"), titles.join());
  console.log("ok: an array is a row that opens, and its tasks are on the strips");
  for (const [width, height] of WIDTHS) {
    await shot(page, `array-queue-${width}`, width, height, false, `#/queue?open=${uid}`);
    await shot(page, `array-nodes-${width}`, width, height, false, "#/");
    await shot(page, `array-job-${width}`, width, height, width === 900, "#/queue?job=default/sweep");
  }

  await ask(page, "sweep", "cancel", "0");
  await until("the next task in its place", async () => {
    const { tasks } = await jobOf(page, "sweep");
    const state = (task) => tasks.find((each) => each.task === task)?.state;
    return state(0) === "CA" && state(1) === "R" && state(2) === "R";
  });
  // What was typed for one task is gone.
  await ask(page, "sweep", "cancel");
  await until("the array's end", async () => (await jobOf(page, "sweep")).state === "CA");
  await until("no more actions", () => page.evaluate(() => document.querySelector("#panel .actions").textContent.includes("it has ended")));
  console.log("ok: one task is canceled, then the array; what has ended has no actions");

  // A gang that runs is not held: its button says why, and asks for nothing.
  await page.evaluate(() => (location.hash = "#/queue?job=default/first"));
  await until("why not", () => page.evaluate(() => {
    const button = document.querySelector("#panel [data-verb=hold]");
    if (button.getAttribute("aria-disabled") !== "true") return false;
    button.click();
    return !document.querySelector("dialog[open]") && document.querySelector("#panel .actions").textContent.includes("the job is running");
  }));
  await page.keyboard.press("Escape");
  console.log("ok: what cannot be done says why");
}

/** From a second to a week, by keys and by the wheel; what is not seen of the past is said. */
async function testZoom(page) {
  await page.evaluate(() => (location.hash = "#/"));
  await page.focus("canvas");
  const scale = () => page.evaluate(() => document.querySelector(".scale").textContent);
  const press = async (key, times) => {
    for (let i = 0; i < times; ++i) await page.keyboard.press(key);
  };
  await press("+", 12);
  assert.equal(await scale(), "1.0 s across");
  await press("-", 40);
  assert.equal(await scale(), "7 d 0 h across");
  const box = await (await page.$("canvas")).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 80);
  for (let i = 0; i < 70; ++i) await page.mouse.wheel({ deltaY: -120 });
  await until("a second by the wheel", async () => (await scale()) === "1.0 s across");
  for (let i = 0; i < 70; ++i) await page.mouse.wheel({ deltaY: 120 });
  await until("a week by the wheel", async () => (await scale()) === "7 d 0 h across");
  await until("what is not seen", () => page.evaluate(() =>
    /^The past begins at .*: this cluster keeps no records\.$/.test(document.querySelector(".pastnote").textContent)));
  await page.mouse.move(0, 0);
  await press("+", 21); // half a minute, in which turns are seen
  await page.keyboard.press("n");
  console.log("ok: zoom from a second to a week, by keys and wheel; without records the page says where the past begins");
}

/** With records the past is drawn from before the page began, and what is gone has its panel. */
async function testRecords(browser, env) {
  const now = Date.now();
  const run = (uid, id, object, hostlist, from, to, more = {}) => ({ cluster: "kubegang", jobUID: uid, restart: 0, jobID: id, namespace: "default", object,
    name: object, partition: "batch", nodes: 2, hostlist, allocatedNodes: 2, state: "Completed", exitCode: 0, submitTime: now - from - 30_000,
    startTime: now - from, endTime: now - to, elapsed: from - to, ...more });
  const records = [
    run("00000000-0000-4000-8000-000000000001", 900001, "prepare", "n[12-13]", 3_000_000, 2_400_000),
    run("00000000-0000-4000-8000-000000000002", 900002, "train-<b>large</b>", "n[14-16]", 2_800_000, 1_200_000, { state: "Failed", exitCode: 3 }),
    run("00000000-0000-4000-8000-000000000003", 900003, "evaluate", "n[12-13]", 2_300_000, 600_000, { state: "Timeout" }),
  ];
  const server = start("kubectl-gang", ["dashboard", "-A"], await withRecords(env, records));
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 720 });
  await page.goto(await until("an address", () => server.lines.find((line) => line.startsWith("http://"))));
  await until("two gangs that run", async () => (await page.evaluate(runningJobs)) === 2);
  await page.focus("canvas");
  for (let i = 0; i < 12; ++i) await page.keyboard.press("-");
  await until("the past of records", () => page.evaluate(() => /^Before .*: by records, without turns\.$/.test(document.querySelector(".pastnote").textContent)));
  const at = (ms, node) => page.evaluate((t, where) => {
    const { nodes, state } = window.kubegang;
    return nodes.pick(where, t * 1000).jobs.map(({ at: { job } }) => `${job.name} ${state.stateAt("", job, 0)}`);
  }, now - ms, node);
  assert.deepEqual(await at(2_500_000, "n12"), ["prepare CD"]);
  assert.deepEqual(await at(2_350_000, "n12"), []);
  assert.deepEqual(await at(2_000_000, "n15"), ["train-<b>large</b> F"]);
  await page.evaluate(() => (location.hash = "#/"));
  for (const [width, height] of WIDTHS) await shot(page, `records-${width}`, width, height, width === 900, "#/");
  await page.setViewport({ width: 1280, height: 720 });
  await page.evaluate((name) => (location.hash = `#/?${new URLSearchParams({ job: `default/${name}` })}`), "train-<b>large</b>");
  await until("what is known of it", () => page.evaluate(() => {
    const text = document.querySelector("#panel").textContent;
    return text.includes("train-<b>large</b>") && text.includes("n[14-16]") && text.includes("failed") && text.includes("had 3 nodes for 27 min");
  }));
  await shot(page, "records-job", 1280, 720, false, await page.evaluate(() => location.hash));
  await page.evaluate(() => (location.hash = "#/cluster"));
  await until("the use of an hour", () => page.evaluate(() =>
    [...document.querySelectorAll(".chart canvas")].map((canvas) => canvas.getAttribute("aria-label")).join().includes("5 jobs started")));
  await shot(page, "records-cluster", 1280, 720, false, "#/cluster");
  await page.close();
  server.child.kill();
  console.log("ok: the past before the page is drawn from records, and a job that is gone has its panel");
}

/** The page's question and the command's, of one cluster at nearly one instant: the same answer, which is drawn. */
async function testWhatIf(page, env) {
  const asked = await page.evaluate(() => (location.hash = "#/whatif"));
  assert.equal(asked, "#/whatif");
  await until("the form", () => page.evaluate(() => document.querySelector(".question button")?.checkVisibility()));
  await page.type("#ask-nodes", "2");
  await page.type("#ask-time", "10:00");
  await page.type("#ask-partition", "batch");
  await page.keyboard.press("Enter");
  await until("an answer", () => page.evaluate(() => document.querySelector(".answer").textContent.includes("It would start")));
  const { forecast } = JSON.parse(gang(env, "whatif", "-N2", "-t", "10:00", "-p", "batch", "-o", "json")).status;
  const { text, supposed, spoken } = await page.evaluate(() => {
    const { nodes, state } = window.kubegang;
    const { supposed } = nodes;
    return { text: document.querySelector(".answer").textContent, supposed, spoken: nodes.say(nodes.pick(supposed.on[0], state.now())) };
  });
  assert.ok(text.includes(`in partition ${forecast.partition}, on ${forecast.hostlist} (${forecast.nodes} nodes, ${forecast.cpus} CPUs)`), text);
  assert.ok(text.includes("now") && Date.parse(forecast.startTime) <= Date.parse(forecast.asOf), "both start at once");
  assert.equal(text.includes("It would stop no other job."), forecast.stops === undefined);
  assert.equal(supposed.on.length, 2);
  assert.equal(supposed.to - supposed.from, 600e6);
  assert.match(spoken, /your job would run here/);
  for (const [width, height] of WIDTHS) {
    await shot(page, `whatif-${width}`, width, height, width === 900, await page.evaluate(() => location.hash));
  }
  await page.setViewport({ width: 1280, height: 720 });
  // The question is in the address, so a reload asks it once more.
  await page.evaluate(() => (location.hash = "#/whatif?nodes=6&partition=batch&asked=1"));
  await until("why not", () => page.evaluate(() => document.querySelector(".answer").textContent.includes("It would not start: ")));
  assert.equal(await page.evaluate(() => window.kubegang.nodes.supposed), null);
  await page.evaluate(() => (location.hash = "#/whatif?nodes=many&asked=1"));
  await until("what is wrong", () => page.evaluate(() => document.querySelector(".answer .warn")?.textContent.includes("--nodes")));
  const jobs = JSON.parse(gang(env, "queue", "-A", "-o", "json")).jobs;
  assert.equal(jobs.length, 4, "questions leave no job");
  await page.evaluate(() => (location.hash = "#/"));
  console.log("ok: what if says what kubectl gang whatif says, and draws it");
}

/** What a newcomer submits: four jobs take turns on each core, so the fifth waits. What would make it sooner is asked of the scheduler. */
async function testSooner(page, env) {
  const script = join(folder, "job.sh");
  writeFileSync(script, "#!/bin/sh\nsleep 600\n");
  const names = [1, 2, 3].map(() => gang(env, "submit", "-N", "5", "-t", "10:00", "--job-name", "mine", "-o", "name", script).trim().split("/").at(-1));
  const [, , last] = names;
  await until("its expected start", async () => page.evaluate((of) => {
    const job = [...window.kubegang.state.kinds.jobs.values()].find(({ name }) => name === of);
    return job?.state === "PD" && job.expected !== null && job.reason === "Resources";
  }, last));
  await page.evaluate(() => (location.hash = "#/queue?q=mine"));
  await until("a link in the queue", () => page.evaluate(() => {
    const buttons = [...document.querySelectorAll(".queue tbody button.link")].filter((each) => each.checkVisibility());
    buttons[0]?.click();
    return buttons.length === 1;
  }));
  await until("an answer", () => page.evaluate(() =>
    document.querySelector("#panel .sooner").textContent.includes("None of these would: with a time limit of 5:00, with a time limit of 2:00, on 2 nodes.")));
  assert.equal(await page.evaluate(() => document.querySelector("#panel h2").textContent), last);
  await shot(page, "sooner", 1280, 720, false, `#/queue?job=default/${last}`);
  await page.setViewport({ width: 1280, height: 720 });
  gang(env, "cancel", ...names);
  await until("their end", async () => (await Promise.all(names.map((name) => jobOf(page, name)))).every((job) => job.state === "CA"));
  await page.keyboard.press("Escape");
  console.log("ok: the fifth on a core waits, and the scheduler says what would make it sooner");
}

/** Who stopped a job, in its panel: its user, then a job of a higher tier on two of its nodes. */
async function testStops(page, env) {
  await page.evaluate(() => (location.hash = "#/queue?job=default/first"));
  const life = (what, text) => until(what, () => page.evaluate((want) =>
    new RegExp(want).test(document.querySelector("#panel .life")?.textContent ?? ""), text));
  await life("its turns", "had 5 nodes for .* Other jobs had their turns for ");
  gang(env, "suspend", "first");
  await life("its user", "had 5 nodes for .*, suspended by its user for ");
  await until("the same in the queue", () => page.evaluate(() => [...document.querySelectorAll(".queue tbody tr")].some((row) =>
    row.textContent.includes("first") && row.textContent.includes("suspended by its user"))));
  assert.match(await page.evaluate(() => window.kubegang.nodes.say(window.kubegang.nodes.pick("n12", window.kubegang.state.now()))),
    /first is suspended by its user/);
  gang(env, "resume", "first");
  await life("that it goes on", "suspended by its user for [^,]*, had 5 nodes for ");
  const script = join(folder, "urgent.sh");
  writeFileSync(script, "#!/bin/sh\nsleep 600\n");
  await callApi(env, "POST", "partitions", URGENT);
  await until("the partition", () => page.evaluate(() => window.kubegang.state.kinds.partitions.has("urgent")));
  const urgent = gang(env, "submit", "-N", "2", "-p", "urgent", "--job-name", "urgent", "-o", "name", script).trim().split("/").at(-1);
  await life("the job of a higher tier", `had 5 nodes for [^,]*, suspended for ${urgent} for `);
  assert.ok(await page.evaluate(() => document.querySelectorAll("#panel .lifebar .paused").length === 2));
  // One of the two was between its turns.
  await until("why both stand still", () => page.evaluate(() => ["first", "second"].every((name) =>
    [...document.querySelectorAll(".queue tbody tr")].some((row) => row.textContent.includes(name) && row.textContent.includes("suspended for ")))));
  for (const [width, height] of WIDTHS) await shot(page, `stops-${width}`, width, height, width === 900, "#/queue?job=default/first");
  await page.setViewport({ width: 1280, height: 720 });
  gang(env, "cancel", urgent);
  await callApi(env, "DELETE", "partitions/urgent");
  await life("that it goes on", `suspended for ${urgent} for [^,]*, had 5 nodes for `);
  await page.keyboard.press("Escape");
  console.log("ok: the life of a job says who suspended it, and for whom");
}

/** A node that is drained, and one whose agent ends: both are seen on the strips, and spoken, until they are over. */
async function testNodesInTrouble(page, env) {
  await page.evaluate(() => (location.hash = "#/"));
  await page.evaluate(() => {
    window.troubles = new Map(["n13", "n15"].map((node) => [node, new Set()]));
    window.troublesTimer = setInterval(() => {
      for (const [node, texts] of window.troubles) texts.add(window.kubegang.state.trouble(node));
    }, 20);
  });
  const seen = (node) => page.evaluate((of) => [...window.troubles.get(of)].join("; "), node);
  const now = (node) => page.evaluate((of) => window.kubegang.state.trouble(of), node);
  const spoken = (node) => page.evaluate((of) => window.kubegang.nodes.say(window.kubegang.nodes.pick(of, window.kubegang.state.now())), node);
  slurm(env, "scontrol", "update", "NodeName=n13", "State=DRAIN", "Reason=disk");
  await until("the drain", async () => (await now("n13")) !== "");
  assert.match(await spoken("n13"), /takes no new jobs|cordoned|drain/i);
  endAgent(env, "n15");
  await until("the agent that is gone", async () => /agent|Stopped/.test(await seen("n15")));
  for (const [width, height] of WIDTHS) await shot(page, `trouble-${width}`, width, height, width === 900, "#/");
  await page.setViewport({ width: 1280, height: 720 });
  await until("another agent", async () => (await now("n15")) === "");
  slurm(env, "scontrol", "update", "NodeName=n13", "State=RESUME");
  await until("the node again", async () => (await now("n13")) === "");
  await page.evaluate(() => clearInterval(window.troublesTimer));
  console.log("ok: a drained node and a lost agent are seen, until they are over");
}

/** Views of the whole cluster: the nodes of two gangs are in use, and there are no accounts. */
async function testWholeCluster(page) {
  await page.evaluate(() => (location.hash = "#/cluster"));
  await until("the nodes in use", () => page.evaluate(() => {
    const text = document.querySelector(".tiles")?.textContent ?? "";
    const row = document.querySelector(".partitions tbody tr")?.textContent ?? "";
    const [use, waits] = [...document.querySelectorAll(".chart canvas")].map((canvas) => canvas.getAttribute("aria-label") ?? "");
    return text.includes("5 of 5") && row.includes("batch (default)") && /% of the nodes had a job/.test(use) && /2 jobs started/.test(waits);
  }));
  for (const [width, height] of WIDTHS) await shot(page, `cluster-${width}`, width, height, width === 900, "#/cluster");
  await page.setViewport({ width: 1280, height: 720 });
  await page.evaluate(() => (location.hash = "#/accounts"));
  await until("an empty state that teaches", () => page.evaluate(() => document.querySelector(".accountsview .empty pre")?.textContent.includes("accounts.yaml")));
  await page.keyboard.press("1");
  assert.equal(await page.evaluate(() => location.hash), "#/");
  for (const [width, height] of WIDTHS) {
    await page.setViewport({ width, height });
    for (const view of VIEWS) {
      const over = await page.evaluate(overflow, view);
      assert.ok(over <= 0, `${view || "nodes"} is ${over} px wider than ${width} px`);
    }
  }
  await page.setViewport({ width: 1280, height: 720 });
  console.log("ok: the cluster's use and waits; accounts; no view is wider than 1440, 900 and 400 px");
}

/** A page that several users share asks for a token, which then is nowhere in the page. */
async function testSignIn(browser, origin) {
  const page = await (await browser.createBrowserContext()).newPage();
  const token = "a-token-of-this-test";
  let isSignedIn = false;
  await page.setRequestInterception(true);
  page.on("request", (request) => {
    if (new URL(request.url()).pathname !== "/session") return request.continue();
    if (request.method() === "POST") isSignedIn = request.postData() === token;
    if (isSignedIn) return request.respond({ status: 200, contentType: "application/json", body: JSON.stringify({ user: "ann" }) });
    return request.respond({ status: 401, headers: { "WWW-Authenticate": "Bearer" }, contentType: "text/plain", body: "not this one\n" });
  });
  await page.goto(`${origin}/`);
  await until("a form", () => page.evaluate(() => document.activeElement?.id === "token"));
  await page.type("#token", "wrong");
  await page.click(".signin button");
  await until("a refusal", () => page.evaluate(() => document.querySelector(".signin [role=alert]").textContent === "not this one"));
  await page.type("#token", token);
  await page.click(".signin button");
  await until("the user's name", () => page.evaluate(() => document.querySelector("#user").textContent.includes("ann")));
  const left = await page.evaluate(() => document.documentElement.outerHTML + location.href + document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }));
  assert.ok(!left.includes(token));
  isSignedIn = false; // the token has expired
  await until("a word of the session's end", () => page.evaluate(() => document.querySelector(".signin [role=alert]")?.textContent.includes("Your session has ended")));
  await page.close();
  console.log("ok: a shared page asks for a token, keeps it nowhere, and asks once more when it has expired");
}

/** The server's answers to a user who may only read: to one who had the right when the job was opened, and who had none. */
async function testRights(page) {
  const refusal = "patch jobs.kubegang.io default/waits: forbidden: <b>no</b>";
  const refuse = (request) =>
    request.url().endsWith("/control") ? request.respond({ status: 403, contentType: "text/plain", body: refusal }) : request.continue();
  await page.setRequestInterception(true);
  page.on("request", refuse);
  await ask(page, "waits", "release");
  await until("the API server's words", () => page.evaluate((text) =>
    document.querySelector("dialog[open] [role=alert]")?.textContent === text, refusal));
  assert.equal((await jobOf(page, "waits")).held, true);
  await page.keyboard.press("Escape");
  assert.ok(await page.evaluate(() => !document.querySelector("dialog[open]") && !document.querySelector("#panel").hidden), "Esc closes the dialog alone");
  page.off("request", refuse);
  const why = "you have no right to change jobs in namespace default";
  const body = JSON.stringify({ explain: { lines: [] }, pods: [], uid: "u", refusals: { hold: why, release: why, cancel: why } });
  const answer = (request) =>
    request.url().includes("/job?") ? request.respond({ status: 200, contentType: "application/json", body }) : request.continue();
  page.on("request", answer);
  await page.evaluate(() => (location.hash = "#/queue?job=default/second"));
  await until("no buttons without rights", () => page.evaluate((text) =>
    document.querySelector("#panel .actions").textContent.includes(text) &&
    ![...document.querySelectorAll("#panel .actions button")].some((button) => button.checkVisibility()), why));
  page.off("request", answer);
  await page.setRequestInterception(false);
  await page.evaluate(() => (location.hash = "#/queue"));
  console.log("ok: without the right there are no buttons");
}

async function test(browser, env) {
  const server = start("kubectl-gang", ["dashboard", "-A"], env);
  const address = await until("an address", () => server.lines.find((line) => line.startsWith("http://")));
  const page = await browser.newPage();
  const failures = [];
  page.on("pageerror", (error) => failures.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/40[0134]/.test(message.text())) failures.push(message.text());
  });
  await page.setViewport({ width: 1280, height: 720 });
  await page.goto(address);
  assert.ok(!page.url().includes(address.split("#")[1]), "the code is taken out of the address");

  await until("two gangs that run", async () => (await page.evaluate(runningJobs)) === 2);
  console.log("ok: the page shows two gangs");

  // Each is seen to run and to stand still, and never both run, once both take turns.
  const seen = { first: new Set(), second: new Set() };
  await until("turns of both gangs", async () => {
    for (const { name, code } of await page.evaluate(statesNow)) seen[name]?.add(code);
    return seen.first.has("R") && seen.first.has("S") && seen.second.has("R") && seen.second.has("S");
  });
  console.log("ok: turns move in the browser");

  const queue = JSON.parse(gang(env, "queue", "-A", "-o", "json"));
  assert.deepEqual(differences(queue, await page.evaluate(jobsAt, queue.asOf)), []);
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
  await until("the jobs that wait", () => page.evaluate(() => {
    const rows = [...document.querySelectorAll(".queue tbody tr")];
    return rows.length === 2 && rows.every((row) => row.textContent.includes("held by its user"));
  }));
  console.log("ok: the queue is filtered by the address, and says why a job waits");

  await testZoom(page);
  await testWhatIf(page, env);
  await testWholeCluster(page);
  await testSooner(page, env);
  await testStops(page, env);
  await testNodesInTrouble(page, env);
  await testSignIn(browser, new URL(address).origin);
  await testActions(page, env, new URL(address).origin);
  await testRights(page);

  // A hostile name stays a name, wherever it is shown.
  const hostile = "<img src=x onerror=document.title='caught'>";
  await page.evaluate((name) => {
    const { state } = window.kubegang;
    const [, like] = [...state.kinds.jobs][0];
    const array = { tasks: name, throttle: 1, summary: name, counts: null, waiting: name, failed: name, why: name };
    const job = { ...like, name, ns: name, partition: name, message: name, state: "PD", stays: [], priority: 9e9, array };
    const task = { of: "hostile", task: 1, id: 8, state: "PD", reason: name, message: name, hostlist: name, stays: [] };
    state.apply({ now: state.now(), full: false, set: { jobs: { hostile: job }, tasks: { hostile_1: task } }, gone: {} });
    location.hash = `#/queue?${new URLSearchParams({ job: `${name}/${name}`, open: "hostile" })}`;
  }, hostile);
  await until("the hostile name as text", () => page.evaluate((name) =>
    document.querySelector(".queue tbody").textContent.includes(name) &&
    document.querySelector("#panel h2").textContent.includes(name) &&
    document.querySelector(".queue tr.task").textContent.includes(name) &&
    document.querySelector("#panel .tasks tbody tr").textContent.includes(name) &&
    document.querySelector("#panel code")?.textContent.includes(`'${name.replaceAll("'", "'\\''")}'`), hostile));
  assert.equal(await page.evaluate(() => document.querySelectorAll("main img, #panel img").length), 0);
  assert.equal(await page.title(), "kubegang");
  await page.evaluate(() => {
    const { state } = window.kubegang;
    state.apply({ now: state.now(), full: false, set: {}, gone: { jobs: ["hostile"], tasks: ["hostile_1"] } });
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
  await shot(page, "wide", 1440, 390, false, "#/");
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

await main(async () => {
  if (SHOTS) mkdirSync(SHOTS, { recursive: true });
  const env = await startCluster([SWEEP]);
  const browser = await puppeteer.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${join(folder, "chromium")}`],
  });
  try {
    await testRecords(browser, env);
    await test(browser, env);
  } finally {
    await browser.close();
  }
});
