/**
 * Seal bytes for the holder of a key, so that whoever carries them learns their length alone.
 *
 *   import { envelope } from "./discreet-seal.js";
 *   const sealed = await envelope(publicKey, await collection.collect("yes"));
 *
 * This is HPKE [RFC 9180] in base mode, one message a key, by Web Crypto: DHKEM(P-256,
 * HKDF-SHA256), HKDF-SHA256, AES-128-GCM.
 */

const CURVE = { name: "ECDH", namedCurve: "P-256" };
const KEM = bytes("KEM", [0x00, 0x10]);
const SUITE = bytes("HPKE", [0x00, 0x10, 0x00, 0x01, 0x00, 0x01]);
const HASH = 32; // bytes of SHA-256, which no key or nonce here exceeds: expanding takes one block

/** Put texts, numbers and bytes together. */
function bytes(...parts) {
  const encoder = new TextEncoder();
  return new Uint8Array(
    parts.flatMap((part) => [...(typeof part === "string" ? encoder.encode(part) : part)]),
  );
}

async function hmac(key, text) {
  const hash = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key, hash, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, text));
}

/* LabeledExtract and LabeledExpand of RFC 9180, section 4. */

function extract(suite, salt, label, secret) {
  return hmac(salt, bytes("HPKE-v1", suite, label, secret));
}

async function expand(suite, secret, label, context, length) {
  const block = await hmac(secret, bytes([0, length], "HPKE-v1", suite, label, context, [1]));
  return block.slice(0, length);
}

/**
 * Return a message sealed to the holder of a public key, which is a point of P-256 in 65 bytes:
 * the encapsulated key (65 bytes) and the ciphertext behind it, as Python's cryptography has it.
 *
 * The pair ``ephemeral`` is drawn anew for each message. Give one for the RFC's vectors only: two
 * messages of one pair would show what they have in common.
 */
export async function seal(publicKey, message, { info = [], aad = [], ephemeral } = {}) {
  const { subtle } = crypto;
  const none = new Uint8Array(HASH); // a salt of no bytes is one of zeros to HMAC
  const receiver = await subtle.importKey("raw", publicKey, CURVE, true, []);
  const pair = ephemeral ?? (await subtle.generateKey(CURVE, false, ["deriveBits"]));
  const encapsulated = new Uint8Array(await subtle.exportKey("raw", pair.publicKey));
  const agreed = await subtle.deriveBits({ ...CURVE, public: receiver }, pair.privateKey, 8 * HASH);

  const prk = await extract(KEM, none, "eae_prk", new Uint8Array(agreed));
  const shared = await expand(KEM, prk, "shared_secret", bytes(encapsulated, publicKey), HASH);

  const ids = await extract(SUITE, none, "psk_id_hash", []); // of a shared key that base mode lacks
  const context = bytes([0], ids, await extract(SUITE, none, "info_hash", info));
  const secret = await extract(SUITE, shared, "secret", []);
  const raw = await expand(SUITE, secret, "key", context, 16);
  const iv = await expand(SUITE, secret, "base_nonce", context, 12);

  const key = await subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt"]);
  const way = { name: "AES-GCM", iv, additionalData: bytes(aad) };
  return bytes(encapsulated, new Uint8Array(await subtle.encrypt(way, key, message)));
}

const HEADER = 17; // version, collection, digest of the parameters: a report begins with them

/**
 * Return a report's envelope for the analyser, which a shuffler can route and cannot open. The
 * header in front is bound to what is inside: under another one the envelope does not open.
 */
export async function envelope(publicKey, report) {
  const header = report.subarray(0, HEADER);
  const info = bytes("discreet envelope v1", header);
  return bytes(header, await seal(publicKey, report, { info }));
}
