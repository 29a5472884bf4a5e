import { useKeyGroups } from "./keys";

/** The keys that hold on this page, its own first. */
export function KeyList() {
  const groups = useKeyGroups();
  return (
    <div className="key-groups">
      {groups
        .filter((group) => group.keys.length > 0)
        .map((group) => (
          <section key={group.name}>
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
  );
}
