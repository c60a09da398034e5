// Signing in to a page that several users share: each has a token of the cluster. It goes to the server once, which
// keeps it in memory; this page forgets it.
import { NO_ANSWER, element } from "./text.ts";

/** Returns true if an answer says that the page wants a token. */
export const wantsToken = (answer: Response) =>
  answer.status === 401 && answer.headers.get("WWW-Authenticate") === "Bearer";

/** A form for a token; `done` is called when the server has taken one. */
export function signInForm(why: string, done: () => void): HTMLElement {
  const token = element("textarea", { id: "token", name: "token", required: "", autocomplete: "off", spellcheck: "false",
    autocapitalize: "off", maxlength: "16000" });
  const error = element("p", { class: "warn", role: "alert" }, why);
  const go = element("button", { type: "submit", class: "main" }, "Sign in");
  const form = element("form", { class: "signin", "aria-label": "Sign in" },
    element("label", { for: "token" }, "Token"), token, error, go);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void (async () => {
      go.disabled = true;
      error.textContent = "";
      try {
        const answer = await fetch("session", { method: "POST", body: token.value.trim() });
        token.value = "";
        if (answer.ok) return done();
        error.textContent = (await answer.text()).trim();
      } catch {
        error.textContent = NO_ANSWER;
      }
      go.disabled = false;
      token.focus();
    })();
  });
  window.setTimeout(() => token.focus());
  return element("div", { class: "empty" }, element("h2", {}, "Sign in"),
    element("p", {}, "With a token that the cluster's API server takes: that of your login, or of a service account. " +
      "You see the jobs that it may list, and act by its rights."),
    form, element("pre", {}, "kubectl create token NAME -n NAMESPACE"));
}

export async function signOut(): Promise<void> {
  await fetch("sign-out", { method: "POST" }).catch(() => {});
  location.reload();
}
