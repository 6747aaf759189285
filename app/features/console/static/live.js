// Live parts of the pages of rows and changes: the tail of a feed, the slider over versions, times in the reader's
// zone, tables as CSV. Without this script the pages show the same at each load.

const ROWS_MAX = 600;
const RETRY_SECONDS = [1, 2, 5, 10, 20];

// The tail of a feed. New versions are added at the top; while the reader pauses or is further down they are counted.
export function followFeed(prepare) {
  const bar = document.querySelector("[data-live]");
  const table = document.getElementById("changes");
  if (!bar || !table) return;
  const state = bar.querySelector("[data-live-state]");
  const pause = bar.querySelector("[data-live-pause]");
  const fresh = bar.querySelector("[data-live-new]");
  const waiting = [];
  const arrivals = [];
  let address = new URL(bar.dataset.live, location.href);
  let count = 0;
  let paused = false;
  let failures = 0;
  let request = null;
  let timer = 0;

  const show = (kind, word) => {
    if (state.textContent === word) return;
    const mark = document.createElement("span");
    mark.className = `state ${kind}`;
    mark.textContent = word;
    state.replaceChildren(mark);
  };
  const rate = () => {
    const now = Date.now();
    while (arrivals.length && now - arrivals[0][0] > 10000) arrivals.shift();
    const sum = arrivals.reduce((total, each) => total + each[1], 0);
    return sum ? `live, ${sum < 10 ? (sum / 10).toFixed(1) : Math.round(sum / 10)}/s` : "live";
  };
  const showState = () => {
    if (paused) show("idle", "paused");
    else if (failures === 0) show("good", rate());
  };
  const isAway = () => table.getBoundingClientRect().top < -40 || table.contains(document.activeElement);
  const showCount = () => {
    fresh.hidden = count === 0;
    fresh.textContent = `${count.toLocaleString("en")} new`;
  };
  // The head of the page has the version and the time of the latest commit, and when its rows were counted.
  const showHead = (part) => {
    const head = document.querySelector("[data-head]");
    const { version, committed } = part.dataset;
    if (!head || !committed || Number(version) <= Number(head.dataset.head)) return;
    head.dataset.head = version;
    head.querySelector("[data-version]").textContent = `v${Number(version).toLocaleString("en")}`;
    const time = (at) => Object.assign(document.createElement("time"), { dateTime: at, textContent: "just now" });
    const last = time(committed);
    last.dataset.distance = "";
    head.querySelector("[data-committed]").replaceChildren(last);
    const counted = head.querySelector("[data-counted]");
    if (counted && !counted.querySelector(".note")) {
      const note = Object.assign(document.createElement("span"), { className: "note" });
      const at = time(counted.dataset.counted);
      at.dataset.distance = "";
      note.append("as of ", at);
      counted.append(" ", note);
    }
    prepare(head);
  };
  const showOffsets = (next) => {
    const label = bar.querySelector("[data-live-offsets]");
    if (!label) return;
    const [first, last] = [Number(label.dataset.liveOffsets), next - 1].map((each) => each.toLocaleString("en"));
    label.textContent = `offsets ${first} to ${last}`;
  };
  const add = () => {
    if (waiting.length) showOffsets(Number(waiting[waiting.length - 1].dataset.next));
    const bodies = waiting.splice(0).flatMap((each) => [...each.tBodies].reverse());
    for (const body of bodies) {
      for (const row of body.rows) row.classList.add("fresh");
      for (const old of table.querySelectorAll("a.undo")) if (body.querySelector("a.undo")) old.remove();
      prepare(body);
      table.tHead.after(body);
    }
    while (table.rows.length > ROWS_MAX && table.tBodies.length > 1) table.tBodies[table.tBodies.length - 1].remove();
    table.tHead.hidden = table.tBodies.length === 0;
    if (bodies.length) document.querySelector("[data-live-empty]")?.remove();
    setTimeout(() => { for (const row of table.querySelectorAll("tr.fresh")) row.classList.remove("fresh"); }, 2500);
    count = 0;
    showCount();
  };
  const take = (part) => {
    address.searchParams.set("since", part.dataset.next);
    const changes = Number(part.dataset.count);
    if (!paused) showHead(part);
    if (!changes) return;
    // A table without signs has got its first removed or corrected row: the page shows them from now on.
    if ("plain" in table.dataset && "ops" in part.dataset) { location.reload(); return; }
    arrivals.push([Date.now(), changes]);
    count += changes;
    waiting.push(part);
    while (waiting.length > 20) waiting.shift();
    if (paused || isAway()) showCount();
    else add();
  };
  const fail = (word) => {
    const seconds = RETRY_SECONDS[Math.min(failures, RETRY_SECONDS.length - 1)];
    failures += 1;
    show("bad", `cut: ${word}; next try in ${seconds} s`);
    timer = setTimeout(poll, seconds * 1000);
  };
  const poll = async () => {
    if (document.hidden || request) return;
    request = new AbortController();
    // After a failure the first response comes at once: it shows that the connection is back.
    if (failures) address.searchParams.set("wait", "0");
    else address.searchParams.delete("wait");
    const ends = setTimeout(() => request?.abort(), 60000);
    try {
      const response = await fetch(address, { headers: { Accept: "text/html" }, signal: request.signal });
      if (response.redirected || response.status === 401) {
        show("bad", "cut: the session has ended; load the page again");
        return;
      }
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const part = page.getElementById("more");
      if (!response.ok || !part) {
        const detail = page.querySelector(".problem p")?.textContent.trim().replace(/\.+$/, "");
        fail(detail || `the service responds with ${response.status}`);
        return;
      }
      if (failures) { failures = 0; show("good", "resumed"); timer = setTimeout(showState, 3000); }
      else showState();
      take(document.adoptNode(part));
      setTimeout(poll, 50);
    } catch (error) {
      if (!document.hidden) fail(error.name === "AbortError" ? "no response" : "the service cannot be reached");
    } finally {
      clearTimeout(ends);
      request = null;
    }
  };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
    pause.setAttribute("aria-pressed", String(paused));
    if (!paused) add();
    showState();
  });
  fresh.addEventListener("click", () => {
    add();
    window.scrollTo({ top: 0 });
  });
  addEventListener("scroll", () => { if (count && !paused && !isAway()) add(); }, { passive: true });
  setInterval(() => { if (!failures && !document.hidden) showState(); }, 2000);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) request?.abort();
    else setTimeout(poll, 100);
  });
  showState();
  poll();
}

