"use strict";
// Fetches the main part of the page again and again, and puts what has changed in the place of what was there.
// Elements stay the same ones where they can, so focus, scroll positions, selections and open details survive.

(() => {
  const every = Number(document.body.dataset.pollMs);
  const live = document.getElementById("live");
  const away = document.getElementById("away");
  const pause = document.getElementById("pause");
  let paused = false;
  let awaySince = null;

  const clock = () => new Date().toTimeString().slice(0, 8);

  function sameKind(a, b) {
    return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
  }

  function keyOf(node) {
    return node.nodeType === Node.ELEMENT_NODE ? node.dataset.key || node.id || null : null;
  }

  function become(old, wanted) {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
      return;
    }
    if (old.isEqualNode(wanted)) return;
    for (const { name } of [...old.attributes]) {
      if (!wanted.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    }
    for (const { name, value } of wanted.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    children(old, wanted);
  }

  function children(old, wanted) {
    const keyed = new Map([...old.children].filter(keyOf).map((child) => [keyOf(child), child]));
    let at = old.firstChild;
    for (const child of [...wanted.childNodes]) {
      const key = keyOf(child);
      let match = key === null ? null : keyed.get(key);
      if (match && !sameKind(match, child)) match = null;
      if (!match && key === null && at && sameKind(at, child)) match = at;
      if (!match) {
        old.insertBefore(document.importNode(child, true), at);
        continue;
      }
      if (match === at) at = at.nextSibling;
      else old.insertBefore(match, at);
      become(match, child);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  function say(text) {
    if (away.textContent !== text) away.textContent = text;
    away.hidden = text === "";
    document.body.classList.toggle("stale", text !== "");
  }

  function failed(what) {
    awaySince = awaySince || clock();
    live.textContent = `stale since ${awaySince}`;
    say(`${what} since ${awaySince}. The figures are those of that moment; this page continues by itself.`);
  }

  async function look() {
    let answer;
    try {
      answer = await fetch(location.href, { headers: { "X-Txbatch-Part": "live" }, cache: "no-store" });
    } catch {
      failed("The dashboard does not answer");
      return;
    }
    if (answer.status === 503) {
      failed("The server does not answer");
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = page.getElementById("main");
    if (!main) {
      failed("The dashboard does not answer");
      return;
    }
    if (paused) return;
    awaySince = null;
    say("");
    if (getSelection().isCollapsed || !document.getElementById("main").contains(getSelection().anchorNode)) {
      become(document.getElementById("main"), main);
      document.title = page.title;
    }
    live.textContent = `live, ${clock()}`;
  }

  async function run() {
    if (!paused && !document.hidden) await look();
    setTimeout(run, every);
  }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume" : "Pause";
    if (paused) live.textContent = `paused, ${clock()}`;
    else look();
  });
  live.textContent = `live, ${clock()}`;
  setTimeout(run, every);
})();
