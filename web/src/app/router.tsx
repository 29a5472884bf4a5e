/** All addresses of the app. A page has a folder: `search.ts` says what it keeps in its address, `page.tsx` is what is
 * shown, and is loaded when it is asked for. */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { caseCountsQuery, caseDecisionsQuery, caseQuery, casesQuery, flowsQuery, overviewQuery, RUNNING, runningForPersonQuery, whyQuery } from "@/api/queries";
import { whenSignedIn } from "@/api/session";
import { countsAsked, filtersOf } from "@/pages/cases/condition";
import { graphQuery, historyQuery, itemsQuery, itemState } from "@/pages/case/queries";
import { isPhone } from "./screen-widths";
import { NotFound, PageFailed } from "./page-states";
import { queryClient } from "./query-client";
import { PageComing, Shell } from "./shell";
import { search as administrationSearch } from "@/pages/administration/search";
import { search as caseSearch } from "@/pages/case/search";
import { search as casesSearch } from "@/pages/cases/search";
import { search as dataSearch } from "@/pages/data/search";
import { search as failureSearch } from "@/pages/failure/search";
import { search as failuresSearch } from "@/pages/failures/search";
import { search as flowSearch } from "@/pages/flow/search";
import { search as flowsSearch } from "@/pages/flows/search";
import { search as helpSearch } from "@/pages/help/search";
import { search as homeSearch } from "@/pages/home/search";
import { search as jobsSearch } from "@/pages/jobs/search";
import { search as newRunSearch } from "@/pages/new-run/search";
import { search as pilotsSearch } from "@/pages/pilots/search";
import { search as proposalsSearch } from "@/pages/proposals/search";
import { search as ruleSetSearch } from "@/pages/rule-set/search";
import { search as rulesSearch } from "@/pages/rules/search";
import { search as schedulesSearch } from "@/pages/schedules/search";
import { search as signInSearch } from "@/pages/sign-in/search";
import { search as sitesSearch } from "@/pages/sites/search";
import { search as teachSearch } from "@/pages/teach/search";
import { search as userTaskSearch } from "@/pages/user-task/search";
import { search as worklistSearch } from "@/pages/worklist/search";
import { search as domainsSearch } from "@/pages/domains/search";
import { search as runSearch } from "@/pages/run/search";

/** What a page will ask for first is asked for while its script is loaded. Nobody waits for it here, and whoever may not see
 * it is told by the page; but nothing is asked for before it is known that somebody is signed in. */
function askHome(): void {
  void queryClient.prefetchQuery(overviewQuery);
  void queryClient.prefetchInfiniteQuery(casesQuery({ where: RUNNING }));
  void queryClient.prefetchQuery(runningForPersonQuery);
}

function askCases(search: ReturnType<typeof casesSearch>): void {
  void queryClient.prefetchInfiniteQuery(casesQuery({ where: search.where, also: filtersOf(search), order: search.order }));
  void queryClient.prefetchQuery(flowsQuery);
  const { byStatus, forPerson } = countsAsked(search);
  void queryClient.prefetchQuery(caseCountsQuery(byStatus));
  void queryClient.prefetchQuery(caseCountsQuery(forPerson));
}

function askCase(id: string, search: ReturnType<typeof caseSearch>): void {
  void queryClient.prefetchQuery(caseQuery(id));
  void queryClient.prefetchQuery(whyQuery(id));
  void queryClient.prefetchQuery(caseDecisionsQuery(id));
  const { view = "graph", name, state, where, full, entries } = search;
  if (view === "graph") {
    if (!isPhone()) void import("@/pages/case/graph-view");
    void queryClient.prefetchQuery(graphQuery(id));
  } else if (view === "items") {
    void import("@/pages/case/items-view");
    void queryClient.prefetchInfiniteQuery(itemsQuery(id, { name, state: itemState(state), where }));
  } else if (view === "history") {
    void import("@/pages/case/history-view");
    void queryClient.prefetchQuery(historyQuery(id, { all: entries === "all", brief: true }));
    if (full) void queryClient.prefetchQuery(historyQuery(id, { all: entries === "all", brief: false }));
  } else if (view === "timeline") void import("@/pages/case/timeline-view");
}

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound, errorComponent: PageFailed });
const under = () => root;

