// Measures the page of a large cluster: 1,000 nodes on which two jobs each take turns, and 5,000 jobs of which 4,000 wait, by
// the real operator against the in-memory API server (e2e/kubernetes/bench), in Chromium with software rendering.
// usage: BUILD=build node dashboard/web/test/large.mjs [NODES JOBS]
//   needs: cmake --build --preset release --target large_cluster_bench kubegang-operator kubectl-gang
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { Browser } from "./cdp.mjs";
import { folder, kubeconfigOf, main, runningJobs, start, until } from "./world.mjs";

const [NODES, JOBS] = [process.argv[2] ?? "1000", process.argv[3] ?? "5000"];
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const LOADS = 5;
const CHANGES = 15;

const sorted = (values) => [...values].sort((a, b) => a - b);
const middle = (values) => sorted(values)[Math.floor(values.length / 2)];
const most = (values) => sorted(values).at(-1);
const rows = [];
const say = (what, measured, goal) => {
  rows.push([what, measured, goal]);
  console.log(`${what}: ${measured}${goal ? ` (goal: ${goal})` : ""}`);
};

const status = (pid, field) => Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;
/** The largest of the browser's processes that draw pages: memory of its own and its part of what is shared, MiB. */
function tabMemory() {
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      if (!words.includes("--type=renderer") || !words.includes(folder)) return 0;
      return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))[1]) / 1024;
    } catch {
      return 0;
    }
  });
  return most(all);
}

async function firstPictures(page, url) {
  await page.send("Page.addScriptToEvaluateOnNewDocument", { source: `(${() => {
    const look = () => {
      const shown = window.kubegang?.nodes.rows?.length > 0 || document.querySelectorAll(".queue tbody tr").length > 0;
      // The frame after it is the one that is seen.
      if (shown) requestAnimationFrame(() => (window.firstPicture = performance.now()));
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }})()` });
  for (const view of ["#/queue", "#/"]) {
    const times = [];
    for (let i = 0; i < LOADS; ++i) {
      await page.goto("about:blank");
      await page.goto(url + view);
      times.push(await until("a picture", () => page.evaluate(() => window.firstPicture)));
    }
    say(`first picture, from the address: ${view === "#/" ? "nodes" : "queue"}`,
      `${middle(times).toFixed(0)} ms, at most ${most(times).toFixed(0)} ms`, "1500 ms");
  }
}

/** Frames in three seconds in which the wheel turns all the time. */
async function frames(page, what, event) {
  await page.evaluate(() => {
    window.frames_ = 0;
    const count = () => {
      window.frames_++;
      window.counting = requestAnimationFrame(count);
    };
    window.counting = requestAnimationFrame(count);
  });
  const begin = Date.now();
  for (let i = 0; Date.now() - begin < 3000; ++i) {
    await page.send("Input.dispatchMouseEvent", { type: "mouseWheel", x: 700, y: 400, deltaX: 0, deltaY: 0, ...event(i) });
  }
  const rate = (await page.evaluate(() => {
    cancelAnimationFrame(window.counting);
    return window.frames_;
  })) / ((Date.now() - begin) / 1000);
  say(`frames a second, ${what}`, rate.toFixed(0), "30");
}

