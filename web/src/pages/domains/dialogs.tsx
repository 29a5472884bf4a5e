/** Invite another domain, or accept its invitation. */
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useRefresh } from "@/components/acts";
import { CopyButton } from "@/components/copy-button";
import { ConfirmDialog, Dialog } from "@/components/dialog";
import { AreaField, CheckField, TextField } from "@/components/form-fields";
import { ErrorState } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast } from "@/components/toasts";

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

interface Rights {
  flows: string;
  own: boolean;
}

function RightsFields({ rights, onChange }: { rights: Rights; onChange: (rights: Rights) => void }) {
  return (
    <>
      <TextField label="Flows that it may run here" value={rights.flows} onChange={(flows) => onChange({ ...rights, flows })} placeholder="align, call-*" hint="Names or patterns; * for all." />
      <CheckField label="It may bring flows of its own" checked={rights.own} onChange={(own) => onChange({ ...rights, own })} />
    </>
  );
}

const NO_RIGHTS: Rights = { flows: "*", own: false };

export function InviteDialog({ onClose }: { onClose: () => void }) {
  const refresh = useRefresh();
  const [name, setName] = useState("");
  const [rights, setRights] = useState(NO_RIGHTS);
  const [made, setMade] = useState<Schemas["InvitationView"] | null>(null);
  const [refused, setRefused] = useState<unknown>(null);
  const invite = async () => {
    setRefused(null);
    try {
      const body = { rights: { flows: words(rights.flows), own_flows: rights.own } };
      setMade(await ask(api.POST("/api/v1/domains/{name}/invite", { params: { path: { name: name.trim() } }, body })));
      await refresh("domains");
    } catch (error) {
      setRefused(error);
    }
  };
  return (
    <Dialog
      title={made ? `Invitation for ${made.name}` : "Invite a domain"}
      open
      onClose={onClose}
      footer={made ? <button type="button" className="button primary" onClick={onClose}>I have it</button> : <button type="button" className="button primary" disabled={!name.trim()} onClick={() => void invite()}>Invite</button>}
    >
      {made ? (
        <>
          <p>Give this to the administrator of {made.name}. It is shown only now, and holds until it is accepted or over: <Time at={made.expires_at} />.</p>
          <p className="mono">{made.url}</p>
          <div className="secret-once">
            <code>{made.token}</code>
            <CopyButton text={made.token} label="Copy the invitation's token" />
          </div>
        </>
      ) : (
        <>
          <p>Another installation of mendflow can then run parts of flows here, as far as you say.</p>
          <TextField label="Its name" required value={name} onChange={setName} />
          <RightsFields rights={rights} onChange={setRights} />
          {refused !== null && <ErrorState error={refused} compact />}
        </>
      )}
    </Dialog>
  );
}

export function AcceptDialog({ onClose }: { onClose: () => void }) {
  const refresh = useRefresh();
  const [name, setName] = useState("");
  const [urls, setUrls] = useState("");
  const [token, setToken] = useState("");
  const [rights, setRights] = useState(NO_RIGHTS);
  return (
    <ConfirmDialog
      title="Accept an invitation"
      act="Connect"
      open
      onClose={onClose}
      disabled={!name.trim() || !urls.trim() || !token.trim()}
      will={
        <div className="stack">
          <p>The two domains are connected: each may do in the other what was said there.</p>
          <TextField label="Its name" required value={name} onChange={setName} />
          <AreaField label="Its addresses" required rows={2} mono value={urls} onChange={setUrls} placeholder="https://other.example.org" />
          <TextField label="Token of the invitation" required type="password" value={token} onChange={setToken} />
          <RightsFields rights={rights} onChange={setRights} />
        </div>
      }
      onAct={async () => {
        const body = { urls: words(urls), token: token.trim(), rights: { flows: words(rights.flows), own_flows: rights.own } };
        await ask(api.POST("/api/v1/domains/{name}/connect", { params: { path: { name: name.trim() } }, body }));
        toast("good", `${name} is connected`);
        await refresh("domains");
      }}
    />
  );
}
