/** The pages that stand in the navigation, in groups. */
import type { IconName } from "@/components/icon-paths";

export interface NavigationEntry {
  to: "/" | "/cases" | "/jobs" | "/failures" | "/rules" | "/proposals" | "/worklist" | "/run" | "/schedules" | "/data" | "/pilots" | "/sites" | "/domains" | "/administration";
  name: string;
  icon: IconName;
  keys: string;
}

export const NAVIGATION: readonly (readonly NavigationEntry[])[] = [
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
