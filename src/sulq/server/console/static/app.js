// The console's frame: token, navigation, fragments, theme. Pages bring their own module:
// <div data-page data-title="..." data-module="/static/ask.js?v=..."> exports start(root, app),
// which may return a function to call when the page is left.
const TOKEN = "sulq.token", BACK = "sulq.back", WHY = "sulq.why", THEME = "sulq.theme";
const find = (what, within = document) => within.querySelector(what);
const main = find("#main"), top_ = find("#top");
let leaving = null, journey = 0;

const token = () => sessionStorage.getItem(TOKEN);

function where() {
  const [, t, table, page] = location.pathname.split("/");
  return t === "t" ? { table: decodeURIComponent(table || ""), page: page || "table" } : { table: "", page: "" };
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
  const kind = reply.headers.get("content-type") || "";
  const text = await reply.text();
  return kind.startsWith("text/html") ? text : problem(text, reply.status);
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

// A change asked for by a form: what the server said, or null with the refusal in `#failed`.
async function sent(path, method, body) {
  const failed = find("#failed");
  failed.replaceChildren();
  try {
    const reply = await send(path, { method, body });
    if (reply.ok) return await reply.json();
    failed.innerHTML = await html(reply);
    failed.scrollIntoView({ block: "nearest" });
  } catch (error) { unreachable(error); }
  return null;
}

// Attacks on made-up rows: looked at every two seconds while they run. Returns how to stop looking.
function attacks(begin, look, done) {
  let timer = 0, gone = false;
  const step = (path, how) => async () => {
    try {
      const text = await html(await send(path, how));
      if (gone) return;
      const ran = find("#attacks [data-state=running]");
      find("#attacks").innerHTML = text;
      if (ran && !find("#attacks [data-state=running]")) done?.();
      watch();
    } catch (error) { unreachable(error); }
  };
  function watch() {
    find("#attack")?.addEventListener("click", step(begin.path, { method: "POST", body: begin.body }));
    if (find("#attacks [data-state=running]")) timer = setTimeout(step(look), 2000);
  }
  watch();
  return () => { gone = true; clearTimeout(timer); };
}

function save(name, text, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The audit report in a tab of its own, fetched with the bearer.
async function report(button) {
  const shown = open("about:blank", "_blank");
  const reply = await send(`/v1/tables/${encodeURIComponent(where().table)}/report`);
  if (!reply.ok) { shown?.close(); button.textContent = "No report here: use sulq report"; return; }
  const url = URL.createObjectURL(new Blob([await reply.text()], { type: "text/html" }));
  if (shown) shown.location.replace(url); else location.assign(url);
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
  if (leaving) { leaving(); leaving = null; }
  const trip = ++journey, { table, page } = where();
  find("#leave").hidden = !token();
  find("#stripe").hidden = true;
  const path = table ? `/console/${encodeURIComponent(table)}/${page}${location.search}` : "/console/home";
  const head = refreshHead();
  try {
    const reply = await send(path);
    if (trip !== journey || reply.status === 401) return;
    main.innerHTML = await html(reply);
  } catch (error) { return unreachable(error); }
  const root = find("[data-page]", main);
  if (root?.dataset.only) return go(root.dataset.only, true);
  document.title = root?.dataset.title || "sulq";
  for (const spot of main.querySelectorAll("[data-origin]")) spot.textContent = location.origin;
  fold(main);
  if (walked) { scrollTo(0, 0); (find("h1", main) || main).setAttribute("tabindex", "-1"); (find("h1", main) || main).focus(); }
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

const app = { send, sent, html, say, go, load, refreshHead, fold, find, made, save, attacks, copied, unreachable };

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
  const copy = event.target.closest("[data-copy]");
  if (copy) copied(copy, find(copy.dataset.copy).textContent);
  const wanted = event.target.closest("[data-report]");
  if (wanted) report(wanted);
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
      .catch(() => refuse("The server cannot be reached just now."));
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
    } catch { refuse("The server cannot be reached just now."); }
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
