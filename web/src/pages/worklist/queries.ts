import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "@/api/client";
import { placeOf } from "@/components/task-link";

export type Task = Schemas["UserTaskView"];

export function worklistQuery(wish: { role?: string; case?: string }) {
  return queryOptions({
    queryKey: ["worklist", wish],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/worklist", { params: { query: { ...wish, limit: 500 } }, signal })),
  });
}

export type AskedTask = Schemas["AdministrationTaskView"];

/** What people are asked about failures: no rule took one up, or somebody says that the choice of a rule was wrong. */
export function askedQuery(wish: { case?: string }) {
  return queryOptions({
    queryKey: ["decisions", "asked", wish],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/administration-tasks", { params: { query: { ...wish, state: "open", limit: 500 } }, signal })),
  });
}

/** The same as the API wants it. */
export function apiPlace(task: string): { case: string; serial: number } {
  const place = placeOf(task);
  return { case: place.case, serial: Number(place.serial) };
}

export function taskQuery(place: { case: string; serial: string }) {
  return queryOptions({
    queryKey: ["worklist", "task", place.case, place.serial],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/worklist/{case}/{serial}", { params: { path: { case: place.case, serial: Number(place.serial) } }, signal })),
  });
}

export function isOpen(task: Task): boolean {
  return task.state === "offered" || task.state === "claimed";
}

/** Those with a deadline first, the nearest one at the top; then the oldest. */
export function byUrgency(one: Task, other: Task): number {
  return (one.deadline || Infinity) - (other.deadline || Infinity) || one.offered_at - other.offered_at;
}
