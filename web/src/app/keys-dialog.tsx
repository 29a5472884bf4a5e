import { Dialog } from "@/components/dialog";
import { useKeyGroups } from "./keys";

/** The keys that hold on this page, its own first. */
export function KeysDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const groups = useKeyGroups();
  return (
    <Dialog title="Keys" open={open} onClose={onClose} wide>
      <div className="key-groups">
        {groups
          .filter((group) => group.keys.length > 0)
          .map((group, at) => (
            <section key={`${group.name}-${at}`}>
              <h3>{group.name}</h3>
              <dl className="keys">
                {group.keys.map((key) => (
                  <div key={key.keys}>
                    <dt>
                      {key.keys.split(" ").map((each) => (
                        <kbd key={each}>{each}</kbd>
                      ))}
                    </dt>
                    <dd>{key.does}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
      </div>
    </Dialog>
  );
}
