/** Why nothing runs in a case: what its jobs wait for, in the scheduler's own words, asked for all such cases of a list at once. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, ask } from "@/api/client";
import type { CaseView } from "@/api/queries";
import { caseCounts } from "@/components/case-progress";
import { withoutCommands } from "@/components/commands";

const CASES_MAX = 60;
const JOBS_MAX = 200;

/** Something in it waits, nothing runs, and no person is asked. */
export function standsStill(view: CaseView): boolean {
  const { running, waiting } = caseCounts(view);
  return view.status === "running" && !running && waiting > 0 && !view.tasks_open && !view.held.length;
}

/** By case, what the first of its jobs that wait waits for. */
export function useWaitingReasons(rows: readonly CaseView[]): ReadonlyMap<string, string> {
  const ids = rows.filter(standsStill).slice(0, CASES_MAX).map((view) => view.id);
  const where = `state == 'available' && case in [${ids.map((id) => `'${id}'`).join(", ")}]`;
  const jobs = useQuery({
    queryKey: ["jobs", "waiting reasons", where],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/jobs", { params: { query: { where, limit: JOBS_MAX } }, signal })),
    enabled: ids.length > 0,
    placeholderData: (before) => before,
  });
  return useMemo(() => {
    const found = new Map<string, string>();
    for (const job of jobs.data ?? []) if (job.why && !found.has(job.case)) found.set(job.case, withoutCommands(job.why).replace(/[.;]$/, "").replaceAll("`", ""));
    return found;
  }, [jobs.data]);
}
