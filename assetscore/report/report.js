"use strict";
(() => {
  const PAGE = 60; // cards added at a time
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";

  // Everything that came from outside is set as text or as an attribute, never parsed as HTML.
  function el(tag, properties, ...children) {
    const node = document.createElement(tag);
    Object.assign(node, properties);
    node.append(...children.filter((child) => child !== null));
    return node;
  }
  function svg(tag, attributes, ...children) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }
  const bdi = (text) => el("bdi", { textContent: text });

  const fixed = (value, digits) => (value === null ? "–" : value.toFixed(digits).replace("-", "−"));
  const signed = (value) => (value === null ? "–" : (value < 0 ? "" : "+") + fixed(value, 3));
  const verdictOf = (row) => (row.pass === null ? "none" : row.pass ? "pass" : "fail");
  const VERDICTS = { pass: "Belongs", fail: "Does not belong", none: "No verdict" };

  function picture(place, box, alt) {
    const { src, w, h } = data.pictures[place];
    const longer = Math.max(w, h);
    const scale = longer <= box ? Math.floor(box / longer) : box / longer;
    const image = el("img", { src, alt, loading: "lazy", decoding: "async" });
    image.width = Math.max(1, Math.round(w * scale));
    image.height = Math.max(1, Math.round(h * scale));
    if (scale < 1) image.className = "reduced";
    return image;
  }

  const STRIP = { w: 216, h: 30, base: 22 };
  function strip(shape, similarity, label) {
    const { w, h, base } = STRIP;
    const x = (value) => Math.min(w - 7, Math.max(7, ((value - shape.low) / (shape.high - shape.low)) * w));
    let path = `M0 ${base}`;
    shape.bins.forEach((height, i) => {
      const top = base - (height ? Math.max(1, (height / 100) * (base - 2)) : 0);
      path += `V${top.toFixed(1)}H${(((i + 1) * w) / shape.bins.length).toFixed(1)}`;
    });
    const node = svg("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": label });
    node.append(svg("path", { class: "hist", d: path + `V${base}Z` }));
    if (shape.tau !== null) node.append(svg("path", { class: "tau", d: `M${x(shape.tau).toFixed(1)} 0V${h}` }));
    const at = x(similarity);
    node.append(svg("path", { class: "here", d: `M${at.toFixed(1)} ${base - 4}l6 ${h - base + 4}h-12z` }));
    return node;
  }

  const strips = { style: new Map(), sem: new Map() };
  for (const shape of data.strips) strips[shape.check].set(shape.category, shape);

  function check(name, values, shape) {
    const [s, tau, margin, p] = values;
    if (s === null) return null;
    const label = `${name}: similarity ${fixed(s, 3)}, threshold ${fixed(tau, 3)}`;
    const numbers = el("dl", { className: "numbers" });
    const what = el("div", {}, el("dt", { textContent: name }), el("dd", { textContent: values[4] === null ? "–" : values[4] ? "pass" : "fail" }));
    numbers.append(what);
    for (const [title, text] of [["S", fixed(s, 3)], ["τ", fixed(tau, 3)], ["margin", signed(margin)], ["p", fixed(p, 3)]])
      numbers.append(el("div", {}, el("dt", { textContent: title }), el("dd", { textContent: text })));
    return el("div", { className: "check" }, shape ? strip(shape, s, label) : null, numbers);
  }

  // Five references side by side: on a phone as wide as its screen allows.
  const thumbs = () => Math.min(64, Math.floor((document.documentElement.clientWidth - 58) / 5));

  function card(index) {
    const row = data.rows[index];
    const verdict = verdictOf(row);
    const small = matchMedia("(max-width: 720px)").matches;
    const stage = el("figure", { className: "stage" });
    if (row.picture === null) {
      stage.classList.add("blank");
      stage.textContent = row.status === "missing" ? "no file" : "no picture";
    } else {
      stage.append(picture(row.picture, small ? 96 : 144, row.id));
    }
    const mark = svg("svg", { class: `mark ${verdict}`, viewBox: "0 0 9 9", "aria-hidden": "true" }, svg("use", { href: `#mark-${verdict}` }));
    const said = el("p", { className: "verdict" });
    said.append(mark, VERDICTS[verdict] + (row.borderline ? ", borderline" : "") + (row.status === "scored" ? "" : `: ${row.words}`));
    const meta = el("p", { className: "meta" }, bdi(row.category));
    if (row.group) meta.append(" · ", bdi(row.group));
    if (row.request) meta.append(" · asked for: ", bdi(row.request));
    if (row.frames > 1) meta.append(` · first of ${row.frames} frames`);
    if (row.grid > 1) meta.append(` · drawn in ${row.grid} × ${row.grid} blocks`);
    const name = el("h3", { title: row.id }, bdi(row.id || "(no name)"));
    const reason = el("p", { className: "reason", title: row.reason, dir: "auto", textContent: row.reason });
    const words = el("div", { className: "words" }, name, said, meta, reason);
    const checks = el("div", { className: "checks" });
    const style = check("Style", row.style, strips.style.get(row.category));
    const sem = row.sem && check("Semantic", row.sem, row.request ? null : strips.sem.get(row.category));
    checks.append(...[style, sem].filter(Boolean));
    const node = el("article", { className: `card ${verdict}`, id: `asset-${index}` }, stage, el("div", { className: "said" }, words, checks));
    if (row.nearest.length) {
      const list = el("ol", {});
      row.nearest.forEach((place, i) => {
        const reference = data.references[place];
        const thumb = el("div", { className: "thumb", title: reference.id });
        if (reference.picture !== null) thumb.append(picture(reference.picture, thumbs(), reference.id));
        const short = reference.id.replace(/^.*[/\\]/, "").replace(/\.[a-z]+$/i, "").replace(/^.*__/, "").replace(/_+/g, " ");
        const similar = row.similar[i] === undefined ? null : el("b", { textContent: fixed(row.similar[i], 3) });
        list.append(el("li", {}, thumb, similar, el("bdi", { textContent: short, title: reference.id })));
      });
      node.append(el("div", { className: "near" }, el("h4", { textContent: "Nearest of the game’s own, in style" }), list));
    }
    return node;
  }

  // What is shown: filters and order, kept in the address so that a view can be sent to somebody.
  const defaults = { q: "", verdict: "", category: "", group: "", sort: "margin", dir: "asc" };
  const view = { ...defaults };
  function readAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const name of Object.keys(defaults)) view[name] = asked.has(name) ? asked.get(name) : defaults[name];
  }
  function writeAddress() {
    const parts = new URLSearchParams();
    for (const [name, value] of Object.entries(view)) if (value !== defaults[name]) parts.set(name, value);
    try {
      history.replaceState(null, "", parts.size ? `#${parts}` : "#assets");
    } catch { /* some browsers forbid it for files */ }
  }

  const fold = (text) => text.normalize("NFKC").toLowerCase();
  const haystack = data.rows.map((row) => fold([row.id, row.request || "", row.category, row.group, row.reason, row.words].join("\n")));
  const KEYS = {
    margin: (row) => row.style[2],
    p: (row) => row.style[3],
    "sem-margin": (row) => row.sem && row.sem[2],
    "sem-p": (row) => row.sem && row.sem[3],
    name: (row) => row.id,
    category: (row) => row.category,
    group: (row) => row.group,
    given: () => 0,
  };
  const collator = new Intl.Collator(undefined, { numeric: true });
  function chosen() {
    const words = fold(view.q).split(/\s+/).filter(Boolean);
    const kept = [];
    data.rows.forEach((row, i) => {
      if (view.verdict && verdictOf(row) !== view.verdict) return;
      if (view.category && row.category !== view.category) return;
      if (view.group && row.group !== view.group) return;
      if (words.every((word) => haystack[i].includes(word))) kept.push(i);
    });
    const key = KEYS[view.sort] || KEYS.margin;
    const sign = view.dir === "desc" ? -1 : 1;
    const values = kept.map((i) => [i, key(data.rows[i])]);
    values.sort(([i, a], [j, b]) => {
      if (a === null || b === null) return a === b ? i - j : a === null ? 1 : -1; // what has no number stays last
      const order = typeof a === "string" ? collator.compare(a, b) : a - b;
      return order ? sign * order : view.sort === "given" ? sign * (i - j) : i - j;
    });
    return values.map(([i]) => i);
  }

  let order = [];
  let shown = 0;
  function more() {
    const batch = document.createDocumentFragment();
    for (const index of order.slice(shown, shown + PAGE)) batch.append(card(index));
    shown = Math.min(order.length, shown + PAGE);
    $("list").append(batch);
    $("more").hidden = shown >= order.length;
    $("more").textContent = `Show more (${order.length - shown} left)`;
  }
  function draw() {
    order = chosen();
    shown = 0;
    $("list").replaceChildren();
    $("count").textContent = order.length === data.rows.length ? `${order.length} assets` : `${order.length} of ${data.rows.length} assets`;
    if (order.length) {
      more();
    } else {
      const clear = el("button", { type: "button", textContent: "Clear the filters" });
      clear.addEventListener("click", () => {
        Object.assign(view, defaults);
        update();
        $("q").focus();
      });
      $("list").append(el("div", { className: "nothing" }, el("p", { textContent: data.rows.length ? "No asset matches." : "There are no assets." }), data.rows.length ? clear : null));
      $("more").hidden = true;
    }
  }
  function controls() {
    $("q").value = view.q;
    for (const name of ["category", "group", "sort"]) $(name).value = view[name];
    for (const button of document.querySelectorAll("[data-verdict]")) button.setAttribute("aria-pressed", String(button.dataset.verdict === view.verdict));
    $("direction").textContent = view.dir === "desc" ? "↓" : "↑";
    $("direction").setAttribute("aria-label", `Sort direction: ${view.dir === "desc" ? "descending" : "ascending"}`);
  }
  function update() {
    controls();
    writeAddress();
    draw();
  }

  // "And yours?": the verdicts of what matches, on the first screen.
  const FIRST = 4;
  function answer() {
    const words = fold($("mine").value).split(/\s+/).filter(Boolean);
    const found = words.length ? data.rows.map((_, i) => i).filter((i) => words.every((word) => fold(data.rows[i].id).includes(word))) : [];
    $("matches").replaceChildren();
    for (const index of found.slice(0, FIRST)) {
      const row = data.rows[index];
      const verdict = verdictOf(row);
      const mark = svg("svg", { class: `mark ${verdict}`, viewBox: "0 0 9 9", role: "img", "aria-label": VERDICTS[verdict] }, svg("use", { href: `#mark-${verdict}` }));
      const go = el("button", { type: "button", title: row.id }, mark, bdi(row.id), el("span", { textContent: row.style[2] === null ? row.words : signed(row.style[2]) }));
      go.addEventListener("click", () => show({ q: row.id }));
      $("matches").append(el("li", {}, go));
    }
    if (words.length && found.length !== 1) {
      const rest = found.length ? (found.length > FIRST ? `${found.length} match; Enter shows all` : "") : "No asset of that name";
      if (rest) $("matches").append(el("li", { className: "rest", textContent: rest }));
    }
  }
  function show(wanted) {
    Object.assign(view, defaults, wanted);
    update();
    $("assets").scrollIntoView();
    $("assets").focus({ preventScroll: true });
  }
  $("mine").addEventListener("input", answer);
  $("yours").addEventListener("submit", (event) => {
    event.preventDefault();
    show({ q: $("mine").value });
  });

  for (const name of ["category", "group"]) {
    const values = [...new Set(data.rows.map((row) => row[name]))].filter((value) => value !== "").sort(collator.compare);
    for (const value of values) $(name).append(el("option", { value, textContent: value.length > 60 ? `${value.slice(0, 59)}…` : value }));
    if (values.length < 2) document.querySelector(`[data-for="${name}"]`).hidden = true;
    $(name).addEventListener("change", (event) => {
      view[name] = event.target.value;
      update();
    });
  }
  $("sort").addEventListener("change", (event) => {
    view.sort = event.target.value;
    update();
  });
  $("direction").addEventListener("click", () => {
    view.dir = view.dir === "asc" ? "desc" : "asc";
    update();
  });
  for (const button of document.querySelectorAll("[data-verdict]"))
    button.addEventListener("click", () => {
      view.verdict = button.dataset.verdict;
      update();
    });
  let typing = 0;
  $("q").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      view.q = $("q").value;
      update();
    }, 120);
  });
  $("tools").addEventListener("submit", (event) => event.preventDefault());
  $("more").addEventListener("click", more);
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && shown < order.length) more();
  }, { rootMargin: "600px" }).observe($("more"));
  addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return; // a plain anchor
    readAddress();
    controls();
    draw();
  });

  $("tools").hidden = false;
  $("yours").hidden = !data.rows.length;
  $("legend").hidden = !data.strips.length;
  readAddress();
  controls();
  draw();
})();
