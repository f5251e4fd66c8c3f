// Ask: a statement, its price while it is typed, its answer. A stale price can never be pressed:
// every key stroke takes the button away until the price of the very text on screen has come.
const WAIT = 250, SLOW = 150;
const WORDS = new Set(("select from where group by order having limit as and or not in is null between like case when then else end " +
  "distinct asc desc within percent confidence true false with over options explain cast date timestamp join on using left").split(" "));
const TOKEN = /('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(--[^\n]*)|(\d[\w.]*)|([A-Za-z_]\w*)|([<>=!]+)|(\s+|.)/g;

export function start(root, app) {
  const find = (what) => root.querySelector(what);
  const table = root.dataset.table, path = `/console/${encodeURIComponent(table)}`;
  const sql = find("#sql"), bar = () => find("#bar > *"), go = () => find("#go");
  const DRAFT = `sulq.draft.${table}`, PENDING = `sulq.pending.${table}`;
  const PLAIN = { stop: "plain", within: null, rows: null };
  let wish = PLAIN;
  let answered = "", ready = null, mark = null, timer = 0, slow = 0, asking = null, spoken = 0, busy = false, lent = false, build = null, built = "";

  // --- the text: painted behind the field, one block per line ---
  function paint() {
    const lines = [app.made("span")];
    let at = 0;
    const put = (text, kind) => {
      for (const [index, piece] of text.split("\n").entries()) {
        if (index) { lines.push(app.made("span")); at += 1; }
        if (!piece) continue;
        const bad = mark && at < mark[1] && at + piece.length > mark[0];
        lines.at(-1).append(app.made("span", piece, `${kind} ${bad ? "t-bad" : ""}`.trim()));
        at += piece.length;
      }
    };
    for (const [whole, text, , note, number, word, sign] of sql.value.matchAll(TOKEN)) {
      const call = word && /^\s*\(/.test(sql.value.slice(at + whole.length));
      put(whole, text ? "t-text" : note ? "t-dim" : number ? "t-num"
        : word && WORDS.has(word.toLowerCase()) ? "t-word" : call ? "t-fn" : sign ? "t-word" : "");
    }
    find("#paint").replaceChildren(...lines);
  }

  // A proposed text takes the place of what was typed, and undo brings that back.
  function write(text) {
    insert(text, 0, sql.value.length);
  }

  function changed(at_once = false) {
    mark = null;
    paint();
    sessionStorage.setItem(DRAFT, sql.value);
    const blank = !sql.value.trim();
    find("#empty").hidden = !blank;
    find("#made-up").disabled = find("#keep").disabled = blank;
    const head = find("#answer-head");
    if (head) head.textContent = sql.value === answered ? "Answer" : "Answer to the earlier question";
    stale();
    clearTimeout(timer);
    asking?.abort();
    build?.show(sql.value);
    if (blank) return clear();
    timer = setTimeout(price, at_once ? 0 : WAIT);
  }

  // --- the price ---
  function stale() {
    ready = null;
    if (go()) go().disabled = true;
    bar()?.classList.add("stale");
  }

  function clear() {
    find("#bar").replaceChildren();
    find("#more").replaceChildren();
  }

  async function price() {
    const sent = { sql: sql.value, ...wish };
    asking = new AbortController();
    clearTimeout(slow);
    slow = setTimeout(() => bar()?.classList.add("waiting"), SLOW);
    try {
      const reply = await app.send(`${path}/quote`, { method: "POST", body: sent, signal: asking.signal });
      if (sent.sql !== sql.value || reply.status === 401 || !root.isConnected) return;
      show(await app.html(reply));
      if (reply.ok && ["ready", "large", "free"].includes(state())) prepare(sent);
      announce();
    } catch (error) {
      app.unreachable(error);
    } finally { clearTimeout(slow); bar()?.classList.remove("waiting"); }
  }

  const state = () => bar()?.dataset.state;

  function prepare(body) {
    ready = { body: { ...body, max_credits: bar().dataset.most }, key: app.newKey() };
  }

  function show(html) {
    app.put(html);
    const { start, end } = bar()?.dataset || {};
    mark = start ? [Number(start), Math.max(Number(end), Number(start) + 1)] : null;
    paint();
  }

  function announce() {
    const text = bar()?.dataset.say, now = Date.now();
    if (!text) return;
    setTimeout(() => { if (bar()?.dataset.say === text) app.say(text); }, Math.max(0, spoken + 1000 - now));
    spoken = now;
  }

  // --- how to ask: by clicking, or in SQL; the builder writes into the field ---
  async function mode(chosen) {
    find("#build").hidden = chosen !== "build";
    find(`#mode [value=${chosen}]`).checked = true;
    localStorage.setItem("sulq.mode", chosen);
    if (chosen !== "build") return;
    build ??= (await import(root.dataset.build)).builder(root, app, (text) => {
      const held = document.activeElement, typed = sql.value.trim() && sql.value !== built;
      wish = { ...wish, rows: null };
      built = text;
      if (!typed) { sql.value = text; return changed(); }
      write(text); // what was typed by hand comes back with undo
      held?.focus({ preventScroll: true });
    });
    build.show(sql.value);
  }

  const pending = () => JSON.parse(sessionStorage.getItem(PENDING));

  // --- asking: the key is kept until the answer is on screen; a retry sends the same one ---
  async function ask() {
    if (!ready || busy || find("#sure:not(:checked)")) return missing();
    sessionStorage.setItem(PENDING, JSON.stringify(ready));
    await deliver();
  }

  async function deliver() {
    const kept = pending();
    if (!kept || busy) return;
    busy = true;
    if (go()) { go().disabled = true; go().textContent = "Waiting for the clock …"; }
    app.say("Asked. Waiting for the clock.");
    try {
      const reply = await app.send(`${path}/ask`, { method: "POST", body: kept.body, key: kept.key });
      const html = await app.html(reply);
      if (reply.status === 401 || !root.isConnected) return;
      if (reply.ok) { sessionStorage.removeItem(PENDING); arrived(html); }
      else if (reply.status >= 500 || reply.status === 429) { lost(); app.put(html); }
      else {
        sessionStorage.removeItem(PENDING);
        if (reply.status === 409) { find("#answer").innerHTML = html; price(); }
        else { show(html); find("#refused")?.focus(); }
      }
    } catch (error) {
      lost();
      app.unreachable(error);
    } finally { busy = false; }
    app.refreshHead();
  }

  // "Show again" asks the same statement anew: free, because it is stored.
  function arrived(html) {
    app.put(html);
    if (state() === "asked") prepare({ sql: sql.value, ...wish });
    answered = sql.value;
    const card = find("#answer > *");
    const seen = Number(localStorage.getItem("sulq.explained") || 0), choice = localStorage.getItem("sulq.explain");
    find("#meaning").open = choice ? choice === "open" : seen < 3;
    localStorage.setItem("sulq.explained", String(seen + 1));
    find("#answer-head").focus({ preventScroll: true });
    if (card.getBoundingClientRect().top > innerHeight * 0.75) card.scrollIntoView({ block: "start" });
    app.say(card.dataset.say);
  }

  // A lost reply: charged once at most, and the same key fetches it.
  function lost() {
    clear();
    find("#bar").append(find("#lost").content.cloneNode(true));
    find("#empty").hidden = true;
    go().focus();
    app.say("The connection was lost. Fetch my answer, free.", true);
  }

  function missing() {
    if (state() === "lost") return deliver();
    (find("#sure:not(:checked)") || find("#refused") || sql).focus();
  }

  async function madeUp() {
    const body = { sql: sql.value, ...wish, dummy: true }, button = find("#made-up"), said = button.textContent;
    if (busy) return;
    busy = button.disabled = true;
    app.say(button.textContent = "Making up rows …");
    try {
      const reply = await app.send(`${path}/ask`, { method: "POST", body, key: app.newKey() });
      const html = await app.html(reply);
      if (reply.status === 401 || !root.isConnected) return;
      if (reply.ok) arrived(html);
      else { show(html); find("#refused")?.focus(); }
    } catch (error) { app.unreachable(error); } finally {
      busy = button.disabled = false;
      button.textContent = said;
    }
  }

  // --- words: see complete.js ---
  let words = null;
  import(root.dataset.complete).then((module) => { words = module.completion(root, app, sql, insert); });

  // --- several questions as one plan: see basket.js ---
  let basket = null;
  import(root.dataset.basket).then((module) => { basket = module.basket(root, app, () => sql.value.trim() && price()); });

  function insert(text, begin = sql.selectionStart, end = sql.selectionEnd) {
    sql.focus();
    sql.setSelectionRange(begin, end);
    // keeps the field's own undo; where it is gone, the plain way
    if (!document.execCommand?.("insertText", false, text)) { sql.setRangeText(text, begin, end, "end"); changed(); }
  }

  // --- what is pressed and typed ---
  sql.addEventListener("input", () => { // a size, and the precision of a proposed text, belong to their text
    wish = lent ? PLAIN : { ...wish, rows: null };
    lent = false;
    changed();
    words?.look();
  });
  sql.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") { event.preventDefault(); return ask(); }
    words?.pressed(event);
  });
  find("#ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  root.addEventListener("click", (event) => {
    const hit = (what) => event.target.closest(what);
    const example = hit("[data-sql]"), column = hit("[data-column]"), coarser = hit("[data-within]");
    if (example) {
      find("#examples").open = false;
      write(example.dataset.sql);
      lent = "stop" in example.dataset;
      wish = { ...PLAIN, stop: example.dataset.stop || "plain" };
      changed(true);
    }
    else if (column) insert(column.dataset.column);
    else if (coarser) { wish = { ...wish, stop: "plain", within: Number(coarser.dataset.within) }; changed(true); }
    else if (hit("#example")) { write(root.querySelector("#examples [data-sql]").dataset.sql); sql.focus(); }
    else if (hit("#made-up")) madeUp();
    else if (hit("#keep")) basket?.(sql.value.trim());
  });
  root.addEventListener("change", (event) => {
    const { name, id, value } = event.target;
    if (name === "mode") mode(value);
    else if (name === "stop" && value !== "set") { wish = { ...wish, stop: value, within: null }; changed(true); }
    else if (name === "stop") { find("#within-box").hidden = false; find("#within").focus(); }
    else if (id === "within") { wish = { ...wish, stop: "plain", within: Number(value) > 0 ? Number(value) : null }; changed(true); }
    else if (id === "size") { wish = { ...wish, rows: Number(value) >= 1 ? Math.floor(Number(value)) : null }; changed(true); }
  });
  root.addEventListener("toggle", (event) => {
    if (event.target.id === "meaning" && event.isTrusted) localStorage.setItem("sulq.explain", event.target.open ? "open" : "closed");
  }, true);

  // --- where we were ---
  const asked = new URLSearchParams(location.hash.slice(1)).get("q"), waiting = pending(), trying = location.hash === "#made-up";
  if (location.hash) history.replaceState(null, "", location.pathname);
  if (waiting) {
    const { sql: text, stop, within, rows } = waiting.body;
    sql.value = text;
    wish = { stop, within, rows };
    paint();
    lost();
  } else if (asked || sessionStorage.getItem(DRAFT)) {
    sql.value = asked || sessionStorage.getItem(DRAFT);
    changed(true);
  } else paint();
  if (trying && !waiting) {
    if (!sql.value.trim()) write(find("#examples [data-sql]").dataset.sql);
    madeUp();
  }
  mode(localStorage.getItem("sulq.mode") || "build");
  if (matchMedia("(min-width: 900px)").matches && !waiting) sql.focus({ preventScroll: true });
  return () => { clearTimeout(timer); asking?.abort(); };
}
