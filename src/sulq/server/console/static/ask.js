// Ask: a statement, its price while it is typed, its answer. A stale price can never be pressed:
// every key stroke takes the button away until the price of the very text on screen has come.
const WAIT = 250, SLOW = 150;
const WORDS = new Set(("select from where group by order having limit as and or not in is null between like case when then else end " +
  "distinct asc desc within percent confidence true false with over options explain cast date timestamp join on using left").split(" "));
const TOKEN = /('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(--[^\n]*)|(\d[\w.]*)|([A-Za-z_]\w*)|([<>=!]+)|(\s+|.)/g;

function parsed(html) {
  const came = document.createElement("template");
  came.innerHTML = html;
  return came.content;
}

export function start(root, app) {
  const find = (what) => root.querySelector(what);
  const table = root.dataset.table, path = `/console/${encodeURIComponent(table)}`;
  const sql = find("#sql"), bar = find("#bar"), more = find("#more"), answer = find("#answer");
  const DRAFT = `sulq.draft.${table}`, PENDING = `sulq.pending.${table}`;
  const PLAIN = { stop: "plain", within: null, rows: null };
  let wish = PLAIN;
  let answered = "", ready = null, mark = null, timer = 0, slow = 0, asking = null, spoken = 0, busy = false;

  // --- the text: painted behind the field, one block per line ---
  function paint() {
    const lines = [document.createElement("span")];
    let at = 0;
    const put = (text, kind) => {
      for (const [index, piece] of text.split("\n").entries()) {
        if (index) { lines.push(document.createElement("span")); at += 1; }
        if (!piece) continue;
        const bad = mark && at < mark[1] && at + piece.length > mark[0];
        const spot = document.createElement("span");
        spot.className = `${kind} ${bad ? "t-bad" : ""}`.trim();
        spot.textContent = piece;
        lines.at(-1).append(spot);
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

  function write(text, caret = text.length) {
    sql.value = text;
    sql.setSelectionRange(caret, caret);
    changed();
  }

  function changed(at_once = false) {
    mark = null;
    paint();
    sessionStorage.setItem(DRAFT, sql.value);
    const blank = !sql.value.trim();
    find("#empty").hidden = !blank;
    find("#made-up").disabled = blank;
    const head = find("#answer-head");
    if (head) head.textContent = sql.value === answered ? "Answer" : "Answer to the earlier question";
    stale();
    clearTimeout(timer);
    asking?.abort();
    if (blank) { bar.replaceChildren(); more.replaceChildren(); return; }
    timer = setTimeout(price, at_once ? 0 : WAIT);
  }

  // --- the price ---
  function stale() {
    ready = null;
    const go = find("#go");
    if (go) go.disabled = true;
    bar.firstElementChild?.classList.add("stale");
  }

  async function price() {
    const sent = { sql: sql.value, ...wish };
    asking = new AbortController();
    clearTimeout(slow);
    slow = setTimeout(() => bar.firstElementChild?.classList.add("waiting"), SLOW);
    try {
      const reply = await app.send(`${path}/quote`, { method: "POST", body: sent, signal: asking.signal });
      if (sent.sql !== sql.value || reply.status === 401) return;
      show(await app.html(reply));
      const state = bar.firstElementChild?.dataset.state;
      if (reply.ok && ["ready", "large", "free"].includes(state)) {
        ready = { body: { ...sent, max_credits: bar.firstElementChild.dataset.most }, key: newKey(), large: state === "large" };
      }
      announce();
    } catch (error) {
      app.unreachable(error);
    } finally { clearTimeout(slow); bar.firstElementChild?.classList.remove("waiting"); }
  }

  // The bar goes under the editor, what follows it below the card.
  function show(html) {
    const came = parsed(html);
    const focus = document.activeElement?.name === "stop" ? document.activeElement.value : document.activeElement?.id;
    const top = came.querySelector(".quote");
    if (top) bar.replaceChildren(top);
    more.replaceChildren(...came.children);
    app.fold(more);
    if (focus) (bar.querySelector(`[name=stop][value="${focus}"]`) || root.querySelector(`#${focus}`))?.focus({ preventScroll: true });
    const { start, end } = bar.firstElementChild?.dataset || {};
    mark = start ? [Number(start), Math.max(Number(end), Number(start) + 1)] : null;
    paint();
  }

  function announce() {
    const text = bar.firstElementChild?.dataset.say, now = Date.now();
    if (!text) return;
    setTimeout(() => { if (bar.firstElementChild?.dataset.say === text) app.say(text); }, Math.max(0, spoken + 1000 - now));
    spoken = now;
  }

  const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

  // --- asking: the key is kept until the answer is on screen; a retry sends the same one ---
  async function ask() {
    if (!ready || busy) return missing();
    if (ready.large && !find("#sure")?.checked) return missing();
    sessionStorage.setItem(PENDING, JSON.stringify({ key: ready.key, body: ready.body }));
    await deliver();
  }

  async function deliver() {
    const kept = JSON.parse(sessionStorage.getItem(PENDING) || "null");
    if (!kept || busy) return;
    busy = true;
    const go = find("#go");
    if (go) { go.disabled = true; go.textContent = "Waiting for the clock …"; }
    app.say("Asked. Waiting for the clock.");
    try {
      const reply = await app.send(`${path}/ask`, { method: "POST", body: kept.body, key: kept.key });
      if (reply.status === 401) return;
      const html = await app.html(reply);
      if (reply.ok) { sessionStorage.removeItem(PENDING); arrived(html); }
      else if (reply.status >= 500 || reply.status === 429) { lost(); more.innerHTML = html; }
      else {
        sessionStorage.removeItem(PENDING);
        if (reply.status === 409) { answer.innerHTML = html; price(); }
        else { show(html); find("#refused")?.focus(); }
      }
    } catch (error) {
      lost();
      app.unreachable(error);
    } finally { busy = false; }
    app.refreshHead();
  }

  function arrived(html) {
    const came = parsed(html);
    const quote = came.querySelector("[data-for=quote]");
    if (quote) { bar.replaceChildren(...quote.children); more.replaceChildren(); repeat(); mine(); }
    document.querySelector("#stripe").hidden = Boolean(quote);
    answer.replaceChildren(...came.querySelector("[data-for=answer]").children);
    answered = sql.value;
    const card = answer.firstElementChild, meaning = find("#meaning");
    const seen = Number(localStorage.getItem("sulq.explained") || 0), choice = localStorage.getItem("sulq.explain");
    meaning.open = choice ? choice === "open" : seen < 3;
    localStorage.setItem("sulq.explained", String(seen + 1));
    find("#answer-head").focus({ preventScroll: true });
    if (card.getBoundingClientRect().top > innerHeight * 0.75) card.scrollIntoView({ block: "start" });
    app.say(card.dataset.say);
  }

  // "Show again" asks the same statement anew: free, because it is stored.
  function repeat() {
    const body = { sql: sql.value, ...wish, max_credits: bar.firstElementChild.dataset.most };
    ready = { body, key: newKey(), large: false };
  }

  async function mine() {
    const reply = await app.send(`${path}/questions`);
    if (reply.ok) find("#mine").innerHTML = await reply.text();
  }

  // A lost reply: charged once at most, and the same key fetches it.
  function lost() {
    bar.replaceChildren(find("#lost").content.cloneNode(true));
    more.replaceChildren();
    find("#empty").hidden = true;
    find("#go").focus();
    app.say("The connection was lost. Fetch my answer, free.", true);
  }

  function missing() {
    const state = bar.firstElementChild?.dataset.state;
    if (state === "lost") return deliver();
    const target = state === "large" ? find("#sure") : state === "refused" || state === "dear" ? find("#refused") : sql;
    target?.focus();
  }

  async function madeUp() {
    const body = { sql: sql.value, ...wish, dummy: true };
    try {
      const reply = await app.send(`${path}/ask`, { method: "POST", body, key: newKey() });
      const html = await app.html(reply);
      if (reply.ok) arrived(html);
      else if (reply.status !== 401) { show(html); find("#refused")?.focus(); }
    } catch (error) { app.unreachable(error); }
  }

  // --- columns: Ctrl+Space lists them where the caret is ---
  const list = find("#complete"), names = [...root.querySelectorAll("[data-column]")].map((pick) => pick.dataset.column);
  let chosen = 0;

  const stem = () => /[A-Za-z_]\w*$/.exec(sql.value.slice(0, sql.selectionStart))?.[0] || "";

  function complete(open = !list.hidden) {
    const typed = stem().toLowerCase(), found = open ? names.filter((name) => name.toLowerCase().startsWith(typed)) : [];
    list.hidden = !found.length;
    if (!found.length) return sql.removeAttribute("aria-activedescendant");
    chosen = Math.min(chosen, found.length - 1);
    list.replaceChildren(...found.map((name, index) => {
      const option = app.made("button", name, "mono");
      option.type = "button"; option.tabIndex = -1; option.id = `column-${index}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", String(index === chosen));
      option.addEventListener("mousedown", (event) => { event.preventDefault(); accept(name); });
      return option;
    }));
    sql.setAttribute("aria-activedescendant", `column-${chosen}`);
    if (open === true) app.say(`${found.length} columns. ${found[chosen]}`);
    list.children[chosen].scrollIntoView({ block: "nearest" });
    place();
  }

  function place() {
    const before = sql.value.slice(0, sql.selectionStart).split("\n"), line = find("#paint").children[before.length - 1];
    if (!line) return;
    const box = find(".editor").getBoundingClientRect(), own = line.getBoundingClientRect(), wide = own.width / 90;
    // the offset is a custom property of the element, set through the CSSOM, which CSP allows
    list.style.setProperty("--x", `${Math.min(own.left - box.left + before.at(-1).length * Math.min(9, wide), box.width - 250)}px`);
    list.style.setProperty("--y", `${Math.round(own.bottom - box.top) + 4}px`);
  }

  function accept(name) {
    const end = sql.selectionStart, begin = end - stem().length;
    insert(name, begin, end);
    complete(false);
  }

  function insert(text, begin = sql.selectionStart, end = sql.selectionEnd) {
    sql.focus();
    sql.setSelectionRange(begin, end);
    // keeps the field's own undo; where it is gone, the plain way
    if (!document.execCommand?.("insertText", false, text)) { sql.setRangeText(text, begin, end, "end"); changed(); }
  }

  function csv() {
    const lines = [...root.querySelectorAll("#result[data-csv], #result tr[data-csv]")].map((row) => JSON.parse(row.dataset.csv));
    const cell = (text) => /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const number = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i;  // a text that a spreadsheet would run gets a quote before it
    const guarded = (text) => /^[-=+@\t\r]/.test(text) && !number.test(text) ? `'${text}` : text;
    app.save(`${table}-answer.csv`, lines.map((line) => line.map((text) => cell(guarded(String(text)))).join(",") + "\n").join(""), "text/csv");
  }

  async function receipt(chip) {
    const dialog = find("#receipt"), reply = await app.send(`${path}/receipts/${chip.dataset.receipt}`);
    dialog.innerHTML = await app.html(reply);
    dialog.showModal();
  }

  // --- what is pressed and typed ---
  sql.addEventListener("input", () => { changed(); complete(); });
  sql.addEventListener("blur", () => complete(false));
  sql.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") { event.preventDefault(); return ask(); }
    if (event.ctrlKey && event.key === " ") { event.preventDefault(); chosen = 0; return complete(true); }
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); chosen = (chosen + step + list.children.length) % list.children.length; complete(); }
    else if (event.key === "Enter" || event.key === "Tab") { event.preventDefault(); accept(list.children[chosen].textContent); }
    else if (event.key === "Escape") { event.preventDefault(); complete(false); }
  });
  find("#ask").addEventListener("submit", (event) => {
    event.preventDefault();
    if (bar.firstElementChild?.dataset.state === "lost") deliver(); else ask();
  });
  root.addEventListener("click", (event) => {
    const hit = (what) => event.target.closest(what);
    const example = hit("[data-sql]"), chip = hit("[data-receipt]"), column = hit("[data-column]"), coarser = hit("[data-within]");
    if (example) { wish = PLAIN; find("#examples").open = false; write(example.dataset.sql); sql.focus(); }
    else if (chip) receipt(chip);
    else if (column) insert(column.dataset.column);
    else if (coarser) { wish = { ...wish, stop: "plain", within: Number(coarser.dataset.within) }; changed(true); }
    else if (hit("#example")) { write(root.querySelector("#examples [data-sql]").dataset.sql); sql.focus(); }
    else if (hit("#made-up")) madeUp();
    else if (hit("#csv")) csv();
    else if (hit("#size-open")) { find("#size-form").hidden = false; find("#size").focus(); }
  });
  root.addEventListener("change", (event) => {
    const { name, id, value, checked } = event.target;
    if (name === "stop" && value !== "set") { wish = { ...wish, stop: value, within: null }; changed(true); }
    else if (name === "stop") { find("#within-box").hidden = false; find("#within").focus(); }
    else if (id === "within") { wish = { ...wish, stop: "plain", within: Number(value) > 0 ? Number(value) : null }; changed(true); }
    else if (id === "size") { wish = { ...wish, rows: Number(value) >= 1 ? Math.floor(Number(value)) : null }; changed(true); }
    else if (id === "sure") find("#go").disabled = !checked;
  });
  root.addEventListener("toggle", (event) => {
    if (event.target.id === "meaning" && event.isTrusted) localStorage.setItem("sulq.explain", event.target.open ? "open" : "closed");
  }, true);

  // --- where we were ---
  const asked = new URLSearchParams(location.hash.slice(1)).get("q"), pending = JSON.parse(sessionStorage.getItem(PENDING) || "null");
  if (location.hash) history.replaceState(null, "", location.pathname);
  if (pending) {
    sql.value = pending.body.sql;
    const { stop, within, rows } = pending.body;
    wish = { stop, within, rows };
    paint();
    lost();
  } else if (asked || sessionStorage.getItem(DRAFT)) {
    sql.value = asked || sessionStorage.getItem(DRAFT);
    changed(true);
  } else paint();
  if (matchMedia("(min-width: 900px)").matches && !pending) sql.focus({ preventScroll: true });
  return () => { clearTimeout(timer); asking?.abort(); document.querySelector("#stripe").hidden = true; };
}
