import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { createRoot } from "react-dom/client";
import { feed } from "@/api/feed";
import { startLive } from "@/api/live";
import { meQuery } from "@/api/session";
import { startKeys } from "@/app/keys";
import { onSignInNeeded, queryClient } from "@/app/query-client";
import { router } from "@/app/router";
import { applyTheme } from "@/app/theme";
import "@/styles/tokens.css";
import "@/styles/base.css";
import "@/styles/shell.css";
import "@/styles/components.css";
import "@/styles/viewers.css";

applyTheme();
startKeys();
onSignInNeeded(() => {
  const { pathname, href } = router.state.location;
  const over = queryClient.getQueryData(meQuery.queryKey) ? true : undefined;
  feed.stop();
  if (pathname !== "/sign-in") void router.navigate({ to: "/sign-in", search: { next: href, over } });
});
if (location.pathname !== "/sign-in") {
  void queryClient.prefetchQuery(meQuery);
  startLive(queryClient);
}

const root = document.getElementById("root");
if (!root) throw new Error("the page has no place for the app");
createRoot(root).render(
  <QueryClientProvider client={queryClient}>
    <RouterProvider router={router} />
  </QueryClientProvider>,
);
