import { randomInt } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TIME_DIGITS = 8;
const RANDOM_DIGITS = 12;

/** An id as a server makes it: a prefix, then 20 base-62 digits, of which the first tell the time. */
export function newId(prefix: string): string {
  let time = "";
  for (let rest = Date.now(); time.length < TIME_DIGITS; rest = Math.floor(rest / ALPHABET.length)) {
    time = ALPHABET.charAt(rest % ALPHABET.length) + time;
  }
  const random = Array.from({ length: RANDOM_DIGITS }, () => ALPHABET.charAt(randomInt(ALPHABET.length)));
  return prefix + time + random.join("");
}
