/** What stands around every page: navigation, search, the state of the live feed, and the keyboard. */
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useState } from "react";
import { meQuery } from "@/api/session";
import { Icon, type IconName } from "@/components/icon";
import { Toasts } from "@/components/toasts";
import { KeysDialog } from "./keys-dialog";
import { useKeys } from "./keys";
import { isSignInNeeded } from "./query-client";
import { TopBar } from "./top-bar";

interface Place {
  to: "/" | "/cases" | "/jobs" | "/failures" | "/rules" | "/proposals" | "/worklist" | "/run" | "/schedules" | "/data" | "/pilots" | "/sites" | "/domains" | "/administration";
  name: string;
  icon: IconName;
  keys: string;
}

const PLACES: readonly (readonly Place[])[] = [
  [
    { to: "/", name: "Home", icon: "home", keys: "g h" },
    { to: "/cases", name: "Cases", icon: "cases", keys: "g c" },
    { to: "/jobs", name: "Jobs", icon: "jobs", keys: "g j" },
    { to: "/failures", name: "Failures", icon: "failures", keys: "g f" },
    { to: "/worklist", name: "Worklist", icon: "worklist", keys: "g w" },
    { to: "/run", name: "New run", icon: "run", keys: "g n" },
  ],
  [
    { to: "/rules", name: "Rules", icon: "rules", keys: "g r" },
    { to: "/proposals", name: "Proposals", icon: "proposals", keys: "g o" },
  ],
  [
    { to: "/schedules", name: "Schedules", icon: "schedules", keys: "g s" },
    { to: "/data", name: "Data", icon: "data", keys: "g d" },
    { to: "/pilots", name: "Pilots", icon: "pilots", keys: "g p" },
    { to: "/sites", name: "Sites", icon: "sites", keys: "g i" },
    { to: "/domains", name: "Domains", icon: "domains", keys: "g m" },
    { to: "/administration", name: "Administration", icon: "administration", keys: "g a" },
  ],
];

export function Shell() {
  const navigate = useNavigate();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const [listed, setListed] = useState(false);
  const [open, setOpen] = useState(false);
  useKeys("Everywhere", [
    { keys: "/", does: "search", run: () => document.querySelector<HTMLElement>("[data-search]")?.focus() },
    { keys: "?", does: "these keys", run: () => setListed(true) },
    ...PLACES.flat().map((place) => ({ keys: place.keys, does: place.name, run: () => void navigate({ to: place.to }) })),
  ]);
  // A page offers, and asks for, only what its viewer may: so it comes when it is known who that is.
  const me = useQuery({ ...meQuery, enabled: path !== "/sign-in" });
  const known = me.data !== undefined || (me.isError && !isSignInNeeded(me.error));
  if (path === "/sign-in") return <Outlet />;
  return (
    <div className={open ? "shell nav-open" : "shell"}>
      <a className="skip-link" href="#content">
        To the content
      </a>
      <TopBar onMenu={() => setOpen(!open)} menuOpen={open} onKeys={() => setListed(true)} />
      <nav className="nav" aria-label="Pages" onClick={() => setOpen(false)}>
        {PLACES.map((places) => (
          <ul key={places[0]?.name}>
            {places.map((place) => (
              <li key={place.to}>
                <Link to={place.to} className="nav-link" activeOptions={{ exact: place.to === "/", includeSearch: false }} title={`${place.name} (${place.keys})`}>
                  <Icon name={place.icon} />
                  <span>{place.name}</span>
                </Link>
              </li>
            ))}
          </ul>
        ))}
      </nav>
      <main id="content" className="content" tabIndex={-1}>
        {known && <Outlet />}
      </main>
      <Toasts />
      <KeysDialog open={listed} onClose={() => setListed(false)} />
    </div>
  );
}
