// The page that checks that a log only grew: both signatures, and the hashes between them.
import { fromBase64 } from "./verifier/bytes.js";
import { checkCheckpoint } from "./verifier/notes.js";
import { NotProven } from "./verifier/refusal.js";
import { offer, verdict } from "./verifier/show.js";
import { checkConsistency } from "./verifier/tree.js";

const field = (id) => document.getElementById(id);
const form = field("consistency"), place = field("verdict"), seen = field("remembered");

// Text areas drop nothing but carriage returns; what was copied may lack its last line's end.
const note = (text) => (text.endsWith("\n") ? text : `${text}\n`);

async function compare(earlier, key) {
  const lines = [];
  const step = async (title, work, words) => {
    try {
      const found = await work();
      lines.push({ title, isGood: true, text: words(found) });
      return found;
    } catch (error) {
      lines.push({ title, isGood: false, text: `${error.message}.` });
      throw error;
    }
  };
  try {
    const old = await step("The earlier checkpoint", () => checkCheckpoint(earlier, key),
      (found) => `The key signed ${found.size} entries of ${found.origin}.`);
    const proof = await step("The proof", () => asked(old.size), (found) => `The gateway gave ${found.hashes.length} hashes.`);
    const now = await step("The checkpoint now", () => checkCheckpoint(proof.checkpoint, key),
      (found) => `The key signed ${found.size} entries.`);
    await step("The hashes", () => checkConsistency(old.size, old.root, now.size, now.root, proof.hashes),
      () => `They lead from the same subtrees to both roots: the first ${old.size} entries are what they were.`);
    return { isGood: true, lines, checkpoint: proof.checkpoint };
  } catch (error) {
    if (!(error instanceof NotProven)) throw error;
    return { isGood: false, lines };
  }
}

async function asked(size) {
  const answer = await fetch(`/v1/ledger/consistency?old=${size}`);
  if (!answer.ok) throw new NotProven("the gateway proves nothing about a log of this size");
  const { checkpoint, proof } = await answer.json();
  return { checkpoint, hashes: proof.map((one) => fromBase64(one, "a hash of the proof", 32)) };
}

function tell({ isGood, lines }) {
  verdict(place, isGood ? "The log has only grown" : "Not shown to have only grown", isGood, lines);
}

// What this browser saw when it was here last. It is forgotten only for a log that continues it.
async function remember() {
  const name = "discreet checkpoint", now = form.dataset.now, key = field("key").value;
  let last = null;
  try { last = JSON.parse(localStorage.getItem(name)); } catch { return; }
  if (last) {
    field("earlier").value = last.note;
    const found = await compare(last.note, last.key);
    tell(found);
    seen.textContent = `Compared with what this browser saw on ${new Date(last.time).toLocaleString()}.`;
    if (!found.isGood) seen.textContent += " That is kept until a log continues it.";
    if (found.isGood) keep(name, { note: found.checkpoint, key: last.key });
  } else {
    field("earlier").value = now;
    seen.textContent = "This browser remembers this checkpoint from now on, and compares when you come back.";
    keep(name, { note: now, key });
  }
  seen.hidden = false;
}

function keep(name, facts) {
  try { localStorage.setItem(name, JSON.stringify({ ...facts, time: Date.now() })); } catch { /* not kept */ }
}

if (await offer(form, place, "discreet ledger verify budget.ndjson --public ledger.pub --pinned checkpoint.txt")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    tell(await compare(note(field("earlier").value), field("key").value.trim()));
  });
  await remember();
}
