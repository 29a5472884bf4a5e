import { personText } from "@/components/person-text";
import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError } from "@/api/errors";
import { feed } from "@/api/feed";
import { useFeedStatus } from "@/api/live";
import { caseQuery } from "@/api/queries";
import { signOut, useMe } from "@/api/session";
import { zone } from "@/components/format";
import { Icon } from "@/components/icon";
import { Menu } from "@/components/menu";
import { asCondition } from "@/components/plain-words";
import { toastError } from "@/components/toasts";
import { CASE_NAMES, CASE_PLACES } from "@/components/where-names";
import { chooseTheme, useTheme } from "./theme";

const CASE = /^[\w.:-]+-[a-z0-9]{4,}$/;
/** What was typed leads on: to a case by its id, or to the cases that a condition finds, or in which the words are. */
function SearchBox() {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const client = useQueryClient();
  const go = () => {
    const wish = text.trim();
    setText("");
    if (!wish) return;
    const listed = () => void navigate({ to: "/cases", search: { where: asCondition(wish, CASE_NAMES, CASE_PLACES) } });
    if (!CASE.test(wish) && wish !== "last") {
      listed();
      return;
    }
    // It looks like the id of a case; the name of a sample may look like one, too.
    const open = () => navigate({ to: "/cases/$case", params: { case: wish } });
    client.fetchQuery({ ...caseQuery(wish), retry: false }).then(open, (error: unknown) => (error instanceof ApiError ? listed() : open()));
  };
  return (
    <form
      className="search-field top-search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        go();
      }}
    >
      <Icon name="search" size={14} />
      <input
        type="search"
        data-search=""
        aria-label="Search cases"
        placeholder="Case, flow, input, error, or a condition"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      <kbd>/</kbd>
    </form>
  );
}

function LiveState() {
  const { status, waiting } = useFeedStatus();
  const words = { connecting: "connecting", live: "live", away: "server away", paused: waiting ? `${waiting} held back` : "paused" };
  return (
    <button
      type="button"
      className={`live-state ${status}`}
      aria-pressed={status === "paused"}
      title={status === "paused" ? "Go on" : "Pause: hold back what happens while you look"}
      onClick={() => feed.pause(status !== "paused")}
    >
      <span className="live-dot" />
      {words[status]}
      <Icon name={status === "paused" ? "run" : "pause"} size={12} />
    </button>
  );
}

export function TopBar(props: { onMenu: () => void; menuOpen: boolean; onKeys: () => void }) {
  const me = useMe();
  const { theme, dark } = useTheme();
  const navigate = useNavigate();
  return (
    <header className="top-bar">
      <button type="button" className="icon-button nav-button" aria-label="Pages" aria-expanded={props.menuOpen} onClick={props.onMenu}>
        <Icon name="cases" />
      </button>
      <Link to="/" className="brand">
        <svg width="20" height="20" viewBox="0 0 24 24" aria-hidden="true">
          <rect width="24" height="24" rx="5" className="brand-back" />
          <path d="M5 15.500c2.500 0 3-7 5.500-7s2.500 7 5 7 3-3.500 3.500-6" className="brand-line" />
        </svg>
        mendflow
      </Link>
      <SearchBox />
      <span className="spread" />
      <LiveState />
      {me?.domain && (
        <span className="muted domain-name" title="The domain of this server">
          domain {me.domain}
        </span>
      )}
      <span className="muted zone" title="Times are in this zone">
        {zone()}
      </span>
      <button type="button" className="icon-button" aria-label={dark ? "Light" : "Dark"} title={`${dark ? "Dark" : "Light"} now${theme === "system" ? ", as this computer is set" : ""}; a click makes it ${dark ? "light" : "dark"}`} onClick={() => chooseTheme(dark ? "light" : "dark")}>
        <Icon name={dark ? "sun" : "moon"} />
      </button>
      <Link to="/help" className="icon-button help-link" aria-label="Help" title="Help: what the words mean, and the keys (g ?)">
        <Icon name="help" />
      </Link>
      {me && (
        <Menu
          label={`${me.name}, account`}
          className="button quiet"
          acts={[
            { id: "who", label: personText(me.name) || "somebody", hint: me.roles.join(", "), disabled: true, run: () => undefined },
            { id: "help", label: "Help", hint: "g ?", run: () => void navigate({ to: "/help" }) },
            { id: "keys", label: "Keys of this page", hint: "?", run: props.onKeys },
            { id: "theme", label: "Light or dark as this computer is set", run: () => chooseTheme("system") },
            ...(me.signed_in_by === "session"
              ? [{ id: "out", label: "Sign out", run: () => void signOut().then(() => location.assign("/sign-in?out=true"), toastError) }]
              : []),
          ]}
        >
          <Icon name="person" /> <span className="me-name">{me.name}</span>
        </Menu>
      )}
    </header>
  );
}
