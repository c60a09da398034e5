// Accounts: what each may use and has used, as `kubectl gang share` says it. Asked for while it is looked at.
import { element, failureText } from "./text.ts";

interface Share {
  account: string;
  namespace?: string;
  parent?: string;
  shares?: number;
  normShares: number;
  usageSeconds: number;
  effectiveUsage: number;
  fairShare?: number;
}

const REFRESH_MS = 30_000;

/** The account root and what is below it, each with its depth. */
export function depths(shares: Share[]): number[] {
  const of = new Map<string, number>();
  return shares.map((each, i) => {
    if (each.namespace !== undefined) return (of.get(each.account) ?? 0) + 1;
    const depth = i === 0 ? 0 : (of.get(each.parent ?? "") ?? 0) + 1;
    of.set(each.account, depth);
    return depth;
  });
}

const percent = (part: number) => `${(part * 100).toFixed(part < 0.1 ? 1 : 0)} %`;

/** Billing units × seconds, with whatever a unit is there. */
function hours(seconds: number): string {
  return seconds < 360 ? `${seconds} s` : `${(seconds / 3600).toFixed(seconds < 36_000 ? 1 : 0)} h`;
}

export class AccountsView {
  readonly root: HTMLElement;
  private readonly body = element("tbody");
  private readonly table: HTMLTableElement;
  private readonly hint: HTMLElement;
  private readonly said = element("div", { class: "empty" }, element("p", { class: "faint" }, "Reading the accounts…"));
  private readAt = -Infinity;
  private isReading = false;

  constructor() {
    const heads = ["Account", "Namespace", "Shares", "Usage against share", "Used", "Fair share"];
    this.table = element("table", { class: "accounts", hidden: "" }, element("thead", {},
      element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))), this.body);
    this.hint = element("p", { class: "hint", hidden: "" }, "A bar is what an account has used of all that was used on its level, with older use counting less; " +
        "the line is its share. An account whose bar ends before the line has used less than its share, so its jobs go first.");
    this.root = element("section", { class: "accountsview", "aria-label": "Accounts" }, this.hint, this.said,
      element("div", { class: "tablebox" }, this.table));
  }

  update(): void {
    if (this.isReading || performance.now() - this.readAt < REFRESH_MS) return;
    this.isReading = true;
    void this.read();
  }

  private async read(): Promise<void> {
    try {
      const answer = await fetch("shares", { method: "POST", body: "{}" });
      if (!answer.ok) throw new Error((await answer.text()).trim().replace(/^kubectl-gang share: /, ""));
      this.show((await answer.json()) as Share[]);
    } catch (failure) {
      this.teach(failureText(failure));
    }
    this.readAt = performance.now();
    this.isReading = false;
  }

  private teach(why: string): void {
    this.table.hidden = this.hint.hidden = true;
    this.said.hidden = false;
    const isEmpty = why.includes("no accounts");
    this.said.replaceChildren(element("h2", {}, isEmpty ? "No accounts yet" : "No answer"),
      element("p", {}, isEmpty ? "An Account gives namespaces a share of the cluster: those that have used less than theirs go first." : why),
      ...(isEmpty ? [element("pre", {}, "kubectl apply -f examples/accounts.yaml")] : []));
  }

  private show(shares: Share[]): void {
    this.said.hidden = true;
    this.table.hidden = this.hint.hidden = false;
    const depth = depths(shares);
    this.body.replaceChildren(...shares.map((each, i) => {
      const isRoot = i === 0;
      const name = element("td", {}, each.namespace === undefined ? each.account : "");
      name.style.paddingLeft = `${10 + depth[i]! * 18}px`;
      const bar = element("div", { class: "bar" });
      if (!isRoot) {
        const used = element("i", { class: each.effectiveUsage > each.normShares ? "over" : "" });
        used.style.width = `${Math.min(100, each.effectiveUsage * 100)}%`;
        const share = element("b");
        share.style.left = `${Math.min(100, each.normShares * 100)}%`;
        bar.append(used, share);
      }
      const text = isRoot ? "" : `${percent(each.effectiveUsage)} of ${percent(each.normShares)}`;
      return element("tr", { class: each.namespace === undefined ? "account" : "" }, name,
        element("td", {}, each.namespace ?? ""),
        element("td", {}, isRoot ? "" : each.shares === undefined ? "parent" : String(each.shares)),
        element("td", {}, ...(isRoot ? [] : [bar]), text),
        element("td", {}, hours(each.usageSeconds)),
        element("td", {}, each.fairShare === undefined ? "" : each.fairShare.toFixed(3)));
    }));
  }
}
