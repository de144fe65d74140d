import { getOption, type Message } from "@bufbuild/protobuf";
import type { RevisionConflict } from "./gen/turnwire/v1/errors_pb.js";
import { Reason, ReasonSchema, status } from "./gen/turnwire/v1/errors_pb.js";

/** One broken rule: the `path` of the field in the request, the `rule`'s id, a `text` that says what is right. */
export interface Violation {
  readonly path: string;
  readonly rule: string;
  readonly text: string;
}

/** What an error says beside its reason. */
export interface ErrorFacts {
  /** The field of the request that it is about (`path`), ids and numbers. */
  metadata?: Record<string, string>;
  /** The message that goes with the reason, if it has one. */
  detail?: Message | undefined;
  /** The rules that are broken. */
  violations?: readonly Violation[];
  /** The name of the gRPC status code, where it is not the reason's own. */
  status?: string;
  /** The reason's name, where this version does not know the reason. */
  reasonName?: string;
  cause?: unknown;
}

/**
 * Any refusal or failure of Turnwire, of the service or of what runs without one (PromptEditor, requireValid, fold).
 *
 * `reason` tells errors apart. It is `Reason.UNSPECIFIED` for what comes from the way to a server and not from Turnwire
 * (the status then says what happened), and for a reason that this version does not know, whose name `reasonName` has.
 * No error holds message content.
 */
export class TurnwireError extends Error {
  override readonly name = "TurnwireError";
  readonly reason: Reason;
  /** The reason's name without its prefix, for example "REVISION_CONFLICT"; empty if there is none. */
  readonly reasonName: string;
  /** The name of the gRPC status code, for example "ABORTED". */
  readonly status: string;
  /** What it is about: `path` is the field of the request, the rest are ids and numbers. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The message that goes with the reason: turnwire.v1.RevisionConflict, OffsetMismatch, SizeLimit. */
  readonly detail: Message | undefined;
  /** Every broken rule that is told; `metadata.violations` counts them all. */
  readonly violations: readonly Violation[];

  constructor(reason: Reason, text: string, facts: ErrorFacts = {}) {
    const path = facts.metadata?.path;
    super(path ? `${path}: ${text}` : text, { cause: facts.cause });
    this.reason = reason;
    this.reasonName = facts.reasonName ?? (reason === Reason.UNSPECIFIED ? "" : nameOf(reason));
    this.status = facts.status ?? statusOf(reason);
    this.metadata = facts.metadata ?? {};
    this.detail = facts.detail;
    this.violations = facts.violations ?? [];
  }

  /** The field of the request that it is about, for example `entries[0].user.user.turn_id`; may be empty. */
  get path(): string {
    return this.metadata.path ?? "";
  }

  /** The revision that was expected and the one that is: of REVISION_CONFLICT and REVISION_OUT_OF_RANGE. */
  get conflict(): RevisionConflict | undefined {
    return this.detail?.$typeName === "turnwire.v1.RevisionConflict" ? (this.detail as RevisionConflict) : undefined;
  }
}

/** The number of a reason by its name without prefix; UNSPECIFIED for a name that this version does not know. */
export function reasonNamed(name: string): Reason {
  return ReasonSchema.values.find((value) => nameOf(value.number) === name)?.number ?? Reason.UNSPECIFIED;
}

function nameOf(reason: Reason): string {
  return ReasonSchema.value[reason]?.name.replace(/^REASON_/, "") ?? "";
}

function statusOf(reason: Reason): string {
  const value = ReasonSchema.value[reason];
  return (value && getOption(value, status)) || "UNKNOWN";
}
