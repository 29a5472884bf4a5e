/** What a token lets somebody do, in words. */

const MAY: Record<string, string> = {
  admin: "may do everything",
  user: "may look, deploy flows, start cases and mend them",
  reader: "may look",
  pilot: "works as a pilot",
  engine: "works as an engine",
  metrics: "may read the metrics",
};

/** What somebody with these roles may do, to be read before the token is made; empty if nothing was chosen. */
export function mayWords(roles: readonly string[], taskRoles: readonly string[], inProject: string): string {
  const looks = roles.some((role) => role === "admin" || role === "user" || role === "reader");
  const tasks = taskRoles.length ? [`may answer user tasks for ${taskRoles.join(" and ")}${looks || inProject ? "" : ", and look"}`] : [];
  return [...roles.map((role) => MAY[role] ?? role), ...tasks, ...(inProject ? [`is ${inProject}`] : [])].join(", ");
}
