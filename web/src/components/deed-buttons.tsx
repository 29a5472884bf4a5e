/** Deeds as they are offered: links, and buttons that ask before they act. What the caller may not do is not offered. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useMayAll } from "@/api/session";
import { useQuestion } from "./acts";
import { deedFor, type About } from "./commands";
import type { Deed } from "./deeds";
import { Glossed } from "./word";

/** Words of the glossary that the server says of itself. */
const SAID = ["level", "exlet"] as const;
const READ_AGAIN = ["case", "cases", "jobs", "alerts", "overview", "failures", "decisions", "sites"] as const;

/** All that the caller may do of these, in a row. */
export function DeedRow({ deeds, label }: { deeds: readonly Deed[]; label: string }) {
  const may = useMayAll();
  const offered = deeds.filter((each) => !each.needs || may(each.needs));
  if (!offered.length) return null;
  return (
    <div className="deed-row" role="group" aria-label={label}>
      {offered.map((deed) => (
        <DeedButton key={deed.label} deed={deed} className={deed.kind === "act" && deed.danger ? "button small danger" : "button small"} />
      ))}
    </div>
  );
}

export function DeedButton({ deed, className }: { deed: Deed; className: string }) {
  const [question, askFirst] = useQuestion(...READ_AGAIN);
  if (deed.kind === "link") {
    return (
      <Link {...deed.link} className={className}>
        {deed.label}
      </Link>
    );
  }
  return (
    <>
      <button type="button" className={className} onClick={() => askFirst({ title: deed.title, will: deed.will, act: deed.label, danger: deed.danger, done: (answer) => (deed.startsCase ? <NewCase id={String(answer)} /> : deed.done), onAct: deed.run })}>
        {deed.label}
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

/** A sentence of the server. What the app can do instead of a command stands in the command's place. */
export function Sentence({ text, about }: { text: string; about?: About }) {
  return <>{text.split("`").map((part, at) => (at % 2 ? <Command key={at} text={part} about={about} /> : <Glossed key={at} text={part} only={SAID} />))}</>;
}

function Command({ text, about }: { text: string; about?: About }): ReactNode {
  const may = useMayAll();
  const deed = deedFor(text, about);
  if (!deed) return <code>{text}</code>;
  if (deed.needs && !may(deed.needs)) return <span title="You may not do this; somebody with another role may">{deed.label}</span>;
  return <DeedButton deed={deed} className={deed.kind === "link" ? "" : "button small in-text"} />;
}
