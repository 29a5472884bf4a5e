/** What is painted before the app runs: its frame, as HTML, with the classes of `app/shell.tsx` and `app/top-bar.tsx`. The app
 * draws the same in its place. */
import { NAVIGATION } from "../src/app/navigation";
import { PATHS, type IconName } from "../src/components/icon-paths";

const LINES = 8;

function icon(name: IconName): string {
  return `<svg class="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d="${PATHS[name]}"/></svg>`;
}

const BRAND =
  '<a class="brand" href="/"><svg width="20" height="20" viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="5" class="brand-back"/>' +
  '<path d="M5 15.500c2.500 0 3-7 5.500-7s2.500 7 5 7 3-3.500 3.500-6" class="brand-line"/></svg>mendflow</a>';

/** The frame of the page at an address of the router, such as `/cases/$case`. */
export function firstPaint(path: string): string {
  const groups = NAVIGATION.map((group) => {
    const links = group.map(
      (entry) => `<li${entry.forTasks ? " data-tasks" : ""}><a class="nav-link${entry.to === path ? " active" : ""}" href="${entry.to}">${icon(entry.icon)}<span>${entry.name}</span></a></li>`,
    );
    return `<ul>${links.join("")}</ul>`;
  });
  const title = NAVIGATION.flat().find((entry) => entry.to === path)?.name;
  const head = title ? `<header class="page-head"><div class="page-titles"><h1>${title}</h1></div></header>` : "";
  const lines = '<span class="loading-line"></span>'.repeat(LINES);
  return (
    `<div class="shell"><header class="top-bar"><span class="icon-button nav-button">${icon("cases")}</span>${BRAND}` +
    `<span class="search-field top-search"><span class="search-coming"></span></span></header>` +
    `<nav class="nav" aria-label="Pages">${groups.join("")}</nav>` +
    `<main class="content"><div class="page">${head}<div class="loading">${lines}</div></div></main></div>`
  );
}
