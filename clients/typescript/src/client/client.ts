import { connect as connectSocket } from "node:net";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { TurnwireError } from "../errors.js";
import type { AppendRequestSchema, AppendResponse } from "../gen/turnwire/v1/append_requests_pb.js";
import type { Entry } from "../gen/turnwire/v1/entry_pb.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";
import type { Assistant, MessageSummary, User } from "../gen/turnwire/v1/message_pb.js";
import type { PromptRecord } from "../gen/turnwire/v1/prompt_pb.js";
import type {
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  MutatePromptRequestSchema,
  RenderPromptRequestSchema,
} from "../gen/turnwire/v1/prompt_requests_pb.js";
import type {
  GetMessageRequestSchema,
  ReadEntriesRequestSchema,
  ReplayRequestSchema,
} from "../gen/turnwire/v1/replay_requests_pb.js";
import type { Head, Session } from "../gen/turnwire/v1/session_pb.js";
import type {
  CreateSessionRequestSchema,
  DeleteSessionRequestSchema,
  ForkSessionRequestSchema,
  ListSessionsRequestSchema,
  UpdateSessionRequestSchema,
} from "../gen/turnwire/v1/session_requests_pb.js";
import { type GetServerInfoResponse, SessionService } from "../gen/turnwire/v1/session_service_pb.js";
import type { Turn } from "../gen/turnwire/v1/turn_pb.js";
import type {
  ValidateMessagesRequestSchema,
  ValidateMessagesResponse,
  ValidateSessionRequestSchema,
  ValidateSessionResponse,
  VerifySessionResponse,
} from "../gen/turnwire/v1/validation_requests_pb.js";
import { type CallOptions, Calls } from "./calls.js";
import { Deadline } from "./deadline.js";
import { collectPrompt, collectRendering, type Prompt, type Rendering } from "./prompts.js";
import { type ReplayItem, SessionHistory, whole } from "./replay.js";
import { Sessions } from "./sessions.js";
import { fromRefusal } from "./status.js";

const METHOD = SessionService.method;

/** Milliseconds that a prompt may take to be computed unless the call says otherwise. */
const PROMPT_TIMEOUT_MS = 60_000;
/** Milliseconds: the first pause before a tail goes on, and the longest. */
const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 5_000;

/** What a tail takes beside its request. */
export interface TailOptions extends CallOptions {
  sessionId: string;
  /** The last revision that the caller has. Unset: none. */
  afterRevision?: bigint;
  /** Whether to stay and wait for more (the default), or to end when caught up. */
  follow?: boolean;
  /** Called once, with the head up to which everything has been yielded. */
  onCaughtUp?: (head: Head) => void;
  /** Milliseconds for which it tries to go on when the server went away. */
  patienceMs?: number;
}

/** One stored message with its turn, its summary if it was asked for and there is one, and the head. */
export interface StoredMessage {
  readonly message: User | Assistant;
  readonly turn: Turn | undefined;
  readonly summary: MessageSummary | undefined;
  readonly head: Head;
}

/**
 * A server's sessions, over gRPC:
 *
 * ```ts
 * const tw = Client.connect("127.0.0.1:7411");
 * const session = await tw.createSession({ sessionId: "ses_1", properties: { title: "A talk" } });
 * const history = await tw.history({ sessionId: session.id });
 * ```
 *
 * Requests are those of turnwire.v1.SessionService, whose comments say what is guaranteed. Calls that fail since the server
 * is not there are tried again for about a second; writes bear request ids, so that none is done twice. What fails for
 * good rejects with a TurnwireError.
 */
export class Client {
  readonly #calls: Calls;
  readonly #sessions: Sessions;

  private constructor(calls: Calls, sessions: Sessions) {
    this.#calls = calls;
    this.#sessions = sessions;
  }

  /**
   * A client of the server at `HOST:PORT`, `unix:PATH`, or a URL (`https://…` for TLS). Connects when the first call is
   * made. Throws a TypeError for a target of another form.
   */
  static connect(target: string): Client {
    const socket = /^unix:(.+)$/s.exec(target)?.[1];
    const baseUrl = socket !== undefined ? "http://localhost" : urlOf(target);
    // A tail can be silent for hours: find out when its server is gone.
    const keepalive = { pingIntervalMs: 60_000, pingTimeoutMs: 20_000 };
    const options = socket === undefined ? {} : { createConnection: () => connectSocket(socket) };
    const sessionManager = new Sessions(baseUrl, keepalive, options);
    return new Client(new Calls(createGrpcTransport({ baseUrl, sessionManager })), sessionManager);
  }

  /** Ends all calls and closes the connection, for good: calls that are open, and any later one, reject with CANCELLED. */
  close(): void {
    this.#calls.close();
    this.#sessions.close();
  }

  /** The server's version, limits and features. */
  getServerInfo(options?: CallOptions): Promise<GetServerInfoResponse> {
    return this.#calls.unary(METHOD.getServerInfo, {}, options);
  }

