/** Lists narrowed to when something began, or ended. */
import { Icon } from "./icon";
import { fieldTime, SPANS, type Span } from "./time-spans";

/** What of it is in the address of a page. */
export interface TimeSearch {
  since?: Span;
  from?: string;
  to?: string;
  ended?: Span;
  endedFrom?: string;
  endedTo?: string;
}

const SPAN_WORDS: Record<Span, string> = { "1h": "in the last hour", today: "today", yesterday: "yesterday", "1 day": "in the last 24 hours", "7 days": "in the last 7 days", "30 days": "in the last 30 days", between: "from … to …" };

/** When something began, or ended: one of the usual spans, or between two times, of which either may be left out. */
export function TimeFilter(props: { label: string; span: Span | undefined; from: string | undefined; to: string | undefined; onChange: (span: Span | undefined, from?: string, to?: string) => void }) {
  const { label, span, from, to, onChange } = props;
  const choose = (next: Span | undefined) => (next === "between" ? onChange(next, fieldTime(new Date().setHours(0, 0, 0, 0))) : onChange(next));
  return (
    <span className="time-filter">
      <select aria-label={label} value={span ?? ""} onChange={(event) => choose(SPANS.find((each) => each === event.target.value))}>
        <option value="">{label.toLowerCase()} at any time</option>
        {SPANS.map((each) => (
          <option key={each} value={each}>
            {label.toLowerCase()} {SPAN_WORDS[each]}
          </option>
        ))}
      </select>
      {span === "between" && (
        <>
          <input type="datetime-local" aria-label={`${label} from`} value={from ?? ""} onChange={(event) => onChange("between", event.target.value || undefined, to)} />
          <span className="muted">to</span>
          <input type="datetime-local" aria-label={`${label} before`} value={to ?? ""} onChange={(event) => onChange("between", from, event.target.value || undefined)} />
        </>
      )}
    </span>
  );
}

function spanText(span: Span, from: string | undefined, to: string | undefined): string {
  if (span !== "between") return SPAN_WORDS[span];
  const shown = (text: string) => text.replace("T", " ");
  return [from && `since ${shown(from)}`, to && `before ${shown(to)}`].filter(Boolean).join(", ") || "at any time";
}

/** What the list is narrowed to by time, each to be taken away by a click: a link may have set it. */
export function TimeChips({ what, began, search, onChange }: { what: string; began: string; search: TimeSearch; onChange: (changed: Partial<TimeSearch>) => void }) {
  const chips = [
    search.since && { text: `${began} ${spanText(search.since, search.from, search.to)}`, without: { since: undefined, from: undefined, to: undefined } },
    search.ended && { text: `ended ${spanText(search.ended, search.endedFrom, search.endedTo)}: without what is not over`, without: { ended: undefined, endedFrom: undefined, endedTo: undefined } },
  ].filter((each) => each !== undefined);
  if (!chips.length) return null;
  return (
    <div className="row wrap" role="group" aria-label={`Only ${what} that`}>
      <span className="muted">Only {what} that</span>
      {chips.map((each) => (
        <button key={each.text} type="button" className="chip pick" title="Take this filter away" onClick={() => onChange(each.without)}>
          {each.text} <Icon name="close" size={12} />
        </button>
      ))}
    </div>
  );
}