async function delays(page, { server, own }) {
  const jobs = await page.evaluate(() => [...window.kubegang.state.kinds.jobs].filter(([, job]) => job.state === "PD").slice(-100)
    .map(([uid, job]) => ({ uid, name: job.name, ns: job.ns })));
  const times = [];
  for (const { uid, name, ns } of jobs.slice(0, CHANGES)) {
    await page.evaluate((of) => {
      window.seenAt = 0;
      const look = () => {
        if (window.kubegang.state.kinds.jobs.get(of)?.held) requestAnimationFrame(() => (window.seenAt = Date.now()));
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }, uid);
    const begin = Date.now();
    await new Promise((done, fail) => {
      const patch = request(`${server}/apis/kubegang.io/v1alpha1/namespaces/${ns}/jobs/${name}`,
        { ...own, method: "PATCH", headers: { "Content-Type": "application/merge-patch+json" } }, (answer) => answer.resume().on("end", done));
      patch.on("error", fail);
      patch.end(JSON.stringify({ spec: { control: { hold: true } } }));
    });
    times.push((await until("the change", () => page.evaluate(() => window.seenAt))) - begin);
    await new Promise((done) => setTimeout(done, 300 + 37 * times.length));
  }
  say("from a write to the screen", `${middle(times)} ms, at most ${most(times)} ms of ${times.length}`, "500 ms");
}

async function whatIf(page) {
  const times = [];
  for (const question of ["nodes=4&time=2:00:00", "nodes=200&time=2:00:00", "nodes=64&time=30:00", "nodes=1000&time=30:00", "nodes=1&time=1:00"]) {
    await page.evaluate(() => (location.hash = "#/whatif"));
    await until("the form", () => page.evaluate(() => document.querySelector(".answer")?.textContent.includes("Nothing is run")));
    const { ms, text } = await page.evaluate(async (hash) => {
      const begin = performance.now();
      location.hash = hash;
      const answer = () => document.querySelector(".answer").textContent;
      while (!/It would|refused|not/.test(answer().replace("Nothing", ""))) await new Promise(requestAnimationFrame);
      await new Promise(requestAnimationFrame);
      return { ms: performance.now() - begin, text: answer() };
    }, `#/whatif?${question}&asked=1&ns=gang&partition=bench`);
    console.log(`  ${question}: ${ms.toFixed(0)} ms: ${text.slice(0, 110)}`);
    times.push(ms);
  }
  say("what if, from the question to the answer on the page", `${middle(times).toFixed(0)} ms, at most ${most(times).toFixed(0)} ms`, "500 ms");
}

await main(async () => {
  const cluster = start("large_cluster_bench", ["up", NODES, JOBS]);
  const line = await until("a large cluster", () => {
    if (cluster.child.exitCode !== null) throw new Error(cluster.lines.join("\n"));
    return cluster.lines.find((each) => each.startsWith("kubeconfig: "));
  }, 600);
  const env = { KUBECONFIG: line.slice("kubeconfig: ".length) };
  const program = start("kubectl-gang", ["dashboard", "-A"], env);
  const address = await until("an address", () => program.lines.find((each) => each.startsWith("http://")));
  const browser = new Browser(CHROMIUM, join(folder, "chromium"));
  try {
    const page = await browser.newPage((text) => console.log(`the page: ${text}`));
    await page.viewport(1440, 900, false);
    await page.goto(address);
    await until("all jobs", () => page.evaluate((jobs) => window.kubegang?.state.kinds.jobs.size >= jobs, Number(JOBS)));
    // The operator has nothing else to do then.
    await until("all that run", async () => (await page.evaluate(runningJobs)) >= Number(NODES), 300);
    const has = await page.evaluate(() => {
      const jobs = [...window.kubegang.state.kinds.jobs.values()];
      return `${window.kubegang.state.kinds.nodes.size} nodes, ${jobs.length} jobs, ${jobs.filter((job) => job.state === "R").length} run`;
    });
    console.log(`the page shows ${has}`);
    await firstPictures(page, address.split("#")[0]);
    await frames(page, "zooming", (i) => ({ deltaY: i % 200 < 100 ? 30 : -30 }));
    await frames(page, "moving in time", (i) => ({ deltaX: i % 200 < 100 ? 40 : -40 }));
    await frames(page, "scrolling over nodes", (i) => ({ x: 40, deltaY: i % 400 < 200 ? 60 : -60 }));
    await delays(page, kubeconfigOf(env));
    await whatIf(page);
    say("memory of the tab", `${tabMemory().toFixed(0)} MiB`, "250 MiB");
    say("memory of the program", `${status(program.child.pid, "VmRSS").toFixed(0)} MiB, at most ${status(program.child.pid, "VmHWM").toFixed(0)} MiB`, "100 MiB");
  } finally {
    await browser.close();
    cluster.child.stdin.end();
  }
  console.log(`\n| | Measured | Goal |\n|---|---|---|\n${rows.map((row) => `| ${row.join(" | ")} |`).join("\n")}`);
});
