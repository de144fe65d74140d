/**
 * The subject of the conformance runner: answers requests on standard input, each a length of four bytes (big-endian) and
 * a turnwire.conformance.v1.Request, on standard output in the same form. tests/conformance/README.md says how.
 */
import { readFileSync } from "node:fs";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Request, RequestSchema, ResponseSchema } from "#conformance";
import { type Answer, answer } from "./answers.js";

const PROTOCOL = 1;

/** The package's own folder; this program runs from build/conformance. */
const PACKAGE = new URL("../../", import.meta.url);

function hello(): Answer {
  const runtime = process.versions.bun ? `bun ${process.versions.bun}` : `node ${process.versions.node}`;
  const library = nameAndVersion("package.json");
  const protobuf = nameAndVersion("node_modules/@bufbuild/protobuf/package.json");
  return { case: "hello", value: { protocol: PROTOCOL, library, runtime: `${runtime}, ${protobuf}` } };
}

function nameAndVersion(file: string): string {
  const { name, version } = JSON.parse(readFileSync(new URL(file, PACKAGE), "utf8")) as Record<string, string>;
  return `${name} ${version}`;
}

function respond(request: Request): Answer {
  try {
    return request.request.case === "hello" ? hello() : answer(request.request);
  } catch (error) {
    return { case: "error", value: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

/** The messages that come in, each after its length in four bytes. */
async function* messages(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let held = 0;
  let wanted = 4;
  for await (const piece of input) {
    pieces.push(piece);
    held += piece.length;
    while (held >= wanted) {
      const all = Buffer.concat(pieces);
      wanted = 4 + all.readUInt32BE();
      const complete = held >= wanted;
      if (complete) {
        yield all.subarray(4, wanted);
      }
      pieces = [complete ? all.subarray(wanted) : all];
      held = pieces[0]?.length ?? 0;
      wanted = complete ? 4 : wanted;
    }
  }
}

for await (const message of messages(process.stdin)) {
  const response = create(ResponseSchema, { response: respond(fromBinary(RequestSchema, message)) });
  const data = toBinary(ResponseSchema, response);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  process.stdout.write(Buffer.concat([length, data]));
}
