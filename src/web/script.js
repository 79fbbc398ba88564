"use strict";
// Makes the page quicker: results while somebody types, keys, and copying. Without it everything works.
document.documentElement.classList.add("js");

addEventListener("DOMContentLoaded", () => {
  const at = (id) => document.getElementById(id);
  const form = at("find");
  const field = at("q");
  const keys = at("keys");
  const isSearch = !!at("list");
  let asked = null; // the request for results that is under way
  let counting = null; // the request for counts
  let composing = false;
  let chosen = 0;

  // The address that the form means; the same as without this script.
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

  const complain = (words) => {
    const note = document.createElement("p");
    note.className = "say warn";
    note.textContent = words;
    at("count").replaceChildren(note);
  };

  const search = async () => {
    const fields = query();
    if (!isSearch) {
      return;
    }
    asked?.abort();
    counting?.abort();
    asked = new AbortController();
    history.replaceState(null, "", fields ? "/?" + fields : "/");
    try {
      const { ok, page } = await fetched("/results?" + fields, asked.signal);
      if (!ok) {
        complain(page.querySelector("main p")?.textContent || "The server gave no answer.");
        at("list").replaceChildren();
        return;
      }
      swap(page, "count");
      swap(page, "list");
      document.title = (field.value.trim() || "Search") + " – verbatim";
      begin();
      count(fields);
    } catch (error) {
      if (error.name !== "AbortError") {
        complain("verbatim does not answer. Start it again, then reload this page.");
      }
    }
  };

  // Counts come after the results, and never in their way.
  const count = async (fields) => {
    counting?.abort();
    counting = new AbortController();
    try {
      const { ok, page } = await fetched("/facets?" + fields, counting.signal);
      if (!ok) return;
      const facets = at("facets");
      const focused = document.activeElement;
      const wasOpen = facets.open;
      const mark = facets.contains(focused) && focused.name && [focused.name, focused.value];
      swap(page, "facets");
      at("facets").open = wasOpen;
      swap(page, "hist");
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
        status.firstElementChild.id = "total";
      }
    } catch (error) {
      if (error.name !== "AbortError") at("hist")?.replaceChildren();
    }
  };

  // Rows that j and k go through: the results, or the messages of a person.
  const rows = () => [...document.querySelectorAll("#list .hits li, #list .group:not(:has(.hits))")]
    .filter((row) => row.checkVisibility());

  const choose = (to) => {
    const all = rows();
    if (!all.length) return;
    chosen = Math.max(0, Math.min(all.length - 1, to));
    document.querySelectorAll("#list [aria-current]").forEach((row) => row.removeAttribute("aria-current"));
    const row = all[chosen];
    row.setAttribute("aria-current", "true");
    row.scrollIntoView({ block: "nearest" });
    const link = row.querySelector("a");
    link.focus({ preventScroll: true });
    peek(link);
  };

  let peeking = null;
  const peek = async (link) => {
    const pane = at("peek");
    if (!pane || !pane.checkVisibility() || !link.classList.contains("no")) return;
    peeking?.abort();
    peeking = new AbortController();
    const address = new URL(link.href);
    try {
      const path = address.pathname.replace(/^\/c\//, "/peek/");
      const answer = await fetch(path + address.search, { signal: peeking.signal });
      if (!answer.ok) return;
      pane.replaceChildren(...parsed(await answer.text()).body.childNodes);
      copies(pane);
      // Only the pane is scrolled, never the list beside it.
      const mark = pane.querySelector("mark.now");
      const from = (box, side) => mark.getBoundingClientRect()[side] - box.getBoundingClientRect()[side];
      const code = mark?.closest("pre");
      if (code) code.scrollLeft += from(code, "left") - code.clientWidth / 3;
      pane.scrollTop = mark ? pane.scrollTop + from(pane, "top") - pane.clientHeight / 3 : 0;
    } catch (error) {
      if (error.name !== "AbortError") pane.replaceChildren();
    }
  };

  // The first result is chosen, and the caret stays where it is.
  const begin = () => {
    chosen = 0;
    const row = rows()[0];
    row?.setAttribute("aria-current", "true");
    at("peek")?.replaceChildren();
    if (row) peek(row.querySelector("a"));
  };

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
  field?.addEventListener("compositionstart", () => (composing = true));
  field?.addEventListener("compositionend", () => {
    composing = false;
    search();
  });
  field?.addEventListener("input", (event) => {
    if (!composing && !event.isComposing) search();
  });
  // Filters and dates belong to the form, and stand elsewhere.
  document.addEventListener("change", (event) => {
    if (event.target.form === form && event.target !== field && isSearch) search();
  });
  document.addEventListener("click", (event) => {
    const preset = event.target.closest("[data-from]");
    const month = event.target.closest("[data-month]");
    if (preset || month) {
      event.preventDefault();
      at("from").value = preset ? preset.dataset.from : month.dataset.month;
      at("to").value = preset ? "" : month.dataset.month;
      search();
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey || event.metaKey) return;
    const typing = event.target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
    const go = (selector) => document.querySelector(selector)?.click();
    if (event.ctrlKey) {
      if (event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      field.focus();
      field.select();
      return;
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
    if (keys?.open) return;
    const acts = {
      "/": () => { field.focus(); field.select(); },
      "?": () => keys.showModal(),
      j: () => step(1),
      k: () => step(-1),
      ArrowDown: isSearch && (() => step(1)),
      ArrowUp: isSearch && (() => (chosen <= 0 ? field.focus() : step(-1))),
      n: () => go(".hop [rel=next]"),
      N: () => go(".hop [rel=prev]"),
      u: () => go("[rel=up]"),
    };
    const act = acts[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });

  // Buttons that copy, beside code and for whole conversations.
  const copied = async (button, text) => {
    const words = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
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
  document.querySelectorAll("[data-copy]").forEach((link) => {
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      const text = link.dataset.copy === "address" ? link.href : await (await fetch(link.href)).text();
      copied(link, text);
    });
  });

  // An export that is dropped on the page, or chosen.
  const zone = at("drop");
  let sending = false;
  const watch = async () => {
    try {
      const answer = await fetch("/import/progress");
      if (answer.ok) swap(parsed(await answer.text()), "progress");
    } catch {
      at("progress").textContent = "verbatim does not answer. Start it again, then reload this page.";
      return;
    }
    if (sending || "running" in at("progress").dataset) setTimeout(watch, 300);
  };
  const send = async (file) => {
    if (!file || sending) return;
    sending = true;
    setTimeout(watch, 100);
    try {
      await fetch("/import?name=" + encodeURIComponent(file.name), { method: "POST", body: file });
    } catch {
      // The progress says what went wrong.
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
      send(event.dataTransfer.files[0]);
    });
    if (at("progress") && "running" in at("progress").dataset) watch();
  }

  if (isSearch) {
    // The caret stays behind what was typed.
    if (document.activeElement === field) field.setSelectionRange(field.value.length, field.value.length);
    begin();
    count(query());
  }
});
