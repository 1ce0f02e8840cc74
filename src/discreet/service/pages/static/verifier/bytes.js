// Text, bytes, Base64 and SHA-256.
import { NotProven } from "./refusal.js";

export async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));
}

export function joined(...parts) {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

export function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function isSame(one, other) {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}

// UTF-8, in which half of a surrogate pair is written as any other character of its size.
export function encoded(text) {
  const halves = /[\ud800-\udfff]/gu;
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(halves)) {
    const code = found[0].charCodeAt(0);
    parts.push(new TextEncoder().encode(text.slice(from, found.index)));
    parts.push(Uint8Array.of(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)));
    from = found.index + 1;
  }
  return joined(...parts, new TextEncoder().encode(text.slice(from)));
}

// Base64 written in the one canonical way.
export function fromBase64(text, what, length = null) {
  let raw = null;
  try {
    raw = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  } catch { /* refused below */ }
  if (raw === null || raw.length === 0 || toBase64(raw) !== text ||
      (length !== null && raw.length !== length)) {
    throw new NotProven(`${what} is not proper Base64 of the right length`);
  }
  return raw;
}

export function toBase64(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
