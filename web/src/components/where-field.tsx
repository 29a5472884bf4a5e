/** A condition of the API's search, with completion of names and values. */
import { useMemo, useState } from "react";
import type { CodeCompletion } from "./code-view";
import { LineField } from "./line-field";
import { asCondition } from "./plain-words";
import { ErrorState } from "./states-of-page";
import { Icon } from "./icon";
import type { WhereName } from "./where-names";

const AFTER: Record<WhereName["kind"], readonly [string, string][]> = {
  text: [["==", "is"], ["!=", "is not"], [".contains('')", "has in it"], [".startsWith('')", "begins with"], ["in", "is one of"]],
  number: [[">", "more than"], ["<", "less than"], ["==", "is"]],
  time: [["> ago('1 day')", "in the last day"], ["> ago('1h')", "in the last hour"], ["<", "before"]],
  duration: [["> '10m'", "longer than"], ["< '10m'", "shorter than"]],
  size: [["> '1GB'", "more than"], ["< '1GB'", "less than"]],
  truth: [["== true", "holds"]],
  data: [["!= null", "is there"]],
};

/** What can stand at the end of the text: a name, an operator, a value, or how conditions are joined. */
export function completionsOf(names: readonly WhereName[], before: string, values: Record<string, readonly string[]> = {}): CodeCompletion[] {
  const quoted = /([\w.]+)\s*(?:==|!=|in\s*\[[^\]]*)\s*('[^']*)?$/.exec(before);
  const asked = quoted && names.find((each) => each.name === quoted[1]);
  if (asked) return [...(values[asked.name] ?? asked.values ?? [])].map((value) => ({ label: `'${value}'`, apply: `'${value}'` }));
  const after = /(?:^|[\s(!])([\w.]+)\s+\S*$/.exec(before);
  const known = after && names.find((each) => each.name === after[1]);
  if (known) return AFTER[known.kind].filter(([text]) => !text.startsWith(".")).map(([label, detail]) => ({ label, detail }));
  if (/(['\d)\]]|true|null)\s+\S*$/.test(before)) return [{ label: "&&", detail: "and" }, { label: "||", detail: "or" }];
  return names.map((each) => ({ label: each.name, detail: each.what }));
}

export function WhereField(props: {
  label: string;
  value: string;
  names: readonly WhereName[];
  /** The names in which words are looked for, if what was typed is no condition. */
  places: readonly string[];
  values?: Record<string, readonly string[]>;
  error?: unknown;
  placeholder: string;
  onSearch: (where: string) => void;
}) {
  const [text, setText] = useState(props.value);
  const [before, setBefore] = useState(props.value);
  if (before !== props.value) {
    setBefore(props.value);
    setText(props.value);
  }
  const complete = useMemo(() => (typed: string) => completionsOf(props.names, typed, props.values), [props.names, props.values]);
  const search = (typed: string) => {
    const where = asCondition(typed, props.names, props.places);
    setText(where);
    props.onSearch(where);
  };
  return (
    <div className="where-field">
      <div className="where-line">
        <Icon name="search" size={14} />
        <LineField text={text} label={props.label} language="cel" onChange={setText} onEnter={search} complete={complete} placeholder={props.placeholder} />
        {text !== props.value && (
          <button type="button" className="button small" onClick={() => search(text)}>
            Search
          </button>
        )}
        {props.value && (
          <button type="button" className="icon-button" aria-label="Clear the condition" onClick={() => props.onSearch("")}>
            <Icon name="close" size={14} />
          </button>
        )}
      </div>
      {Boolean(props.error) && <ErrorState error={props.error} compact />}
    </div>
  );
}
