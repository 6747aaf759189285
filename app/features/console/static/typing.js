// What happens while one types: a list is read again (form[data-live=ID]), a table is filtered (input[data-filter=ID]),
// values are offered (input[data-offers=PAGE], a page whose list of options has the text).

const pause = 150;

// Reads the page of `address()` once nothing was typed for a moment, and shows it unless more was typed since.
function readWhileTyping(element, address, show) {
  let timer, latest = 0;
  element.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const number = ++latest, url = address();
      const response = await fetch(url, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      if (number === latest) show(page, url);
    }, pause);
  });
}

function addLists(root, prepare) {
  for (const form of root.querySelectorAll("form[data-live]")) {
    const address = () => {
      const url = new URL(form.action);
      for (const [name, value] of new FormData(form)) if (value) url.searchParams.set(name, value);
      return url;
    };
    readWhileTyping(form, address, (page, url) => {
      const fresh = page.getElementById(form.dataset.live);
      if (!fresh) return;
      document.getElementById(form.dataset.live).replaceWith(fresh);
      prepare(fresh);
      history.replaceState(null, "", url);
    });
  }
}

function addOffers(root) {
  for (const field of root.querySelectorAll("input[data-offers]")) {
    const list = document.createElement("datalist");
    list.id = `${field.id}-offers`;
    field.after(list);
    field.setAttribute("list", list.id);
    // A field may have several values with spaces between them: the last one is completed.
    const address = () => `${field.dataset.offers}?text=${encodeURIComponent(field.value.match(/\S*$/)[0])}`;
    readWhileTyping(field, address, (page) => {
      const before = field.value.replace(/\S*$/, "");
      const options = [...page.querySelectorAll("datalist option")];
      list.replaceChildren(...options.map((each) => new Option("", before + each.value)));
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
  addOffers(root);
}
