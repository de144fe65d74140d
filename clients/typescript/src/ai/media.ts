import type { FilePart, TextPart } from "ai";
import type { FilePart as StoredFile } from "../gen/turnwire/v1/part_pb.js";

/** What programs name a folder that is only mentioned: its content, if any, is in the texts beside it. */
const FOLDER = "application/x-directory";
const TEXT_TYPES = ["application/json", "application/xml", "application/javascript", "application/x-yaml"];

const MAGIC: [start: string, mime: string][] = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["JVBERi0", "application/pdf"],
];

/**
 * A file as the AI SDK takes it. The content of a text file becomes text, and so does the name of a file whose content
 * cannot be had here; undefined: a mention of a text file or folder, whose content is in the texts beside it.
 */
export function mediaOf(file: StoredFile): FilePart | TextPart | undefined {
  if (/^https?:\/\//i.test(file.url) && URL.canParse(file.url)) {
    return filePart(new URL(file.url), file.mime || "application/octet-stream", file.filename);
  }
  const { mime, data } = dataOf(file);
  const isText = kindOf(mime) === "text";
  if (data === "") {
    const mentioned = isText || mime === FOLDER;
    return mentioned ? undefined : { type: "text", text: `[${called(mime, file)}: its content is not available]` };
  }
  const text = isText ? utf8(data) : undefined;
  return text === undefined
    ? filePart(data, mime, file.filename)
    : { type: "text", text: `[${called(mime, file)}]\n${text}` };
}

function filePart(data: string | URL, mediaType: string, filename: string | undefined): FilePart {
  return { type: "file", data, mediaType, ...(filename !== undefined && { filename }) };
}

/** The content of a data URL in base64, and its type, which counts before the file's; empty if there is none. */
function dataOf({ url, mime }: StoredFile): { mime: string; data: string } {
  const head = /^data:([^,]{0,1000}),/i.exec(url);
  if (head === null) {
    return { mime, data: "" };
  }
  const [own = "", ...parameters] = (head[1] ?? "").split(";");
  const content = url.slice(head[0].length);
  const encoded = parameters.some((parameter) => parameter.trim().toLowerCase() === "base64");
  const data = encoded ? base64(content) : Buffer.from(unescaped(content), "latin1").toString("base64");
  return { mime: own.trim() || mime || sniffed(data), data };
}

/** Base64 as it stands, or written anew where padding, line breaks or the alphabet are odd; empty if it is none. */
function base64(content: string): string {
  const data = content.replace(/\s/g, "").replace(/-/g, "+").replace(/_/g, "/").replace(/=+$/, "");
  return /^[A-Za-z0-9+/]*$/.test(data) && data.length % 4 !== 1 ? Buffer.from(data, "base64").toString("base64") : "";
}

/** The bytes of a percent-encoded text, one character each. */
function unescaped(content: string): string {
  const bytes = Buffer.from(content).toString("latin1");
  return bytes.replace(/%([0-9A-Fa-f]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

function sniffed(data: string): string {
  return MAGIC.find(([start]) => data.startsWith(start))?.[1] ?? "application/octet-stream";
}

function utf8(data: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(data, "base64"));
  } catch {
    return undefined;
  }
}

function kindOf(mime: string): string {
  const lower = mime.toLowerCase();
  const family = lower.split("/")[0] ?? "";
  if (["image", "audio", "video", "text"].includes(family)) {
    return family;
  }
  return lower === "application/pdf" ? "PDF" : TEXT_TYPES.includes(lower) ? "text" : "file";
}

function called(mime: string, { filename }: StoredFile): string {
  const kind = kindOf(mime);
  const word = kind === "text" ? "file" : kind;
  const what = word.charAt(0).toUpperCase() + word.slice(1);
  return filename ? `${what} "${filename}"` : what;
}
