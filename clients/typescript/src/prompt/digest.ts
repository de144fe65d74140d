import { createHash } from "node:crypto";
import { type PromptPart, PromptPartSchema } from "../gen/turnwire/v1/part_pb.js";
import { type PromptMessage, PromptMessageSchema } from "../gen/turnwire/v1/prompt_pb.js";
import { requireText } from "../rules/index.js";
import { serialized } from "../wire.js";

/**
 * The digest of a prompt, 32 bytes, so that the same prompt of a fork has the same: SHA-256 over, per message, the role
 * as one byte, the number of parts as four bytes (big-endian), and per part the SHA-256 of its bytes without its id.
 *
 * The bytes of a part are its deterministic serialization; unknown fields count. Origins, facts and ids do not enter.
 * Throws RULE_VIOLATION for a text that is no valid Unicode and so has no bytes.
 */
export function promptDigest(messages: Iterable<PromptMessage>): Uint8Array {
  const total = createHash("sha256");
  const head = Buffer.alloc(5);
  let index = 0;
  for (const message of messages) {
    requireText(PromptMessageSchema, message, `messages[${index++}]`);
    const { role, parts } = message;
    head.writeUInt8(role, 0);
    head.writeUInt32BE(parts.length, 1);
    total.update(head);
    for (const part of parts) {
      total.update(partDigest(part));
    }
  }
  return total.digest();
}

function partDigest(part: PromptPart): Uint8Array {
  return createHash("sha256")
    .update(serialized(PromptPartSchema, { ...part, id: "" }))
    .digest();
}
