/** Who is signed in, and what they may do. */
import { CancelledError, queryOptions, useQuery, type QueryClient } from "@tanstack/react-query";
import { isForTasks } from "@/app/navigation";
import { requestJson } from "./client";
import { ApiError } from "./errors";

export interface Me {
  name: string;
  roles: string[];
  projects: Record<string, string>;
  installation: boolean;
  may: string[];
  server: string;
  domain: string;
  version: string;
  signed_in_by: "token" | "session" | "socket";
  no_jobs_by_tokens: string;
}

/** Kept in the browser, without a name: whether the server knew who asked, the last time, and whether only for user tasks. `boot.ts`
 * reads it. */
const SIGNED_IN = "mendflow.signed-in";
/** Who signs out may still get an answer to an earlier question: it does not sign in again. */
let isLeaving = false;

async function readMe(signal: AbortSignal): Promise<Me | null> {
  try {
    const me = await requestJson<Me>("/api/v1/me", { signal });
    if (!isLeaving) localStorage.setItem(SIGNED_IN, isForTasks(me) ? "tasks" : "yes");
    return me;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) localStorage.removeItem(SIGNED_IN);
    // A server that does not say who asks lets the page offer everything, and refuses what may not be.
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => readMe(signal),
  staleTime: 5 * 60_000,
  retry: (count, error) => !(error instanceof ApiError && error.status === 401) && count < 2,
});

/** Does something as soon as it is known that the server answers whoever asks; not at all, if it wants a sign-in first, or if
 * the question was given up, as it is when the page of sign-in takes the place of the one that asked. */
export function whenSignedIn(client: QueryClient, act: () => void): void {
  const isUnknown = (error: unknown) => error instanceof CancelledError || (error instanceof ApiError && error.status === 401);
  client.ensureQueryData(meQuery).then(act, (error: unknown) => isUnknown(error) || act());
}

export function useMe(): Me | null {
  return useQuery(meQuery).data ?? null;
}

/** Whether the caller may use an operation, by its id, on anything at all: `useMay("cancel")`. */
export function useMay(operation: string): boolean {
  const { data } = useQuery(meQuery);
  return data === null || data === undefined || data.may.includes(operation);
}

/** The same for several operations at once: `const may = useMayAll(); may("cancel")`. */
export function useMayAll(): (operation: string) => boolean {
  const { data } = useQuery(meQuery);
  return (operation) => data === null || data === undefined || data.may.includes(operation);
}

export async function signIn(token: string): Promise<void> {
  await requestJson<void>("/api/v1/session", { method: "POST", body: { token } });
}

export async function signOut(): Promise<void> {
  isLeaving = true;
  try {
    await requestJson<void>("/api/v1/session", { method: "DELETE" });
    localStorage.removeItem(SIGNED_IN);
  } catch (error) {
    isLeaving = false;
    throw error;
  }
}
