/** Add a site, or give it other settings. */
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useRefresh } from "@/components/acts";
import { ConfirmDialog } from "@/components/dialog";
import { SelectField, SizeField, TextField, TimeField } from "@/components/form-fields";
import { readSize, readTime, writeSize, writeTime } from "@/components/quantities";
import { toast } from "@/components/toasts";

type Site = Schemas["Site"];
type Kind = NonNullable<NonNullable<Site["batch"]>["kind"]>;

const KINDS: readonly (readonly [Kind, string])[] = [
  ["local", "this machine"],
  ["slurm", "Slurm"],
  ["pbs", "PBS"],
  ["lsf", "LSF"],
  ["htcondor", "HTCondor"],
  ["gridengine", "Grid Engine"],
];

function whole(text: string): number | null {
  return /^\d+$/.test(text.trim()) ? Number(text) : null;
}

export function SiteDialog({ site, open, onClose, onMade }: { site?: Site; open: boolean; onClose: () => void; onMade: (name: string) => void }) {
  const refresh = useRefresh();
  const [name, setName] = useState(site?.name ?? "");
  const [kind, setKind] = useState<Kind>(site?.batch?.kind ?? "local");
  const [queue, setQueue] = useState(site?.batch?.queue ?? "");
  const [account, setAccount] = useState(site?.batch?.account ?? "");
  const [most, setMost] = useState(String(site?.max_pilots ?? 2));
  const [least, setLeast] = useState(String(site?.min_pilots ?? 0));
  const [idle, setIdle] = useState(String(site?.min_idle ?? 0));
  const [perHour, setPerHour] = useState(String(site?.submissions_per_hour ?? 60));
  const [slots, setSlots] = useState(String(site?.pilots?.slots ?? 1));
  const [memory, setMemory] = useState(site?.pilots?.memory_bytes ? writeSize(site.pilots.memory_bytes) : "");
  const [leaves, setLeaves] = useState(writeTime(site?.pilots?.idle_exit_ms ?? 600_000));
  const numbers = [most, least, idle, perHour, slots].map(whole);
  const wrong = !name.trim() || numbers.some((each) => each === null) || (memory.trim() !== "" && readSize(memory) === null) || readTime(leaves) === null;
  const count = (text: string) => (whole(text) === null ? "A whole number" : null);
  return (
    <ConfirmDialog
      title={site ? `Settings of ${site.name}` : "Add a site"}
      act={site ? "Change" : "Add"}
      open={open}
      onClose={onClose}
      disabled={wrong}
      will={
        <div className="stack">
          <p className="muted">Pilots are submitted there when jobs wait that no pilot takes, and leave when there is nothing to do.</p>
          {!site && <TextField label="Name" required value={name} onChange={setName} placeholder="cluster" />}
          <SelectField label="Batch system" value={kind} onChange={setKind} choices={KINDS} />
          {kind !== "local" && (
            <div className="two-fields">
              <TextField label="Queue" value={queue} onChange={setQueue} />
              <TextField label="Account" value={account} onChange={setAccount} />
            </div>
          )}
          <div className="two-fields">
            <TextField label="Pilots at most" value={most} onChange={setMost} problem={count(most)} />
            <TextField label="Slots of each" value={slots} onChange={setSlots} problem={count(slots)} hint="So many jobs at once." />
          </div>
          <SizeField label="Memory of each" value={memory} onChange={setMemory} placeholder="16 GB" hint="Empty: what the machine has." />
          <details className="more-settings">
            <summary>More settings</summary>
            <div className="two-fields">
              <TextField label="Pilots at least" value={least} onChange={setLeast} problem={count(least)} />
              <TextField label="Kept ready without a job" value={idle} onChange={setIdle} problem={count(idle)} />
              <TextField label="Submissions an hour" value={perHour} onChange={setPerHour} problem={count(perHour)} hint="Never more, whatever happens." />
              <TimeField label="Leaves after idling" value={leaves} onChange={setLeaves} />
            </div>
          </details>
        </div>
      }
      onAct={async () => {
        // Left empty, it is what the machine has, also where a size was written before.
        const { memory_bytes: _, ...pilots } = site?.pilots ?? {};
        const body: Site = {
          ...site,
          name: name.trim(),
          max_pilots: Number(most),
          min_pilots: Number(least),
          min_idle: Number(idle),
          submissions_per_hour: Number(perHour),
          batch: { ...site?.batch, kind, queue, account },
          pilots: { ...pilots, slots: Number(slots), idle_exit_ms: readTime(leaves) ?? 600_000, ...(memory.trim() ? { memory_bytes: readSize(memory) ?? 0 } : {}) },
        };
        await ask(api.PUT("/api/v1/sites/{name}", { params: { path: { name: body.name } }, body: body as never }));
        toast("good", `${body.name} is set`);
        await refresh("sites");
        onMade(body.name);
      }}
    />
  );
}
