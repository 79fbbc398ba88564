"use strict";
// Makes the page faster: results while the user types, keys, and copying. The page works without this script.
document.documentElement.classList.add("js");

addEventListener("DOMContentLoaded", () => {
  const at = (id) => document.getElementById(id);
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const on = (kinds, act, how) => kinds.split(" ").forEach((kind) => addEventListener(kind, act, how));
  const made = (tag, more) => Object.assign(document.createElement(tag), more);
  const [form, field, within, keys] = ["find", "q", "within", "keys"].map(at);
  const isSearch = !!at("list");
  let composing = false;

  // The query string of the form, as the browser would send it without this script.
  const query = () => {
    const isSet = ([name, value]) => value !== "" && !(name === "mode" && value === "exact");
    return new URLSearchParams([...new FormData(form)].filter(isSet)).toString();
  };

  // Changes parts of the page into those of another page. Folds that the reader opened or closed stay so, the
  // chosen row stays chosen, and a message in which something is selected stays as it is.
  const morph = (page, ...parts) => {
    // Each question about the selection lays the page out, if it has changed since the last one.
    const selection = getSelection();
    const isSelecting = !selection.isCollapsed;
    const isWhole = (node) => node.matches?.(".msg, .group");
    const isSelected = (node) => isSelecting && isWhole(node) && selection.containsNode(node, true);
    const callbacks = {
      beforeNodeMorphed: (now, next) => {
        if (now.isUsers) next.open = now.open;
        return !isSelected(now) && !(isWhole(now) && now.isEqualNode(next));
      },
      beforeNodeRemoved: (node) => !isSelected(node),
      beforeAttributeUpdated: (name, node) => name !== "aria-current" || !node.closest("#list"),
    };
    for (const part of parts) {
      const [now, next] = [one(part), one(part, page)];
      if (now && next) Idiomorph.morph(now, next, { ignoreActiveValue: true, callbacks });
    }
  };
  // Opens the folds around it.
  const unfold = (node) => {
    for (let fold = node; (fold = fold?.parentElement.closest("details:not([open])")); ) fold.isUsers = fold.open = true;
  };

  // What a screen reader says. The results change with every key, so it says them when typing rests.
  let saying = 0;
  const announce = (words, after = 0) => {
    clearTimeout(saying);
    saying = setTimeout(() => (at("said").textContent = words().trim()), after);
  };

  // Shows a note over the page.
  const say = (id, words, ...more) => {
    const note = at(id) ?? made("p", { id, className: "toast" });
    if (note.firstChild?.data !== words) announce(() => words);
    note.replaceChildren(words, ...more);
    document.body.append(note);
  };
  const gone = () => {
    rest();
    moving = false;
    say("gone", "verbatim does not answer. Start it again: this page goes on by itself.");
  };

  // Returns the answer of an address. A later request of the same kind ends this one. A request without an answer
  // does not return.
  const requests = {};
  const fetched = async (address, kind) => {
    requests[kind]?.abort();
    const { signal } = (requests[kind] = new AbortController());
    try {
      const answer = await fetch(address, { signal, headers: { accept: "text/html" } });
      if (answer.redirected || [401, 403].includes(answer.status)) location.reload();
      const text = await answer.text();
      const { ok, status } = answer;
      return { ok, status, text, get page() { return new DOMParser().parseFromString(text, "text/html"); } };
    } catch {
      if (!signal.aborted) gone();
      return new Promise(() => {});
    }
  };

  // Searches, and replaces or adds an entry of the browser's history. With `stays`, repeats the same search,
  // and the chosen result stays chosen.
  let waiting, slow; // timers: of the next request for counts, of the note that a search takes long
  let listed = isSearch && query(); // the search that the list is of
  const rest = () => {
    clearTimeout(slow);
    at("main").removeAttribute("aria-busy");
  };
  const search = async (entry = "replaceState", fields = query()) => {
    if (!isSearch) return;
    if (entry === "pushState") keep();
    requests.counts?.abort();
    clearTimeout(waiting);
    clearTimeout(slow);
    slow = setTimeout(() => at("main").setAttribute("aria-busy", "true"), 300);
    const asked = entry === "popped" ? query() : fields;
    if (entry in history) history[entry](null, "", fields ? "/?" + fields : "/");
    const { ok, status, page } = await fetched("/results?" + fields, "results");
    rest();
    // The search of a refresh may have changed meanwhile.
    const stays = entry === "stays" && fields === listed;
    listed = ok && asked;
    if (!stays) announce(() => (at("status") ?? at("count").firstElementChild).textContent, 500);
    if (!ok) {
      const isLong = [414, 431].includes(status);
      const { length } = field.value;
      const letters = length.toLocaleString("en");
      const most = Math.round((30 * length) / fields.length) + ",000";
      const textContent = isLong
        ? `This text is too long to search for in the address: ${letters} letters, at most about ${most}.`
        : one("main p", page)?.textContent || "The server gave no answer.";
      at("count").replaceChildren(made("p", { className: "say warn", textContent }));
      return at("list").replaceChildren();
    }
    if (stays) morph(page, "#count", "#range", "#list");
    // A list that is new is faster replaced than compared.
    else for (const id of ["count", "range", "list"]) at(id)?.replaceWith(page.getElementById(id) ?? "");
    if (entry === "popped") restore();
    else current() ? become(current()) : begin();
    document.title = (field.value.trim() || "Search") + " – verbatim";
    // Counting would delay the results of a user who types on.
    waiting = setTimeout(() => count(fields), 100);
  };

  // Requests the counts. If counting takes long, the first are lower bounds.
  const count = async (fields) => {
    for (const first of ["first=1&", ""]) {
      const { ok, page } = await fetched("/facets?" + first + fields, "counts");
      if (!ok) continue;
      morph(page, "#facets", "#hist");
      point();
      stand?.();
      const [known, exact] = [at("total"), page.getElementById("total")];
      const isBetter = known && exact && (exact.dataset.more === undefined || +exact.dataset.count > +known.dataset.count);
      if (isBetter) morph(page, "#status");
      if (exact?.dataset.more === undefined) return;
    }
  };

  // The rows of the results.
  const ROWS = "#list .hits li, #list .group:not(:has(.hits))";
  const rows = () => all(ROWS).filter((row) => row.checkVisibility());
  const current = () => one("#list [aria-current]");
  // Chooses a row, and shows its place before the number of all messages.
  const become = (row) => {
    current()?.removeAttribute("aria-current");
    row?.setAttribute("aria-current", "true");
    point();
    const place = all("#list .hits li").indexOf(row) + 1;
    at("rank")?.replaceChildren(place ? place + " of " : "");
  };

  const choose = (by) => {
    const shown = rows();
    // After the last row comes the next page.
    if (by > 0 && shown.at(-1) === current()) return one("#list [rel=next]")?.click();
    const row = shown[Math.max(0, Math.min(shown.length - 1, shown.indexOf(current()) + by))];
    if (!row) return;
    become(row);
    row.scrollIntoView({ block: "nearest" });
    const link = one("a", row);
    link.focus({ preventScroll: true });
    peek(link);
  };

  // Scrolls a box, or the window, to one of its elements, and code or a table to the side. Nothing else moves.
  const toMiddle = (it, box = document.documentElement) => {
    if (!it) return;
    const from = (outer, side) => it.getBoundingClientRect()[side] - Math.max(0, outer.getBoundingClientRect()[side]);
    const wide = it.closest("pre, .scroll");
    if (wide) wide.scrollLeft += from(wide, "left") - wide.clientWidth / 3;
    box.scrollTop += from(box, "top") - box.clientHeight / 2;
  };

  const peek = async (link) => {
    const pane = at("peek");
    if (!pane?.checkVisibility()) return;
    const { pathname, search } = new URL(link.href);
    // The link of a conversation shows its first message.
    const path = pathname.replace("/c/", "/peek/") + (pathname.split("/")[3] ? "" : "/1");
    const { ok, page } = await fetched(path + search, "peek");
    if (!ok) return;
    pane.replaceChildren(...page.body.childNodes);
    pane.scrollTop = 0;
    toMiddle(one("mark.now", pane), pane);
  };

  // Marks the month of the chosen result in the timeline.
  const point = () => {
    const group = current()?.closest(".group");
    const month = group && one("time", group)?.dateTime.slice(0, 7);
    one("#hist .here")?.remove();
    const bar = months().find((it) => it.dataset.month === month);
    const tick = bar?.cloneNode();
    delete tick?.dataset.month;
    tick?.setAttribute("class", "here");
    bar?.after(tick);
  };

  // Chooses a row, and shows it beside the list. The text cursor does not move.
  const begin = (row = one(ROWS)) => {
    requests.peek?.abort();
    at("peek")?.replaceChildren();
    become(row);
    const show = () => row.isConnected && peek(one("a", row));
    if (row) requestAnimationFrame(() => setTimeout(show));
  };

  // Before the reader leaves results, keeps the chosen row and its place in the window for the way back, and
  // the listed conversations for the keys [ and ].
  const keep = () => {
    const row = current();
    if (!row) return;
    const isFocused = at("list").contains(document.activeElement);
    const { top } = row.getBoundingClientRect();
    const { href, search } = one("a", row);
    history.replaceState({ link: href, top, isFocused }, "");
    const list = all("#list .group").map((group) => {
      const title = one("h2 a", group);
      return [(one(".hits a", group) ?? title).href, title.innerText];
    });
    sessionStorage.results = JSON.stringify({ list, search, key: window.navigation?.currentEntry.key });
  };
  // What a click kept stays: a window that is left may have another layout already.
  let isKept = false;
  on("pagehide", () => isKept || keep());
  const left = () => JSON.parse(sessionStorage.results ?? "{}");

  // Moves the chosen row to where it stood, until the reader moves it.
  let stand = null;
  const restore = () => {
    const place = history.state;
    const row = all(ROWS).find((it) => one("a", it).href === place?.link);
    unfold(row);
    begin(row);
    stand = row && (() => row.isConnected && scrollBy(0, row.getBoundingClientRect().top - place.top));
    const again = () => stand?.();
    again();
    // Rows that come near the window get their heights in the next frame, and the field gets the focus.
    requestAnimationFrame(() => {
      if (row && place.isFocused) one("a", row).focus({ preventScroll: true });
      again(requestAnimationFrame(again));
    });
  };
  on("wheel pointerdown keydown", () => (stand = isKept = null), { passive: true });

  const step = (by) => {
    if (isSearch) return choose(at("list").contains(document.activeElement) ? by : 0);
    const prompts = all(".msg.you");
    const line = 140;
    const tops = prompts.map((it) => it.getBoundingClientRect().top);
    const next = by > 0 ? tops.findIndex((top) => top > line + 8) : tops.findLastIndex((top) => top < line - 8);
    if (!prompts[next]) return;
    scrollBy(0, tops[next] - line);
    one(".no", prompts[next]).focus({ preventScroll: true });
  };

  on("submit", (event) => {
    const { target } = event;
    const button = target.dataset.busy && one("button", target);
    if (button) Object.assign(button, { textContent: target.dataset.busy, disabled: true });
    if (target === within?.form) one(".hop [rel=next]")?.click();
    else if (target === zone) send(at("file").files[0]);
    else if (target === form && isSearch) choose(-rows().length);
    else return;
    event.preventDefault();
  });
  on("compositionstart compositionend input", ({ type, target, isComposing }) => {
    if (target !== field && target !== within) return;
    composing = type === "compositionstart" || (type === "input" && isComposing);
    if (!composing) target === field ? search() : find();
  });

  // Shows another address of the conversation in place of this one.
  let moving = false;
  const show = async (address) => {
    moving = true;
    const { ok, page } = await fetched(address, "page");
    moving = false;
    if (!ok) return location.replace(address);
    history.replaceState(null, "", address);
    renew(page);
    arrive(true);
  };
  // Changes the conversation into that of another page.
  const renew = (page) => {
    addNeighbours(page);
    morph(page, ".where", ".strip", "main");
  };
  const find = () => {
    const fields = new URLSearchParams(new FormData(within.form));
    if (!within.value.trim()) fields.delete("find");
    show(within.form.action + "?" + fields);
  };

  // Links to the conversations beside this one in the results.
  const addNeighbours = (page) => {
    const line = one(".where p", page);
    const id = (address) => new URL(address).pathname.split("/")[2];
    const list = left().list ?? [];
    const here = list.findIndex(([link]) => id(link) === id(location.href));
    for (const [by, key, sign, what] of [[-1, "[", "‹", "Previous"], [1, "]", "›", "Next"]]) {
      const [href, name] = (here >= 0 && list[here + by]) || [];
      if (!href) continue;
      const title = what + " conversation: " + name;
      const link = made("a", { href, className: "btn", title, ariaLabel: title, ariaKeyShortcuts: key, textContent: sign });
      line.append(" ", link);
    }
  };
  const arrive = (isNew) => {
    unfold(at("hit"));
    toMiddle(one(".where [aria-current]"), one(".where"));
    const scroll = () => (at("hit") ? toMiddle(at("hit")) : one(".msg[aria-current]")?.scrollIntoView());
    if (isNew) requestAnimationFrame(scroll, scroll());
    announce(() => one(".hop .count")?.textContent ?? "", 500);
  };

  on("click auxclick", (event) => {
    const control = event.target.closest("a, button, summary, input, label");
    if (control?.matches("summary")) control.parentElement.isUsers = true;
    // A row of the results acts as its link, unless the reader selected a part of its text.
    const isFree = event.button === 1 || (event.button === 0 && getSelection().isCollapsed);
    const target = !control && isFree && event.target.closest(ROWS);
    if (target) {
      const isNew = event.button || event.ctrlKey || event.metaKey || event.shiftKey;
      return isNew ? open(one("a", target).href) : one("a", target).click();
    }
    if (control?.dataset.copy === "code") copy(one("code", control.closest("figure, .row")).textContent);
    const link = event.type === "click" && event.target.closest("a");
    if (!link) return;
    const row = link.closest(ROWS) ?? one(ROWS, link.closest("#list .group") ?? link);
    if (row) become(row);
    keep();
    isKept = true;
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const { key, search: sought } = left();
    if (link.matches(".hop .btn")) {
      if (!moving) show(link.href);
    } else if (link.matches(".where .btn")) {
      location.replace(link.href);
    } else if (link.rel === "up" && link.search === sought && window.navigation?.entries().some((it) => it.key === key)) {
      navigation.traverseTo(key);
    } else if (link.dataset.copy) {
      copy(link.dataset.copy === "address" ? link.href : written(link.href));
    } else if (isSearch && "from" in link.dataset) {
      setDates(link.dataset.from, "");
    } else {
      return;
    }
    event.preventDefault();
  });
  // Filters and dates belong to the form, although they are elsewhere on the page.
  on("change", ({ target }) => {
    if (target.form === form && target !== field) search("pushState");
  });
  // The address that opened the page may hold the token, which nobody needs to see or to keep.
  const hideToken = () => {
    if (location.hash.startsWith("#token=")) history.replaceState(null, "", location.href.split("#")[0]);
  };
  hideToken();
  on("popstate", () => {
    hideToken();
    const wanted = new URLSearchParams(location.search);
    if (!isSearch || wanted.toString() === query()) return;
    if (!wanted.has("mode")) wanted.set("mode", "exact");
    for (const it of form.elements) {
      if (it.matches("[type=checkbox], [type=radio]")) it.checked = wanted.has(it.name, it.value);
      else if (it.name) it.value = wanted.get(it.name) ?? "";
    }
    search("popped", location.search.slice(1));
  });
  const setDates = (from, to, entry = "pushState") => {
    at("from").value = from;
    at("to").value = to;
    search(entry);
  };

  // The user sets the dates by dragging over the timeline, or by moving its two ends with keys.
  const months = () => all("#hist [data-month]");
  const shade = (...ends) => {
    const [first, last] = ends.sort((left, right) => left - right);
    one("#hist .brush")?.remove();
    months().forEach((month, n) => month.classList.toggle("in", n >= first && n <= last));
    return [first, last];
  };
  const setMonths = (entry, ...ends) => {
    const names = months().map((month) => month.dataset.month);
    const [first, last] = shade(...ends);
    const isAll = first === 0 && last === names.length - 1;
    setDates(isAll ? "" : names[first], isAll ? "" : names[last], entry);
  };
  let dragged = null;
  on("pointerdown pointermove pointerup pointercancel", (event) => {
    const kind = event.type.slice(7);
    const chart = one("#hist svg");
    const isFirst = kind === "down" && event.button === 0 && chart?.contains(event.target);
    if (!isFirst && dragged === null) return;
    const box = chart.getBoundingClientRect();
    const place = Math.floor(((event.clientX - box.left) / box.width) * chart.dataset.all);
    const month = Math.max(0, Math.min(months().length - 1, place));
    if (isFirst) dragged = month;
    kind === "up" ? setMonths("pushState", dragged, month) : shade(dragged, month);
    if (kind === "up" || kind === "cancel") dragged = null;
  });
  on("input change", ({ type, target }) => {
    if (!target.matches(".ends input")) return;
    target.value = Math.min(target.value, months().length - 1);
    target.ariaValueText = months()[target.value].textContent;
    const ends = all(".ends input").map((end) => +end.value);
    type === "input" ? shade(...ends) : setMonths("replaceState", ...ends);
  });

  // Keys that are one letter or sign can be switched off, because dictation would press them.
  const letters = at("letters");
  letters.checked = localStorage.letters !== "off";
  letters.onchange = () => (localStorage.letters = letters.checked ? "on" : "off");
  at("all-keys").onclick = () => keys.showModal();
  const toEdit = (input) => {
    input.focus();
    input.select();
  };
  on("keydown", (event) => {
    const { key, target, ctrlKey } = event;
    if (event.isComposing || event.altKey || event.metaKey) return;
    const isTyping = target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
    const name = ctrlKey ? "Control+" + key.toUpperCase() : key.replace(/^[A-Z]$/, "Shift+$&");
    const control = one(`[aria-keyshortcuts~="${CSS.escape(name)}"]`);
    const by = { j: 1, k: -1, ...(isSearch ? { ArrowDown: 1, ArrowUp: -1 } : { J: 1, K: -1 }) }[key];
    if (!ctrlKey && isTyping) {
      if (key === "Escape") target.blur();
      if (key !== "ArrowDown" || target !== field || !isSearch) return;
      choose(0);
    } else if (!ctrlKey && (keys.open || (key.length === 1 && !letters.checked))) return;
    else if (control) control.matches("input") ? toEdit(control) : control.click();
    else if (ctrlKey) return;
    else if (key === "y") copyChosen();
    else if (within && one(".hop") && /^n$/i.test(key)) flash(key === "n" ? "This is the last hit. ] opens the next conversation." : "This is the first hit.");
    else if (isSearch && key === "ArrowUp" && rows().indexOf(current()) < 1) field.focus();
    else if (by) step(by);
    else return;
    event.preventDefault();
  });

  let fading; // the timer that removes the note
  const flash = (words) => {
    say("flash", words);
    clearTimeout(fading);
    fading = setTimeout(() => at("flash")?.remove(), 1500 + 20 * words.length);
  };
  const copy = async (text) => {
    const writing = Promise.resolve(text).then((it) => navigator.clipboard.writeText(it));
    flash(await writing.then(() => "Copied", () => "Not copied"));
  };
  const written = async (address) => {
    const { ok, text } = await fetched(address, "text");
    return ok ? text : Promise.reject();
  };
  // Copies the chosen message: a result, or a message of the conversation.
  const copyChosen = () => {
    const message = document.activeElement.closest(".msg") ?? current() ?? one(".msg[aria-current]");
    const link = message && one(".no, h2 a", message);
    if (link) copy(written(new URL(link.href).pathname + ".md"));
  };

  // Sends an export that the user drops on the page or chooses.
  const zone = at("drop");
  let sending = false;
  const watch = async () => {
    const answer = await fetch("/import/progress").catch(() => null);
    if (!answer) at("progress").textContent = "verbatim stopped during the import. Start it again, then import the file again.";
    else if (answer.ok) at("progress").outerHTML = await answer.text();
    if (answer && (sending || "running" in at("progress").dataset)) setTimeout(watch, 300);
    else announce(() => at("progress").innerText);
  };
  const send = async (file) => {
    if (!file || sending) return;
    sending = true;
    setTimeout(watch, 100);
    const branches = at("branches")?.checked ? "&branches=all" : "";
    const address = "/import?name=" + encodeURIComponent(file.name) + branches;
    // The progress on the page reports an error.
    const answer = await fetch(address, { method: "POST", body: file }).catch(() => null);
    // Another import is running, and the page shows the progress of that import.
    if (answer?.status === 409) alert(await answer.text());
    sending = false;
  };
  if (zone) {
    on("dragover dragleave drop", (event) => {
      event.preventDefault();
      zone.classList.toggle("over", event.type === "dragover");
      const { files } = event.dataTransfer;
      if (event.type !== "drop") return;
      files.length > 1 ? alert("One file at a time, please: drop the next when this one is imported.") : send(files[0]);
    });
    if ("running" in at("progress").dataset) watch();
  }

  // Shows new data without a reload. The server says whether something changed.
  let stamp = document.body.dataset.stamp;
  const refresh = async () => {
    if (isSearch) return search("stays");
    const thread = one(".thread");
    if (moving || (!thread && !/^\/(stats|status)$/.test(location.pathname))) return;
    const { ok, page } = await fetched(location.pathname + location.search, "page");
    if (!ok) return;
    if (!thread) return morph(page, "main");
    const isAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 200;
    const messages = () => all(".msg").map((message) => message.id);
    const known = new Set(messages());
    renew(page);
    const fresh = messages().filter((id) => !known.has(id));
    if (!fresh.length) return;
    if (isAtEnd) return scrollTo(0, document.documentElement.scrollHeight);
    const onclick = () => at("fresh").remove();
    const link = made("a", { href: "#" + fresh[0], textContent: "Show", onclick });
    say("fresh", fresh.length + " new message" + (fresh.length === 1 ? "." : "s."), " ", link);
  };
  const pulse = async () => {
    if (!document.hidden && stamp) {
      try {
        const answer = await fetch("/pulse");
        if (answer.status === 401) return location.reload();
        const now = await answer.text();
        // Nothing changes while the user composes a character.
        if (answer.ok && (now !== stamp || at("gone")) && !composing) {
          stamp = now;
          at("gone")?.remove();
          refresh();
        }
      } catch {
        gone();
      }
    }
    setTimeout(pulse, 1000);
  };
  setTimeout(pulse, 1000);

  if (within) {
    addNeighbours(document);
    // An address that was opened before is where the reader left it.
    const isNew = performance.getEntriesByType("navigation")[0].type === "navigate";
    arrive(isNew && (!location.hash || location.hash === "#hit"));
  }

  if (isSearch) {
    // Puts the text cursor at the end of the typed text.
    field.setSelectionRange(field.value.length, field.value.length);
    history.scrollRestoration = "manual";
    restore();
    count(query());
  }

  // The open filters cover the results of a phone. Another button clears the search field, which keeps the focus.
  const addCovers = () => {
    const fold = () => at("facets");
    const covers = () => !!fold()?.open && getComputedStyle(fold().parentElement).position === "fixed";
    const close = () => (fold().open = !covers() && fold().open);
    if (isSearch) {
      form.addEventListener("submit", close);
      at("main").addEventListener("focusin", close);
      addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || !covers()) return;
        close();
        fold().querySelector("summary").focus();
      });
    }
    const clear = form.querySelector(".clear");
    clear.addEventListener("mousedown", (event) => event.preventDefault());
    clear.addEventListener("click", (event) => {
      event.preventDefault();
      field.value = "";
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.focus();
    });
  };
  addCovers();
});
