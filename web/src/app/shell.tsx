/** What stands around every page: navigation, search, the state of the live feed, and the keyboard. */
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useDeferredValue, useState } from "react";
import { meQuery } from "@/api/session";
import { useUnresponsiveServers } from "@/api/unresponsive-servers";
import { Icon } from "@/components/icon";
import { Loading } from "@/components/states-of-page";
import { Toasts } from "@/components/toasts";
import { CutText } from "./cut-text";
import { KeysDialog } from "./keys-dialog";
import { useKeys } from "./keys";
import { NAVIGATION, navigationFor } from "./navigation";
import { isSignInNeeded } from "./query-client";
import { TopBar } from "./top-bar";

export function Shell() {
  const navigate = useNavigate();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const [listed, setListed] = useState(false);
  const [open, setOpen] = useState(false);
  // A page offers, and asks for, only what its viewer may: so it comes when it is known who that is.
  const me = useQuery({ ...meQuery, enabled: path !== "/sign-in" });
  const known = me.data !== undefined || (me.isError && !isSignInNeeded(me.error));
  const loaded = useRouterState({ select: ({ matches }) => matches.length > 0 && matches.at(-1)?.status !== "pending" });
  const [first, setFirst] = useState(true);
  if (first && known && loaded) setFirst(false);
  // The first page is drawn in small parts, between which the bar and the navigation answer.
  const shown = useDeferredValue(!first, false) && known;
  const navigation = navigationFor(me.data);
  const keys = [
    { keys: "/", does: "search", run: () => document.querySelector<HTMLElement>("[data-search]")?.focus() },
    { keys: "?", does: "these keys", run: () => setListed(true) },
    ...navigation.flat().map((entry) => ({ keys: entry.keys, does: entry.name, run: () => void navigate({ to: entry.to }) })),
  ];
  // Who is about to sign in types, or pastes, a token: no key leads elsewhere.
  useKeys("Everywhere", known && path !== "/sign-in" ? keys : []);
  if (path === "/sign-in") return <Outlet />;
  return (
    <div className={open ? "shell nav-open" : "shell"}>
      <a className="skip-link" href="#content">
        To the content
      </a>
      <TopBar onMenu={() => setOpen(!open)} menuOpen={open} onKeys={() => setListed(true)} />
      <nav className="nav" aria-label="Pages" onClick={() => setOpen(false)}>
        {navigation.map((group) => (
          <ul key={group[0]?.name}>
            {group.map((entry) => (
              <li key={entry.to} data-tasks="">
                <Link to={entry.to} className="nav-link" activeOptions={{ exact: entry.to === "/", includeSearch: false }} title={`${entry.name} (${entry.keys})`}>
                  <Icon name={entry.icon} />
                  <span>{entry.name}</span>
                </Link>
              </li>
            ))}
          </ul>
        ))}
      </nav>
      <main id="content" className="content" tabIndex={-1}>
        <Unheard />
        {shown ? <Outlet /> : <PageComing />}
      </main>
      <Toasts />
      <CutText />
      <KeysDialog open={listed} onClose={() => setListed(false)} />
    </div>
  );
}

function Unheard() {
  const servers = useUnresponsiveServers();
  if (!servers) return null;
  return (
    <p className="notice" role="status">
      {servers.includes(",") ? `The servers ${servers} have` : `The server ${servers} has`} not answered: what runs there may be missing here.
    </p>
  );
}

/** What stands in a page's place until it is there; the server sends the same with the address (build/first-paint.ts). */
export function PageComing() {
  const path = useRouterState({ select: (state) => state.location.pathname });
  const title = NAVIGATION.flat().find((entry) => entry.to === path)?.name;
  return (
    <div className="page">
      {title && (
        <header className="page-head">
          <div className="page-titles">
            <h1>{title}</h1>
          </div>
        </header>
      )}
      <Loading lines={8} />
    </div>
  );
}
