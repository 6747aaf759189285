// The keys of every page: / search, j and k rows, enter opens, g and a letter a page, ? this list.

const pages = {
  h: "/console", d: "/console/datasets", j: "/console/jobs", l: "/console/lineage", s: "/console/sources",
  v: "/console/views", w: "/console/webhooks", e: "/console/exports", r: "/console/reference",
};
const fields = "input, select, textarea, [contenteditable]";
let went = 0;

function rows() {
  const table = document.querySelector("main table[data-keys]") ?? document.querySelector("main table");
  return table ? [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => !row.hidden) : [];
}

function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("selected"));
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  if (at >= 0) all[at].classList.remove("selected");
  next.classList.add("selected");
  const target = next.querySelector("a, button, summary") ?? next;
  if (target === next) next.tabIndex = -1;
  target.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

async function showHelp() {
  const open = document.querySelector("dialog.help");
  if (open) { open.close(); return; }
  const response = await fetch("/console/help", { headers: { Accept: "text/html" } });
  const sheet = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("keys");
  if (!sheet) { location.href = "/console/help"; return; }
  const dialog = document.createElement("dialog");
  dialog.className = "help";
  dialog.setAttribute("aria-label", "Keys");
  const close = document.createElement("button");
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.append(sheet, close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const actions = {
  "/": () => document.querySelector(".search input")?.focus(),
  "?": showHelp,
  j: () => move(1),
  k: () => move(-1),
  Enter: () => document.querySelector("tr.selected a")?.click(),
};

export function addKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target.matches(fields)) { event.target.blur(); return; }
    if (event.target.matches(fields) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && event.target !== document.body) return;
    if (Date.now() - went < 1000 && pages[event.key]) {
      const range = new URLSearchParams(location.search).get("range");
      location.href = pages[event.key] + (range ? `?range=${encodeURIComponent(range)}` : "");
      return;
    }
    if (event.key === "g") { went = Date.now(); return; }
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