  /** Creates a session; its properties are revision 1. Rejects with SESSION_ALREADY_EXISTS when the id is taken. */
  async createSession(
    request: MessageInitShape<typeof CreateSessionRequestSchema> = {},
    options?: CallOptions,
  ): Promise<Session> {
    return given((await this.#calls.unary(METHOD.createSession, request, options)).session);
  }

  /** A session without its messages. */
  async getSession(sessionId: string, options?: CallOptions): Promise<Session> {
    return given((await this.#calls.unary(METHOD.getSession, { sessionId }, options)).session);
  }

  /** The sessions, last written first; pages are fetched as they are needed. */
  async *listSessions(
    request: Omit<MessageInitShape<typeof ListSessionsRequestSchema>, "$typeName" | "pageToken"> = {},
    options?: CallOptions,
  ): AsyncGenerator<Session, void, undefined> {
    let pageToken = "";
    do {
      const page = await this.#calls.unary(METHOD.listSessions, { ...request, pageToken }, options);
      yield* page.sessions;
      pageToken = page.nextPageToken;
    } while (pageToken);
  }

  /** Changes the properties of a session that the mask names, and returns it as it then is. */
  async updateSession(
    request: MessageInitShape<typeof UpdateSessionRequestSchema>,
    options?: CallOptions,
  ): Promise<Session> {
    return given((await this.#calls.unary(METHOD.updateSession, request, options)).session);
  }

  /** Deletes a session for good, and returns the ids of all sessions that were deleted. */
  async deleteSession(
    request: MessageInitShape<typeof DeleteSessionRequestSchema>,
    options?: CallOptions,
  ): Promise<string[]> {
    return (await this.#calls.unary(METHOD.deleteSession, request, options)).sessionIds;
  }

  /** Copies the entries up to a revision into a new session, and returns it. */
  async forkSession(
    request: MessageInitShape<typeof ForkSessionRequestSchema>,
    options?: CallOptions,
  ): Promise<Session> {
    return given((await this.#calls.unary(METHOD.forkSession, request, options)).session);
  }

  /**
   * Appends entries: all are durable when the reply comes, or none are there. Rejects with REVISION_CONFLICT when the head
   * is not the `expectedRevision`; `error.conflict` has both.
   */
  append(request: MessageInitShape<typeof AppendRequestSchema>, options?: CallOptions): Promise<AppendResponse> {
    return this.#calls.unary(METHOD.append, request, options);
  }

  /**
   * Appends on one stream, to any number of sessions: yields the outcome of each request in their order. A refused one
   * yields its error and ends nothing; one whose text is no valid Unicode is not sent, and ends the stream with
   * RULE_VIOLATION after the outcomes of those before it. Requests are not tried again when the server goes away; give
   * them request ids to be able to.
   */
  async *appendStream(
    requests: AsyncIterable<MessageInitShape<typeof AppendRequestSchema>>,
    options?: CallOptions,
  ): AsyncGenerator<AppendResponse | TurnwireError, void, undefined> {
    async function* wrapped() {
      for await (const append of requests) {
        yield { append };
      }
    }
    for await (const { outcomes } of this.#calls.both(METHOD.appendStream, wrapped(), options)) {
      for (const { outcome } of outcomes) {
        yield outcome.case === "refusal" ? fromRefusal(outcome.value) : given(outcome.value);
      }
    }
  }

  /** The folded history at a revision, item by item. */
  replay(
    request: MessageInitShape<typeof ReplayRequestSchema>,
    options?: CallOptions,
  ): AsyncGenerator<ReplayItem, void, undefined> {
    return whole(this.#calls.stream(METHOD.replay, request, options));
  }

  /** The folded history at a revision, as one object. */
  async history(request: MessageInitShape<typeof ReplayRequestSchema>, options?: CallOptions): Promise<SessionHistory> {
    const history = new SessionHistory();
    for await (const item of this.replay(request, options)) {
      history.add(item);
    }
    return history;
  }

  /** One message, whole, with its turn. */
  async getMessage(
    request: MessageInitShape<typeof GetMessageRequestSchema>,
    options?: CallOptions,
  ): Promise<StoredMessage> {
    const history = new SessionHistory();
    for await (const item of whole(this.#calls.stream(METHOD.getMessage, request, options))) {
      history.add(item);
    }
    const message = given(history.messages[0]);
    const { turns, summaries, head } = history;
    return { message, turn: turns.get(message.turnId), summary: summaries.get(message.id), head };
  }

  /** The raw entries of a range of revisions. */
  async *readEntries(
    request: MessageInitShape<typeof ReadEntriesRequestSchema>,
    options?: CallOptions,
  ): AsyncGenerator<Entry, void, undefined> {
    for await (const { entries } of this.#calls.stream(METHOD.readEntries, request, options)) {
      yield* entries;
    }
  }

  /**
   * The entries after a revision, then, live, whatever anybody appends, each once and in order. When the server goes away
   * it goes on from the last entry it saw as soon as the server is back, and after `patienceMs` (a minute) rejects. Ends
   * when the caller breaks out of the loop or aborts the signal, and rejects with DEADLINE_EXCEEDED when `timeoutMs` is
   * over, whether or not the server is there.
   */
  async *tail({
    sessionId,
    afterRevision = 0n,
    follow = true,
    onCaughtUp,
    patienceMs = 60_000,
    timeoutMs,
    ...options
  }: TailOptions): AsyncGenerator<Entry, void, undefined> {
    let seen = afterRevision;
    let caughtUp = false;
    let tries = 0;
    let lostAt: number | undefined;
    const deadline = new Deadline(timeoutMs);
    for (;;) {
      try {
        const request = { sessionId, afterRevision: seen };
        for await (const response of this.#calls.stream(METHOD.tail, request, { ...options, ...deadline.left })) {
          tries = 0;
          lostAt = undefined;
          for (const entry of response.entries) {
            if (entry.revision > seen) {
              seen = entry.revision;
              yield entry;
            }
          }
          if (response.caughtUp !== undefined) {
            if (!caughtUp) {
              onCaughtUp?.(response.caughtUp);
            }
            caughtUp = true;
            if (!follow) {
              return;
            }
          }
        }
      } catch (error) {
        lostAt ??= performance.now();
        const gone = error instanceof TurnwireError && error.status === "UNAVAILABLE";
        if (!gone || performance.now() - lostAt >= patienceMs) {
          throw error;
        }
        if (deadline.passed) {
          throw deadline.exceeded(error);
        }
      }
      const pause = Math.min(FIRST_PAUSE_MS * 2 ** tries++, LAST_PAUSE_MS) * (0.5 + 0.5 * Math.random());
      // A signal that is aborted, or a client that is closed, ends the next attempt, and with it the tail.
      await this.#calls.pause(deadline.bounded(pause), options.signal).catch(() => undefined);
    }
  }

  /** Computes the prompt of a turn with mutations (those of a PromptEditor, say), and records it unless it is a dry run. */
  mutatePrompt(request: MessageInitShape<typeof MutatePromptRequestSchema>, options?: CallOptions): Promise<Prompt> {
    return collectPrompt(
      this.#calls.stream(METHOD.mutatePrompt, request, { timeoutMs: PROMPT_TIMEOUT_MS, ...options }),
    );
  }

  /** Computes the prompt of a record again; `end.digestHolds` says whether it is the same. */
  getPrompt(request: MessageInitShape<typeof GetPromptRequestSchema>, options?: CallOptions): Promise<Prompt> {
    return collectPrompt(this.#calls.stream(METHOD.getPrompt, request, { timeoutMs: PROMPT_TIMEOUT_MS, ...options }));
  }

  /** The prompt records in the order of the log; pages are fetched as they are needed. */
  async *listPrompts(
    request: Omit<MessageInitShape<typeof ListPromptsRequestSchema>, "$typeName" | "pageToken">,
    options?: CallOptions,
  ): AsyncGenerator<PromptRecord, void, undefined> {
    let pageToken = "";
    do {
      const page = await this.#calls.unary(METHOD.listPrompts, { ...request, pageToken }, options);
      yield* page.prompts;
      pageToken = page.nextPageToken;
    } while (pageToken);
  }

  /** Renders a prompt as the body of a provider's own request. */
  renderPrompt(request: MessageInitShape<typeof RenderPromptRequestSchema>, options?: CallOptions): Promise<Rendering> {
    return collectRendering(
      this.#calls.stream(METHOD.renderPrompt, request, { timeoutMs: PROMPT_TIMEOUT_MS, ...options }),
    );
  }

  /** Computes the digests of a session's log again and compares them with those that are stored. */
  verifySession(sessionId: string, options?: CallOptions): Promise<VerifySessionResponse> {
    return this.#calls.unary(METHOD.verifySession, { sessionId }, options);
  }

  /** Checks a session against all rules: findings as they come, with the progress; the last response has the summary. */
  validateSession(
    request: MessageInitShape<typeof ValidateSessionRequestSchema>,
    options?: CallOptions,
  ): AsyncGenerator<ValidateSessionResponse, void, undefined> {
    return this.#calls.stream(METHOD.validateSession, request, options);
  }

  /** Checks messages, each by itself; nothing is stored. Yields what was found in each, in their order. */
  validateMessages(
    requests: AsyncIterable<MessageInitShape<typeof ValidateMessagesRequestSchema>>,
    options?: CallOptions,
  ): AsyncGenerator<ValidateMessagesResponse, void, undefined> {
    return this.#calls.both(METHOD.validateMessages, requests, options);
  }
}

function urlOf(target: string): string {
  const url = /^https?:\/\//.test(target) ? target : `http://${target}`;
  if (!URL.canParse(url) || (url !== target && !/^[^/\s]+:\d{1,5}$/.test(target))) {
    throw new TypeError(`a server is HOST:PORT, unix:PATH or a URL, not ${JSON.stringify(target)}`);
  }
  return url;
}

/** What the protocol promises to be in a reply. */
function given<T>(value: T | undefined): T {
  if (value === undefined) {
    throw new TurnwireError(Reason.UNSPECIFIED, "the server sent an incomplete reply", { status: "INTERNAL" });
  }
  return value;
}
