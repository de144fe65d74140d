import { randomUUID } from "node:crypto";
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
import { CreateSessionRequestSchema } from "../gen/turnwire/v1/session_requests_pb.js";
import { requireText } from "../rules/index.js";
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

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** A call with one reply. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const message = ready(method, request);
    const attempts = new Attempts(method, { timeoutMs: TIMEOUT_MS, ...options });
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
    const attempts = new Attempts(method, options);
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
    try {
      yield* this.#open(method, sendable(), options);
    } catch (error) {
      throw error instanceof TurnwireError ? error : fromCall(error, options.signal);
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
  readonly #policy: RetryPolicy | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #deadline: number | undefined;
  #made = 0;

  constructor(method: DescMethod, { signal, timeoutMs }: CallOptions) {
    this.#policy = retryPolicy(method);
    this.#signal = signal;
    this.#deadline = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
  }

  /** The options of the next attempt: what is left of the time. */
  next(): RpcOptions {
    this.#made++;
    const left = this.#deadline === undefined ? undefined : Math.max(1, Math.ceil(this.#deadline - performance.now()));
    return { ...(this.#signal && { signal: this.#signal }), ...(left !== undefined && { timeoutMs: left }) };
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
      await backOff(policy, this.#made, this.#signal);
    } catch {
      throw error; // the caller has ended the call meanwhile
    }
    if (this.#deadline !== undefined && performance.now() >= this.#deadline) {
      throw error;
    }
  }

  /** What the caller gets of what was thrown. */
  final(thrown: unknown): TurnwireError {
    return thrown instanceof TurnwireError ? thrown : fromCall(thrown, this.#signal);
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
  return { ...message, requestId: randomUUID(), ...(unnamed && { sessionId: newId("ses_") }) };
}

async function* once<T>(item: T): AsyncGenerator<T, void, undefined> {
  yield item;
}
