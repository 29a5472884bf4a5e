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
import { loadModal } from "@/components/dialog";
import "@/styles/tokens.css";
import "@/styles/base.css";
import "@/styles/shell.css";
import "@/styles/components.css";
import "@/styles/viewers.css";

applyTheme();
startKeys();
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

const root = document.getElementById("root");
if (!root) throw new Error("the page has no place for the app");
// In small parts, between which the page answers: what the server sent is seen meanwhile.
startTransition(() =>
  createRoot(root).render(
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  ),
);
