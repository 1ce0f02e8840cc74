/**
 * Answer a question about this device so that the answer tells little about it.
 *
 *   import { openCollection } from "./discreet-local.js";
 *   const collection = await openCollection(await (await fetch("/parameters")).json());
 *   const report = await collection.collect("yes"); // bytes to send, or null: no more may be said
 *
 * The bytes may be sent again until they arrive: they count once, and cost nothing further.
 * What a device has spent is kept in IndexedDB, for all tabs of a site together. A browser may
 * forget it when space is short, unless the page asks for navigator.storage.persist().
 *
 * Every chance is a whole number of 2**64ths out of the parameters, compared with 64 random bits:
 * the law is the one that discreet.local has in Python, to the last bit.
 */

export { envelope, seal } from "./discreet-seal.js";

const FORMAT = "discreet-local/1";
const VERSION = 1;
const HEADER = 33; // version, collection (8), digest of the parameters (8), token (16)
const ONE = 1n << 64n;

/* Randomness: from Web Crypto alone, in words of 32 bits. */

const pool = new Uint32Array(256);
let used = pool.length;

function word() {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  const drawn = pool[used];
  pool[used++] = 0; // what has been drawn cannot be read out of memory later
  return drawn;
}

/** Show heads with a chance of exactly (high 2**32 + low) / 2**64. */
function coin([high, low]) {
  const first = word();
  const second = word();
  return first < high || (first === high && second < low);
}

/** Draw one of the numbers below a public bound of at most 2**53, each alike. */
function below(bound) {
  const last = bound - 1;
  const high = Math.floor(last / 2 ** 32);
  for (;;) {
    const drawn = high ? bits(high) * 2 ** 32 + word() : bits(last);
    if (drawn < bound) return drawn;
  }
}

/** Draw as many random bits as a number of at most 32 bits has. */
function bits(number) {
  return number && (word() & (0xffffffff >>> Math.clz32(number))) >>> 0;
}

/* Numbers of the parameters: texts, because most readers of JSON know no large or exact ones. */

/** Return the two words that a coin compares with. */
function chance(text) {
  const whole = BigInt(text);
  if (whole < 0n || whole > ONE) throw new RangeError("a chance must be from 0 to 2**64");
  return [Number(whole >> 32n), Number(whole & 0xffffffffn)];
}

/** Return a ratio such as "7/2" as two whole numbers. */
function ratio(text) {
  const [upper, lower = 1n] = text.split("/").map(BigInt);
  if (upper <= 0n || lower <= 0n) throw new RangeError("a budget must be above 0");
  return [upper, lower];
}

/** Say how many reports of one cost a budget holds. */
function times(budget, cost) {
  return Number((budget[0] * cost[1]) / (budget[1] * cost[0]));
}

/**
 * Prove that upper / lower is at least 1 and at most exp(epsilon), by the exponential's series in
 * fixed point: all terms are above 0 and are rounded down, so no sum of them exceeds the
 * exponential. Below 1 the inverse would have to be bounded: what is never shown tells too.
 */
function isWithin(upper, lower, [p, q]) {
  if (lower <= 0n || upper < lower) return false;
  if (p > 100n * q) [p, q] = [100n, 1n]; // laws keep below exp(100) in any case
  let term = 1n << 256n;
  let sum = 0n;
  for (let k = 1n; term; k++) {
    sum += term;
    term = (term * p) / (q * k);
  }
  return upper << 256n <= sum * lower;
}

/* What several kinds do. */

/** Write a report that is one number, low byte first, in as few bytes as hold all of them. */
function oneNumber(code, outputs) {
  let width = 1;
  while (256n ** BigInt(width) < outputs) width++;
  const whole = BigInt(code);
  return Uint8Array.from({ length: width }, (_, i) => Number((whole >> BigInt(8 * i)) & 255n));
}

/** Return a code with a certain chance, otherwise any other one; both are drawn. */
function keepOrChange(code, kept, codes) {
  const ahead = below(codes - 1);
  const other = ahead + (ahead >= code); // the others, numbered without the code itself
  return coin(kept) ? code : other;
}

/** Say whether keeping to own codes with this chance, so many of all, tells at most epsilon. */
function keepingHolds({ keep, epsilon }, codes, own = 1) {
  const kept = BigInt(keep);
  return isWithin(kept * BigInt(codes - own), (ONE - kept) * BigInt(own), ratio(epsilon));
}

/** Say whether bits that show 1 with these chances, set or not, tell at most epsilon. */
function bitsHold(own, other, one, epsilon) {
  return isWithin(own * (one - other), other * (one - own), ratio(epsilon));
}

