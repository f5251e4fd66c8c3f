// The ledger page: the chain re-hashed here in idle time, receipts checked here, entries in pages.

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
  const { find, made } = app, table = encodeURIComponent(root.dataset.table);
  const here = find("#here", root), verdict = find("#verdict", root), facts = find("#receipt-facts", root);
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
      here.textContent = `Checked ${number(seen)} of ${number(+root.dataset.count)} here …`;
      if (!next) break;
      after = next;
    }
    here.textContent = tried === seen
      ? "Checked in this browser just now, every link."
      : `This browser checked ${number(tried)} of ${number(seen)} links just now: those whose text you may read. The others rest on the server's check.`;
    root.dataset.checked = String(tried);
  }

  function broken(seq) {
    const note = noted("bad", `Entry ${ordinal(seq)} was changed after it was written.`, "Its fingerprint does not follow from the entry before it. Keep your receipts and tell the auditor.");
    find("#chain-note", root).replaceChildren(note);
    const head = find(".chain .headmost", root);
    head?.previousElementSibling?.classList.add("broken");
    root.dataset.checked = "broken";
    app.say(note.textContent, true);
  }

  function noted(kind, first, more) {
    const note = find(`#n-${kind}`, root).content.firstElementChild.cloneNode(true);
    const words = find("b", note);
    words.textContent = first;
    words.parentElement.replaceChildren(words, ` ${more}`);
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
    const key = await crypto.subtle.importKey("raw", unhex(root.dataset.key), "Ed25519", false, ["verify"]);
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

  const SAID = {
    genuine: (body) => ["ok", "Genuine.", `Signed by this table’s key and found in the chain at ${ordinal(body.seq)}.`],
    forged: () => ["bad", "Not signed by this table.", "It was changed, or another ledger made it. Ask for the receipt anew."],
    astray: () => ["bad", "Signed, but not in this chain.", "Send this receipt to the auditor: the ledger may have been replaced."],
    none: () => ["warn", "Not a receipt.", "Paste the whole line as it was given out, unchanged."],
  };

  async function verify() {
    const lines = find("#paste", root).value.split("\n").map((line) => line.trim()).filter(Boolean);
    facts.hidden = true;
    verdict.replaceChildren();
    if (!lines.length) return void find("#paste", root).focus();
    const found = [];
    for (const line of lines) { found.push(await judge(line)); if (gone) return; }
    const bad = found.findIndex((one) => one.verdict !== "genuine");
    const [kind, first, more] = SAID[(found[bad] || found[0]).verdict]((found[bad] || found[0]).body);
    const many = lines.length > 1 ? (bad < 0 ? ["ok", `All ${lines.length} genuine.`, "Signed by this table’s key and found in the chain."]
      : [kind, `Line ${bad + 1} of ${lines.length}: ${first}`, more]) : [kind, first, more];
    verdict.replaceChildren(noted(...many));
    if (found.some((one) => one.asked)) verdict.append(made("p", "This browser cannot check signatures: the server did it.", "small muted"));
    if (lines.length === 1 && found[0].body && found[0].verdict === "genuine") tell(found[0].body);
  }

  function tell(body) {
    const law = (() => { try { return JSON.parse(body.noise)[0].law; } catch { return ""; } })();
    const credits = Math.max(0, ...body.charges.map((part) => Number(BigInt(part[0]) * 1000n >> 64n) / 1000));
    const lines = [["Entry", ordinal(body.seq)], ["Account", body.analyst], ["Credits", Math.ceil(credits * 100) / 100], ["Noise", law],
      ["Neighbours", body.neighbours === "replace" ? `one ${root.dataset.unit} replaced` : `one ${root.dataset.unit} more or less`], ["Data version", `${body.version.slice(0, 4)}…${body.version.slice(-4)}`],
      ["Answer", "not in the receipt, only its fingerprint"]];
    facts.replaceChildren(...lines.flatMap(([name, text]) => [made("dt", name), made("dd", text)]));
    facts.hidden = false;
  }

  // --- entries ---
  const search = find("#search", root), list = find("#entries", root);
  let wait = 0;
  async function show(before = 0) {
    const asked = new URLSearchParams({ before, kind: search.kind.value, text: search.text.value });
    try {
      list.innerHTML = await app.html(await app.send(`/console/${table}/entries?${asked}`, { signal: stop.signal }));
    } catch (error) { app.unreachable(error); }
  }
  search.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(show, 200); });
  search.addEventListener("submit", (event) => { event.preventDefault(); show(); });
  list.addEventListener("click", (event) => {
    const to = event.target.closest("[data-before]");
    if (to) show(to.dataset.before).then(() => list.querySelector(".scroll").focus());
  });

  find("#again", root)?.addEventListener("click", checking);
  find("#check", root).addEventListener("click", () => verify().catch(app.unreachable));
  const paste = find("#paste", root);
  for (const kind of ["dragover", "dragleave", "drop"]) paste.addEventListener(kind, (event) => {
    event.preventDefault();
    paste.classList.toggle("over", kind === "dragover");
    const file = kind === "drop" && event.dataTransfer.files[0];
    if (file) file.text().then((text) => { paste.value = text; return verify(); });
  });
  find("#download", root).addEventListener("click", async () => {
    const reply = await app.send(`/console/${table}/chain.jsonl`);
    if (reply.ok) app.save(`${root.dataset.table}-chain.jsonl`, await reply.text(), "application/jsonl");
  });
  if (location.hash === "#mine") { search.kind.value = "mine"; show(); }
  checking();
  return () => { gone = true; stop.abort(); clearTimeout(wait); };
}
