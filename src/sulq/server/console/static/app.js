// The console's frame: token, navigation, fragments, theme. Pages bring their own module:
// <div data-page data-title="..." data-module="/static/ask.js?v=..."> exports start(root, app),
// which may return a function to call when the page is left. Forms and buttons that need none say
// so in attributes (data-send, data-live, data-get, data-post, data-again): pages.py.
const TOKEN = "sulq.token", BACK = "sulq.back", WHY = "sulq.why", THEME = "sulq.theme";
const find = (what, within = document) => within.querySelector(what);
const main = find("#main"), top_ = find("#top");
let leaving = null, journey = 0, poll = 0, timer = 0, latest = 0, busy = false, from = null;
let queue = Promise.resolve(), due = () => {};

const token = () => sessionStorage.getItem(TOKEN);

function where() {
  const [, t, table, page, part] = location.pathname.split("/");
  return t === "t" ? { table: decodeURIComponent(table || ""), page: page || "table", part: part ? `/${part}` : "" } : { table: "", page: "", part: "" };
}

// Every request carries the token as a bearer; a token that has ended leads to the door.
async function send(path, { method = "GET", body, key, signal, accept } = {}) {
  const headers = { Authorization: `Bearer ${token() || ""}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  if (accept) headers.Accept = accept;
  const sent = body === undefined ? undefined : JSON.stringify(body);
  const reply = await fetch(path, { method, headers, body: sent, signal, cache: "no-store", credentials: "omit" });
  find("#offline").hidden = true;
  if (reply.status === 401) toTheDoor();
  return reply;
}

function toTheDoor() {
  const held = token();
  sessionStorage.removeItem(TOKEN);
  if (location.pathname === "/enter") return;
  sessionStorage.setItem(BACK, location.pathname + location.search);
  if (held) sessionStorage.setItem(WHY, "Your token has ended or was revoked. Ask the table’s owner for another one.");
  location.replace("/enter");
}

// What a reply says, as HTML: fragments as they are, problems as a note.
async function html(reply) {
  const text = await reply.text();
  return reply.headers.get("content-type")?.startsWith("text/html") ? text : problem(text, reply.status);
}

const UNSURE = "A question may have been charged, once: ask it again with the same button.";

function problem(text, status) {
  let said = {};
  try { said = JSON.parse(text); } catch { /* not ours */ }
  const first = status >= 500 ? "The table cannot be read just now." : sentence(said.detail || "This was refused");
  const more = status < 500 ? sentence(said.hint || "") : said.credits_spent === 0 ? "Nothing was charged." : UNSURE;
  const words = made("div"), note = made("div", "", status >= 500 ? "note bad" : "note warn");
  words.append(made("b", first), ` ${more}`);
  note.setAttribute("role", "alert");
  note.append(words);
  return note.outerHTML;
}

function made(kind, text = "", style = "") {
  const element = document.createElement(kind);
  element.textContent = text;
  if (style) element.className = style;
  return element;
}

function parsed(html) {
  const came = made("template");
  came.innerHTML = html;
  return came.content;
}

// The parts of a reply, put in place; what has no id is a refusal and goes to `#failed`. The focus
// stays where it was, with what is being typed, unless a part wants it (data-focus).
function put(html) {
  const parts = parsed(html), to = find("[data-go]", parts), held = document.activeElement, failed = find("#failed");
  if (to) return void go(to.dataset.go);
  const wanted = find("[data-focus]", parts);
  failed?.replaceChildren();
  for (const part of [...parts.children]) {
    const old = document.getElementById(part.id);
    fold(part);
    if (old?.open === false) part.open = false;
    if (part.id) old?.replaceWith(part); else failed?.append(part);
    if (part.dataset.say) say(part.dataset.say);
  }
  const twin = held.id && !held.isConnected && document.getElementById(held.id);
  const typed = held.matches("textarea, input:not([type=radio], [type=checkbox])");
  if (twin && typed) twin.replaceWith(held);
  (wanted || (typed ? twin && held : twin))?.focus?.({ preventScroll: !wanted });
  for (const field of main.querySelectorAll("[aria-describedby]")) {
    field.ariaInvalid = Boolean(find(`#${field.getAttribute("aria-describedby")}.bad`));
  }
  lookAgain();
}

function lookAgain() {
  const running = find("[data-again]", main);
  clearTimeout(poll);
  if (running) poll = setTimeout(() => exchange(running.dataset.again), 2000);
}

async function exchange(path, how, counts = () => true) {
  const trip = journey;
  try {
    const reply = await send(path, how), text = await html(reply);
    if (trip !== journey || reply.status === 401 || !counts()) return;
    put(text);
    if (!reply.ok) find("#failed").scrollIntoView({ block: "nearest" });
  } catch (error) { unreachable(error); }
}

// Fields by name, those of several values as a list.
function fields(form) {
  const given = {};
  for (const [name, value] of new FormData(form)) given[name] = name in given ? [given[name], value].flat() : value;
  return given;
}

// A form of method get asks by its address.
function exchangeForm(path, form, counts) {
  const given = fields(form);
  return form.method === "get" ? exchange(`${path}?${new URLSearchParams(given)}`, {}, counts)
    : exchange(path, { method: "POST", body: given }, counts);
}

// A form that is followed. Its button is gone until the reply to what stands there has come.
function follow(form, wait) {
  const mine = ++latest, button = find("button.primary", form);
  if (button) button.disabled = true;
  clearTimeout(timer);
  due = () => {
    clearTimeout(timer);
    due = () => {};
    queue = queue.then(() => exchangeForm(form.dataset.live, form, () => mine === latest));
  };
  timer = setTimeout(due, wait);
}

async function press(work) {
  if (busy) return;
  busy = true;
  await work().finally(() => { busy = false; });
}

// To a field that was hidden, or is still missing.
function point(to, why) {
  const field = find(to);
  field?.closest("[hidden]")?.removeAttribute("hidden");
  field?.focus();
  if (why) say(why, true);
}

function save(name, text, kind) {
  const link = made("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A file of the server's, fetched with the bearer.
async function fetched(path, name) {
  try {
    const reply = await send(path);
    if (reply.ok) save(name, await reply.blob(), reply.headers.get("content-type"));
    else find("#failed")?.replaceChildren(parsed(await html(reply)));
  } catch (error) { unreachable(error); }
}

// The audit report in a tab of its own, fetched with the bearer.
async function report(button) {
  const shown = open("about:blank", "_blank");
  const reply = await send(`/v1/tables/${encodeURIComponent(where().table)}/report`);
  if (!reply.ok) { shown?.close(); button.textContent = "No report here: use sulq report"; return; }
  const url = URL.createObjectURL(new Blob([await reply.text()], { type: "text/html" }));
  if (shown) shown.location.replace(url); else location.assign(url);
}
async function receipt(number) {
  const dialog = find("#receipt"), reply = await send(`/console/${encodeURIComponent(where().table)}/receipts/${number}`);
  dialog.innerHTML = await html(reply);
  dialog.showModal();
}
const sentence = (text) => text && text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

function say(text, loudly = false) {
  const region = find(loudly ? "#cried" : "#said");
  region.textContent = "";
  setTimeout(() => { region.textContent = text; }, 30);
}

async function refreshHead() {
  const { table, page } = where();
  try {
    const reply = await send(`/console/head?table=${encodeURIComponent(table)}&page=${page}`);
    if (reply.ok) { top_.innerHTML = await reply.text(); keepTabInView(); }
  } catch (error) { unreachable(error); }
}

function keepTabInView() {
  const tabs = find(".tabs"), current = find(".tab[aria-current]");
  if (tabs && current) tabs.scrollLeft = current.offsetLeft - (tabs.clientWidth - current.offsetWidth) / 2;
}

function unreachable(error) {
  if (error.name !== "AbortError") find("#offline").hidden = false;
}

// The page of the address, put into <main>. Focus goes to its heading when it was walked to.
async function load(walked = false) {
  due();
  await queue;
  if (leaving) { leaving(); leaving = null; }
  clearTimeout(poll);
  const trip = ++journey, { table, page, part } = where();
  find("#leave").hidden = !token();
  find("#stripe").hidden = true;
  const path = table ? `/console/${encodeURIComponent(table)}/${page}${part}${location.search}` : "/console/home";
  const head = refreshHead();
  try {
    const reply = await send(path);
    if (trip !== journey || reply.status === 401) return;
    main.innerHTML = await html(reply);
  } catch (error) { return unreachable(error); }
  const root = find("[data-page]", main);
  if (root?.dataset.go) return go(root.dataset.go, true);
  document.title = root?.dataset.title || "sulq";
  for (const spot of main.querySelectorAll("[data-origin]")) spot.textContent = location.origin;
  fold(main);
  for (const form of main.querySelectorAll("form[data-now]")) follow(form, 0);
  lookAgain();
  if (walked) {
    const heading = find("h1", main) || main;
    heading.tabIndex = -1;
    heading.focus();
    scrollTo(0, 0);
  }
  await head;
  if (root?.dataset.module) {
    const module = await import(root.dataset.module);
    if (trip === journey) leaving = module.start(root, app) || null;
  }
  if (trip === journey) document.documentElement.dataset.ready = `${table}/${page}`;
}

// Rails are closed lists on small screens.
function fold(within) {
  if (matchMedia("(max-width: 900px)").matches) for (const rail of within.querySelectorAll("details.rail")) rail.open = false;
}

function go(href, instead = false) {
  delete document.documentElement.dataset.ready;
  history[instead ? "replaceState" : "pushState"](null, "", href);
  return load(!instead);
}

const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const app = { newKey, send, html, say, follow, fields, fold, find, made, parsed, put, refreshHead, save, unreachable };

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target) || link) menu.open = false;
  if (link && !event.defaultPrevented && event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey)) {
    const to = new URL(link.href);
    if (to.origin === location.origin && (to.pathname.startsWith("/t/") || to.pathname === "/") && !link.target) {
      event.preventDefault();
      go(to.pathname + to.search + to.hash);
    }
  }
  const button = event.target.closest("[data-copy], [data-link], [data-receipt], [data-save], [data-file], [data-report], [data-get], [data-post], [data-close], [data-point]");
  const { copy, save: file, get, post, close, point: to, why } = button?.dataset || {};
  if (copy !== undefined) copied(button, find(copy || "pre", copy ? document : button.closest("section")).textContent);
  else if (button?.dataset.link !== undefined) copied(button, location.origin + location.pathname);
  else if (button?.dataset.receipt) receipt(button.dataset.receipt);
  else if (file) save(file, find(button.dataset.from).textContent, "text/csv");
  else if (button?.dataset.file) fetched(button.dataset.file, button.dataset.name);
  else if (get) { from = button; exchange(get); }
  else if (post) press(() => exchange(post, { method: "POST" }));
  else if (close) { find(close).replaceChildren(); from?.focus(); }
  else if (to) point(to, why);
  else if (button) report(button);
});
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form && event.target.required) for (const button of form.querySelectorAll("[data-valid]")) button.disabled = !form.checkValidity();
  if (form?.dataset.live && event.target.name) follow(form, /radio|checkbox|select/.test(event.target.type) ? 0 : 250);
});
document.addEventListener("submit", (event) => {
  const form = event.target, { send: to, live } = form.dataset;
  if (!to && !live) return;
  event.preventDefault();
  if (to) press(() => exchangeForm(to, form)).then(refreshHead);
  else find("a.primary", form)?.click();
});

