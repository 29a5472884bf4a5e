/** The frame of a page: its title, the way back, what can be done, and the content, which scrolls by itself. */
import { useEffect, type ReactNode } from "react";

export function Page(props: {
  title: string;
  /** Shown instead of the title's text, where it is more than text. */
  heading?: ReactNode;
  /** Links to what this page is in. */
  crumbs?: ReactNode;
  actions?: ReactNode;
  /** A line below the title. */
  lead?: ReactNode;
  /** The content fills the page and scrolls inside, as tables do. */
  fill?: boolean;
  children?: ReactNode;
}) {
  useEffect(() => {
    document.title = props.title === "Home" ? "mendflow" : `${props.title} · mendflow`;
  }, [props.title]);
  return (
    <div className={props.fill ? "page fill" : "page"}>
      <header className="page-head">
        <div className="page-titles">
          {props.crumbs && (
            <nav className="crumbs" aria-label="Way back">
              {props.crumbs}
            </nav>
          )}
          <h1>{props.heading ?? props.title}</h1>
          {props.lead && <div className="page-lead">{props.lead}</div>}
        </div>
        {props.actions && <div className="page-actions">{props.actions}</div>}
      </header>
      <div className="page-body">{props.children}</div>
    </div>
  );
}

/** A framed part of a page with a small heading. */
export function Panel(props: { title?: ReactNode; actions?: ReactNode; className?: string; children: ReactNode }) {
  return (
    <section className={`panel ${props.className ?? ""}`}>
      {(props.title || props.actions) && (
        <header className="panel-head">
          <h2>{props.title}</h2>
          {props.actions && <div className="panel-actions">{props.actions}</div>}
        </header>
      )}
      <div className="panel-body">{props.children}</div>
    </section>
  );
}

/** Names and values, one pair a row; pairs without a value are left out. */
export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
