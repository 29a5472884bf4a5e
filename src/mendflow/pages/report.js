"use strict";
const find = document.getElementById("find");
const found = document.getElementById("found");
const rows = Array.from(document.querySelectorAll("#items tbody tr"));
const note = found.textContent;
const texts = rows.map((row) => row.textContent.toLowerCase());
find.addEventListener("input", () => {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  rows.forEach((row, index) => {
    row.hidden = !words.every((word) => texts[index].includes(word));
    count += row.hidden ? 0 : 1;
  });
  found.textContent = words.length ? count + " of " + rows.length : note;
});
const openTarget = () => {
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  if (target instanceof HTMLDetailsElement) target.open = true;
};
addEventListener("hashchange", openTarget);
openTarget();
addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
});
