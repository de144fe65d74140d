import { createRegistry, fromBinary, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { reasonNamed, TurnwireError, type Violation } from "../errors.js";
import {
  type BadRequest,
  BadRequestSchema,
  type ErrorInfo,
  ErrorInfoSchema,
} from "../gen/google/rpc/error_details_pb.js";
import { type Status, StatusSchema } from "../gen/google/rpc/status_pb.js";
import type { Refusal } from "../gen/turnwire/v1/append_requests_pb.js";
import { OffsetMismatchSchema, Reason, RevisionConflictSchema, SizeLimitSchema } from "../gen/turnwire/v1/errors_pb.js";

const DOMAIN = "turnwire";
const DETAILS = createRegistry(
  ErrorInfoSchema,
  BadRequestSchema,
  OffsetMismatchSchema,
  RevisionConflictSchema,
  SizeLimitSchema,
);

/**
 * The error that a failed call tells. What Turnwire did not send has no reason, but the status: CANCELLED for a call that
 * the caller's own signal ended, UNAVAILABLE for one that the other side broke off, or that could not be made.
 */
export function fromCall(failed: unknown, signal: AbortSignal | undefined): TurnwireError {
  const error = ConnectError.from(failed);
  const details = error.details.flatMap((detail) => ("type" in detail ? [unpacked(detail.type, detail.value)] : []));
  const broken = (error.code === Code.Canceled && !signal?.aborted) || isUnreachable(error);
  return restored(broken ? Code.Unavailable : error.code, error.rawMessage, details, error);
}

/** Whether the connection could not be made, for example since a socket's file is not there. */
function isUnreachable(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("syscall" in cause && cause.syscall === "connect") {
      return true;
    }
  }
  return false;
}

/** The error of an append on a stream that was refused. */
export function fromRefusal({ status }: Refusal): TurnwireError {
  return fromStatus(fromBinary(StatusSchema, status));
}

/** The error that a google.rpc.Status was made of. */
export function fromStatus({ code, message, details }: Status): TurnwireError {
  const found = details.map(({ typeUrl, value }) => unpacked(typeUrl.slice(typeUrl.lastIndexOf("/") + 1), value));
  return restored(code, message, found);
}

function restored(code: number, message: string, details: (Message | undefined)[], cause?: unknown): TurnwireError {
  const status = codeName(code);
  const info = details.find(
    (each): each is ErrorInfo => isA(each, ErrorInfoSchema.typeName) && domainOf(each) === DOMAIN,
  );
  if (info === undefined) {
    return new TurnwireError(Reason.UNSPECIFIED, message || "the call failed", { status, cause });
  }
  const { metadata } = info;
  const bad = details.find((each): each is BadRequest => isA(each, BadRequestSchema.typeName));
  const detail = details.find((each) => each !== undefined && each !== info && each !== bad);
  const violations = (bad?.fieldViolations ?? []).map(
    ({ field, reason, description }): Violation => ({ path: field, rule: reason, text: description }),
  );
  const prefix = `${metadata.path}: `;
  const text = metadata.path && message.startsWith(prefix) ? message.slice(prefix.length) : message;
  const facts = { metadata, detail, violations, status, reasonName: info.reason, cause };
  return new TurnwireError(reasonNamed(info.reason), text, facts);
}

function unpacked(typeName: string, value: Uint8Array): Message | undefined {
  const schema = DETAILS.getMessage(typeName);
  try {
    return schema && fromBinary(schema, value);
  } catch {
    return undefined; // the reason tells enough without a detail that cannot be read
  }
}

function isA(message: Message | undefined, typeName: string): boolean {
  return message?.$typeName === typeName;
}

function domainOf(message: Message | undefined): string {
  return (message as ErrorInfo).domain;
}

/** The name of a status code as gRPC spells it, for example "FAILED_PRECONDITION". */
function codeName(code: number): string {
  if (code === Code.Canceled) {
    return "CANCELLED";
  }
  return (Code[code] ?? "Unknown").replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