// A slider beside each number field of a version. The part data-difference follows it; another form is sent.
export function addSliders(prepare) {
  for (const field of document.querySelectorAll("input[type=number][data-slider]")) {
    const slider = document.createElement("input");
    slider.type = "range";
    slider.min = field.min;
    slider.max = field.max;
    slider.value = field.value || field.max;
    slider.setAttribute("aria-label", field.labels[0]?.textContent.trim() ?? field.name);
    field.before(slider);
    const part = document.querySelector("[data-difference]");
    slider.addEventListener("input", () => { field.value = slider.value; if (part) showDifference(field.form, prepare); });
    field.addEventListener("input", () => { slider.value = field.value; if (part) showDifference(field.form, prepare); });
    if (part) continue;
    slider.addEventListener("change", () => {
      const time = field.form.querySelector("input[type=datetime-local]");
      if (time) { time.value = ""; time.dispatchEvent(new Event("input")); }
      field.form.requestSubmit();
    });
  }
}

let differenceTimer = 0;
let differenceRequest = null;

function showDifference(form, prepare) {
  clearTimeout(differenceTimer);
  differenceTimer = setTimeout(async () => {
    differenceRequest?.abort();
    differenceRequest = new AbortController();
    const address = new URL(form.action);
    address.search = new URLSearchParams(new FormData(form)).toString();
    const part = document.querySelector("[data-difference]");
    const late = setTimeout(() => part.setAttribute("aria-busy", "true"), 300);
    try {
      const response = await fetch(address, { headers: { Accept: "text/html" }, signal: differenceRequest.signal });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const next = page.querySelector("[data-difference]");
      if (next) { part.replaceWith(next); prepare(next); history.replaceState(null, "", address); }
    } catch (error) {
      if (error.name !== "AbortError") part.textContent = "The service cannot be reached: move the slider to try again.";
    } finally {
      clearTimeout(late);
      part.removeAttribute("aria-busy");
    }
  }, 200);
}

// Fields of times are in UTC without the script, and in the reader's zone with it.
export function addZones() {
  const two = (number) => String(number).padStart(2, "0");
  for (const field of document.querySelectorAll("input[type=datetime-local][data-utc]")) {
    const sent = document.createElement("input");
    sent.type = "hidden";
    sent.name = field.name;
    field.removeAttribute("name");
    field.after(sent);
    if (field.value) {
      const at = new Date(`${field.value}Z`);
      field.value = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
    }
    const zone = field.labels[0]?.querySelector("[data-zone]");
    if (zone) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const set = () => { sent.value = field.value ? new Date(field.value).toISOString() : ""; };
    field.addEventListener("input", set);
    set();
  }
}

// A file that is chosen is shown in the text field, where it can be changed before it is written.
export function addFiles() {
  for (const field of document.querySelectorAll("input[type=file][data-into]")) {
    field.addEventListener("change", async () => {
      const [file] = field.files;
      if (!file) return;
      const target = document.getElementById(field.dataset.into);
      target.value = file.size > Number(field.dataset.max) ? "" : await file.text();
      field.setCustomValidity(file.size > Number(field.dataset.max) ? "The file is larger than 1 MiB: use the command line" : "");
      field.reportValidity();
      if (target.value) field.value = "";
    });
  }
}

// A link to a page with a text copies the text of that page.
export function copyTexts() {
  for (const link of document.querySelectorAll("a[data-copy-text]")) {
    const word = link.textContent;
    link.addEventListener("click", async (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      try {
        const response = await fetch(link.href, { headers: { Accept: "text/html" } });
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        await navigator.clipboard.writeText(page.querySelector("[data-text] code").textContent);
        link.textContent = "Copied";
        setTimeout(() => { link.textContent = word; }, 1500);
      } catch { location.href = link.href; }
    });
  }
}
