// The page that verifies a receipt: what is given goes to the verifier, and its steps are told.
import { written } from "./verifier/json.js";
import { checkReceipt } from "./verifier/receipt.js";
import { element, offer, verdict } from "./verifier/show.js";

const field = (id) => document.getElementById(id);
const form = field("check"), place = field("verdict");

const STEPS = {
  form: ["The form", () => "It is a receipt, and nothing is said twice."],
  claim: ["The claim", (found) => `It is about ${found.origin}, when that had ${found.size} entries.`],
  keys: ["The keys", (found) => found.count
    ? `The key given led to the one that signs now, by ${found.count} rotation(s) that both keys signed.`
    : "The key given is the one that signs."],
  signature: ["The signature", () => "The log's key signed this size and this root hash (Ed25519)."],
  witnesses: ["The witnesses", (found) => found.length
    ? found.map((one) => `${one.name} has seen this log.`).join(" ")
    : "None was asked for: nobody else is shown to have seen the same log."],
  entries: ["The entries", (found) =>
    `${found.map((one) => `Entry ${one.get("index")} (${one.get("kind")})`).join(" and ")}: hashed, along the path, to the root that was signed.`],
  payment: ["The payment", (found) => found.length
    ? "Each release has its charge, of the same account, before it." : "No release is shown, so none has to be paid."],
  answer: ["The answer", (found) => found === null
    ? "None was given to compare." : `The bytes given are those that entry ${found} commits to (SHA-256).`],
};

function told(step) {
  const [title, words] = STEPS[step.name];
  if (!step.isGood) return { title, isGood: false, text: `${step.reason}.` };
  const isAsked = !(step.name === "witnesses" && !step.found.length) && !(step.name === "answer" && step.found === null);
  return { title, isGood: isAsked ? true : null, text: words(step.found) };
}

async function check(bytes) {
  const answer = field("answer").files[0];
  const found = await checkReceipt(bytes, field("key").value.trim(), {
    answer: answer ? new Uint8Array(await answer.arrayBuffer()) : null,
    witnesses: field("witnesses").value.split("\n").map((line) => line.trim()).filter(Boolean),
  });
  verdict(place, found.isProven ? "Proven" : "Not proven", found.isProven, found.steps.map(told));
  if (found.isProven) place.append(entries(found.entries));
  return found;
}

function entries(shown) {
  const facts = element("dl", "", "facts");
  for (const one of shown) {
    for (const name of ["kind", "account", "who", "purpose", "loss", "time"]) {
      if (!one.has(name)) continue;
      const value = one.get(name);
      facts.append(element("dt", `${one.get("index")}: ${name}`), element("dd", typeof value === "string" ? value : written(value)));
    }
  }
  return facts;
}

// A forger's hand: one byte, anywhere, becomes another that can be printed.
function forged(bytes) {
  const changed = Uint8Array.from(bytes);
  const solid = [...changed.keys()].filter((at) => changed[at] > 0x20);
  const at = solid[Math.floor(Math.random() * solid.length)];
  const before = changed[at];
  do changed[at] = 0x21 + Math.floor(Math.random() * 94); while (changed[at] === before);
  const shown = (byte) => byte < 0x7f ? `\u201c${String.fromCharCode(byte)}\u201d` : `byte ${byte}`;
  return { changed, told: `Byte ${at} was changed from ${shown(before)} to ${shown(changed[at])}.` };
}

const given = () => new TextEncoder().encode(field("receipt").value);

if (await offer(form, field("unable"), "discreet verify receipt.json --key ledger.pub")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    check(given());
  });
  field("forge").addEventListener("click", async () => {
    if (!form.reportValidity()) return;
    const { changed, told: words } = forged(given());
    await check(changed);
    place.append(element("p", `${words} The receipt in the form is as it was.`));
  });
  const open = async (file) => {
    field("receipt").value = await file.text();
    check(new Uint8Array(await file.arrayBuffer()));
  };
  field("file").addEventListener("change", ({ target }) => target.files[0] && open(target.files[0]));
  form.addEventListener("dragover", (event) => { event.preventDefault(); form.classList.add("dropping"); });
  form.addEventListener("dragleave", () => form.classList.remove("dropping"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("dropping");
    if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
  });
  if (field("receipt").value) check(given());
}
