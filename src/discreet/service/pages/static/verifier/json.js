// JSON read as strictly as discreet.ledger.verifier reads it: nothing is said twice, every number
// is one, and whole numbers stay whole. Objects become Maps and whole numbers BigInts.
import { NotProven } from "./refusal.js";

const LONGEST = 2 ** 24; // characters of a document
const DIGITS = 4300; // of a whole number, as in Python
const SPACE = /[ \t\n\r]*/y;
// In one way only, or a text without its end would be tried in exponentially many.
const STRING = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;
const WORDS = new Map([["true", true], ["false", false], ["null", null]]);

export function readJson(document, what) {
  try {
    const text = typeof document === "string" ? document : decoded(document);
    if (text.length > LONGEST && [...text].length > LONGEST) throw new SyntaxError("too long");
    return new Reader(text).all();
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError) {
      throw new NotProven(`${what} is not proper JSON`);
    }
    throw error;
  }
}

function decoded(bytes) {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  all() {
    const value = this.value();
    if (this.at !== this.text.length) throw new SyntaxError("more follows");
    return value;
  }

  value() {
    this.take(SPACE);
    const value = this.#bare();
    this.take(SPACE);
    return value;
  }

  #bare() {
    const first = this.text[this.at];
    if (first === "{") return this.object();
    if (first === "[") return this.array();
    if (first === '"') return this.string();
    for (const [word, value] of WORDS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    return this.number();
  }

  object() {
    const found = new Map();
    this.at += 1;
    this.take(SPACE);
    if (this.sign("}")) return found;
    do {
      this.take(SPACE);
      const name = this.string();
      this.take(SPACE);
      if (found.has(name) || !this.sign(":")) throw new SyntaxError("a member");
      found.set(name, this.value());
    } while (this.sign(","));
    if (!this.sign("}")) throw new SyntaxError("an object");
    return found;
  }

  array() {
    const found = [];
    this.at += 1;
    this.take(SPACE);
    if (this.sign("]")) return found;
    do found.push(this.value()); while (this.sign(","));
    if (!this.sign("]")) throw new SyntaxError("a list");
    return found;
  }

  string() {
    return JSON.parse(this.take(STRING)[0]);
  }

  number() {
    const [all, fraction, exponent] = this.take(NUMBER);
    if (fraction === undefined && exponent === undefined) {
      if (all.replace("-", "").length > DIGITS) throw new SyntaxError("too many digits");
      return BigInt(all);
    }
    const value = Number(all);
    if (!Number.isFinite(value)) throw new SyntaxError("not finite");
    return value;
  }

  sign(one) {
    if (this.text[this.at] !== one) return false;
    this.at += 1;
    return true;
  }

  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) throw new SyntaxError("not this");
    this.at = pattern.lastIndex;
    return found;
  }
}

const KINDS = {
  text: (value) => typeof value === "string",
  whole: (value) => typeof value === "bigint",
  list: (value) => Array.isArray(value),
};

// An object whose members have these types; exactly these members, if asked.
export function members(value, shape, what, { exactly = false } = {}) {
  if (!(value instanceof Map)) throw new NotProven(`${what} is not an object`);
  for (const [name, kind] of Object.entries(shape)) {
    if (!KINDS[kind](value.get(name))) {
      throw new NotProven(`${what} has no ${name}${value.has(name) ? " of the right type" : ""}`);
    }
  }
  if (exactly && value.size > Object.keys(shape).length) {
    throw new NotProven(`${what} has a member that does not belong there`);
  }
  return value;
}

// A value on one line, as JSON writes it.
export function written(value) {
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
  if (value instanceof Map) {
    return `{${[...value].map(([name, one]) => `${JSON.stringify(name)}:${written(one)}`).join(",")}}`;
  }
  return String(value);
}
