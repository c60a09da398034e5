import { AccountsView } from "./accounts_view.ts";
import { ClusterView } from "./cluster_view.ts";
import { JobPanel } from "./job_panel.ts";
import { NodesView } from "./nodes_view.ts";
import { Past } from "./past.ts";
import { QueueView, readFilter } from "./queue_view.ts";
import { signInForm, signOut, wantsToken } from "./sign_in.ts";
import { isFinal, isWaiting, State } from "./state.ts";
import { NO_ANSWER, element } from "./text.ts";
import { WhatIfView } from "./whatif_view.ts";

// No event, not even an empty one, for so long: the server is gone.
const SILENCE_MS = 12_000;
const RETRY_MS = 1500;

const VIEWS = ["nodes", "queue", "whatif", "accounts", "cluster"] as const;
type View = (typeof VIEWS)[number];

const byId = (id: string) => document.getElementById(id)!;
const state = new State();
const main = byId("main");
const live = byId("live");
let isOver = false;

function route(): { view: View; parameters: URLSearchParams } {
  const hash = location.hash.replace(/^#/, "");
  const [path, query] = [hash.split("?")[0]!, hash.split("?")[1] ?? ""];
  const view = VIEWS.find((name) => path === `/${name}`) ?? "nodes";
  return { view, parameters: new URLSearchParams(query) };
}

function go(view: View, parameters: URLSearchParams, replaces = false): void {
  for (const [name, value] of [...parameters]) if (value === "") parameters.delete(name);
  const query = parameters.toString();
  const hash = `#/${view === "nodes" ? "" : view}${query ? `?${query}` : ""}`;
  if (replaces) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  show();
}

const openJob = (ns: string, name: string) => {
  const { view, parameters } = route();
  parameters.set("job", `${ns}/${name}`);
  go(view, parameters);
};

const past = new Past(state);
const nodes = new NodesView(state, past, byId("tip"), openJob);
const queue = new QueueView(
  state,
  (changed) => {
    const { view, parameters } = route();
    for (const [name, value] of Object.entries(changed)) parameters.set(name, value);
    go(view, parameters, true);
  },
  openJob,
  (ns, name) => {
    openJob(ns, name);
    panel.askSooner();
  },
);
const whatif = new WhatIfView(state, nodes, (changed) => go("whatif", new URLSearchParams(changed)));
const accounts = new AccountsView();
const cluster = new ClusterView(state, past);
const panel = new JobPanel(byId("panel"), state, past, () => {
  const { view, parameters } = route();
  parameters.delete("job");
  go(view, parameters);
});

function show(): void {
  if (isOver) return;
  const { view, parameters } = route();
  for (const link of document.querySelectorAll<HTMLElement>("nav a")) {
    if (link.dataset["view"] === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!state.hasData) return;
  const root = { nodes, queue, whatif, accounts, cluster }[view].root;
  if (main.firstElementChild !== root) {
    whatif.leave();
    main.replaceChildren(root);
    byId("tip").hidden = true;
  }
  if (view === "queue") queue.update(readFilter(parameters));
  else if (view === "whatif") whatif.update(parameters);
  else if (view === "accounts") accounts.update();
  else if (view === "cluster") cluster.update();
  else nodes.start();
  panel.show(parameters.get("job") ?? "");
}

function showSummary(): void {
  let [waiting, active] = [0, 0];
  for (const job of state.kinds.jobs.values()) {
    if (isWaiting(job)) waiting++;
    else if (!isFinal(job)) active++;
  }
  const nodeCount = state.groups().reduce((sum, group) => sum + group.nodes.length, 0);
  const ns = state.kinds.about.get("server")?.ns;
  byId("summary").textContent =
    `${nodeCount} nodes · ${active} with nodes · ${waiting} waiting` + (ns ? ` · namespace ${ns}` : "");
}

function showNotes(): void {
  const now = state.now();
  const texts = [];
  for (const [kind, note] of state.kinds.notes) {
    if (note.refused) texts.push(`${kind}: you have no right to read them, so they are not shown`);
    else if (now - note.at < 8e6) texts.push(`${kind}: ${note.text}`);
  }
  const box = byId("notes");
  if (box.textContent !== texts.join("\n")) box.replaceChildren(...texts.map((text) => element("p", {}, text)));
}

function setLive(text: string, isGood: boolean): void {
  if (live.textContent !== text) live.textContent = text;
  live.classList.toggle("good", isGood);
}

/** This page's session is over; what stands now stays until another address is opened. */
function closed(title: string, text: string): void {
  isOver = true;
  setLive("", false);
  main.replaceChildren(element("div", { class: "empty" }, element("h2", {}, title), element("p", {}, text),
    element("pre", {}, "kubectl gang dashboard")));
}

let source: EventSource | null = null;
let heard = 0;

function follow(): void {
  source?.close();
  source = new EventSource("events");
  heard = performance.now();
  source.onmessage = (message) => {
    heard = performance.now();
    state.apply(JSON.parse(message.data as string));
    setLive("live", true);
    showSummary();
    show();
  };
  source.onerror = () => {
    source?.close();
    setLive(`${NO_ANSWER}; trying again`, false);
    window.setTimeout(() => void again(), RETRY_MS);
  };
}

/** Who reads, where there are several. */
async function greet(answer: Response): Promise<void> {
  const { user } = (await answer.json()) as { user?: string };
  const box = byId("user");
  box.hidden = user === undefined;
  if (user === undefined) return;
  const leave = element("button", { type: "button" }, "Sign out");
  leave.addEventListener("click", () => void signOut());
  box.replaceChildren(element("span", {}, user), leave);
}

/** Asks for a token; what was on the screen was another session's. */
function askForToken(why: string): void {
  source?.close();
  setLive("", false);
  byId("user").hidden = true;
  state.clear();
  past.reset();
  panel.show("");
  main.replaceChildren(signInForm(why, () => void begin()));
}

/** A server that was started again knows no cookie of before; one that is away may come back. */
async function again(): Promise<void> {
  try {
    const answer = await fetch("session");
    if (wantsToken(answer)) {
      askForToken("Your session has ended: the token is no longer good, or the server was started again.");
      return;
    }
    if (answer.status === 401 || answer.status === 403) {
      closed("This page has ended", "Its server was started again. Open the address that it has printed:");
      return;
    }
  } catch {
    window.setTimeout(() => void again(), RETRY_MS);
    return;
  }
  follow();
}

/** The code is worth something once, and is taken out of the address before anything else. */
async function signIn(): Promise<boolean> {
  const code = /^#([0-9a-f]{32})$/.exec(location.hash)?.[1];
  if (code === undefined) return true;
  history.replaceState(null, "", "#/");
  const answer = await fetch("session", { method: "POST", body: code });
  return answer.ok;
}

async function begin(): Promise<void> {
  show();
  const isNew = await signIn();
  const probe = await fetch("session");
  if (wantsToken(probe)) {
    askForToken("");
    return;
  }
  if (probe.status === 401 || probe.status === 403) {
    closed(
      isNew ? "Open the page by its address" : "This address has been used",
      "Each address opens the page in one browser. The program prints the next one:",
    );
    return;
  }
  if (probe.ok) await greet(probe);
  follow();
}

// A browser has six connections for all tabs of an address, and a stream takes one: only what is
// looked at has it.
document.addEventListener("visibilitychange", () => {
  if (!state.hasData || isOver) return;
  if (document.hidden) source?.close();
  else if (source?.readyState === EventSource.CLOSED) follow();
});
window.addEventListener("pagehide", () => source?.close());
window.addEventListener("hashchange", show);
window.addEventListener("popstate", show);
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  if (route().view !== "queue") go("queue", new URLSearchParams());
  queue.focus();
});
// A digit leads to the view of that place.
document.addEventListener("keydown", (event) => {
  const view = VIEWS[Number(event.key) - 1];
  const types = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLSelectElement;
  if (!view || types || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  go(view, new URLSearchParams());
  if (view === "whatif") whatif.focus();
});
window.setInterval(() => {
  if (performance.now() - heard > SILENCE_MS && source?.readyState === EventSource.OPEN) {
    source.close();
    setLive("the page's server is silent; trying again", false);
    void again();
  }
  if (!state.hasData || isOver || document.hidden) return;
  showNotes();
  panel.update();
  if (route().view !== "nodes") show();
}, 500);
// For tests: what the page believes.
Object.assign(window, { kubegang: { state, nodes } });
void begin();
