// The script of the console: times in the reader's zone, sorting, copying, parts that refresh themselves.
// Every page can be read without it. keys.js has the keys and the help sheet, typing.js what happens while one types,
// tables.js what every list has.

import { addKeys } from "./keys.js";
import { addTools } from "./tables.js";
import { addTyping } from "./typing.js";

import { addFiles, addSliders, addZones, copyTexts, followFeed } from "./live.js";

const distances = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    const exact = at.toLocaleString("sv-SE", { hour12: false }) + "." + String(at.getMilliseconds()).padStart(3, "0");
    if (!("distance" in time.dataset || "span" in time.dataset)) time.textContent = exact;
    time.title = exact + " " + Intl.DateTimeFormat().resolvedOptions().timeZone;
  }
}

function tellDistances() {
  for (const time of document.querySelectorAll("time[data-distance]")) {
    const seconds = (Date.now() - new Date(time.dateTime)) / 1000;
    const ahead = time.textContent.startsWith("in ");
    // What was to come has not happened because its time has: the page says so when it is read again.
    if (ahead && seconds > 0) time.textContent = "now";
    if (time.textContent === "now" || (!ahead && seconds < 1)) continue;
    const [size, unit] = distances.find(([each]) => Math.abs(seconds) >= each) ?? [1, "s"];
    const text = `${Math.floor(Math.abs(seconds) / size)} ${unit}`;
    time.textContent = ahead ? `in ${text}` : `${text} ago`;
  }
}

function addCopying(root) {
  for (const block of root.querySelectorAll("[data-copy]")) {
    if (block.querySelector(".copy")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent.trim());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.prepend(button);
  }
}

function addSorting(root) {
  for (const head of root.querySelectorAll("th[data-sort]")) {
    if (head.firstElementChild) continue;
    head.tabIndex = 0;
    const sort = () => {
      const table = head.closest("table");
      const index = [...head.parentElement.children].indexOf(head);
      const falls = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falls ? "descending" : "ascending");
      const body = table.tBodies[0];
      const value = (row) => row.cells[index].dataset.value ?? row.cells[index].textContent.trim();
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        const [m, n] = [Number(x.replaceAll(",", "")), Number(y.replaceAll(",", ""))];
        return Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n;
      });
      if (falls) rows.reverse();
      body.append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  }
}

function askFirst(root) {
  for (const form of root.querySelectorAll("form[data-confirm]")) {
    form.addEventListener("submit", (event) => { if (!confirm(form.dataset.confirm)) event.preventDefault(); });
  }
}

// A part with data-refresh="SECONDS" and an id is read again from its page, unless the reader is in it.
function refreshParts() {
  for (const part of document.querySelectorAll("[data-refresh][id]")) {
    const again = async () => {
      const current = document.getElementById(part.id);
      if (!current || !("refresh" in current.dataset)) return;
      if (!document.hidden && !current.matches(":hover, :focus-within")) {
        try {
          const response = await fetch(location.href, { headers: { Accept: "text/html" } });
          const page = new DOMParser().parseFromString(await response.text(), "text/html");
          const fresh = page.getElementById(part.id);
          if (fresh) { current.replaceWith(fresh); prepare(fresh); }
        } catch { /* the next round tries again */ }
      }
      setTimeout(again, Number(part.dataset.refresh) * 1000);
    };
    setTimeout(again, Number(part.dataset.refresh) * 1000);
  }
}

// What is wider than the page can be scrolled with the keyboard, too.
function reachWide(root) {
  const own = root.matches?.(".wide") ? [root] : [];
  for (const part of [...own, ...root.querySelectorAll(".wide")]) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
}

export function prepare(root) {
  showTimes(root);
  reachWide(root);
  addCopying(root);
  addSorting(root);
  askFirst(root);
  addTools(root);
  addTyping(root, prepare);
}

addKeys();
prepare(document);
// On a narrow screen, the line of pages may end before this page.
document.querySelector(".main [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
setInterval(tellDistances, 1000);
addEventListener("resize", () => reachWide(document));
refreshParts();
addSliders(prepare);
addZones();
addFiles();
copyTexts();
followFeed(prepare);
