/** Jobs of like needs wait for the same: this is how the scheduler puts them into lots, too. */
import type { Schemas } from "@/api/client";
import { bytes, duration, plural } from "@/components/format";

export type Job = Schemas["Job"];
export type ListedJob = Schemas["ListedJob"];

/** The same text for jobs of like needs. */
export function needsOf(job: Pick<Job, "spec">): string {
  const { resources = {}, limits, container, project = "" } = job.spec;
  const asked = Object.entries(resources).sort(([one], [other]) => one.localeCompare(other));
  return JSON.stringify([asked, limits?.named ?? [], container?.image ?? "", project]);
}

/** What a job asks for, in words; one CPU, which every job has, comes last. */
export function asksFor(job: Pick<Job, "spec">): string {
  const { cpus = 1, memory_bytes: memory = 0, disk_bytes: disk = 0, gpus = 0, wall_ms: wall = 0, site = "" } = job.spec.resources ?? {};
  const named = (job.spec.limits?.named ?? []).map(([name, count]) => (count === 1 ? name : `${count} of ${name}`));
  const [more, one] = cpus === 1 ? ["", plural(cpus, "CPU")] : [plural(cpus, "CPU"), ""];
  return [more, gpus && plural(gpus, "GPU"), memory && bytes(memory), disk && `${bytes(disk)} of disk`, wall && duration(wall), site && `at ${site}`, ...named, one].filter(Boolean).join(", ");
}
