/** Answers that `boot.ts` asked for before the app was there. Each is taken once, and soon: what is older than a moment is
 * asked for again. */

export type PrefetchedAnswers = Map<string, Promise<Response>>;

declare global {
  interface Window {
    mendflowPrefetched?: PrefetchedAnswers;
  }
}

const GOOD_FOR_MS = 10_000;

/** The answer to a request that was made early, if there is one. */
export function takePrefetched(address: string): Promise<Response> | undefined {
  if (typeof window === "undefined" || !window.mendflowPrefetched) return undefined;
  if (performance.now() > GOOD_FOR_MS) {
    delete window.mendflowPrefetched;
    return undefined;
  }
  const whole = new URL(address, location.href).href;
  const answer = window.mendflowPrefetched.get(whole);
  window.mendflowPrefetched.delete(whole);
  return answer;
}
