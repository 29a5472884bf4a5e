/** A cell of a table that can be edited: its value until somebody is in it, then a field for it. What is wrong stands below it. */
import { useEffect, useRef, useState, type ReactNode } from "react";

interface Props {
  /** What it is, for who does not see the table: `magnitudes of entry 2`. */
  label: string;
  /** The value as it is edited. */
  text: string;
  /** What is read out in its stead, where the text is nothing to be read; empty: the text. */
  spoken?: string;
  problem?: string | null | undefined;
  /** Told at each letter, so that nothing else moves when somebody leaves the field. */
  onChange: (text: string) => void;
  /** The value as it is read. */
  children: ReactNode;
}

const LINES_MAX = 12;
/** What somebody presses to leave the field stays under the pointer until it is let go. */
const LEAVING_MS = 250;

const WORDS_MAX = 80;

/** The value within the name of its button, which stands for it to who does not see it. */
function draftWords(text: string): string {
  return text.length > WORDS_MAX ? `${text.slice(0, WORDS_MAX)}…` : text || "empty";
}

export function EditCell({ label, text, spoken, problem, onChange, children }: Props) {
  const [draft, setDraft] = useState<string | null>(null);
  const was = useRef("");
  const place = useRef<HTMLTextAreaElement>(null);
  const isOpen = draft !== null;
  useEffect(() => {
    if (isOpen) place.current?.focus();
  }, [isOpen]);
  const closing = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(closing.current), []);
  const said = problem && <p className="field-problem">{problem}</p>;
  const write = (next: string) => {
    setDraft(next);
    onChange(next);
  };
  const open = () => {
    was.current = text;
    setDraft(text);
  };
  if (draft === null) {
    return (
      <>
        <button type="button" className="cell-button" aria-label={`${draftWords(spoken || text)}: edit ${label}`} aria-invalid={problem ? true : undefined} onClick={open}>{children}</button>
        {said}
      </>
    );
  }
  return (
    <>
      <textarea
        ref={place}
        className="cell-field"
        aria-label={label}
        aria-invalid={problem ? true : undefined}
        rows={Math.min(LINES_MAX, draft.split("\n").length)}
        value={draft}
        spellCheck={false}
        onChange={(event) => write(event.target.value)}
        onFocus={() => clearTimeout(closing.current)}
        onBlur={() => (closing.current = setTimeout(() => setDraft(null), LEAVING_MS))}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            if (draft !== was.current) onChange(was.current);
            setDraft(null);
          } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey || isOneLine(was.current, draft, event.shiftKey))) {
            event.preventDefault();
            setDraft(null);
          }
        }}
      />
      {said}
    </>
  );
}

/** Whether Enter ends it: what has several lines, or is JSON, may get another line. */
function isOneLine(was: string, draft: string, isShift: boolean): boolean {
  return !isShift && !was.includes("\n") && !draft.includes("\n") && !/^\s*[[{]/.test(draft);
}
