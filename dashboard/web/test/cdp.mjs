// A little of puppeteer for the short test, which needs nothing of npm: Chromium is spoken to over a pipe, in DevTools'
// protocol, as JSON texts with a zero byte behind each.
import { spawn } from "node:child_process";

export class Browser {
  #child;
  #next = 1;
  #waiting = new Map();
  #listeners = new Map();

  constructor(program, folder) {
    this.#child = spawn(program, ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
      "--no-first-run", `--user-data-dir=${folder}`, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    let rest = "";
    this.#child.stdio[4].on("data", (data) => {
      rest += data;
      for (let end; (end = rest.indexOf("\0")) >= 0; rest = rest.slice(end + 1)) this.#hear(JSON.parse(rest.slice(0, end)));
    });
    this.#child.on("exit", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the browser has ended"));
    });
  }

  #hear({ id, result, error, method, params, sessionId }) {
    if (id === undefined) {
      this.#listeners.get(sessionId)?.(method, params);
      return;
    }
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) reject(new Error(error.message));
    else resolve(result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** `onTrouble` hears of exceptions and errors of the page. */
  async newPage(onTrouble) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    this.#listeners.set(sessionId, (method, params) => {
      if (method === "Runtime.exceptionThrown") onTrouble(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      if (method === "Log.entryAdded" && params.entry.level === "error") onTrouble(`${params.entry.text} ${params.entry.url ?? ""}`);
    });
    const page = new Page((method, params) => this.send(method, params, sessionId));
    for (const domain of ["Page", "Runtime", "Log"]) await page.send(`${domain}.enable`);
    return page;
  }

  async close() {
    if (this.#child.exitCode !== null) return;
    const over = new Promise((done) => this.#child.on("exit", done));
    await this.send("Browser.close").catch(() => this.#child.kill());
    await over;
  }
}

class Page {
  constructor(send) {
    this.send = send;
  }

  goto(url) {
    return this.send("Page.navigate", { url });
  }

  async evaluate(act, ...words) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression: `(${act})(...${JSON.stringify(words)})`, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async press(key) {
    const text = key.length === 1 ? { text: key } : key === "Enter" ? { text: "\r" } : {};
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, ...text, ...(key === "Enter" ? { windowsVirtualKeyCode: 13 } : {}) });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key });
  }

  viewport(width, height, dark) {
    return Promise.all([
      this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false }),
      this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] }),
    ]);
  }

  async screenshot() {
    return Buffer.from((await this.send("Page.captureScreenshot", { format: "png" })).data, "base64");
  }
}
