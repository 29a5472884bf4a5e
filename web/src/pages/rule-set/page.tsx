/** One rule set: its trees as they are walked, its versions, its rules on trial, cornerstones and exlets. */
import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { DetailsPane, WithDetails } from "@/components/drawer";
import { plural } from "@/components/format";
import { Page } from "@/components/page";
import { ruleSetQuery, type RuleSetView } from "@/components/recovery/queries";
import { RuleTreeView } from "@/components/recovery/rule-tree-view";
import { pathTo, setWords, treeKey, treesOf, treeWords, walkTree } from "@/components/recovery/rule-walk";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Tabs } from "@/components/tabs";
import { Time } from "@/components/time";
import { Glossed, Word } from "@/components/word";
import { Cornerstones } from "./cornerstones";
import { Exlets } from "./exlets";
import { RuleDetails } from "./rule-details";
import { OnTrial } from "./on-trial";
import { Versions } from "./versions";
import { VIEWS } from "./search";
import "@/components/recovery/recovery.css";

const route = getRouteApi("/rules/$name");
const WORDS = { tree: "Tree", versions: "Versions", trial: "On trial", cornerstones: "Cornerstones", exlets: "Exlets" } as const;

export default function RuleSetPage() {
  const { name } = route.useParams();
  const { view = "tree" } = route.useSearch();
  const set = useQuery(ruleSetQuery(name));
  return (
    <Page
      title={`Rules of ${setWords(name)}`}
      crumbs={<Link to="/rules">Rules</Link>}
      fill
      lead={set.data && <>Version {set.data.version}, {plural(set.data.rule_count, "rule")}{set.data.at ? <>, changed <Time at={set.data.at} /> by {personText(set.data.author)}</> : ", as shipped"}</>}
    >
      <Loaded query={set} lines={8}>
        {(found) =>
          found ? (
            <>
              <Tabs
                label="Views of these rules"
                current={view}
                tabs={VIEWS.map((each) => ({
                  id: each,
                  label: WORDS[each],
                  count: each === "trial" ? found.passive_count : each === "exlets" ? found.exlets.length : undefined,
                  link: { to: "/rules/$name", params: { name }, search: { view: each === "tree" ? undefined : each } },
                }))}
              />
              {view === "tree" && <TreeTab set={found} />}
              {view === "versions" && <Versions set={found} />}
              {view === "trial" && <OnTrial set={found} />}
              {view === "cornerstones" && <Cornerstones set={found} />}
              {view === "exlets" && <Exlets set={found} />}
            </>
          ) : (
            <EmptyState title={`${setWords(name)} has no rules of its own yet`} icon="rules" action={<Link to="/failures" search={{ flow: name, since: "all" }} className="button">See its failures</Link>}>
              The default rules repair what can be repaired without knowing the flow. Teach from a failure to add what you know.
            </EmptyState>
          )
        }
      </Loaded>
    </Page>
  );
}

function TreeTab({ set }: { set: RuleSetView }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const trees = useMemo(() => treesOf(set.rules?.trees as Parameters<typeof treesOf>[0]), [set.rules]);
  const having = trees.filter((each) => search.rule !== undefined && String(search.rule) in each.tree.rules);
  const meant = trees.find((each) => treeKey(each.type, each.task) === search.tree) ?? (having.length === 1 ? having[0] : undefined);
  const current = meant ?? trees[0];
  const walked = useMemo(() => (current ? walkTree(current.tree, (rule) => set.decided[`${current.type}/${current.task}/${rule}`] ?? 0) : []), [current, set.decided]);
  if (!current) return <EmptyState title="There is no rule in this set" icon="rules">Teach from a failure to add one.</EmptyState>;
  const rule = search.rule === undefined || !meant ? undefined : walked.find((each) => each.rule.id === search.rule); // of no other tree
  return (
    <>
      {trees.length > 1 && (
        <div className="row wrap">
          <label className="check-label">
            <span className="muted">Tree</span>
            <select value={treeKey(current.type, current.task)} onChange={(event) => void navigate({ search: (before) => ({ ...before, tree: event.target.value, rule: undefined }) })}>
              {trees.map((each) => (
                <option key={treeKey(each.type, each.task)} value={treeKey(each.type, each.task)}>{treeWords(each.type, each.task)} ({Object.keys(each.tree.rules).length})</option>
              ))}
            </select>
          </label>
        </div>
      )}
      <p className="muted">
        A <Word of="rule tree" /> for <Glossed text={treeWords(current.type, current.task)} only={["abort"]} />{current.type === "abort" && ", asked when something has failed"}. A rule that holds leads to its exceptions below it (yes); one that does not, to the next in line (no). The last that held decides. Counted are the {plural(walked[0]?.asked ?? 0, "decision")} of this tree; a rule that got another repair is counted from then on.
      </p>
      <WithDetails
        details={
          rule ? (
            <DetailsPane title={`Rule ${rule.rule.id}`} label={`Rule ${rule.rule.id}`} onClose={() => void navigate({ search: (before) => ({ ...before, rule: undefined, edit: undefined }) })}>
              <RuleDetails key={`${current.type}/${current.task}/${rule.rule.id}`} set={set} type={current.type} task={current.task} walked={rule} edit={search.edit} />
            </DetailsPane>
          ) : null
        }
      >
        <RuleTreeView walked={walked} tried={(rule) => set.tried[`${current.type}/${current.task}/${rule}`] ?? 0} label={`Tree of ${treeWords(current.type, current.task)}`} at={search.rule} path={search.rule === undefined ? [] : pathTo(walked, search.rule)} onOpen={(id) => void navigate({ search: (before) => ({ ...before, tree: treeKey(current.type, current.task), rule: id, edit: undefined }) })} />
      </WithDetails>
    </>
  );
}
