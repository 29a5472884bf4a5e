/** What stands where there is nothing to show: nothing yet, nothing that matches, not loaded yet, or an error. */
import { TextWithCode } from "@/components/text-with-code";
import type { ReactNode } from "react";
import type { UseQueryResult } from "@tanstack/react-query";
import { ApiError, asSentence, messageOf } from "@/api/errors";
import { Sentence } from "./action-buttons";
import { Icon, type IconName } from "./icon";

/** Says "none yet" or "none match", and the next step. */
export function EmptyState(props: { title: string; children?: ReactNode; icon?: IconName; action?: ReactNode }) {
  return (
    <div className="empty-state">
      <Icon name={props.icon ?? "circle"} size={24} />
      <p className="empty-title">{props.title}</p>
      {props.children && <div className="empty-text">{props.children}</div>}
      {props.action && <div className="empty-action">{props.action}</div>}
    </div>
  );
}

/** What the API said, and what to do. */
export function ErrorState({ error, again, compact }: { error: unknown; again?: () => void; compact?: boolean }) {
  const api = error instanceof ApiError ? error : null;
  const message = messageOf(error);
  return (
    <div className={compact ? "error-state compact" : "error-state"} role="alert">
      <Icon name="failures" size={compact ? 14 : 18} />
      <div>
        <p className="error-message">
          <Sentence text={asSentence(message)} />
        </p>
        {api && api.problems.length > 0 && (
          <ul className="error-problems">
            {api.problems.map((problem) => (
              <li key={problem}><TextWithCode text={problem} /></li>
            ))}
          </ul>
        )}
        {api && api.details.length > 0 && (
          <p className="muted">{api.details.map(([name, value]) => `${name}: ${value}`).join(" · ")}</p>
        )}
        {api?.whatToDo && <p className="muted"><TextWithCode text={api.whatToDo} /></p>}
        {again && (
          <button type="button" className="button small" onClick={again}>
            <Icon name="again" size={14} /> Try again
          </button>
        )}
      </div>
    </div>
  );
}

/** Grey bars where text will be; no spinner for what is there in a moment. */
export function Loading({ lines = 3, label = "Loading" }: { lines?: number; label?: string }) {
  return (
    <div className="loading" role="status" aria-label={label}>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} className="loading-line" />
      ))}
    </div>
  );
}

/** The data of a query, or what stands instead of it. Data that is there stays while it is read anew. */
export function Loaded<T>(props: { query: UseQueryResult<T>; lines?: number; children: (data: T) => ReactNode }) {
  const { query } = props;
  if (query.data !== undefined) return props.children(query.data);
  if (query.isError) return <ErrorState error={query.error} again={() => void query.refetch()} />;
  return <Loading lines={props.lines ?? 3} />;
}