/** Say how many bits number the values of a domain. */
function bitsOf(domain) {
  return 32 - Math.clz32(domain - 1);
}

/** Return 1 for a number of 32 bits with an odd number of ones, otherwise 0. */
function parity(bits) {
  for (const half of [16, 8, 4, 2, 1]) bits ^= bits >>> half;
  return bits & 1;
}

/** Toss a coin for each value, of another chance for the own one; lowest bit first, as bytes. */
function tossed(domain, value, own, other) {
  const row = new Uint8Array(Math.ceil(domain / 8));
  for (let one = 0; one < domain; one++) row[one >> 3] |= coin(other) << (one & 7);
  const place = 1 << (value & 7);
  row[value >> 3] = (row[value >> 3] & ~place) | (coin(own) * place);
  return row;
}

/** One bit for each value: one coin for the own, another for all else. */
function unary({ domain, epsilon, own, other }) {
  const [ones, rare] = [chance(own), chance(other)];
  return {
    holds: bitsHold(BigInt(own), BigInt(other), ONE, epsilon),
    draw: (value) => tossed(domain, value, ones, rare),
  };
}

/* The kinds of randomisers, by the names that Python's table gives them. */

const KINDS = {
  /** The value itself, or any other one. */
  direct(law) {
    const { domain } = law;
    const kept = chance(law.keep);
    return {
      holds: keepingHolds(law, domain),
      draw: (value) => oneNumber(keepOrChange(value, kept, domain), domain),
    };
  },

  /** A random index, and the value's sign there, which a coin may turn round. */
  hadamard(law) {
    const kept = chance(law.keep);
    const size = 2 ** bitsOf(law.domain);
    return {
      holds: keepingHolds(law, 2),
      draw(value) {
        const index = below(size);
        const minus = parity(index & value) ^ !coin(kept);
        return oneNumber(2 * index + minus, 2 * size);
      },
    };
  },

  "symmetric-unary": unary,
  "optimized-unary": unary,

  /** A random member of a public family of functions, and the value's cell under it or another. */
  "public-hashing"(law) {
    const kept = chance(law.keep);
    const [cells, polynomial] = [Number(law.cells), Number(law.polynomial)];
    const [size, bits] = [2 ** bitsOf(law.domain), Math.log2(cells)];
    return {
      holds: Number.isInteger(bits) && bits <= 20 && keepingHolds(law, cells),
      draw(value) {
        const member = below(size);
        let cell = 0;
        // Bit i of the cell is the parity of what the value shares with x**i times the member.
        for (let i = 0, power = member; i < bits; i++) {
          cell |= parity(power & value) << i;
          power = ((2 * power) & (size - 1)) ^ (2 * power < size ? 0 : polynomial);
        }
        return oneNumber(member * cells + keepOrChange(cell, kept, cells), size * cells);
      },
    };
  },

  /** A random function of the device's own, and the value's cell under it or another. */
  "local-hashing"(law) {
    const kept = chance(law.keep);
    const [cells, hash, bits] = [law.cells, law.hash_bits, law.word_bits].map(Number);
    const isWhole = Number.isInteger(hash) && Number.isInteger(bits);
    const fits = isWhole && hash > 0 && hash <= bits && bits <= 31 && cells < 2 ** 22;
    return {
      holds: fits && keepingHolds(law, cells),
      draw(value) {
        const [factor, summand] = [below(2 ** bits), below(2 ** bits)];
        const top = ((Math.imul(factor, value) + summand) & (2 ** bits - 1)) >>> (bits - hash);
        const cell = keepOrChange(Math.floor((top * cells) / 2 ** hash), kept, cells);
        const member = BigInt(factor) * 2n ** BigInt(bits) + BigInt(summand);
        return oneNumber(member * BigInt(cells) + BigInt(cell), 4n ** BigInt(bits) * BigInt(cells));
      },
    };
  },

  /** A random linear form, and its value at the own point, or another number. */
  projective(law) {
    const kept = chance(law.keep);
    const [prime, places] = [Number(law.prime), Number(law.places)];
    const forms = (prime ** places - 1) / (prime - 1);
    return {
      holds: prime > 1 && prime ** places < 2 ** 45 && keepingHolds(law, prime),
      draw(value) {
        const form = below(forms);
        // Forms are numbered by the place of their highest digit, which is 1.
        let step = 1;
        let start = 0;
        while (form >= start + step) [start, step] = [start + step, step * prime];
        let sum = 0;
        for (let left = form - start + step, right = value; left; ) {
          sum += (left % prime) * (right % prime);
          [left, right] = [Math.floor(left / prime), Math.floor(right / prime)];
        }
        return oneNumber(form * prime + keepOrChange(sum % prime, kept, prime), forms * prime);
      },
    };
  },

  /** A random set of values of one size, likelier with the own one in it. */
  "subset-selection"(law) {
    const { domain } = law;
    const kept = chance(law.keep);
    const size = Number(law.size);
    return {
      holds: size > 0 && size < domain && keepingHolds(law, domain, size),
      draw(value) {
        const row = new Uint8Array(Math.ceil(domain / 8));
        let last; // of the others; the own value takes its place, or does not
        for (let held = 0; held < size; ) {
          const other = below(domain - 1);
          last = other + (other >= value);
          const place = 1 << (last & 7);
          if (row[last >> 3] & place) continue;
          row[last >> 3] |= place;
          held++;
        }
        const [gone, come] = coin(kept) ? [last, value] : [last, last];
        row[gone >> 3] ^= 1 << (gone & 7);
        row[come >> 3] |= 1 << (come & 7);
        return row;
      },
    };
  },

  /* Kinds that keep a response for ever, and report it with fresh coins once a day. */

  /** A direct response that is kept, and a direct response to it. */
  "repeated-direct"(law) {
    const { domain } = law;
    const [lasting, fresh] = [chance(law.permanent), chance(law.keep)];
    const [p, k, others] = [BigInt(law.permanent), BigInt(law.keep), BigInt(domain - 1)];
    const hit = p * k * others + (ONE - p) * (ONE - k); // in 1 / (others 2**128)
    const first = isWithin(hit * others, ONE * ONE * others - hit, ratio(law.first));
    return {
      holds: first && keepingHolds({ keep: p, epsilon: law.epsilon }, domain),
      keep: (value) => keepOrChange(value, lasting, domain),
      draw: (response) => oneNumber(keepOrChange(response, fresh, domain), domain),
    };
  },

  /** Bits that are kept, each of which may be turned round once more. */
  "repeated-unary"(law) {
    const { domain } = law;
    const [ones, rare, fresh] = [chance(law.own), chance(law.other), chance(law.keep)];
    const [own, other, k] = [law.own, law.other, law.keep].map(BigInt);
    const shown = (one) => one * k + (ONE - one) * (ONE - k);
    const first = bitsHold(shown(own), shown(other), ONE * ONE, law.first);
    return {
      holds: first && bitsHold(own, other, ONE, law.epsilon),
      keep: (value) => tossed(domain, value, ones, rare),
      draw(response) {
        const row = response.slice();
        for (let one = 0; one < domain; one++) row[one >> 3] ^= !coin(fresh) << (one & 7);
        return row;
      },
    };
  },
};

