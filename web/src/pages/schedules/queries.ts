import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "@/api/client";
import { duration } from "@/components/format";

export type Schedule = Schemas["ScheduleView"];
export type ScheduleSpec = Schemas["ScheduleSpec"];

/** Times pass without an event, so they are read again now and then. */
export const schedulesQuery = queryOptions({
  queryKey: ["schedules"],
  queryFn: ({ signal }) => ask(api.GET("/api/v1/schedules", { signal })),
  refetchInterval: 10_000,
});

export function whenText(spec: ScheduleSpec): string {
  if (spec.every_ms) return `every ${duration(spec.every_ms)}`;
  return `${spec.cron ?? ""}${spec.timezone ? ` (${spec.timezone})` : ""}`;
}
