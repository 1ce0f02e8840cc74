// A receipt checked step by step, with the verdicts and the words of discreet.ledger.verifier.
import { encoded, fromBase64, hex, sha256 } from "./bytes.js";
import { members, readJson } from "./json.js";
import {
  LOG, checkCheckpoint, checkCosignatures, hasSigned, parseCheckpoint, parseVkey, rotationText,
} from "./notes.js";
import { NotProven } from "./refusal.js";
import { checkInclusion, leafHash } from "./tree.js";

const SHAPE = { format: "text", checkpoint: "text", entries: "list", rotations: "list" };
const CHARGES = ["charge", "reserve"];

// Returns {isProven, reason, steps, ...}: each step has its name and what was found. The steps end
// with the one that failed, whose `reason` says why. `answer` is bytes, or null.
export async function checkReceipt(document, vkey, { answer = null, witnesses = [] } = {}) {
  const steps = [];
  const step = async (name, work) => {
    try {
      const found = await work();
      steps.push({ name, isGood: true, found });
      return found;
    } catch (error) {
      if (!(error instanceof NotProven)) throw error;
      steps.push({ name, isGood: false, reason: error.message });
      throw error;
    }
  };
  try {
    const receipt = await step("form", () => readReceipt(document));
    const note = receipt.get("checkpoint");
    const told = await step("claim", () => parseCheckpoint(note));
    const way = await step("keys", () => followRotations(vkey, receipt.get("rotations"), told));
    const checkpoint = await step("signature", () => checkCheckpoint(note, way.vkey));
    await step("witnesses", () => checkWitnesses(note, witnesses));
    const entries = await step("entries", () => readEntries(receipt.get("entries"), checkpoint));
    const releases = await step("payment", () => paidFor(entries));
    await step("answer", () => committedTo(answer, releases));
    return { isProven: true, reason: null, steps, checkpoint, entries, vkey: way.vkey };
  } catch (error) {
    if (!(error instanceof NotProven)) throw error;
    return { isProven: false, reason: error.message, steps };
  }
}

function readReceipt(document) {
  const read = readJson(document, "the receipt");
  const receipt = members(read, SHAPE, "the receipt", { exactly: true });
  if (receipt.get("format") !== "discreet-receipt/1") {
    throw new NotProven("the receipt is of a format that this verifier does not know");
  }
  return receipt;
}

// The key that signs after these rotations, which the log must all hold.
async function followRotations(vkey, rotations, checkpoint) {
  const shape = { vkey: "text", by_old: "text", by_new: "text" };
  const shown = await readEntries(rotations, checkpoint);
  const steps = shown.map((entry) => members(entry, shape, "a rotation"));
  if (steps.some((one) => one.get("kind") !== "rotate")) {
    throw new NotProven("an entry among the rotations rotates no key");
  }
  // The key may have been handed out after some of them: start behind the one that made it.
  const start = steps.findLastIndex((one) => one.get("vkey") === vkey) + 1;
  let count = 0;
  for (const one of steps.slice(start)) {
    const before = await parseVkey(vkey), after = await parseVkey(one.get("vkey"));
    const told = rotationText(before.name, one.get("index"), one.get("vkey"));
    const byOld = fromBase64(one.get("by_old"), "a rotation", 64);
    const byNew = fromBase64(one.get("by_new"), "a rotation", 64);
    const isSigned = await hasSigned(before, told, byOld) && await hasSigned(after, told, byNew);
    if (!isSigned || after.name !== before.name || after.algorithm !== LOG) {
      throw new NotProven(`entry ${one.get("index")} does not lead from the key given to another`);
    }
    vkey = one.get("vkey");
    count += 1;
  }
  return { vkey, count };
}

async function checkWitnesses(note, witnesses) {
  const cosigned = await checkCosignatures(note, witnesses);
  if (cosigned.length < witnesses.length) {
    throw new NotProven(
      `${cosigned.length} of the witnesses given cosigned, and ${witnesses.length} must`,
    );
  }
  return cosigned;
}

// The entries shown, which must be in the log and in ascending order.
async function readEntries(items, checkpoint) {
  const entries = [];
  const shape = { index: "whole", body: "text", proof: "list" };
  for (const item of items) {
    const shown = members(item, shape, "a shown entry", { exactly: true });
    const index = shown.get("index"), body = shown.get("body");
    const proof = shown.get("proof").map((text) => fromBase64(
      typeof text === "string" ? text : "", "a hash in a proof", 32,
    ));
    const leaf = await leafHash(encoded(body));
    await checkInclusion(leaf, index, checkpoint.size, proof, checkpoint.root);
    const read = readJson(body, "an entry");
    const entry = members(read, { index: "whole", kind: "text" }, "an entry");
    if (entry.get("index") !== index) {
      throw new NotProven(`entry ${index} says that it is another one`);
    }
    if (entries.length && index <= entries.at(-1).get("index")) {
      throw new NotProven("the entries shown are not in ascending order");
    }
    entries.push(entry);
  }
  return entries;
}

// The release entries, whose charges must be shown, come before them, and be of the same account.
function paidFor(entries) {
  const releases = entries.filter((one) => one.get("kind") === "release");
  for (const one of releases) {
    members(one, { account: "text", charge: "whole", answer: "text" }, "a release");
    const isPaid = entries.some((paid) =>
      paid.get("index") === one.get("charge") && paid.get("index") < one.get("index") &&
      CHARGES.includes(paid.get("kind")) && paid.get("account") === one.get("account"));
    if (!isPaid) {
      throw new NotProven(`the charge that paid for entry ${one.get("index")} is not shown`);
    }
  }
  if (!entries.length) throw new NotProven("the receipt shows no entry");
  return releases;
}

// The index of the entry that commits to an answer; null where none is compared.
async function committedTo(answer, releases) {
  if (answer === null) return null;
  const digest = hex(await sha256(answer));
  const found = releases.find((one) => one.get("answer") === digest);
  if (!found) throw new NotProven("the receipt is not about this answer");
  return found.get("index");
}