const routes = [
  createRoute({ getParentRoute: under, path: "/", validateSearch: homeSearch, loader: () => whenSignedIn(queryClient, askHome), component: lazyRouteComponent(() => import("@/pages/home/page")) }),
  createRoute({ getParentRoute: under, path: "/cases", validateSearch: casesSearch, loaderDeps: ({ search }) => search, loader: ({ deps }) => whenSignedIn(queryClient, () => askCases(deps)), component: lazyRouteComponent(() => import("@/pages/cases/page")) }),
  createRoute({ getParentRoute: under, path: "/cases/$case", validateSearch: caseSearch, loaderDeps: ({ search }) => ({ view: search.view, name: search.name, state: search.state, where: search.where, full: search.full, entries: search.entries }), loader: ({ params, deps }) => whenSignedIn(queryClient, () => askCase(params.case, deps)), component: lazyRouteComponent(() => import("@/pages/case/page")) }),
  createRoute({ getParentRoute: under, path: "/jobs", validateSearch: jobsSearch, component: lazyRouteComponent(() => import("@/pages/jobs/page")) }),
  createRoute({ getParentRoute: under, path: "/failures", validateSearch: failuresSearch, component: lazyRouteComponent(() => import("@/pages/failures/page")) }),
  createRoute({ getParentRoute: under, path: "/failures/$group", validateSearch: failureSearch, component: lazyRouteComponent(() => import("@/pages/failure/page")) }),
  createRoute({ getParentRoute: under, path: "/failures/$group/teach", validateSearch: teachSearch, component: lazyRouteComponent(() => import("@/pages/teach/page")) }),
  createRoute({ getParentRoute: under, path: "/rules", validateSearch: rulesSearch, component: lazyRouteComponent(() => import("@/pages/rules/page")) }),
  createRoute({ getParentRoute: under, path: "/rules/$name", validateSearch: ruleSetSearch, component: lazyRouteComponent(() => import("@/pages/rule-set/page")) }),
  createRoute({ getParentRoute: under, path: "/proposals", validateSearch: proposalsSearch, component: lazyRouteComponent(() => import("@/pages/proposals/page")) }),
  createRoute({ getParentRoute: under, path: "/worklist", validateSearch: worklistSearch, component: lazyRouteComponent(() => import("@/pages/worklist/page")) }),
  createRoute({ getParentRoute: under, path: "/worklist/$case/$serial", validateSearch: userTaskSearch, component: lazyRouteComponent(() => import("@/pages/user-task/page")) }),
  createRoute({ getParentRoute: under, path: "/run", validateSearch: runSearch, component: lazyRouteComponent(() => import("@/pages/run/page")) }),
  createRoute({ getParentRoute: under, path: "/run/$flow", validateSearch: newRunSearch, component: lazyRouteComponent(() => import("@/pages/new-run/page")) }),
  createRoute({ getParentRoute: under, path: "/flows", validateSearch: flowsSearch, component: lazyRouteComponent(() => import("@/pages/flows/page")) }),
  createRoute({ getParentRoute: under, path: "/flows/$name", validateSearch: flowSearch, component: lazyRouteComponent(() => import("@/pages/flow/page")) }),
  createRoute({ getParentRoute: under, path: "/schedules", validateSearch: schedulesSearch, component: lazyRouteComponent(() => import("@/pages/schedules/page")) }),
  createRoute({ getParentRoute: under, path: "/data", validateSearch: dataSearch, component: lazyRouteComponent(() => import("@/pages/data/page")) }),
  createRoute({ getParentRoute: under, path: "/pilots", validateSearch: pilotsSearch, component: lazyRouteComponent(() => import("@/pages/pilots/page")) }),
  createRoute({ getParentRoute: under, path: "/sites", validateSearch: sitesSearch, component: lazyRouteComponent(() => import("@/pages/sites/page")) }),
  createRoute({ getParentRoute: under, path: "/domains", validateSearch: domainsSearch, component: lazyRouteComponent(() => import("@/pages/domains/page")) }),
  createRoute({ getParentRoute: under, path: "/administration", validateSearch: administrationSearch, component: lazyRouteComponent(() => import("@/pages/administration/page")) }),
  createRoute({ getParentRoute: under, path: "/help", validateSearch: helpSearch, component: lazyRouteComponent(() => import("@/pages/help/page")) }),
  createRoute({ getParentRoute: under, path: "/sign-in", validateSearch: signInSearch, component: lazyRouteComponent(() => import("@/pages/sign-in/page")) }),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(routes),
  defaultPreload: "intent",
  defaultErrorComponent: PageFailed,
  defaultPendingComponent: PageComing,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
