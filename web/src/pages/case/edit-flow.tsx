/** From the file of a case to the editor. It begins with the version that is deployed, as what is deployed next follows that: else
 * what others have changed since the case began would be taken back unseen. Whoever wants the text of the case says so. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ApiError } from "@/api/errors";
import { flowQuery, type CaseView } from "@/api/queries";
import { useMay } from "@/api/session";
import { Icon } from "@/components/icon";

export function EditFlow({ view, file }: { view: CaseView; file: string }) {
  const may = useMay("deploy");
  const isEdited = may && !view.engine && /\.ya?ml$/.test(file); // only YAML is read on a server
  const flow = useQuery({ ...flowQuery(view.flow), enabled: isEdited, retry: false });
  const isGone = flow.error instanceof ApiError && flow.error.status === 404;
  if (!isEdited || (!flow.data && !isGone)) return null;
  const deployed = flow.data && !flow.data.tentative ? flow.data : undefined;
  const isAnother = deployed !== undefined && deployed.digest !== view.digest;
  const ofCase = { to: "/run", search: { write: true, of_case: view.id } } as const;
  if (!deployed) {
    return (
      <Link {...ofCase} className="button small">
        <Icon name="plus" size={14} /> Edit and deploy
      </Link>
    );
  }
  return (
    <>
      {isAnother && (
        <span className="muted">
          version {deployed.version} is deployed now; <Link {...ofCase}>edit this text all the same</Link>
        </span>
      )}
      <Link to="/flows/$name" params={{ name: view.flow }} search={{ view: "edit" }} className="button small">
        {isAnother ? `Edit version ${deployed.version}` : "Edit as the next version"}
      </Link>
    </>
  );
}
