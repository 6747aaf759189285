// What happens while one types: a list is read again (form[data-live=ID]), a table is filtered (input[data-filter=ID]).

const pause = 150;

function addLists(root, prepare) {
  for (const form of root.querySelectorAll("form[data-live]")) {
    let timer, latest = 0;
    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const number = ++latest;
        const url = new URL(form.action);
        for (const [name, value] of new FormData(form)) if (value) url.searchParams.set(name, value);
        const response = await fetch(url, { headers: { Accept: "text/html" } });
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        const fresh = page.getElementById(form.dataset.live);
        if (number !== latest || !fresh) return;
        document.getElementById(form.dataset.live).replaceWith(fresh);
        prepare(fresh);
        history.replaceState(null, "", url);
      }, pause);
    });
  }
}

function addFilters(root) {
  for (const field of root.querySelectorAll("input[data-filter]")) {
    field.hidden = false;
    const apply = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const place = document.getElementById(field.dataset.filter);
      for (const item of place.querySelectorAll("tbody tr, [data-item]")) {
        const text = item.textContent.toLowerCase();
        item.hidden = !words.every((word) => text.includes(word));
      }
      for (const group of place.querySelectorAll("[data-group]")) {
        group.hidden = !group.querySelector("tbody tr:not([hidden]), [data-item]:not([hidden])");
      }
    };
    field.addEventListener("input", apply);
    if (field.value) apply();
  }
}

export function addTyping(root, prepare) {
  addLists(root, prepare);
  addFilters(root);
}
