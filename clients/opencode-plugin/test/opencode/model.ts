import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The list that [[todo]] writes; the ids are for versions that want them. */
export const TODOS = [
  { priority: "high", content: "Read „the note“", status: "in_progress", id: "1" },
  { priority: "low", content: "Answer", status: "pending", id: "2" },
];

interface ChatMessage {
  role: string;
  content?: unknown;
}

/** A request for a completion, as an OpenAI-compatible server gets it. */
export interface ChatRequest {
  messages: ChatMessage[];
  tools?: unknown[];
}

/**
 * A model server on 127.0.0.1 that answers by what the last user message says: [[tool]] with a call of the read tool
 * first, [[todo]] with one of the todowrite tool, [[error]] with a refusal, [[hold]] with a text that ends when `release` is called; all else with a short text.
 */
export class FakeModel {
  /** Every request for an answer; those for titles are not among them. */
  readonly requests: ChatRequest[] = [];
  readonly #file: string;
  readonly #server: Server;
  #held: (() => void)[] = [];
  #begun: (() => void)[] = [];

  private constructor(file: string) {
    this.#file = file;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error) => response.destroy(error));
    });
  }

  /** `file` is what the read tool is called with. */
  static async start(file: string): Promise<FakeModel> {
    const model = new FakeModel(file);
    model.#server.listen(0, "127.0.0.1");
    await once(model.#server, "listening");
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  /** Resolves when an answer that is held has begun. */
  begun(): Promise<void> {
    return new Promise((resolve) => this.#begun.push(resolve));
  }

  /** Lets the answers that are held go on to their end. */
  release(): void {
    for (const go of this.#held.splice(0)) {
      go();
    }
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) {
      pieces.push(piece as Buffer);
    }
    const body = JSON.parse(Buffer.concat(pieces).toString()) as ChatRequest;
    if (body.tools === undefined || body.tools.length === 0) {
      await stream(response, async (say) => say({ content: "A title" }));
      return;
    }
    this.requests.push(body);
    const asked = textOf(body.messages.findLast(({ role }) => role === "user"));
    const hasResult = body.messages.at(-1)?.role === "tool";
    if (asked.includes("[[error]]")) {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ error: { message: "The fake model refuses this.", type: "invalid_request_error" } }),
      );
    } else if (asked.includes("[[tool]]") && !hasResult) {
      const call = toolCall("read", { filePath: this.#file });
      await stream(response, async (say) => say({ content: "Let me look. " }, { tool_calls: [call] }), "tool_calls");
    } else if (asked.includes("[[todo]]") && !hasResult) {
      const call = toolCall("todowrite", { todos: TODOS });
      await stream(response, async (say) => say({ tool_calls: [call] }), "tool_calls");
    } else if (asked.includes("[[hold]]")) {
      await stream(response, async (say) => {
        say({ content: "First half, " });
        for (const told of this.#begun.splice(0)) {
          told();
        }
        await new Promise<void>((resolve) => this.#held.push(resolve));
        say({ content: "second half." });
      });
    } else {
      await stream(response, async (say) => say({ content: "Hello" }, { content: " wörld" }, { content: ", 😀." }));
    }
  }
}

function toolCall(name: string, args: object) {
  const called = { name, arguments: JSON.stringify(args) };
  return { index: 0, id: `call_${name}_1`, type: "function", function: called };
}

type Say = (...deltas: object[]) => void;

async function stream(response: ServerResponse, talk: (say: Say) => Promise<void>, finish = "stop"): Promise<void> {
  const send = (chunk: object) => {
    const head = { id: "chunk", object: "chat.completion.chunk", created: 1, model: "fake-model" };
    response.write(`data: ${JSON.stringify({ ...head, ...chunk })}\n\n`);
  };
  const choice = (delta: object, finish_reason: string | null = null) =>
    send({ choices: [{ index: 0, delta, finish_reason }] });
  response.writeHead(200, { "content-type": "text/event-stream" });
  choice({ role: "assistant", content: "" });
  await talk((...deltas) => {
    for (const delta of deltas) {
      choice(delta);
    }
  });
  choice({}, finish);
  send({ choices: [], usage: { prompt_tokens: 11, completion_tokens: 3, total_tokens: 14 } });
  response.end("data: [DONE]\n\n");
}

/** The text of a message, whose content is a string or parts. */
export function textOf(message: ChatMessage | undefined): string {
  const content = message?.content;
  return typeof content === "string" ? content : JSON.stringify(content ?? "");
}
