// The Merkle tree of RFC 6962 (and RFC 9162): what a proof must hash to. Numbers are BigInts.
import { isSame, sha256 } from "./bytes.js";
import { NotProven } from "./refusal.js";

export const LARGEST = 2n ** 63n - 1n; // of sizes and times

export function leafHash(body) {
  return sha256(Uint8Array.of(0), body);
}

export function nodeHash(left, right) {
  return sha256(Uint8Array.of(1), left, right);
}

// Refuses unless the entry with this leaf hash is number `index` of the tree.
export async function checkInclusion(leaf, index, size, proof, root) {
  if (!(0n <= index && index < size && size <= LARGEST)) {
    throw new NotProven(`a log of size ${size} has no entry ${index}`);
  }
  // Up to the level where the paths to this leaf and to the last one meet, each node has a
  // sibling; above, the path runs along the right edge, and only left siblings remain.
  const inner = bitLength(index ^ (size - 1n));
  if (proof.length !== inner + bitCount(index >> BigInt(inner)) || !areHashes(proof)) {
    throw new NotProven(`the proof of entry ${index} does not have the right hashes`);
  }
  let top = leaf;
  for (const [level, sibling] of proof.entries()) {
    const isRight = level >= inner || (index >> BigInt(level)) & 1n;
    top = isRight ? await nodeHash(sibling, top) : await nodeHash(top, sibling);
  }
  if (!isSame(top, root)) {
    throw new NotProven(`entry ${index} is not the one in the log, or its proof is wrong`);
  }
}

// Refuses unless the old tree is the beginning of the new one.
export async function checkConsistency(oldSize, oldRoot, newSize, newRoot, proof) {
  const refusal = new NotProven(
    `the log of size ${newSize} is not shown to continue that of size ${oldSize}`,
  );
  if (!(0n <= oldSize && oldSize <= newSize && newSize <= LARGEST)) throw refusal;
  if (oldSize === 0n || oldSize === newSize) {
    const expected = oldSize === 0n ? await sha256() : newRoot;
    if (proof.length || !isSame(oldRoot, expected)) throw refusal;
    return;
  }
  // The path starts at the last complete subtree of the old tree, and so does the proof, unless
  // that subtree is the whole old tree, whose hash is known.
  const shift = BigInt(bitLength(oldSize & -oldSize) - 1);
  const path = (oldSize - 1n) >> shift, last = (newSize - 1n) >> shift;
  const hashes = path === 0n ? [oldRoot, ...proof] : proof;
  const inner = bitLength(path ^ last);
  if (hashes.length !== 1 + inner + bitCount(path >> BigInt(inner)) || !areHashes(proof)) {
    throw refusal;
  }
  let before = hashes[0], now = hashes[0];
  for (const [level, sibling] of hashes.slice(1).entries()) {
    if (level >= inner || (path >> BigInt(level)) & 1n) {
      before = await nodeHash(sibling, before);
      now = await nodeHash(sibling, now);
    } else {
      now = await nodeHash(now, sibling);
    }
  }
  if (!isSame(before, oldRoot) || !isSame(now, newRoot)) throw refusal;
}

function bitLength(number) {
  return number === 0n ? 0 : number.toString(2).length;
}

function bitCount(number) {
  return number.toString(2).replaceAll("0", "").length;
}

function areHashes(proof) {
  return proof.every((one) => one.length === 32);
}
