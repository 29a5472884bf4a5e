/** One cache for all pages. What is told by events stays fresh until an event says otherwise. */
import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError } from "@/api/errors";

type SignInNeeded = () => void;
let signInNeeded: SignInNeeded = () => undefined;

/** Who is told that the server wants somebody to sign in. */
export function onSignInNeeded(listener: SignInNeeded): void {
  signInNeeded = listener;
}

export function isSignInNeeded(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401;
}

function watch(error: unknown): void {
  if (isSignInNeeded(error)) signInNeeded();
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: watch }),
  mutationCache: new MutationCache({ onError: watch }),
  defaultOptions: {
    queries: {
      staleTime: 2000,
      gcTime: 5 * 60_000,
      refetchOnWindowFocus: false,
      retry: (count, error) =>
        error instanceof ApiError ? (error.status === 0 || error.status >= 500 || error.status === 429) && count < 4 : count < 1,
      retryDelay: (count, error) =>
        error instanceof ApiError && error.retryAfterS ? error.retryAfterS * 1000 : Math.min(500 * 2 ** count, 5000),
    },
  },
});
