import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { startTransition } from "react";
import { createRoot } from "react-dom/client";
import { feed } from "@/api/feed";
import { startLive } from "@/api/live";
import { meQuery, whenSignedIn } from "@/api/session";
import { startKeys } from "@/app/keys";
import { onSignInNeeded, queryClient } from "@/app/query-client";
import { router } from "@/app/router";
import { applyTheme } from "@/app/theme";
import { copyWholeTimes } from "@/components/copied-times";
import { loadModal } from "@/components/dialog";
import "@/styles/tokens.css";
import "@/styles/base.css";
import "@/styles/shell.css";
import "@/styles/components.css";
import "@/styles/viewers.css";

/** So long the first page is waited for, before the app says that it waits. */
const LONGEST_MS = 1500;

applyTheme();
startKeys();
copyWholeTimes();
whenIdle(() => void loadModal().catch(() => undefined));
onSignInNeeded(() => {
  const { pathname, href } = router.state.location;
  const over = queryClient.getQueryData(meQuery.queryKey) ? true : undefined;
  feed.stop();
  if (pathname !== "/sign-in") void router.navigate({ to: "/sign-in", search: { next: href, over } });
});
if (location.pathname !== "/sign-in") {
  whenSignedIn(queryClient, () => startLive(queryClient));
}

/** Later, when the page is there and does nothing. */
function whenIdle(act: () => void): void {
  const idle = typeof requestIdleCallback === "undefined" ? (each: () => void) => setTimeout(each, 1000) : requestIdleCallback;
  addEventListener("load", () => setTimeout(() => idle(act), 4000), { once: true });
}

/** What is wrong with any of it, the page says. */
async function firstPage(): Promise<void> {
  const known = location.pathname === "/sign-in" ? undefined : queryClient.ensureQueryData(meQuery);
  await Promise.allSettled([known, router.load()]);
}

const root = document.getElementById("root");
if (!root) throw new Error("the page has no place for the app");
const app = (
  <QueryClientProvider client={queryClient}>
    <RouterProvider router={router} />
  </QueryClientProvider>
);
// In small parts, between which the page answers: what the server sent is seen meanwhile. Not before it is known who is there and
// the page is loaded, for each of these would have it begin anew, and at once.
void Promise.race([firstPage(), new Promise((over) => setTimeout(over, LONGEST_MS))]).then(() => startTransition(() => createRoot(root).render(app)));
