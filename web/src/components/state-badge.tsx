/** States: always an icon and a word with the colour, never the colour alone. */
import { STATES, STATE_WORDS, stateOf, wordOf, type State } from "@/api/states";

const MARKS: Record<State, string> = {
  waiting: "M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10M6 3.500V6l1.600 1",
  ready: "M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10M6 6h.01",
  running: "M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10M5 4v4l3-2z",
  done: "M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10M3.800 6.200l1.500 1.500 2.900-3.200",
  repairing: "M10.500 6A4.500 4.500 0 1 1 9 2.700M10.500 1v2.300H8.200",
  failed: "M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10M4.300 4.300l3.400 3.400M7.700 4.300 4.300 7.700",
  person: "M6 5.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4M2 10.800c.3-2.500 1.800-3.500 4-3.500s3.700 1 4 3.500",
  stopped: "M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10M4.300 4.300h3.400v3.400H4.300z",
};

export function StateIcon({ state, size = 12 }: { state: State; size?: number }) {
  return (
    <svg className={`state-icon state-${state}`} width={size} height={size} viewBox="0 0 12 12" aria-hidden="true">
      <path d={MARKS[state]} />
    </svg>
  );
}

/** `of` is a word of the API, such as `completed`; or give the state itself, and another word if that says more. */
export function StateBadge(props: { of: string; word?: string } | { state: State; word?: string }) {
  const state = "of" in props ? stateOf(props.of) : props.state;
  const word = props.word ?? ("of" in props ? wordOf(props.of) : STATE_WORDS[state]);
  return (
    <span className="state-badge" data-state={state}>
      <StateIcon state={state} />
      {word}
    </span>
  );
}

export type StateCounts = Partial<Record<State, number>>;

/** Counts by words of the API, as counts by states of the app. */
export function countsOf(counts: Record<string, number>): StateCounts {
  const found: StateCounts = {};
  for (const [word, count] of Object.entries(counts)) {
    const state = stateOf(word);
    found[state] = (found[state] ?? 0) + count;
  }
  return found;
}

const ORDER: State[] = ["done", "running", "repairing", "person", "failed", "stopped", "ready", "waiting"];

export function describeCounts(counts: StateCounts): string {
  const parts = ORDER.filter((state) => counts[state]).map((state) => `${counts[state]} ${STATE_WORDS[state]}`);
  return parts.join(", ") || "none";
}

/** Counts in the words of the API where these say more than the state does: `2 completed, 1 skipped`. */
export function describeWords(counts: Record<string, number>): string {
  const said = new Map<string, number>();
  for (const state of ORDER)
    for (const [word, count] of Object.entries(counts)) if (count && stateOf(word) === state) said.set(wordOf(word), (said.get(wordOf(word)) ?? 0) + count);
  return [...said].map(([word, count]) => `${count} ${word}`).join(", ") || "none";
}

/** A bar whose parts are as long as the counts; `rest` is what of it stays empty. `title` is told where the pointer rests, if
 * that is more than the words. */
export function StateBar({ counts, label, words, title, rest = 0 }: { counts: StateCounts; label?: string; words?: string; title?: string; rest?: number }) {
  const said = words ?? describeCounts(counts);
  return (
    <span className="state-bar" role="img" aria-label={label ? `${label}: ${said}` : said} title={title ?? said}>
      {ORDER.filter((state) => counts[state]).map((state) => (
        <span key={state} className={`state-fill state-${state}`} style={{ flexGrow: counts[state] }} />
      ))}
      {rest > 0 && <span style={{ flexGrow: rest }} />}
    </span>
  );
}

/** What the marks and colours mean. */
export function StateLegend() {
  return (
    <ul className="state-legend" aria-label="States">
      {STATES.map((state) => (
        <li key={state}>
          <StateBadge state={state} word={state === "stopped" ? "stopped, skipped" : undefined} />
        </li>
      ))}
    </ul>
  );
}
