"use strict";
// Makes the page faster: results while the user types, keys, and copying. The page works without this script.
document.documentElement.classList.add("js");

addEventListener("DOMContentLoaded", () => {
  const at = (id) => document.getElementById(id);
  const form = at("find");
  const field = at("q");
  const keys = at("keys");
  const isSearch = !!at("list");
  let asked = null; // the request for results that is under way
  let counting = null; // the request for counts
  let waiting = 0; // the timer of the next request for counts
  const PAUSE = 100; // milliseconds without a key before messages are counted
  let composing = false;
  let chosen = 0;
  let listed = at("list")?.innerHTML; // the list as the server sent it, without a chosen result

  // The query string of the form, as the browser would send it without this script.
  const query = () => {
    const fields = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (value !== "" && !(name === "mode" && value === "exact")) fields.append(name, value);
    }
    return fields.toString();
  };

  const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

  const swap = (from, id) => {
    const now = at(id);
    const next = from.getElementById(id);
    if (now && next) now.replaceWith(next);
  };

  const fetched = async (address, signal) => {
    const answer = await fetch(address, { signal, headers: { accept: "text/html" } });
    if (answer.redirected || answer.status === 401 || answer.status === 403) {
      location.reload();
    }
    return { ok: answer.ok, page: parsed(await answer.text()) };
  };

  // What a screen reader says. The results change with every key, so it says them when typing rests.
  let saying = 0;
  const announce = (words, after = 0) => {
    clearTimeout(saying);
    saying = setTimeout(() => (at("said").textContent = words().trim()), after);
  };

  const complain = (words) => {
    const note = document.createElement("p");
    note.className = "say warn";
    note.textContent = words;
    at("count").replaceChildren(note);
  };

  // Searches, and replaces or adds an entry of the browser's history. With `stays`, repeats the same search,
  // and the chosen result stays chosen.
  const search = async (entry = "replaceState", fields = query()) => {
    const keeps = entry === "stays";
    if (!isSearch) return;
    if (entry === "pushState") keep();
    asked?.abort();
    counting?.abort();
    clearTimeout(waiting);
    const mine = (asked = new AbortController());
    const slow = setTimeout(() => at("main").setAttribute("aria-busy", "true"), 300);
    if (entry in history) history[entry](null, "", fields ? "/?" + fields : "/");
    try {
      const { ok, page } = await fetched("/results?" + fields, asked.signal);
      if (!ok) {
        complain(page.querySelector("main p")?.textContent || "The server gave no answer.");
        at("list").replaceChildren();
        return;
      }
      const sent = page.getElementById("list")?.innerHTML;
      const isSame = keeps && sent === listed;
      listed = sent;
      for (const part of ["count", "range"]) swap(page, part);
      if (!isSame) {
        const link = keeps && at("list").querySelector("[aria-current] a")?.href;
        const wasFocused = at("list").contains(document.activeElement);
        swap(page, "list");
        entry === "popped" ? restore() : begin(link, wasFocused);
      } else {
        rank(at("list").querySelector("[aria-current]"));
      }
      document.title = (field.value.trim() || "Search") + " – verbatim";
      // Counting waits while the user types, because it would delay the next results.
      waiting = setTimeout(() => count(fields), PAUSE);
    } catch (error) {
      if (error.name !== "AbortError") {
        complain("verbatim does not answer. Start it again: this search goes on by itself.");
      }
    } finally {
      clearTimeout(slow);
      if (asked === mine) {
        at("main").removeAttribute("aria-busy");
        if (!keeps) announce(() => (at("status") ?? at("count").firstElementChild).textContent, 500);
      }
    }
  };

  // Requests counts after the results. If counting takes long, the first counts are lower bounds.
  const count = async (fields) => {
    counting?.abort();
    counting = new AbortController();
    const { signal } = counting;
    try {
      for (const first of ["first=1&", ""]) {
        const { ok, page } = await fetched("/facets?" + first + fields, signal);
        if (ok) showCounts(page);
        if (ok && !page.querySelector("#exact[data-more]")) return;
      }
    } catch (error) {
      if (error.name !== "AbortError") at("hist")?.replaceChildren();
    }
  };

  const showCounts = (page) => {
    const facets = at("facets");
    const focused = document.activeElement;
    const folds = () => [...document.querySelectorAll("#facets, #facets details")];
    const wereOpen = folds().map((fold) => fold.open);
    const mark = facets.contains(focused) && focused.name && [focused.name, focused.value];
    swap(page, "facets");
    folds().forEach((fold, n) => (fold.open = wereOpen[n] ?? fold.open));
    const end = ["First month", "Last month"].indexOf(focused.ariaLabel);
    swap(page, "hist");
    addEnds();
    point();
    stand?.();
    if (end >= 0) at("hist").querySelectorAll("input")[end]?.focus();
    if (mark) {
      const same = [...at("facets").querySelectorAll("input")];
      same.find((one) => one.name === mark[0] && one.value === mark[1])?.focus();
    }
    const exact = page.getElementById("exact");
    const status = at("status");
    const known = at("total");
    const isBetter = exact && known && (!("more" in exact.dataset) || +exact.dataset.count > +known.dataset.count);
    if (isBetter && status) {
      status.replaceChildren(...exact.childNodes);
      const total = Object.assign(status.firstElementChild, { id: "total" });
      total.dataset.count = exact.dataset.count;
    }
  };

  // The rows that the keys j and k choose: the results, or the user's messages.
  const ROWS = "#list .hits li, #list .group:not(:has(.hits))";
  const rows = () => [...document.querySelectorAll(ROWS)]
    .filter((row) => row.checkVisibility());

  const become = (row) => {
    chosen = rows().indexOf(row);
    at("list").querySelectorAll("[aria-current]").forEach((one) => one.removeAttribute("aria-current"));
    row.setAttribute("aria-current", "true");
    point();
    rank(row);
  };

  const choose = (to) => {
    const all = rows();
    if (!all.length) return;
    const row = all[Math.max(0, Math.min(all.length - 1, to))];
    become(row);
    row.scrollIntoView({ block: "nearest" });
    const link = row.querySelector("a");
    link.focus({ preventScroll: true });
    peek(link);
  };

  // Shows the place of the chosen row in the list, before the number of all messages.
  const rank = (row) => {
    const place = [...document.querySelectorAll("#list .hits li")].indexOf(row) + 1;
    at("rank")?.replaceChildren(place ? place + " of " : "");
  };

  // Scrolls a box, or the window, to one of its elements, and code or a table to the side. Nothing else moves.
  const toMiddle = (one, box = document.documentElement) => {
    if (!one) return;
    const from = (outer, side) => one.getBoundingClientRect()[side] - Math.max(0, outer.getBoundingClientRect()[side]);
    const wide = one.closest("pre, .scroll");
    if (wide) wide.scrollLeft += from(wide, "left") - wide.clientWidth / 3;
    box.scrollTop += from(box, "top") - box.clientHeight / 2;
  };

  let peeking = null;
  const peek = async (link) => {
    const pane = at("peek");
    if (!pane || !pane.checkVisibility()) return;
    peeking?.abort();
    peeking = new AbortController();
    const address = new URL(link.href);
    try {
      // The link of a conversation shows its first message.
      const path = address.pathname.replace(/^\/c\/([^/]+)$/, "$&/1").replace(/^\/c\//, "/peek/");
      const answer = await fetch(path + address.search, { signal: peeking.signal });
      if (!answer.ok) return;
      pane.replaceChildren(...parsed(await answer.text()).body.childNodes);
      copies(pane);
      pane.scrollTop = 0;
      toMiddle(pane.querySelector("mark.now"), pane);
    } catch (error) {
      if (error.name !== "AbortError") pane.replaceChildren();
    }
  };

  // Marks the month of the chosen result in the timeline.
  const point = () => {
    const group = document.querySelector("#list [aria-current]")?.closest(".group");
    const month = group?.querySelector("time")?.dateTime.slice(0, 7);
    document.querySelector("#hist .here")?.remove();
    const bar = months().find((one) => one.dataset.month === month);
    const tick = bar?.cloneNode();
    tick?.removeAttribute("data-month");
    tick?.classList.add("here");
    tick?.setAttribute("y", 50);
    tick?.setAttribute("height", 3);
    bar?.after(tick);
  };

  // Chooses the first result, or the result with `link`. The text cursor does not move.
  const begin = (link, isFocused) => {
    // Finding all rows needs a layout of the page, which would delay the results.
    const all = link ? rows() : [document.querySelector(ROWS)];
    chosen = Math.max(0, all.findIndex((row) => row?.querySelector("a").href === link));
    const row = all[chosen];
    row?.setAttribute("aria-current", "true");
    rank(row);
    if (!link) {
      peeking?.abort();
      at("peek")?.replaceChildren();
    }
    const show = () => row.isConnected && peek(row.querySelector("a"));
    if (row) requestAnimationFrame(() => setTimeout(show));
    if (isFocused) row?.querySelector("a").focus({ preventScroll: true });
  };

  // Before the reader leaves results, keeps the chosen row and its place in the window for the way back, and
  // the listed conversations for the keys [ and ].
  const keep = () => {
    const row = isSearch && at("list").querySelector("[aria-current]");
    if (!row) return;
    const isFocused = at("list").contains(document.activeElement);
    const { top } = row.getBoundingClientRect();
    history.replaceState({ link: row.querySelector("a").href, top, isFocused }, "");
    const list = [...document.querySelectorAll("#list .group")].map((group) => {
      const title = group.querySelector("h2 a");
      return [(group.querySelector(".hits a") ?? title).href, title.innerText];
    });
    sessionStorage.results = JSON.stringify({ list, address: location.href, key: window.navigation?.currentEntry.key });
  };
  addEventListener("pagehide", keep);
  const left = () => JSON.parse(sessionStorage.results ?? "{}");

  // Moves the chosen row to where it stood, until the reader moves it.
  let stand = null;
  const restore = () => {
    const place = history.state;
    const row = place && [...document.querySelectorAll(ROWS)].find((one) => one.querySelector("a").href === place.link);
    row?.closest("details")?.setAttribute("open", "");
    begin(row && place.link);
    stand = row && (() => row.isConnected && scrollBy(0, row.getBoundingClientRect().top - place.top));
    const again = () => stand?.();
    again();
    // Rows that come near the window get their heights in the next frame, and the field gets the focus.
    requestAnimationFrame(() => {
      if (row && place.isFocused) row.querySelector("a").focus({ preventScroll: true });
      again(requestAnimationFrame(again));
    });
  };
  for (const kind of ["wheel", "pointerdown", "keydown"]) addEventListener(kind, () => (stand = null), { passive: true });

  const step = (by) => {
    if (isSearch) {
      const isThere = at("list").contains(document.activeElement);
      return choose(isThere ? chosen + by : chosen);
    }
    const prompts = [...document.querySelectorAll(".msg.you")];
    if (!prompts.length) return;
    const line = 140;
    const tops = prompts.map((one) => one.getBoundingClientRect().top);
    const next = by > 0 ? tops.findIndex((top) => top > line + 8) : tops.findLastIndex((top) => top < line - 8);
    if (next < 0) return;
    scrollBy(0, tops[next] - line);
    prompts[next].querySelector(".no").focus({ preventScroll: true });
  };

  form?.addEventListener("submit", (event) => {
    if (!isSearch) return;
    event.preventDefault();
    choose(0);
  });
  const within = at("within");
  for (const [input, act] of [[field, () => search()], [within, () => find()]]) {
    input?.addEventListener("compositionstart", () => (composing = true));
    input?.addEventListener("compositionend", () => {
      composing = false;
      act();
    });
    input?.addEventListener("input", (event) => {
      if (!composing && !event.isComposing) act();
    });
  }

  // Shows another address of the conversation in place of this one. The text cursor stays in the field.
  let moving = null;
  const show = async (address) => {
    moving?.abort();
    const mine = (moving = new AbortController());
    try {
      const { ok, page } = await fetched(address, mine.signal);
      if (!ok) throw new Error(address);
      history.replaceState(null, "", address);
      const { rel } = document.activeElement;
      for (const part of [".where", ".strip", ".head", ".about", ".views"]) {
        document.querySelector(part).replaceWith(page.querySelector(part));
      }
      const [old, next] = [document, page].map((it) => it.getElementById("within").form);
      while (old.nextSibling) old.nextSibling.remove();
      while (next.nextSibling) old.parentNode.append(next.nextSibling);
      if (rel) document.querySelector(`.hop [rel=${rel}]`)?.focus({ preventScroll: true });
      copies(at("main"));
      arrive(true);
    } catch (error) {
      if (error.name !== "AbortError") location.replace(address);
    }
    if (moving === mine) moving = null;
  };
  const find = () => {
    const fields = new URLSearchParams(new FormData(within.form));
    if (!within.value.trim()) fields.delete("find");
    show(within.form.action + "?" + fields);
  };
  within?.form.addEventListener("submit", (event) => {
    event.preventDefault();
    go(".hop [rel=next]");
  });

  // Links to the conversations beside this one in the results, and shows the chosen row.
  const addNeighbours = () => {
    const rail = document.querySelector(".where");
    if (rail.querySelector(".btn")) return;
    const id = (address) => new URL(address).pathname.split("/")[2];
    const list = left().list ?? [];
    const here = list.findIndex(([link]) => id(link) === id(location.href));
    for (const [by, key, sign, what] of [[-1, "[", "‹", "Previous"], [1, "]", "›", "Next"]]) {
      const [href, name] = (here >= 0 && list[here + by]) || [];
      if (!href) continue;
      const title = what + " conversation: " + name;
      const link = Object.assign(document.createElement("a"), { href, className: "btn", title, ariaLabel: title, textContent: sign });
      link.setAttribute("aria-keyshortcuts", key);
      rail.querySelector("p").append(" ", link);
    }
    toMiddle(rail.querySelector("[aria-current]"), rail);
  };
  const arrive = (isNew) => {
    addNeighbours();
    const scroll = () => (at("hit") ? toMiddle(at("hit")) : document.querySelector(".msg[aria-current]")?.scrollIntoView());
    if (isNew) requestAnimationFrame(scroll, scroll());
    const place = document.querySelector(".hop .count");
    if (place) announce(() => place.textContent, 500);
  };

  const go = (selector) => document.querySelector(selector)?.click();
  // An address with its fields in order, because the form and the server order them differently.
  const sorted = (address) => {
    const { pathname, searchParams } = new URL(address, location);
    searchParams.sort();
    return pathname + "?" + searchParams;
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    const row = link.closest(ROWS) ?? link.closest("#list .group")?.querySelector(ROWS);
    if (row) become(row);
    keep();
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const { key, address = "" } = left();
    const cameFrom = () => window.navigation?.entries().some((entry) => entry.key === key);
    if (link.matches(".hop .btn")) {
      if (!moving) show(link.href);
    } else if (link.matches(".where .btn")) {
      location.replace(link.href);
    } else if (link.rel === "up" && sorted(link.href) === sorted(address) && cameFrom()) {
      navigation.traverseTo(key);
    } else if (link.dataset.copy) {
      copied(link, link.dataset.copy === "address" ? link.href : markdown(link));
    } else {
      return;
    }
    event.preventDefault();
  });
  // Filters and dates belong to the form, although they are elsewhere on the page.
  document.addEventListener("change", (event) => {
    if (event.target.form === form && event.target !== field) search("pushState");
  });
  // The address that opened the page may hold the token, which nobody needs to see or to keep.
  const hideToken = () => {
    if (location.hash.startsWith("#token=")) history.replaceState(null, "", location.pathname + location.search);
  };
  hideToken();
  addEventListener("popstate", () => {
    hideToken();
    const wanted = new URLSearchParams(location.search);
    if (!isSearch || wanted.toString() === query()) return;
    if (!wanted.has("mode")) wanted.set("mode", "exact");
    for (const one of form.elements) {
      if (one.matches("[type=checkbox], [type=radio]")) one.checked = wanted.has(one.name, one.value);
      else if (one.name) one.value = wanted.get(one.name) ?? "";
    }
    search("popped", location.search.slice(1));
  });
  const setDates = (from, to, entry = "pushState") => {
    at("from").value = from;
    at("to").value = to;
    search(entry);
  };
  document.addEventListener("click", (event) => {
    const preset = event.target.closest("[data-from]");
    if (preset && isSearch) {
      event.preventDefault();
      setDates(preset.dataset.from, "");
    }
  });

  // The user sets the dates by dragging over the timeline, or by moving its two ends with keys.
  const months = () => [...document.querySelectorAll("#hist [data-month]")];
  const shade = (one, other) => {
    const [first, last] = one < other ? [one, other] : [other, one];
    document.querySelector("#hist .brush")?.remove();
    months().forEach((month, n) => month.classList.toggle("in", n >= first && n <= last));
    return [first, last];
  };
  const setMonths = (one, other, entry) => {
    const all = months();
    const [first, last] = shade(one, other);
    const isAll = first === 0 && last === all.length - 1;
    setDates(isAll ? "" : all[first].dataset.month, isAll ? "" : all[last].dataset.month, entry);
  };
  const monthAt = (event) => {
    const chart = at("hist").querySelector("svg");
    const box = chart.getBoundingClientRect();
    const place = Math.floor(((event.clientX - box.left) / box.width) * chart.dataset.all);
    return Math.max(0, Math.min(months().length - 1, place));
  };
  let dragged = null;
  document.addEventListener("pointerdown", (event) => {
    const chart = event.target.closest("#hist svg");
    if (!chart || event.button !== 0) return;
    event.preventDefault();
    dragged = monthAt(event);
    shade(dragged, dragged);
  });
  document.addEventListener("pointermove", (event) => {
    if (dragged !== null) shade(dragged, monthAt(event));
  });
  document.addEventListener("pointerup", (event) => {
    if (dragged !== null) setMonths(dragged, monthAt(event));
    dragged = null;
  });
  document.addEventListener("pointercancel", () => (dragged = null));
  const addEnds = () => {
    const all = months();
    if (all.length < 2 || at("hist").querySelector("input")) return;
    const inside = all.flatMap((month, n) => (month.classList.contains("in") ? [n] : []));
    const box = document.createElement("div");
    box.className = "ends";
    box.style.width = (100 * all.length) / at("hist").querySelector("svg").dataset.all + "%";
    const ends = [["First month", inside[0] ?? 0], ["Last month", inside.at(-1) ?? all.length - 1]];
    const inputs = ends.map(([label, value]) => {
      const input = document.createElement("input");
      Object.assign(input, { type: "range", min: 0, max: all.length - 1, value, ariaLabel: label });
      input.ariaValueText = all[value].textContent;
      return input;
    });
    box.append(...inputs);
    const values = () => inputs.map((input) => +input.value);
    box.addEventListener("input", (event) => {
      event.target.ariaValueText = all[event.target.value].textContent;
      shade(...values());
    });
    box.addEventListener("change", () => setMonths(...values(), "replaceState"));
    at("hist").append(box);
  };

  // Keys that are one letter or sign can be switched off, because dictation would press them.
  const letters = at("letters");
  letters.checked = localStorage.letters !== "off";
  letters.addEventListener("change", () => (localStorage.letters = letters.checked ? "on" : "off"));
  at("all-keys").addEventListener("click", () => keys.showModal());
  const toEdit = (input) => {
    input.focus();
    input.select();
  };
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey || event.metaKey) return;
    const typing = event.target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
    if (event.ctrlKey) {
      if (event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      return toEdit(field);
    }
    if (typing) {
      if (event.key === "ArrowDown" && event.target === field && isSearch) {
        event.preventDefault();
        choose(chosen);
      } else if (event.key === "Escape") {
        event.target.blur();
      }
      return;
    }
    if (keys.open || (event.key.length === 1 && !letters.checked)) return;
    const acts = {
      "/": () => toEdit(field),
      "?": () => keys.showModal(),
      j: () => step(1),
      k: () => step(-1),
      J: !isSearch && (() => step(1)),
      K: !isSearch && (() => step(-1)),
      ArrowDown: isSearch && (() => step(1)),
      ArrowUp: isSearch && (() => (chosen <= 0 ? field.focus() : step(-1))),
      n: () => go(".hop [rel=next]"),
      N: () => go(".hop [rel=prev]"),
      f: within && (() => toEdit(within)),
      "[": () => go("[aria-keyshortcuts='[']"),
      "]": () => go("[aria-keyshortcuts=']']"),
      u: () => go("[rel=up]"),
    };
    const act = acts[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });

  // Adds copy buttons to code and to whole conversations.
  const copied = async (button, text) => {
    const words = button.textContent;
    try {
      await navigator.clipboard.writeText(await text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    announce(() => button.textContent);
    setTimeout(() => (button.textContent = words), 1500);
  };
  const copies = (within) => {
    within.querySelectorAll("figure.code, [data-copied]").forEach((place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      const code = place.matches("code") ? place : place.querySelector("code");
      button.addEventListener("click", () => copied(button, code.textContent));
      if (place.matches("code")) {
        button.className = "btn";
        place.after(" ", button);
      } else {
        place.querySelector("figcaption").append(button);
      }
    });
  };
  copies(document);
  const markdown = async (link) => {
    const answer = await fetch(link.href);
    // If the answer is not a conversation, for example after the login has expired, opens the address.
    if (!answer.ok) location.assign(link.href);
    return answer.text();
  };

  // Sends an export that the user drops on the page or chooses.
  const zone = at("drop");
  let sending = false;
  const watch = async () => {
    try {
      const answer = await fetch("/import/progress");
      if (answer.ok) swap(parsed(await answer.text()), "progress");
    } catch {
      const words = "verbatim stopped during the import. Start it again, then import the file again.";
      at("progress").textContent = words;
      announce(() => words);
      return;
    }
    if (sending || "running" in at("progress").dataset) setTimeout(watch, 300);
    else announce(() => at("progress").innerText);
  };
  const send = async (file) => {
    if (!file || sending) return;
    sending = true;
    setTimeout(watch, 100);
    try {
      const branches = at("branches")?.checked ? "&branches=all" : "";
      const answer = await fetch("/import?name=" + encodeURIComponent(file.name) + branches, { method: "POST", body: file });
      // Another import is running, and the page shows the progress of that import.
      if (answer.status === 409) alert(await answer.text());
    } catch {
      // The progress on the page reports the error.
    }
    sending = false;
  };
  if (zone) {
    zone.addEventListener("submit", (event) => {
      event.preventDefault();
      send(at("file").files[0]);
    });
    addEventListener("dragover", (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
    addEventListener("dragleave", () => zone.classList.remove("over"));
    addEventListener("drop", (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      if (event.dataTransfer.files.length > 1) return alert("One file at a time, please: drop the next when this one is imported.");
      send(event.dataTransfer.files[0]);
    });
    if (at("progress") && "running" in at("progress").dataset) watch();
  }

  document.querySelectorAll("form[data-busy]").forEach((busy) => {
    busy.addEventListener("submit", () => {
      const button = busy.querySelector("button");
      button.textContent = busy.dataset.busy;
      button.disabled = true;
    });
  });

  // Shows new data without a reload. The server says whether something changed.
  const EVERY = 1000;
  let stamp = document.body.dataset.stamp;
  const say = (id, words, more) => {
    let note = at(id);
    if (note?.firstChild.data !== words) announce(() => words);
    if (!note) {
      note = document.createElement("p");
      note.id = id;
      note.className = "toast";
      document.body.append(note);
    }
    note.replaceChildren(words, ...(more ? [" ", more] : []));
  };
  const refreshTalk = (page) => {
    const isAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 200;
    const thread = document.querySelector(".thread");
    // A fold that the user opened has the focus, and goes on.
    const isBusy = (message) => {
      const focused = document.activeElement;
      return (message.contains(focused) && !focused.matches("summary")) || getSelection().containsNode(message, true);
    };
    copies(page);
    const known = new Set([...thread.querySelectorAll(".msg")].map((message) => message.id));
    const added = [...page.querySelectorAll(".thread > .msg")].filter((message) => !known.has(message.id));
    const last = thread.querySelector(":scope > .msg:last-of-type");
    last ? last.after(...added) : thread.append(...added);
    // The last message becomes longer while an agent writes it, or gets more steps.
    const now = last && page.getElementById(last.id);
    if (now && now.textContent !== last.textContent && !isBusy(last)) {
      const folds = (within) => [...within.querySelectorAll(".fold")];
      const open = folds(last).map((fold) => fold.open);
      const wasOpen = last.querySelector(".run[open]") || open.includes(true);
      const focused = last.contains(document.activeElement);
      last.replaceWith(now);
      folds(now).forEach((fold, n) => (fold.open = fold.open || !!open[n]));
      const run = now.querySelector(".run");
      if (run && wasOpen) run.open = true;
      if (focused) now.querySelector("summary")?.focus({ preventScroll: true });
    }
    const fresh = [...thread.querySelectorAll(".msg")].filter((message) => !known.has(message.id));
    for (const part of [".where", ".strip", ".facts", ".hop .count", ".thread > .pages:last-child"]) {
      const now = document.querySelector(part);
      const after = page.querySelector(part);
      if (now && after && !now.contains(document.activeElement)) now.replaceWith(after);
      else if (!now && after && part.includes("pages")) thread.append(after);
    }
    addNeighbours();
    if (!fresh.length) return;
    if (isAtEnd) return scrollTo(0, document.documentElement.scrollHeight);
    const link = document.createElement("a");
    link.href = "#" + fresh[0].id;
    link.textContent = "Show";
    link.addEventListener("click", () => at("fresh").remove());
    say("fresh", fresh.length + (fresh.length === 1 ? " new message." : " new messages."), link);
  };
  const refresh = async () => {
    if (isSearch) return search("stays");
    const isTalk = !!document.querySelector(".thread");
    const isReport = /^\/(stats|status)$/.test(location.pathname);
    if (!isTalk && !isReport) return;
    const { ok, page } = await fetched(location.pathname + location.search);
    if (!ok) return;
    if (isTalk) return refreshTalk(page);
    const open = [...document.querySelectorAll("main details")].map((fold) => fold.open);
    document.querySelector("main").replaceWith(page.querySelector("main"));
    document.querySelectorAll("main details").forEach((fold, n) => (fold.open = !!open[n]));
  };
  const pulse = async () => {
    if (!document.hidden && stamp) {
      try {
        const answer = await fetch("/pulse");
        if (answer.status === 401) return location.reload();
        const now = await answer.text();
        // Nothing is refreshed while the user composes a character; the next pulse checks again.
        if (answer.ok && (now !== stamp || at("gone")) && !composing) {
          stamp = now;
          at("gone")?.remove();
          await refresh();
        }
      } catch (error) {
        if (error.name !== "AbortError") {
          say("gone", "verbatim does not answer. Start it again: this page goes on by itself.");
        }
      }
    }
    setTimeout(pulse, EVERY);
  };
  setTimeout(pulse, EVERY);

  if (within) {
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
      field.dispatchEvent(new Event("input"));
      field.focus();
    });
  };
  addCovers();
});
