import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useMayAll } from "@/api/session";
import { useQuestion, useRefresh } from "@/components/acts";
import { DataTable, type Column } from "@/components/data-table";
import { ConfirmDialog } from "@/components/dialog";
import { ChoicesField, SelectField, TextField } from "@/components/form-fields";
import { Icon } from "@/components/icon";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast, toastError } from "@/components/toasts";

type Webhook = Schemas["WebhookView"];
type Spec = Schemas["WebhookSpec"];
type On = NonNullable<Spec["on"]>[number];
type Format = NonNullable<Spec["format"]>;

const ON: readonly (readonly [On, string])[] = [["failed", "a case failed"], ["completed", "a case completed"], ["cancelled", "a case was cancelled"], ["item-failed", "a step failed"], ["decision", "a rule decided"], ["alert", "an alert"]];
const FORMATS: readonly (readonly [Format | "", string])[] = [["", "by the address"], ["json", "JSON"], ["slack", "Slack"], ["teams", "Teams"], ["mattermost", "Mattermost"], ["mail", "mail"]];

function NewWebhook({ open, onClose }: { open: boolean; onClose: () => void }) {
  const refresh = useRefresh();
  const [url, setUrl] = useState("");
  const [on, setOn] = useState<On[]>(["failed", "alert"]);
  const [format, setFormat] = useState<Format | "">("");
  const [flow, setFlow] = useState("");
  const [secret, setSecret] = useState("");
  return (
    <ConfirmDialog
      title="Send notifications"
      act="Add"
      open={open}
      onClose={onClose}
      disabled={!url.trim() || !on.length}
      will={
        <div className="stack">
          <TextField label="Address" required value={url} onChange={setUrl} placeholder="https://example.org/hook" hint="Or mailto:PERSON@HOST." />
          <ChoicesField label="When" choices={ON} chosen={on} onChange={setOn} />
          <div className="two-fields">
            <SelectField label="Form" value={format} onChange={setFormat} choices={FORMATS} />
            <TextField label="Only of the flow" value={flow} onChange={setFlow} />
          </div>
          <TextField label="Secret" type="password" value={secret} onChange={setSecret} hint="Signs what is sent, so that the receiver can check it. It is not shown again." />
        </div>
      }
      onAct={async () => {
        await ask(api.POST("/api/v1/webhooks", { body: { url: url.trim(), on, flow, secret, ...(format ? { format } : {}) } }));
        toast("good", "Notifications are sent there from now on");
        await refresh("webhooks");
      }}
    />
  );
}

export function Webhooks() {
  const may = useMayAll();
  const [adding, setAdding] = useState(false);
  const [question, askFirst] = useQuestion("webhooks");
  const query = useQuery({ queryKey: ["webhooks"], queryFn: ({ signal }) => ask(api.GET("/api/v1/webhooks", { signal })) });
  const tryIt = async (hook: Webhook) => {
    try {
      const result = await ask(api.POST("/api/v1/webhooks/{webhook}/test", { params: { path: { webhook: hook.id } } }));
      toast(result.ok ? "good" : "bad", result.ok ? `It arrived at ${hook.url}` : `It did not arrive: ${result.message}`);
    } catch (refused) {
      toastError(refused);
    }
  };
  const remove = (hook: Webhook) =>
    askFirst({ title: "Send no more", will: `Nothing is sent to ${hook.url} any more.`, act: "Remove", danger: true, done: "Removed", onAct: () => ask(api.DELETE("/api/v1/webhooks/{webhook}", { params: { path: { webhook: hook.id } } })) });
  const columns: Column<Webhook>[] = [
    { id: "url", narrow: 1, header: "Address", width: "minmax(180px, 2fr)", value: (row) => row.url, cell: (row) => <span title={row.url}>{row.url}</span> },
    { id: "on", narrow: 2, header: "When", width: "minmax(140px, 1.5fr)", cell: (row) => row.on.join(", ") },
    { id: "of", narrow: 2, header: "Of", width: "minmax(80px, 1fr)", cell: (row) => row.flow || row.case || personText(row.owner) || <span className="muted">everything</span> },
    { id: "format", header: "Form", width: "90px", cell: (row) => `${row.format}${row.signed ? ", signed" : ""}` },
    { id: "made", header: "Added", width: "150px", value: (row) => row.made_at, cell: (row) => <><Time at={row.made_at} /> by {personText(row.made_by)}</> },
    {
      id: "acts", narrow: 2, header: "", width: "150px",
      cell: (row) => (
        <span className="row">
          {may("try_webhook") && <button type="button" className="link-button" onClick={() => void tryIt(row)}>Try it</button>}
          {may("remove_webhook") && <button type="button" className="link-button" onClick={() => remove(row)}>Remove …</button>}
        </span>
      ),
    },
  ];
  const button = may("add_webhook") && <button type="button" className="button primary" onClick={() => setAdding(true)}><Icon name="plus" size={14} /> Add a webhook</button>;
  return (
    <div className="stack">
      <div className="row"><p className="muted">Where notifications are sent.</p><span className="spread" />{(query.data?.length ?? 0) > 0 && button}</div>
      <Loaded query={query}>
        {(hooks) => <DataTable label="Webhooks" inline rows={hooks} columns={columns} rowId={(row) => row.id} empty={<EmptyState title="Nothing is sent yet" icon="mail" action={button}>Have failures and alerts sent to a chat, a mailbox or a program.</EmptyState>} />}
      </Loaded>
      {adding && <NewWebhook open onClose={() => setAdding(false)} />}
      {question}
    </div>
  );
}
