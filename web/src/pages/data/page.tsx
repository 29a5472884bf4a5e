/** Logical files, data sets, storage elements, and results that can be used again. */
import { getRouteApi } from "@tanstack/react-router";
import { Page } from "@/components/page";
import { Tabs } from "@/components/tabs";
import { Word } from "@/components/word";
import { Files } from "./files";
import { Results } from "./results";
import { VIEWS } from "./search";
import { DataSets } from "./sets";
import { Storage } from "./storage";
import "@/styles/resources.css";

const route = getRouteApi("/data");
const WORDS = { files: "Files", sets: "Data sets", storage: "Storage", results: "Earlier results" } as const;
const PARTS = { files: Files, sets: DataSets, storage: Storage, results: Results } as const;

export default function DataPage() {
  const { view = "files" } = route.useSearch();
  const Part = PARTS[view];
  return (
    <Page title="Data" fill lead={view === "files" ? <>Each row is a <Word of="logical file" />.</> : undefined}>
      <Tabs label="Views" current={view} tabs={VIEWS.map((id) => ({ id, label: WORDS[id], link: { to: "/data", search: { view: id } } }))} />
      <Part />
    </Page>
  );
}
