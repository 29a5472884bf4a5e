/** Actions as they are offered: links, and buttons that ask before they act. What the caller may not do is not offered. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useMayAll } from "@/api/session";
import { useQuestion } from "./acts";
import { actionFor, type About } from "./commands";
import type { Action } from "./actions";
import { ItemLink, partsWithItems } from "./named-items";
import { Glossed } from "./word";

/** Explained words that the server says of itself. */
const SAID = ["level", "exlet"] as const;
const READ_AGAIN = ["case", "cases", "jobs", "alerts", "overview", "failures", "decisions", "sites"] as const;

/** All that the caller may do of these, in a row. */
export function ActionRow({ actions, label }: { actions: readonly Action[]; label: string }) {
  const may = useMayAll();
  const offered = actions.filter((each) => !each.needs || may(each.needs));
  if (!offered.length) return null;
  return (
    <div className="action-row" role="group" aria-label={label}>
      {offered.map((action) => (
        <ActionButton key={action.label} action={action} className={action.kind === "request" && action.danger ? "button small danger" : "button small"} />
      ))}
    </div>
  );
}

export function ActionButton({ action, className }: { action: Action; className: string }) {
  const [question, askFirst] = useQuestion(...READ_AGAIN);
  if (action.kind === "link") {
    return (
      <Link {...action.link} className={className}>
        {action.label}
      </Link>
    );
  }
  return (
    <>
      <button type="button" className={className} onClick={() => askFirst({ title: action.title, will: action.will, act: action.confirm ?? action.label, danger: action.danger, done: (answer) => (action.startsCase ? <NewCase id={String(answer)} /> : action.done), onAct: action.run })}>
        {action.label}
      </button>
      {question}
    </>
  );
}

function NewCase({ id }: { id: string }) {
  return (
    <>
      It runs again as{" "}
      <Link to="/cases/$case" params={{ case: id }}>
        {id}
      </Link>
    </>
  );
}

/** A sentence of the server. What the app can do instead of a command stands in the command's place; an item that it names is a link. */
export function Sentence({ text, about }: { text: string; about?: About }) {
  return <>{text.split("`").map((part, at, parts) => (at % 2 ? <Command key={at} text={part} about={about} isWithin={isWithinSentence(parts[at - 1] ?? "")} /> : <Told key={at} text={part} about={about} />))}</>;
}

function Told({ text, about }: { text: string; about?: About }) {
  const { named } = about ?? {};
  if (!named) return <Glossed text={text} only={SAID} />;
  return partsWithItems(text, named.items).map((part, at) => (typeof part === "string" ? <WithOthers key={at} text={part} of={named.case} /> : <ItemLink key={at} of={named.case} item={part.item}>{part.name}</ItemLink>));
}

/** `and 9 more` at the end of names of items leads to the list that has them all. */
function WithOthers({ text, of }: { text: string; of: string }) {
  const [, before = "", more = "", after = ""] = /^(.*?)(\band [\d,]+ more)(, which .*)$/.exec(text) ?? [];
  if (!more) return <Glossed text={text} only={SAID} />;
  return (
    <>
      {before}<Link to="/cases/$case" params={{ case: of }} search={{ view: "items", state: after.startsWith(", which failed") ? "failed" : undefined }}>{more}</Link><Glossed text={after} only={SAID} />
    </>
  );
}

/** Whether something was said before in the same sentence. */
export function isWithinSentence(before: string): boolean {
  return /[^\s.]\s*$/.test(before);
}

/** A label as it stands within a sentence: what is no name of an act begins small. */
export function withinSentence(label: string): string {
  return label.replace(/^(Its|The|All) /, (word) => word.toLowerCase());
}

function Command({ text, about, isWithin }: { text: string; about?: About; isWithin: boolean }): ReactNode {
  const may = useMayAll();
  const found = actionFor(text, about);
  const action = found && (isWithin ? { ...found, label: withinSentence(found.label) } : found);
  if (!action) return <code>{text}</code>;
  if (action.kind === "request" && action.label === about?.offered) return `“${action.label}”`;
  if (action.needs && !may(action.needs)) return <span title="You may not do this; somebody with another role may">{action.label}</span>;
  return <ActionButton action={action} className={action.kind === "link" ? "" : "button small in-text"} />;
}
