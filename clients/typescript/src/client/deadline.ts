import { TurnwireError } from "../errors.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";

/** Until when a call may take, retries and pauses included. */
export class Deadline {
  readonly #at: number;

  /** `timeoutMs` from now on; undefined: for ever. */
  constructor(timeoutMs: number | undefined) {
    this.#at = timeoutMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs;
  }

  get passed(): boolean {
    return performance.now() >= this.#at;
  }

  /** What is left, as an option of a call: at least a millisecond. */
  get left(): { timeoutMs?: number } {
    return this.#at === Number.POSITIVE_INFINITY ? {} : { timeoutMs: Math.max(1, Math.ceil(this.#left)) };
  }

  /** A pause that does not go beyond. */
  bounded(ms: number): number {
    return Math.max(0, Math.min(ms, this.#left));
  }

  /** The error of a call that has taken too long; `last` is that of its last attempt. */
  exceeded(last: TurnwireError): TurnwireError {
    const text = `the time limit has passed; the last attempt failed with ${last.status}`;
    return new TurnwireError(Reason.UNSPECIFIED, text, { status: "DEADLINE_EXCEEDED", cause: last });
  }

  get #left(): number {
    return this.#at - performance.now();
  }
}
