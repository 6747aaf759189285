// What every list gets: a field that filters its rows, and a button that copies it as CSV. A list: table.list.

const filteredFrom = 12;

// A spreadsheet would compute what begins so, unless an apostrophe precedes it. Numbers stay as they are.
function withoutFormula(text) {
  return /^[=+\-@]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
}

function quoted(text) {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function textOf(cell) {
  const time = cell.querySelector("time[datetime]");
  const text = (time ? time.dateTime : cell.innerText).replaceAll(/\s+/g, " ").trim();
  return cell.matches("td.n") && /^-?[\d,.]+$/.test(text) ? text.replaceAll(",", "") : text;
}

function csv(table) {
  const rows = [...table.rows].filter((row) => !row.hidden);
  return rows.map((row) => [...row.cells].map((cell) => quoted(withoutFormula(textOf(cell)))).join(",")).join("\n") + "\n";
}

function copyButton(table) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = "Copy as CSV";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(csv(table));
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy as CSV"; }, 1500);
  });
  return button;
}

function filterField(table) {
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "Filter these rows";
  field.setAttribute("aria-label", "Filter the rows of this page");
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
  return field;
}

export function addTools(root) {
  const tables = root.matches?.("table.list") ? [root] : root.querySelectorAll("table.list");
  for (const table of tables) {
    const place = table.closest(".wide") ?? table;
    if (place.nextElementSibling?.classList.contains("tools") || !table.tBodies[0]?.rows.length) continue;
    const tools = document.createElement("p");
    tools.className = "tools";
    // A part that refreshes itself would lose what was typed.
    if (table.tBodies[0].rows.length >= filteredFrom && !table.closest("[data-refresh]") && !document.querySelector("form[data-live]")) {
      tools.append(filterField(table));
    }
    tools.append(copyButton(table));
    place.after(tools);
  }
}
