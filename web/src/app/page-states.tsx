import { Link, type ErrorComponentProps } from "@tanstack/react-router";
import { EmptyState, ErrorState } from "@/components/states-of-page";
import { messageOf } from "@/api/errors";
import { Page } from "@/components/page";

export function NotFound() {
  return (
    <Page title="No such page">
      <EmptyState title="There is no such page" icon="help" action={<Link to="/" className="button">Go home</Link>}>
        The address may be mistyped, or of another version.
      </EmptyState>
    </Page>
  );
}

/** Shown in place of a page that broke. A page of an older version, whose files are gone, is loaded anew once. */
export function PageFailed({ error, reset }: ErrorComponentProps) {
  return (
    <Page title="Something broke">
      <ErrorState error={error} again={() => (messageOf(error).includes("dynamically imported") ? location.reload() : reset())} />
    </Page>
  );
}
