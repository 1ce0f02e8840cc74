// Keys, signed notes and checkpoints: C2SP signed-note, tlog-checkpoint and tlog-cosignature.
import { encoded, fromBase64, hex, isSame, sha256 } from "./bytes.js";
import { NotProven } from "./refusal.js";
import { LARGEST } from "./tree.js";

export const LOG = 0x01, COSIGNER = 0x04; // signature types

// Points of small order, with the sign left out: a signature under one fits many texts.
const SMALL_ORDER = new Set([
  "00".repeat(32),
  `01${"00".repeat(31)}`,
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  `ec${"ff".repeat(30)}7f`,
  `ed${"ff".repeat(30)}7f`,
  `ee${"ff".repeat(30)}7f`,
]);

// Whether this browser can check Ed25519 at all, tried on the first example of RFC 8032.
export async function canCheckSignatures() {
  const bytes = (text) => Uint8Array.from(text.match(/../g), (pair) => Number.parseInt(pair, 16));
  const key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
  const signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bac" +
    "c61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
  try {
    return await isSigned(bytes(key), new Uint8Array(), bytes(signature));
  } catch {
    return false;
  }
}

async function isSigned(key, message, signature) {
  const opened = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
  return crypto.subtle.verify("Ed25519", opened, signature, message);
}

export async function hasSigned(key, message, signature) {
  try {
    return await isSigned(key.public, message, signature);
  } catch (error) {
    if (error.name === "NotSupportedError") throw error;
    return false; // no point of the curve
  }
}

export async function parseVkey(text) {
  const [name, keyId, base64] = split(text, "+");
  const raw = fromBase64(base64, "a public key", 33);
  const key = { name: checkedName(name), algorithm: raw[0], public: raw.slice(1) };
  key.id = (await sha256(encoded(`${name}\n`), raw)).slice(0, 4);
  if (![LOG, COSIGNER].includes(key.algorithm) || hex(key.id) !== keyId) {
    throw new NotProven("a public key does not fit its key ID, or is of an unknown kind");
  }
  const unsigned = Uint8Array.from(key.public);
  unsigned[31] &= 0x7f;
  if (SMALL_ORDER.has(hex(unsigned))) {
    throw new NotProven("a public key is one under which anybody can sign anything");
  }
  return key;
}

// A signed note as its text and its signatures.
export function parseNote(note) {
  const gap = note.lastIndexOf("\n\n");
  const lines = note.slice(gap + 2).split("\n");
  if (gap < 0 || lines.pop() || /[\u0000-\u0009\u000b-\u001f\ud800-\udfff]/u.test(note)) {
    throw new NotProven("the checkpoint is not a signed note");
  }
  if (lines.length > 100) throw new NotProven("the checkpoint has too many signatures");
  const signatures = lines.map((line) => {
    const [dash, name, base64] = split(line, " ");
    const raw = fromBase64(base64, "a signature");
    if (dash !== "\u2014" || raw.length < 5) {
      throw new NotProven("the checkpoint has a malformed signature line");
    }
    return { name: checkedName(name), id: raw.slice(0, 4), raw: raw.slice(4) };
  });
  return { text: `${note.slice(0, gap)}\n`, signatures };
}

// What a signed note says about a log. This checks no signature.
export function parseCheckpoint(note) {
  const lines = parseNote(note).text.split("\n");
  if (lines.length !== 4 || !/^(?:0|[1-9][0-9]{0,18})$/.test(lines[1])) {
    throw new NotProven("the checkpoint is not an origin, a size and a root hash on three lines");
  }
  const size = BigInt(lines[1]);
  if (size > LARGEST) throw new NotProven("the checkpoint is of a log larger than any");
  const root = fromBase64(lines[2], "the root hash", 32);
  return { origin: checkedName(lines[0]), size, root };
}

// The checkpoint in a note; refused if the log's key did not sign it.
export async function checkCheckpoint(note, vkey) {
  const key = await parseVkey(vkey);
  const checkpoint = parseCheckpoint(note), { text, signatures } = parseNote(note);
  if (key.algorithm !== LOG || key.name !== checkpoint.origin) {
    throw new NotProven(`the key given is not that of a log called ${checkpoint.origin}`);
  }
  const mine = await Promise.all(
    signedBy(key, signatures).map(({ raw }) => hasSigned(key, encoded(text), raw)),
  );
  if (!mine.length || !mine.every(Boolean)) {
    throw new NotProven("the checkpoint is not signed by the key given, nor by one it leads to");
  }
  return checkpoint;
}

// Which of these witnesses cosigned, and when; refused if a cosignature of theirs is false.
export async function checkCosignatures(note, witnesses) {
  const { text, signatures } = parseNote(note);
  const keys = await Promise.all(witnesses.map(parseVkey));
  const different = new Set(keys.map((key) => hex(key.public)));
  if (different.size < keys.length || keys.some((key) => key.algorithm !== COSIGNER)) {
    throw new NotProven("the keys of the witnesses are not different keys of witnesses");
  }
  const found = [];
  for (const key of keys) {
    let latest = null;
    for (const { raw } of signedBy(key, signatures)) {
      const time = raw.slice(0, 8).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
      const told = encoded(`cosignature/v1\ntime ${time}\n${text}`);
      if (time > LARGEST || !(await hasSigned(key, told, raw.slice(8)))) {
        throw new NotProven(`the cosignature of ${key.name} is false`);
      }
      if (latest === null || time > latest) latest = time;
    }
    if (latest !== null) found.push({ name: key.name, time: latest });
  }
  return found;
}

// What the old and the new key both sign when an entry rotates the key.
export function rotationText(origin, index, vkey) {
  return encoded(`discreet-ledger rotate v1\n${origin}\n${index}\n${vkey}\n`);
}


function signedBy(key, signatures) {
  return signatures.filter(({ name, id }) => name === key.name && isSame(id, key.id));
}

// Three parts, as text.split(mark, 2) gives them in Python; missing ones are empty.
function split(text, mark) {
  const [first, ...rest] = text.split(mark);
  const [second = "", ...more] = rest;
  return [first, second, more.join(mark)];
}

function checkedName(text) {
  const isName = text && [...text].length <= 255 && !/[\p{C}\p{Z}+]/u.test(text);
  if (!isName) throw new NotProven("the name of a key or log is not one");
  return text;
}
