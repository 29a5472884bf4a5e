/** Who asks: by a token, or by an OpenID Connect issuer. A link with a one-time code is answered by the server itself. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { api, ask } from "@/api/client";
import { ApiError } from "@/api/errors";
import { meQuery, signIn, type Me } from "@/api/session";
import { isForTasks } from "@/app/navigation";
import { Field } from "@/components/field";
import { Icon } from "@/components/icon";
import { ErrorState } from "@/components/states-of-page";
import "./sign-in.css";

const route = getRouteApi("/sign-in");

/** Only an address of this app: a link must not lead a signed-in person elsewhere. A browser leaves out tabs and line ends, and
 * takes `/\t/other.example` for another server. */
export function ownAddress(next: string | undefined): string {
  return next && /^\/(?![/\\])[^\x00-\x1f\x7f]*$/.test(next) ? next : "/";
}

/** Who is here for user tasks only finds them first. */
export function firstPage(me: Me | null): string {
  return isForTasks(me) ? "/worklist" : "/";
}

export default function SignInPage() {
  const { next, over, out } = route.useSearch();
  const client = useQueryClient();
  const options = useQuery({ queryKey: ["sign-in"], queryFn: ({ signal }) => ask(api.GET("/api/v1/session", { signal })) });
  const issuer = options.data?.issuer;
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const enter = async () => {
    setBusy(true);
    setError(null);
    try {
      await signIn(token.trim());
      client.clear();
      const me = await client.fetchQuery(meQuery);
      location.replace(next === undefined || next === "/" ? firstPage(me) : ownAddress(next));
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  useEffect(() => {
    document.title = "Sign in · mendflow";
  }, []);
  return (
    <main className="sign-in">
      <form
        className="panel sign-in-form"
        onSubmit={(event) => {
          event.preventDefault();
          void enter();
        }}
      >
        <h1>mendflow</h1>
        <Why over={over} out={out} issuer={issuer} />
        {issuer && (
          <>
            <a className="button primary" href={`/sign-in/issuer?next=${encodeURIComponent(ownAddress(next))}`}>
              <Icon name="person" size={14} /> Sign in with {hostOf(issuer)}
            </a>
            <p className="sign-in-or muted">or</p>
          </>
        )}
        <Field label="Token" hint={<><code>mendflow admin tokens create NAME</code> makes one; <code>mendflow ui</code> signs you in without.</>}>
          {(ids) => <input {...ids} type="password" autoFocus autoComplete="current-password" value={token} onChange={(event) => setToken(event.target.value)} />}
        </Field>
        <button type="submit" className={issuer ? "button" : "button primary"} disabled={busy || !token.trim()}>
          Sign in
        </button>
        {error !== null && (isUnknown(error) ? <UnknownToken /> : <ErrorState error={error} compact />)}
      </form>
    </main>
  );
}

function isUnknown(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401 && /does not know that token/.test(error.message);
}

function UnknownToken() {
  return (
    <p className="notice" role="alert">
      <span>
        This server does not know that token. Copy it again, whole: it may be cut off, be of another server, or have been revoked. If it still does not do, ask whoever runs the server for a new one.
      </span>
    </p>
  );
}

function Why({ over, out, issuer }: { over?: boolean; out?: boolean; issuer?: string }) {
  if (over) {
    return (
      <p className="notice" role="status">
        <Icon name="person" size={14} /> You are signed out: your session is over, or its token was revoked. Sign in to go on where you were.
      </p>
    );
  }
  if (!out) return <p className="muted">This server wants to know who asks.</p>;
  return (
    <p className="notice" role="status">
      You are signed out.
      {issuer && (
        <>
          {" "}
          {hostOf(issuer)} may still know you: <a href="/sign-in/issuer/end">sign out there too</a>.
        </>
      )}
    </p>
  );
}

function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).host : address;
}
