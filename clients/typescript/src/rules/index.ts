import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { TurnwireError, type Violation } from "../errors.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";
import { Role } from "../gen/turnwire/v1/options_pb.js";
import { inOrder } from "./order.js";
import { CALL_ID, ownViolations, STORED_ONLY, UNKNOWN } from "./own.js";
import { pathText } from "./paths.js";
import { textViolations } from "./text.js";

/** What the message alone does not tell. */
export interface CheckOptions {
  /**
   * Parts must have their ids (true: it is stored), must have none (false: a hook writes it), or either (unset). What is
   * inside a mutation must have none in any case.
   */
  stored?: boolean;
  /** The role of the message that holds what is checked, where that does not tell: PromptPart, PartPut, MoreParts. */
  role?: Role;
}

const validator = createValidator();

/**
 * Lists the broken rules of a message and of all that is inside it, in their order; empty if it is right. These are protovalidate's
 * rules, under its own ids, and Turnwire's own (`turnwire.…`), as `proto/README.md` numbers them. Paths begin at the
 * message. Rules are about messages with ids and times, as a server fills them in.
 *
 * Throws protovalidate's CompilationError for a schema whose rules it cannot check.
 */
export function check<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  options: CheckOptions = {},
): Violation[] {
  const result = validator.validate(schema, message);
  if (result.kind === "error") {
    throw result.error;
  }
  const standard = (result.violations ?? []).map((violation): Violation => {
    const path = pathText(violation.field);
    const last = violation.field.at(-1);
    // Either can be the mark of a later schema, so that both have an id of their own.
    if (violation.ruleId === "required" && last?.kind === "oneof") {
      return { path, rule: UNKNOWN, text: "must have a member set that this schema knows" };
    }
    if (violation.ruleId === "enum.defined_only") {
      return { path, rule: UNKNOWN, text: "must be a number that this schema knows" };
    }
    return { path, rule: violation.ruleId, text: violation.message };
  });
  // A number that is no role reads as not known.
  const role = options.role === Role.USER || options.role === Role.ASSISTANT ? options.role : Role.UNSPECIFIED;
  const context = { stored: options.stored, role };
  const own = ownViolations(schema, message, context);
  return inOrder(schema, [...standard, ...own, ...textViolations(schema, message)]);
}

/**
 * Throws for the broken rules of a message, if there are any. `prefix` is the path of the message in its request.
 *
 * The reason is UNKNOWN_TO_THIS_SERVER if a required oneof is unset or an enum's number is not known; else
 * TRANSIENT_PART_HAS_ID if a part that a hook writes has an id; else RULE_VIOLATION with all violations; but
 * DUPLICATE_CALL_ID if nothing is wrong except a call id that two parts have.
 */
export function requireValid<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  prefix = "",
  options: CheckOptions = {},
): void {
  const violations = check(schema, message, options).map((each) => ({ ...each, path: joined(prefix, each.path) }));
  if (violations.length > 0) {
    throw failure(violations);
  }
}

/**
 * Throws RULE_VIOLATION for a text that cannot be sent, since it is no valid Unicode. `prefix` is the path of the message
 * in its request.
 */
export function requireText<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>, prefix = ""): void {
  const found = inOrder(schema, textViolations(schema, message));
  const violations = found.map((each) => ({ ...each, path: joined(prefix, each.path) }));
  if (violations.length > 0) {
    throw failure(violations);
  }
}

function failure(violations: Violation[]): TurnwireError {
  const byRule = new Map(violations.toReversed().map((each) => [each.rule, each]));
  const single = (reason: Reason, { path, text }: Violation) => new TurnwireError(reason, text, { metadata: { path } });
  const unknown = byRule.get(UNKNOWN);
  if (unknown !== undefined) {
    const { path, text } = unknown;
    return new TurnwireError(Reason.UNKNOWN_TO_THIS_SERVER, text, { metadata: { path }, violations });
  }
  const transient = byRule.get(STORED_ONLY);
  if (transient !== undefined) {
    return single(Reason.TRANSIENT_PART_HAS_ID, transient);
  }
  const repeated = byRule.get(CALL_ID);
  if (repeated !== undefined && byRule.size === 1) {
    return single(Reason.DUPLICATE_CALL_ID, repeated);
  }
  const { path = "", rule = "", text = "" } = violations[0] ?? {};
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : "";
  const metadata = { path, rule, violations: String(violations.length) };
  return new TurnwireError(Reason.RULE_VIOLATION, text + more, { metadata, violations });
}

function joined(prefix: string, path: string): string {
  return prefix && path ? `${prefix}.${path}` : prefix || path;
}