async function copied(button, text) {
  const before = button.textContent;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
  catch { button.textContent = "Not allowed by the browser"; }
  say(button.textContent);
  setTimeout(() => { button.textContent = before; }, 1600);
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = event.target.closest?.("details.menu[open]");
  if (menu) { menu.open = false; find("summary", menu).focus(); }
  else find("[data-close]", main)?.click();
});

find("#theme").addEventListener("change", (event) => {
  const chosen = event.target.value, root = document.documentElement;
  if (chosen === "system") { delete root.dataset.theme; localStorage.removeItem(THEME); }
  else { root.dataset.theme = chosen; localStorage.setItem(THEME, chosen); }
});
const kept = document.documentElement.dataset.theme;
if (kept) find(`#theme [value=${kept}]`).checked = true;

find("#leave").addEventListener("click", () => { sessionStorage.clear(); location.assign("/enter"); });
addEventListener("popstate", () => { if (location.pathname !== "/enter") load(true); });
addEventListener("offline", () => { find("#offline").hidden = false; });
addEventListener("online", () => { find("#offline").hidden = true; });

// --- the door: a typed token, or a one-time code in the address, which is wiped at once ---
function enter() {
  const form = find("#enter"), field = find("#token"), help = find("#token-help");
  const refuse = (text) => {
    help.textContent = text; help.classList.add("bad");
    field.setAttribute("aria-invalid", "true"); field.focus();
  };
  const away = () => refuse("The server cannot be reached just now.");
  const inside = (held) => {
    sessionStorage.setItem(TOKEN, held);
    const back = sessionStorage.getItem(BACK) || "/";
    sessionStorage.removeItem(BACK);
    location.replace(back);
  };
  const knock = () => {
    const code = location.hash.slice(1);
    if (!code) return;
    history.replaceState(null, "", "/enter");
    redeem(code).then((held) => held ? inside(held) : refuse("This link has been used, or has ended. Type your token, or ask for a new link."))
      .catch(away);
  };
  const why = sessionStorage.getItem(WHY);
  sessionStorage.removeItem(WHY);
  if (why && !location.hash) refuse(why);
  addEventListener("hashchange", knock);
  if (location.hash) knock();
  else if (token()) find("#already").hidden = false;
  find("#show").addEventListener("click", (event) => {
    const shown = field.type === "text";
    field.type = shown ? "password" : "text";
    event.target.textContent = shown ? "Show" : "Hide";
    event.target.setAttribute("aria-pressed", String(!shown));
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const held = field.value.trim();
    if (!held) return refuse("Type the token you were given.");
    try {
      const reply = await fetch("/v1/me", { headers: { Authorization: `Bearer ${held}` }, credentials: "omit" });
      if (reply.ok) inside(held);
      else refuse("This token is not known here, or has ended.");
    } catch { away(); }
  });
}

async function redeem(code) {
  const reply = await fetch("/v1/enter", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }), credentials: "omit",
  });
  return reply.ok ? (await reply.json()).token : null;
}

if (location.pathname === "/enter") enter();
else if (!token()) toTheDoor();
else load();
