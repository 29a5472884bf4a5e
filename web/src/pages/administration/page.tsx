/** Who may ask, who did what, and what the server keeps, sends and bounds. */
import { getRouteApi } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { useMayAll } from "@/api/session";
import { Page } from "@/components/page";
import { EmptyState } from "@/components/states-of-page";
import { Tabs } from "@/components/tabs";
import { Alerts } from "./alerts";
import { Audit } from "./audit";
import { Limits } from "./limits";
import { Projects } from "./projects";
import { Retention } from "./retention";
import { Secrets } from "./secrets";
import { VIEWS, type View } from "./search";
import { Tokens } from "./tokens";
import { Versions } from "./versions";
import { Webhooks } from "./webhooks";
import "@/styles/resources.css";

const route = getRouteApi("/administration");

const PARTS: Record<View, { word: string; needs: string; part: ComponentType }> = {
  tokens: { word: "Tokens and projects", needs: "tokens", part: Tokens },
  projects: { word: "Quotas", needs: "projects", part: Projects },
  audit: { word: "Who did what", needs: "find_audit", part: Audit },
  alerts: { word: "Alerts", needs: "alerts", part: Alerts },
  webhooks: { word: "Webhooks", needs: "webhooks", part: Webhooks },
  retention: { word: "Retention", needs: "retention_rules", part: Retention },
  limits: { word: "Limits", needs: "limits", part: Limits },
  secrets: { word: "Secrets", needs: "secrets", part: Secrets },
  versions: { word: "Servers and versions", needs: "servers", part: Versions },
};

export default function AdministrationPage() {
  const may = useMayAll();
  const search = route.useSearch();
  const views = VIEWS.filter((view) => may(PARTS[view].needs));
  const view = search.view && views.includes(search.view) ? search.view : views[0];
  const Part = view && PARTS[view].part;
  return (
    <Page title="Administration">
      {view && <Tabs label="Views" current={view} tabs={views.map((id) => ({ id, label: PARTS[id].word, link: { to: "/administration", search: { view: id } } }))} />}
      {search.view && search.view !== view && <p className="notice">You may not see “{PARTS[search.view].word}”. Ask an administrator for the role.</p>}
      {Part ? <Part /> : <EmptyState title="Nothing here is for you" icon="administration">Ask an administrator for a role that may see it.</EmptyState>}
    </Page>
  );
}
