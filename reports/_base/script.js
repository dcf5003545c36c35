"use strict";
(function () {
  const root = document.documentElement;
  const one = (query, from) => (from || document).querySelector(query);
  const all = (query) => Array.from(document.querySelectorAll(query));

  // Theme: follows the system until the reader picks one, for this view only.
  const button = one("#theme");
  const isDark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme:dark)").matches;
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  name();

  // Links to a pod open its page.
  const open = () => {
    let id = location.hash.slice(1);
    try { id = decodeURIComponent(id); } catch (_) { /* not encoded: take it as it is */ }
    const target = document.getElementById(id);
    if (!target) return;
    for (let el = target; el; el = el.parentElement) if (el.tagName === "DETAILS") el.open = true;
    if (target.tagName === "DETAILS") target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();

  // Copy a query.
  for (const el of all(".sql button")) {
    el.hidden = false;
    el.addEventListener("click", () => {
      const sql = one("pre", el.parentElement);
      const done = () => { el.textContent = "Copied"; };
      const select = () => { getSelection().selectAllChildren(sql); document.execCommand("copy"); done(); };
      if (navigator.clipboard) navigator.clipboard.writeText(sql.textContent).then(done, select);
      else select();
    });
  }

  // Filter the pods by name.
  const filter = one(".filter");
  if (filter) {
    filter.hidden = false;
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      for (const pod of all(".pod")) {
        pod.hidden = wanted !== "" && !pod.dataset.name.toLowerCase().includes(wanted);
      }
    });
  }

  // Mark the section that is on the screen.
  const links = new Map(all(".nav a").map((a) => [a.hash.slice(1), a]));
  const seen = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) entry.isIntersecting ? seen.add(entry.target.id) : seen.delete(entry.target.id);
    let first = true;
    for (const [id, a] of links) {
      if (first && seen.has(id)) { a.setAttribute("aria-current", "true"); first = false; }
      else a.removeAttribute("aria-current");
    }
  }, { rootMargin: "-15% 0px -70% 0px" });
  for (const section of all(".sec")) watcher.observe(section);
}());
