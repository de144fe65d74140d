import { createHash } from "node:crypto";

const LEGAL = /^[A-Za-z0-9._:-]{1,128}$/;
const ILLEGAL = /[^A-Za-z0-9._:-]/g;

/** The id itself if it can be an id of Turnwire; else one that is made from it. */
export function legalId(id: string): string {
  return LEGAL.test(id) ? id : `${id.slice(0, 100).replace(ILLEGAL, "-")}.${sha256(id).slice(0, 8)}`;
}

/** The SHA-256 of texts and bytes, in hexadecimal digits. */
export function sha256(...pieces: (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const piece of pieces) {
    hash.update(piece);
  }
  return hash.digest("hex");
}
