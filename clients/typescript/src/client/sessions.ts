import type { ClientHttp2Stream } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { Http2SessionManager } from "@connectrpc/connect-node";

/**
 * Connections that never end the process. A session of HTTP/2 tells its error when its socket closes, by which time the
 * manager may have gone on to the next one and listens no more; the calls have had the error by then.
 */
export class Sessions extends Http2SessionManager {
  readonly #heard = new WeakSet<object>();
  #closed = false;

  /** Closes the connection, and opens no other. */
  close(): void {
    this.#closed = true;
    this.abort();
  }

  override async request(...call: Parameters<Http2SessionManager["request"]>): Promise<ClientHttp2Stream> {
    if (this.#closed) {
      throw new ConnectError("the client is closed", Code.Canceled);
    }
    const stream = await super.request(...call);
    const { session } = stream;
    if (session !== undefined && !this.#heard.has(session)) {
      this.#heard.add(session);
      session.on("error", () => undefined);
    }
    return stream;
  }
}