/* Parameters: what the collector publishes, and every report is bound to by a digest. */

/** Write a document in the one spelling that its digest is taken of. */
function canonical(part) {
  if (Array.isArray(part)) return `[${part.map(canonical)}]`;
  if (part === null || typeof part !== "object") return JSON.stringify(part);
  const members = Object.keys(part).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(part[name])}`)}}`;
}

/** Read a document; refuse one whose coins would say more than its epsilon. */
async function read(document) {
  const { format, collection, randomiser, values, ...rest } = document;
  const kind = format === FORMAT && Object.hasOwn(KINDS, randomiser.kind) && KINDS[randomiser.kind];
  if (!kind) throw new TypeError("these parameters are for a newer discreet-local.js");
  if (!/^[0-9a-f]{16}$/.test(collection)) {
    throw new TypeError("collection must be 16 hexadecimal digits");
  }
  const { domain, epsilon, first } = randomiser;
  if (!Number.isInteger(domain) || domain < 2 || domain > 2 ** 31) {
    throw new RangeError("domain must be a whole number from 2 to 2**31");
  }
  const law = kind(randomiser);
  if (!law.holds) throw new RangeError("these parameters would tell more than their epsilon");

  const text = new TextEncoder().encode(canonical(document));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", text), 0, 8);
  const home = [VERSION, ...collection.match(/../g).map((pair) => parseInt(pair, 16)), ...digest];
  const numbers = values && new Map(values.map((label, i) => [label, i]));
  return {
    collection,
    digest: home.slice(9).join(),
    domain,
    keep: law.keep,
    // What is kept is told once a day: together, two fresh coins tell more of it than one.
    aDay: Math.min(times(ratio(rest.a_day), ratio(first ?? epsilon)), law.keep ? 1 : Infinity),
    lifetime: times(ratio(rest.lifetime), ratio(epsilon)), // reports, or responses that are kept
    isOpen: (now) => !(now < Date.parse(rest.not_before) || now > Date.parse(rest.not_after)),
    /** Return the number of a value, which may be given by its label; null stays null. */
    numberOf(value) {
      if (value === null) return null;
      const number = numbers && typeof value === "string" ? numbers.get(value) : value;
      if (Number.isInteger(number) && number >= 0 && number < domain) return number;
      throw new RangeError("value must be one of the collection's, by its label or its number");
    },
    /** Return the bytes of a fresh report, of a value or of a response that is kept. */
    report(held) {
      const payload = law.draw(held);
      const bytes = new Uint8Array(HEADER + payload.length);
      bytes.set(home);
      crypto.getRandomValues(bytes.subarray(home.length, HEADER));
      bytes.set(payload, HEADER);
      return bytes;
    },
  };
}

