import { createHash } from "node:crypto";
import { EntrySchema } from "../gen/turnwire/v1/entry_pb.js";
import { readMessage } from "../reading.js";
import { type RawField, rawFields } from "../wire.js";

/** Payloads have the numbers from 10, additions to the envelope those from 300. */
const FIRST_PAYLOAD = 10;
const AFTER_PAYLOADS = 300;

/** The digest of a log before its first entry, 32 bytes: SHA-256("turnwire/1" ‖ session id). */
export function chainStart(sessionId: string): Uint8Array {
  return createHash("sha256").update("turnwire/1").update(sessionId).digest();
}

/**
 * The digest of a log after one more entry, 32 bytes: SHA-256(before ‖ be64(revision) ‖ be64(recorded nanoseconds) ‖
 * be32(field number of the payload) ‖ SHA-256(payload bytes as stored)).
 *
 * `entry` is the serialized turnwire.v1.Entry as it is stored: the digest covers the payload's bytes as they stand, which
 * a message that was parsed and written again need not have. Throws an Error for bytes that are no entry.
 */
export function chainLink(before: Uint8Array, entry: Uint8Array): Uint8Array {
  const payload = payloadOf(entry);
  const { revision, recorded } = readMessage(EntrySchema, entry);
  const link = Buffer.alloc(20);
  link.writeBigInt64BE(revision, 0);
  link.writeBigInt64BE((recorded?.seconds ?? 0n) * 1_000_000_000n + BigInt(recorded?.nanos ?? 0), 8);
  link.writeInt32BE(payload.number, 16);
  const content = createHash("sha256").update(payload.data).digest();
  return createHash("sha256").update(before).update(link).update(content).digest();
}

/** The digests of a log after each of its entries, from revision 1 on; see chainLink. */
export function* chain(sessionId: string, entries: Iterable<Uint8Array>): Generator<Uint8Array> {
  let digest = chainStart(sessionId);
  for (const entry of entries) {
    digest = chainLink(digest, entry);
    yield digest;
  }
}

function payloadOf(entry: Uint8Array): RawField {
  let found: RawField | undefined;
  for (const field of rawFields(entry)) {
    if (field.number >= FIRST_PAYLOAD && field.number < AFTER_PAYLOADS) {
      found = field;
    }
  }
  if (found === undefined) {
    throw new Error("an entry without a payload has no digest");
  }
  return found;
}
