/** The first thing that runs, before anything is painted, as a file of its own that needs no other: it sets the look, and
 * asks for what the page will show first, while the app itself is still being loaded. `api/prefetched.ts` hands the answers on.
 * What is asked for here and is not what the page asks for is asked for twice, and nothing else is wrong. */
import type { PrefetchedAnswers } from "./api/prefetched";

(() => {
  const kept = localStorage.getItem("mendflow.theme");
  const dark = kept === "dark" || (kept !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";

  const answers: PrefetchedAnswers = new Map();
  window.mendflowPrefetched = answers;
  const ask = (path: string) => {
    const address = new URL(`/api/v1${path}`, location.href).href;
    const answer = fetch(address, { headers: { "Mendflow-Request": "web" } });
    answer.catch(() => undefined); // whoever takes it is told
    answers.set(address, answer);
  };
  const cases = (where: string) => ask(`/cases?where=${encodeURIComponent(where)}&limit=100&after=`);
  const [page = "", id = "", ...more] = location.pathname.split("/").filter(Boolean);
  if (page === "sign-in") return;
  ask("/me");
  if (page === "") {
    ask("/overview");
    cases("status == 'running' && parent == null && mends == null");
  } else if (page === "cases" && !id && !location.search) {
    cases("parent == null && mends == null");
  } else if (page === "cases" && id && !more.length) {
    ask(`/cases/${id}`);
    ask(`/why?subject=${id}`);
    if (/^(\?view=graph)?$/.test(location.search)) ask(`/cases/${id}/graph`);
  }
})();