/* Memory: what this device has spent, and what it answered once for all. */

const STORE = "collections";

function openMemory() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open("discreet-local", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE);
    asked.onsuccess = () => {
      asked.result.onversionchange = () => asked.result.close(); // let a newer module in
      resolve(asked.result);
    };
    asked.onerror = () => reject(asked.error);
  });
}

/** Change what is remembered of a collection. Tabs take turns, and it is on disk when it ends. */
function remember(memory, collection, change) {
  return new Promise((resolve, reject) => {
    const turn = memory.transaction(STORE, "readwrite", { durability: "strict" });
    const store = turn.objectStore(STORE);
    let outcome;
    store.get(collection).onsuccess = ({ target }) => {
      const known = target.result ?? { day: "", today: 0, ever: 0, kept: new Map() };
      try {
        outcome = change(known);
        store.put(known, collection);
      } catch (problem) {
        reject(problem);
        turn.abort();
      }
    };
    turn.oncomplete = () => resolve(outcome);
    turn.onabort = () => reject(turn.error);
  });
}

/** Begin the day of the calendar, in UTC; a clock that was put back begins none. */
function turnDay(known) {
  const day = new Date().toISOString().slice(0, 10);
  if (day > known.day) Object.assign(known, { day, today: 0 });
}

/**
 * Return what a report is made of: the value, or the response that is kept for it.
 *
 * A value beyond the lifetime budget is answered by one more response, drawn for a random value: to
 * fall silent would tell that the value is new. Everything is drawn each time, for the same reason.
 */
function heldFor(number, known, { domain, keep, lifetime }) {
  const random = below(domain);
  const held = number ?? random;
  if (!keep) return held;
  const [own, other] = [keep(held), keep(random)];
  const isNew = !known.kept.has(number);
  if (isNew && known.kept.size >= lifetime) return (known.beyond ??= other);
  if (isNew) known.kept.set(number, own);
  return known.kept.get(number);
}

/** Open a collection by its parameters document, and take part in it within its budgets. */
export async function openCollection(document) {
  const parameters = await read(document);
  const memory = await openMemory();

  /** Return how many reports are left today; take one if there is one, and if asked to. */
  function left(isTaken, number) {
    return remember(memory, parameters.collection, (known) => {
      turnDay(known);
      // A collector that changes its mind begins a new collection, and devices a new account.
      known.digest ??= parameters.digest;
      if (known.digest !== parameters.digest) {
        throw new TypeError("this collection has other parameters than before");
      }
      const ever = parameters.keep ? Infinity : parameters.lifetime - known.ever;
      const rest = Math.min(parameters.aDay - known.today, ever);
      if (!isTaken || rest < 1) return { rest };
      known.today++;
      known.ever++;
      return { rest, held: heldFor(number, known, parameters) };
    });
  }

  return {
    /** Return how many more reports this device may give today. */
    left: async () => (await left(false)).rest,

    /**
     * Return a report of a value, by its label or its number: bytes to send. Return null if the
     * device's budget is used up, or the collection is not open: then nothing may be said.
     *
     * The value null says that there is none; it is answered and charged like any other, so that
     * nobody learns who has none. Ask on a schedule that does not depend on values.
     */
    async collect(value) {
      const number = parameters.numberOf(value);
      if (!parameters.isOpen(Date.now())) return null;
      // Charge before drawing: a crash between them wastes budget, while the opposite order could
      // give an answer that was never counted.
      const { rest, held } = await left(true, number);
      return rest < 1 ? null : parameters.report(held);
    },
  };
}

/**
 * Return a function from values to the reports of made-up devices, which have no budget.
 * It is for tests and for load: what it says of one real device adds up without end.
 */
export async function simulate(document) {
  const { numberOf, report, keep = (number) => number } = await read(document);
  return (value) => report(keep(numberOf(value)));
}
