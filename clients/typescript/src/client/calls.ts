import { setTimeout as sleep } from "node:timers/promises";
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { CallOptions as RpcOptions, Transport } from "@connectrpc/connect";
import { TurnwireError } from "../errors.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";
import { CreateSessionRequestSchema } from "../gen/turnwire/v1/session_requests_pb.js";
import { requireText } from "../rules/index.js";
import { Deadline } from "./deadline.js";
import { newId } from "./ids.js";
import { backOff, type RetryPolicy, retryPolicy } from "./retry.js";
import { fromCall } from "./status.js";

/** What every call takes beside its request. */
export interface CallOptions {
  /** Ends the call. */
  signal?: AbortSignal;
  /** Milliseconds for the whole call, retries included. */
  timeoutMs?: number;
}

/** Milliseconds that a call without a stream may take unless it says otherwise. */
const TIMEOUT_MS = 60_000;

/**
 * Calls methods over a transport: requests get request ids, so that none is done twice; what fails since the server is
 * not there is tried again, as the published service config says; errors are TurnwireErrors.
 */
export class Calls {
  readonly #transport: Transport;
  readonly #pauses = new Set<AbortController>();
  #closed = false;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Has every call end, now and later, with CANCELLED; those that are on their way end with their connection. */
  close(): void {
    this.#closed = true;
    for (const pause of this.#pauses) {
      pause.abort();
    }
  }

  /** Throws CANCELLED if there are no calls any more. */
  requireOpen(cause?: unknown): void {
    if (this.#closed) {
      throw new TurnwireError(Reason.UNSPECIFIED, "the client is closed", { status: "CANCELLED", cause });
    }
  }

  /** Waits. Rejects when the signal is aborted or the client is closed meanwhile. */
  async pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const over = new AbortController();
    this.#pauses.add(over);
    try {
      await sleep(ms, undefined, { signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal });
    } finally {
      this.#pauses.delete(over);
    }
  }

  /** A call with one reply. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const message = ready(method, request);
    const attempts = new Attempts(this, method, { timeoutMs: TIMEOUT_MS, ...options });
    for (;;) {
      try {
        const { signal, timeoutMs } = attempts.next();
        const reply = await this.#transport.unary(method, signal, timeoutMs, undefined, message as MessageInitShape<I>);
        return reply.message;
      } catch (error) {
        await attempts.failed(error);
      }
    }
  }

  /** A call with a stream of replies. It is tried again only while nothing of it has come. */
  async *stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    const message = ready(method, request);
    const attempts = new Attempts(this, method, options);
    for (;;) {
      let begun = false;
      try {
        for await (const reply of this.#open(method, once(message as MessageInitShape<I>), attempts.next())) {
          begun = true;
          yield reply;
        }
        return;
      } catch (error) {
        if (begun) {
          throw attempts.final(error);
        }
        await attempts.failed(error);
      }
    }
  }

  /** A call with streams both ways. A request that cannot be sent ends it, after the replies to those before it. */
  async *both<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    requests: AsyncIterable<MessageInitShape<I>>,
    options: CallOptions = {},
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    let refusal: unknown;
    async function* sendable() {
      for await (const request of requests) {
        const message = create(method.input, request);
        try {
          requireText(method.input, message);
        } catch (error) {
          refusal = error;
          return;
        }
        yield message as MessageInitShape<I>;
      }
    }
    const attempt = new Attempts(this, method, options);
    try {
      yield* this.#open(method, sendable(), attempt.next());
    } catch (error) {
      throw attempt.final(error);
    }
    if (refusal !== undefined) {
      throw refusal;
    }
  }

  /** The replies; when nobody wants more of them the call is ended. */
  async *#open<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O> | DescMethodBiDiStreaming<I, O>,
    requests: AsyncIterable<MessageInitShape<I>>,
    { signal, timeoutMs }: RpcOptions,
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    const over = new AbortController();
    const ended = signal ? AbortSignal.any([signal, over.signal]) : over.signal;
    try {
      const { message } = await this.#transport.stream(method, ended, timeoutMs, undefined, requests);
      yield* message;
    } finally {
      over.abort();
    }
  }
}

/** The attempts of one call, their deadline and their errors. */
class Attempts {
  readonly #calls: Calls;
  readonly #policy: RetryPolicy | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #deadline: Deadline;
  #made = 0;

  constructor(calls: Calls, method: DescMethod, { signal, timeoutMs }: CallOptions) {
    this.#calls = calls;
    this.#policy = retryPolicy(method);
    this.#signal = signal;
    this.#deadline = new Deadline(timeoutMs);
  }

  /** The options of the next attempt: what is left of the time. Throws CANCELLED if the client is closed. */
  next(): RpcOptions {
    this.#calls.requireOpen();
    this.#made++;
    return { ...(this.#signal && { signal: this.#signal }), ...this.#deadline.left };
  }

  /** Waits until the next attempt, or throws if there is none. */
  async failed(thrown: unknown): Promise<void> {
    const error = this.final(thrown);
    const policy = this.#policy;
    const again = policy?.retryableStatusCodes.includes(error.status) && this.#made < policy.maxAttempts;
    if (!policy || !again) {
      throw error;
    }
    try {
      await this.#calls.pause(this.#deadline.bounded(backOff(policy, this.#made)), this.#signal);
    } catch {
      this.#calls.requireOpen(error);
      const facts = { status: "CANCELLED", cause: error };
      throw new TurnwireError(Reason.UNSPECIFIED, "the caller has ended the call", facts);
    }
    if (this.#deadline.passed) {
      throw this.#deadline.exceeded(error);
    }
  }

  /** What the caller gets of what was thrown. */
  final(thrown: unknown): TurnwireError {
    const error = thrown instanceof TurnwireError ? thrown : fromCall(thrown, this.#signal);
    if (error.reason === Reason.UNSPECIFIED && (error.status === "UNAVAILABLE" || error.status === "CANCELLED")) {
      this.#calls.requireOpen(error); // the calls that closing broke off
    }
    return error;
  }
}

/** The request as it is sent, by every attempt: with a request id where it can have one. */
function ready<I extends DescMessage>(
  method: DescMethod & { input: I },
  request: MessageInitShape<I>,
): MessageShape<I> {
  const message = create(method.input, request) as MessageShape<I> & { requestId?: string; sessionId?: string };
  requireText(method.input, message);
  if (method.input.field.requestId === undefined || message.requestId !== undefined) {
    return message;
  }
  // A request id is scoped to a session, so that one without an id could be created twice.
  const unnamed = method.input.typeName === CreateSessionRequestSchema.typeName && !message.sessionId;
  // Ids that tell their time save the store a look for those that come behind all of a session.
  return { ...message, requestId: newId(""), ...(unnamed && { sessionId: newId("ses_") }) };
}

async function* once<T>(item: T): AsyncGenerator<T, void, undefined> {
  yield item;
}
