// A part of browser.mjs in some ten seconds, with nothing from npm, for `make test`: the page shows two gangs that take
// turns, agrees with `kubectl gang queue -o json` at one instant, cancels a job, and fits into three widths.
import assert from "node:assert/strict";
import { join } from "node:path";
import { Browser } from "./cdp.mjs";
import { differences, folder, gang, jobsAt, main, overflow, runningJobs, start, startCluster, statesNow, until, VIEWS, WIDTHS } from "./world.mjs";

async function test(page, env) {
  const server = start("kubectl-gang", ["dashboard", "-A"], env);
  await page.viewport(1280, 720, false);
  await page.goto(await until("an address", () => server.lines.find((line) => line.startsWith("http://"))));
  await until("two gangs that run", async () => (await page.evaluate(runningJobs)) === 2);
  const seen = { first: new Set(), second: new Set(), waits: new Set() };
  await until("turns of both gangs", async () => {
    for (const { name, code } of await page.evaluate(statesNow)) seen[name].add(code);
    return ["first", "second"].every((name) => seen[name].has("R") && seen[name].has("S"));
  });
  console.log("ok: two gangs take turns in the browser");

  const queue = JSON.parse(gang(env, "queue", "-A", "-o", "json"));
  assert.deepEqual(differences(queue, await page.evaluate(jobsAt, queue.asOf)), []);
  console.log("ok: it agrees with kubectl gang queue -o json at one instant");

  await page.evaluate(() => (location.hash = "#/queue?job=default/waits"));
  await until("a button", () => page.evaluate(() => {
    const button = document.querySelector("#panel [data-verb=cancel]");
    if (!button?.checkVisibility() || button.getAttribute("aria-disabled") !== "false") return false;
    button.focus();
    return true;
  }));
  await page.press("Enter");
  await until("a question", () => page.evaluate(() => document.querySelector("dialog[open]")?.textContent.includes("waits")));
  await page.evaluate(() => document.querySelector("dialog [data-verb=cancel]").focus());
  await page.press("Enter");
  await until("its end", async () => (await page.evaluate(statesNow)).some(({ name, code }) => name === "waits" && code === "CA"));
  assert.ok(!JSON.parse(gang(env, "queue", "-A", "-o", "json")).jobs.some((job) => job.name === "waits"));
  console.log("ok: it cancels a job, by the keyboard");

  for (const [width, height] of WIDTHS) {
    await page.viewport(width, height, width === 900);
    for (const view of VIEWS) {
      const over = await page.evaluate(overflow, view);
      assert.ok(over <= 0, `${view || "nodes"} is ${over} px wider than ${width} px`);
    }
    assert.ok((await page.screenshot()).length > 5000);
  }
  console.log("ok: every view fits into 1440, 900 and 400 px");
}

await main(async () => {
  const env = await startCluster();
  const troubles = [];
  const browser = new Browser(process.env.CHROMIUM, join(folder, "chromium"));
  try {
    await test(await browser.newPage((text) => troubles.push(text)), env);
  } finally {
    await browser.close();
  }
  // Accounts that are not there are a 404.
  assert.deepEqual(troubles.filter((text) => !/40[0134]/.test(text)), []);
});
