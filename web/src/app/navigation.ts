/** The pages that stand in the navigation, in groups. */
import type { Me } from "@/api/session";
import type { IconName } from "@/components/icon-paths";

export interface NavigationEntry {
  to: "/" | "/cases" | "/jobs" | "/failures" | "/rules" | "/proposals" | "/worklist" | "/run" | "/flows" | "/schedules" | "/data" | "/pilots" | "/sites" | "/domains" | "/administration" | "/help";
  name: string;
  icon: IconName;
  keys: string;
  /** Also for those who are here for user tasks only. */
  forTasks?: true;
}

export const NAVIGATION: readonly (readonly NavigationEntry[])[] = [
  [
    { to: "/", name: "Home", icon: "home", keys: "g h", forTasks: true },
    { to: "/cases", name: "Cases", icon: "cases", keys: "g c", forTasks: true },
    { to: "/jobs", name: "Jobs", icon: "jobs", keys: "g j" },
    { to: "/failures", name: "Failures", icon: "failures", keys: "g f" },
    { to: "/worklist", name: "Worklist", icon: "worklist", keys: "g w", forTasks: true },
    { to: "/run", name: "New run", icon: "run", keys: "g n" },
  ],
  [
    { to: "/rules", name: "Rules", icon: "rules", keys: "g r" },
    { to: "/proposals", name: "Proposals", icon: "proposals", keys: "g o" },
  ],
  [
    { to: "/flows", name: "Flows", icon: "flow", keys: "g l" },
    { to: "/schedules", name: "Schedules", icon: "schedules", keys: "g s" },
    { to: "/data", name: "Data", icon: "data", keys: "g d" },
    { to: "/pilots", name: "Pilots", icon: "pilots", keys: "g p" },
    { to: "/sites", name: "Sites", icon: "sites", keys: "g i" },
    { to: "/domains", name: "Domains", icon: "domains", keys: "g m" },
    { to: "/administration", name: "Administration", icon: "administration", keys: "g a" },
  ],
  [{ to: "/help", name: "Help", icon: "help", keys: "g ?", forTasks: true }],
];

const SERVER_ROLES = ["admin", "user", "reader", "pilot", "engine", "metrics"];

/** Whether somebody only has roles that user tasks are for, and starts nothing. */
export function isForTasks(me: Pick<Me, "may" | "roles"> | null | undefined): boolean {
  return Boolean(me) && !me?.may.includes("start") && !me?.roles.includes("reader") && Boolean(me?.roles.some((role) => !SERVER_ROLES.includes(role)));
}

/** What stands in the menu of whoever asks: to those who are here for tasks, these, and the cases that they come from. */
export function navigationFor(me: Pick<Me, "may" | "roles"> | null | undefined): readonly (readonly NavigationEntry[])[] {
  if (!isForTasks(me)) return NAVIGATION;
  return NAVIGATION.map((group) => group.filter((entry) => entry.forTasks)).filter((group) => group.length > 0);
}
