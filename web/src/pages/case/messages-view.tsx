import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Panel } from "@/components/page";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { graphQuery } from "./queries";

const route = getRouteApi("/cases/$case");

/** The messages that the case got and sent, the newest last. */
export default function MessagesView({ id }: { id: string }) {
  route.useSearch();
  const query = useQuery(graphQuery(id));
  return (
    <div className="case-scroll">
      <Loaded query={query}>
        {({ messages }) =>
          messages.length === 0 ? (
            <EmptyState title="No messages" icon="mail">
              Messages that the case gets or sends, as BPEL processes and <code>receive</code> do, are listed here.
            </EmptyState>
          ) : (
            <Panel title="Messages" className="flush">
              <ul className="rows">
                {messages.map((message, at) => (
                  <li key={at} className="file-row">
                    <span className="chip">{message.direction === "in" ? "got" : "sent"}</span>
                    <strong>{message.name}</strong>
                    {message.item && (
                      <Link from="/cases/$case" to="." search={(before) => ({ ...before, item: message.item ?? undefined })}>
                        {message.item}
                      </Link>
                    )}
                    <span className="clip">{message.text}</span>
                    <span className="spread" />
                    <Time at={message.at} />
                  </li>
                ))}
              </ul>
            </Panel>
          )
        }
      </Loaded>
    </div>
  );
}
