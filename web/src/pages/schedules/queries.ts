import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { api, ask, requestExactly, type Schemas } from "@/api/client";
import { duration } from "@/components/format";
import { useSettled } from "@/components/settled";

export type Schedule = Schemas["ScheduleView"];
export type ScheduleSpec = Schemas["ScheduleSpec"];
type DueTimes = Schemas["DueTimesView"];
type When = Pick<ScheduleSpec, "cron" | "every_ms" | "timezone" | "starts_at" | "ends_at">;

/** Times pass without an event, so they are read again now and then. */
export const schedulesQuery = queryOptions({
  queryKey: ["schedules"],
  queryFn: ({ signal }) => ask(api.GET("/api/v1/schedules", { signal })),
  refetchInterval: 10_000,
});

/** One with every number as it was written, for the form that changes it. */
export function exactScheduleQuery(name: string) {
  return queryOptions({
    queryKey: ["schedules", name, "exact"],
    queryFn: ({ signal }) => requestExactly<Schedule>(`/api/v1/schedules/${encodeURIComponent(name)}`, { signal }),
  });
}

const TYPING_MS = 250;

/** When a schedule would be due, or what is wrong with it, as the server says while somebody writes. */
export function useDueTimes(when: When): DueTimes {
  const asked = useSettled(JSON.stringify(when), TYPING_MS);
  const answer = useQuery({
    queryKey: ["due-times", asked],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/due-times", { params: { query: asWritten(JSON.parse(asked) as When) }, signal })),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    refetchInterval: 30_000,
  });
  return answer.data ?? { times: [], values: {}, flaws: [] };
}

/** Only what is said: an empty time zone is none. */
function asWritten(when: When): When {
  return Object.fromEntries(Object.entries(when).filter(([, value]) => value));
}

/** A schedule that names no zone means UTC. */
export function zoneOf(spec: ScheduleSpec): string {
  return spec.timezone || "UTC";
}

export function whenText(spec: ScheduleSpec): string {
  if (spec.every_ms) return `every ${duration(spec.every_ms)}`;
  return `${spec.cron ?? ""} (${zoneOf(spec)})`;
}
