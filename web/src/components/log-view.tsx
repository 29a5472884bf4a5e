/** What a job printed: colours, search, a link to each line, only the lines drawn that are seen. */
import Anser from "anser";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useMemo, useRef, useState } from "react";
import { Icon } from "./icon";
import { plural } from "./format";
import { tellsTrouble } from "./log-trouble";
import { failingLine } from "./recovery/conditions";

const LINE_PX = 18;
const PARTS = /\u001b\[[0-9;]*[A-Za-z]/g;

export interface LogViewProps {
  text: string;
  label: string;
  /** The line that the address names, counted from 1. */
  line?: number;
  onLine?: (line: number) => void;
  /** More is printed: stay at the end, unless somebody has scrolled away. */
  live?: boolean;
  /** The number of the first line, where the beginning was left out. */
  first?: number;
  /** What the text is called where it is searched. */
  what?: "log" | "file";
  /** What printed it has ended well: none of its words is trouble. */
  well?: boolean;
  /** By what it failed: the log opens at the line that says so, which is marked, or else at its end. */
  failure?: string;
}

export function LogView({ text, label, line, onLine, live, first = 1, what = "log", well = false, failure }: LogViewProps) {
  const lines = useMemo(() => text.replace(/\r\n/g, "\n").replace(/\n$/, "").split("\n"), [text]);
  const plain = useMemo(() => lines.map((each) => each.replace(PARTS, "")), [lines]);
  const [sought, setSought] = useState("");
  const [only, setOnly] = useState(false);
  const [at, setAt] = useState(0);
  const found = useMemo(() => {
    const wish = sought.toLowerCase();
    if (!wish) return [];
    return plain.flatMap((each, index) => (each.toLowerCase().includes(wish) ? [index] : []));
  }, [plain, sought]);
  const trouble = useMemo(() => plain.flatMap((each, index) => (!well && tellsTrouble(each) ? [index] : [])), [plain, well]);
  const shown = useMemo(() => (only && sought ? found : lines.map((_, index) => index)), [only, sought, found, lines]);
  const scroller = useRef<HTMLDivElement>(null);
  const [follow, setFollow] = useState(true);
  const telling = useMemo(() => (failure ? failingLine(plain.join("\n"), failure, { orLast: false }) : -1), [plain, failure]);
  const isMoved = useRef(false);
  const virtual = useVirtualizer({ count: shown.length, getScrollElement: () => scroller.current, estimateSize: () => LINE_PX, overscan: 30 });

  const moved = () => {
    isMoved.current = true;
  };
  const show = (index: number) => {
    moved();
    const place = shown.indexOf(index);
    if (place >= 0) virtual.scrollToIndex(place, { align: "center" });
  };
  const go = (place: number, align: "start" | "end") => {
    moved();
    virtual.scrollToIndex(place, { align });
  };
  useEffect(() => {
    if (live && follow && !line && shown.length) virtual.scrollToIndex(shown.length - 1, { align: "end" });
  }, [live, follow, line, shown.length, virtual]);
  useEffect(() => {
    if (line) virtual.scrollToIndex(Math.max(0, line - first), { align: "center" });
  }, [line, first, virtual]);

  // A long log comes in parts: it opens anew with each of them, until somebody has moved in it.
  useEffect(() => {
    if (failure === undefined || line || isMoved.current || !lines.length) return;
    if (telling >= 0) virtual.scrollToIndex(telling, { align: "center" });
    else virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [failure, telling, line, lines.length, virtual]);

  const next = (among: number[], step: number) => {
    if (!among.length) return;
    const place = (at + step + among.length) % among.length;
    setAt(place);
    show(among[place] as number);
  };
  return (
    <div className="log-view">
      <div className="log-bar">
        <label className="search-field">
          <Icon name="search" size={14} />
          <input
            type="search"
            aria-label={`Search in ${label}`}
            placeholder={`Search in the ${what}`}
            value={sought}
            onChange={(event) => {
              setSought(event.target.value);
              setAt(0);
            }}
            onKeyDown={(event) => {
              if (event.key === "Enter") next(found, event.shiftKey ? -1 : 1);
            }}
          />
        </label>
        {sought && <span className="muted" role="status">{found.length ? `${Math.min(at + 1, found.length)} of ${found.length}` : "none"}</span>}
        {sought && (
          <label className="check-label">
            <input type="checkbox" checked={only} onChange={(event) => setOnly(event.target.checked)} /> only these lines
          </label>
        )}
        {trouble.length > 0 && (
          <button type="button" className="button small" onClick={() => next(trouble, 1)}>
            <Icon name="failures" size={14} /> {plural(trouble.length, "line")} of trouble
          </button>
        )}
        {telling >= 0 && (
          <button type="button" className="button small" onClick={() => show(telling)}>
            <Icon name="right" size={12} /> The line that matters
          </button>
        )}
        <span className="spread" />
        {failure !== undefined && (
          <>
            <button type="button" className="link-button" onClick={() => go(0, "start")}>
              Beginning
            </button>
            <button type="button" className="link-button" onClick={() => go(shown.length - 1, "end")}>
              End
            </button>
          </>
        )}
        <span className="muted">{plural(lines.length, "line")}</span>
        {live && (
          <label className="check-label">
            <input type="checkbox" checked={follow} onChange={(event) => setFollow(event.target.checked)} /> follow
          </label>
        )}
      </div>
      <div className="log-lines" ref={scroller} tabIndex={0} role="region" aria-label={label} onWheel={moved} onPointerDown={moved} onTouchMove={moved} onKeyDown={moved}>
        <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((place) => {
            const index = shown[place.index] as number;
            return (
              <div key={place.key} className="log-line" data-at={index + first === line || undefined} data-found={(sought && found[at] === index) || undefined} data-tells={index === telling || undefined} style={{ transform: `translateY(${place.start}px)` }}>
                <button type="button" className="log-number" tabIndex={-1} aria-label={`Link to line ${index + first}`} onClick={() => onLine?.(index + first)}>
                  {index + first}
                </button>
                {index === telling && <span className="visually-hidden">The line that matters: </span>}
                <LogText text={lines[index] ?? ""} sought={sought} well={well} />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

const LogText = memo(function LogText({ text, sought, well }: { text: string; sought: string; well: boolean }) {
  if (!text.includes("\u001b")) return <span className={!well && tellsTrouble(text) ? "log-text trouble" : "log-text"}>{marked(text, sought)}</span>;
  return (
    <span className="log-text">
      {Anser.ansiToJson(text, { use_classes: true, remove_empty: true }).map((part, at) => (
        <span key={at} className={[part.fg, part.bg && `${part.bg}-bg`, ...(part.decorations ?? [])].filter(Boolean).join(" ")}>
          {marked(part.content, sought)}
        </span>
      ))}
    </span>
  );
});

function marked(text: string, sought: string) {
  if (!sought) return text;
  const parts: (string | React.JSX.Element)[] = [];
  const low = text.toLowerCase();
  const wish = sought.toLowerCase();
  let from = 0;
  for (let at = low.indexOf(wish); at >= 0; at = low.indexOf(wish, from)) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + wish.length)}</mark>);
    from = at + wish.length;
  }
  parts.push(text.slice(from));
  return parts;
}
