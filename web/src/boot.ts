/** The first thing that runs, before anything is painted, as a file of its own that needs no other: it sets the look, and
 * asks for what the page will show first, while the app itself is still being loaded. `api/prefetched.ts` hands the answers on.
 * What is asked for here and is not what the page asks for is asked for twice, and nothing else is wrong. Where the last answer
 * to "who am I" was "nobody", nothing but that is asked for: each other request would be refused, and be recorded as refused. */
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
  const running = encodeURIComponent("status == 'running' && parent == null && mends == null");
  const outer = encodeURIComponent("parent == null && mends == null");
  const forPerson = encodeURIComponent(" && for_person");
  const [page = "", id = "", ...more] = location.pathname.split("/").filter(Boolean);
  if (page === "sign-in") return;
  ask("/me");
  const signedIn = localStorage.getItem("mendflow.signed-in"); // kept by api/session.ts
  if (!signedIn) return;
  if (signedIn === "tasks") document.documentElement.dataset["for"] = "tasks"; // the menu is short from the first
  if (page === "") {
    ask("/overview");
    ask(`/cases?where=${running}&limit=100&after=`);
    ask(`/cases/count?where=${running}${forPerson}`);
  } else if (page === "cases" && !id && !location.search) {
    ask(`/cases?also=${outer}&limit=100&after=`);
    ask("/flows");
    ask(`/cases/count?also=${outer}&by=status`);
    ask(`/cases/count?also=${encodeURIComponent("status == 'running' && for_person && ")}${outer}`);
  } else if (page === "cases" && id && !more.length) {
    ask(`/cases/${id}`);
    ask(`/why?subject=${id}`);
    ask(`/decisions?case=${id}&limit=100`);
    if (/^(\?view=graph)?$/.test(location.search)) ask(`/cases/${id}/graph`);
  }
})();
