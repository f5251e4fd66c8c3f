// The ledger page: the chain re-hashed here in idle time, receipts checked here.

const STEP = 1000;
const hex = (bytes) => Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g) || [], (pair) => parseInt(pair, 16));
const idle = () => new Promise((go) => (window.requestIdleCallback || ((f) => setTimeout(f, 1)))(go, { timeout: 500 }));
const number = (n) => n.toLocaleString("en-US");
const ordinal = (n) => `#${String(n).padStart(4, "0")}`;

// hash = SHA-256(hash before, body): what has no body for this reader rests on the server's check.
async function linked(before, body) {
  const text = new TextEncoder().encode(body), joined = new Uint8Array(32 + text.length);
  joined.set(before);
  joined.set(text, 32);
  return hex(await crypto.subtle.digest("SHA-256", joined));
}

export function start(root, app) {
  const find = (what, within = root) => within.querySelector(what);
  const { count, key: signer, table: name } = root.dataset, table = encodeURIComponent(name);
  const here = find("#here"), verdict = find("#verdict"), facts = find("#receipt-facts"), paste = find("#paste");
  let gone = false, hashes = new Map(), run = null, stop = new AbortController();

  async function page(after) {
    const reply = await app.send(`/v1/tables/${table}/ledger?after=${after}&limit=${STEP}`, { signal: stop.signal });
    if (!reply.ok) throw new Error("unread");
    return reply.json();
  }

  async function check() {
    let after = 0, before = new Uint8Array(32), seen = 0, tried = 0;
    hashes = new Map();
    for (;;) {
      await idle();
      if (gone) return;
      const { entries, next } = await page(after);
      for (const [place, line] of entries.entries()) {
        if (line.body !== undefined) {
          if (await linked(before, line.body) !== line.hash) return broken(line.seq);
          tried += 1;
        }
        hashes.set(line.seq, line.hash);
        before = unhex(line.hash);
        if (place % 100 === 99) await idle();
      }
      seen += entries.length;
      if (gone) return;
      here.textContent = `Checked ${number(seen)} of ${number(+count)} here …`;
      if (!next) break;
      after = next;
    }
    here.textContent = tried === seen
      ? "Checked in this browser just now, every link."
      : `This browser checked ${number(tried)} of ${number(seen)} links just now: those whose text you may read. The others rest on the server's check.`;
    root.dataset.checked = String(tried);
  }

  function broken(seq) {
    const note = said("broken", `Entry ${ordinal(seq)} `);
    find("#chain-note").replaceChildren(note);
    find(".chain .headmost")?.previousElementSibling?.classList.add("broken");
    root.dataset.checked = "broken";
    app.say(note.textContent, true);
  }

  // A note of the page's templates, with something before its first words.
  function said(what, before = "") {
    const note = find(`#said-${what}`).content.firstElementChild.cloneNode(true);
    find("b", note).prepend(before);
    return note;
  }

  const checking = () => (run = check().catch((error) => {
    if (gone || error.name === "AbortError") return;
    here.textContent = "This browser could not fetch the chain; the server's check stands.";
    app.unreachable(error);
  }));

  // --- receipts ---
  const shape = /^\{"receipt":(\{.*\}),"signature":"([0-9a-f]{128})"\}$/;

  async function signed(text, signature) {
    const key = await crypto.subtle.importKey("raw", unhex(signer), "Ed25519", false, ["verify"]);
    return crypto.subtle.verify("Ed25519", key, unhex(signature), new TextEncoder().encode(text));
  }

  // "genuine", "forged", "astray" or "none"; who cannot check a signature asks the server.
  async function judge(line) {
    const parts = shape.exec(line);
    if (!parts) return { verdict: "none" };
    let body;
    try { body = JSON.parse(parts[1]); } catch { return { verdict: "none" }; }
    let good;
    try { good = await signed(parts[1], parts[2]); }
    catch {
      const reply = await app.send(`/console/${table}/receipt`, { method: "POST", body: { text: line } });
      return { ...await reply.json(), body, asked: true };
    }
    if (!good) return { verdict: "forged", body };
    await run;
    if (!hashes.has(body.answer)) await checking();
    return { verdict: hashes.get(body.answer) === body.answer_link ? "genuine" : "astray", body };
  }

  async function verify() {
    const lines = paste.value.split("\n").map((line) => line.trim()).filter(Boolean);
    facts.hidden = true;
    verdict.replaceChildren();
    if (!lines.length) return paste.focus();
    const found = [];
    for (const line of lines) { found.push(await judge(line)); if (gone) return; }
    const bad = found.findIndex((one) => one.verdict !== "genuine"), many = lines.length > 1;
    const note = said((found[bad] || found[0]).verdict, many && bad >= 0 ? `Line ${bad + 1} of ${lines.length}: ` : "");
    if (many && bad < 0) find("b", note).textContent = `All ${lines.length} genuine.`;
    verdict.append(note);
    find("#by-server").hidden = !found.some((one) => one.asked);
    if (!many && bad < 0) tell(found[0].body);
  }

  function tell(body) {
    const law = (() => { try { return JSON.parse(body.noise)[0].law; } catch { return ""; } })();
    const credits = Math.max(0, ...body.charges.map((part) => Number(BigInt(part[0]) * 1000n >> 64n) / 1000));
    const texts = {
      entry: ordinal(body.seq), account: body.analyst, credits: Math.ceil(credits * 100) / 100, noise: law,
      neighbours: `one ${root.dataset.unit} ${body.neighbours === "replace" ? "replaced" : "more or less"}`,
      version: `${body.version.slice(0, 4)}…${body.version.slice(-4)}`,
    };
    for (const [fact, text] of Object.entries(texts)) find(`[data-f=${fact}]`, facts).textContent = text;
    facts.hidden = false;
  }

  find("#again").addEventListener("click", checking);
  find("#check").addEventListener("click", () => verify().catch(app.unreachable));
  for (const kind of ["dragover", "dragleave", "drop"]) paste.addEventListener(kind, (event) => {
    event.preventDefault();
    paste.classList.toggle("over", kind === "dragover");
    const file = kind === "drop" && event.dataTransfer.files[0];
    if (file) file.text().then((text) => { paste.value = text; return verify(); });
  });
  find("#download").addEventListener("click", async () => {
    const reply = await app.send(`/console/${table}/chain.jsonl`);
    if (reply.ok) app.save(`${name}-chain.jsonl`, await reply.text(), "application/jsonl");
  });
  const search = find("#search");
  if (location.hash === "#mine") { search.kind.value = "mine"; app.follow(search, 0); }
  checking();
  return () => { gone = true; stop.abort(); };
}
