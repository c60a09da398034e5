// Measures the first picture of a large cluster in Chromium: 1,000 nodes on which two jobs each take turns, and 5,000
// jobs of which 4,000 wait. The board is made here, so the server's share is not in it.
// usage: CHROMIUM=… node test/large.mjs [RUNS]
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import puppeteer from "puppeteer-core";

const NODES = 1000;
const JOBS = 5000;
const RUNNING = 1000;
const bundle = join(dirname(fileURLToPath(import.meta.url)), "../../bundle");
const now = Date.now() * 1000;

function board() {
  const set = { about: { server: { began: now, ns: "", synced: true } }, jobs: {}, nodes: {}, partitions: {} };
  const name = (i) => `n${String(i).padStart(4, "0")}`;
  for (let i = 0; i < JOBS; ++i) {
    const runs = i < RUNNING;
    const first = (i * 2) % NODES;
    set.jobs[`00000000-0000-4000-8000-${String(i).padStart(12, "0")}`] = {
      id: i + 1, partition: "batch", state: runs ? "R" : "PD", reason: runs ? "" : "Priority", message: "", nodes: 2,
      hostlist: runs ? `n[${name(first).slice(1)}-${name(first + 1).slice(1)}]` : "", held: false,
      submit: now - 3600e6 + i, start: runs ? now - 600e6 : null, end: null, limit: 7200e6,
      ran: runs ? { elapsed: 300e6, asOf: now } : null, suspended: null, exit: null,
      stays: runs ? [{ on: [name(first), name(first + 1)], from: now - 600e6, to: null }] : [],
      ns: `team-${i % 40}`, name: `train-model-${i}`, batchJob: "", priority: 100_000 - i, refused: false,
      expected: runs ? null : now + i * 1e6, plannedNodes: "", planned: [],
    };
  }
  const uids = Object.keys(set.jobs);
  for (let i = 0; i < NODES; ++i) {
    const own = [i >> 1, (i >> 1) + NODES / 2].map((job) => ({ job: uids[job], ns: `team-${job % 40}`, ran: 300e6 }));
    set.nodes[name(i)] = { asOf: now, slice: 2e6, pods: own, plan: [], cycle: [[0], [1]], agent: "", stuck: 0 };
  }
  set.partitions.batch = { on: Array.from({ length: NODES }, (_, i) => name(i)), bySelector: false, default: true,
    state: "Up", tier: 1, maxTime: null, nodes: NODES, jobs: null, unusable: [] };
  return `data: ${JSON.stringify({ now, full: true, set, gone: {} })}\n\n`;
}

const text = board();
const types = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
const server = createServer((request, answer) => {
  const path = request.url === "/" ? "/index.html" : request.url;
  if (path === "/session") return answer.end("{}");
  if (path === "/events") {
    answer.setHeader("Content-Type", "text/event-stream");
    return answer.write(text);
  }
  const type = types[path.split(".").at(-1)];
  if (!type) return answer.writeHead(404).end();
  answer.setHeader("Content-Type", type);
  answer.end(readFileSync(join(bundle, path)));
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
try {
  console.log(`board: ${(text.length / 1e6).toFixed(1)} MB`);
  for (let run = 0; run < Number(process.argv[2] ?? 5); ++run) {
    for (const view of ["", "#/queue"]) {
      const page = await browser.newPage();
      await page.setViewport({ width: 1440, height: 900 });
      await page.evaluateOnNewDocument(() => {
        const look = () => {
          const shown = window.kubegang?.nodes.rows?.length > 0 || document.querySelectorAll(".queue tbody tr").length > 0;
          // The frame after it is the one that is seen.
          if (shown) requestAnimationFrame(() => (window.firstPicture = performance.now()));
          else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
      });
      await page.goto(`http://127.0.0.1:${server.address().port}/${view}`);
      await page.waitForFunction(() => window.firstPicture, { timeout: 60_000 });
      const { first, frame, heap } = await page.evaluate(() => {
        const { nodes } = window.kubegang;
        const begin = performance.now();
        for (let i = 0; i < 10; ++i) nodes.draw();
        return { first: window.firstPicture, frame: (performance.now() - begin) / 10,
          heap: performance.memory.usedJSHeapSize / 1e6 };
      });
      console.log(`${view || "nodes"}: first picture ${first.toFixed(0)} ms, a frame ${frame.toFixed(1)} ms, heap ${heap.toFixed(0)} MB`);
      await page.close();
    }
  }
} finally {
  await browser.close();
  server.closeAllConnections();
  server.close();
}
