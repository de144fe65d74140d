// The marks by which Turnwire's importer and exporter know what came from opencode, as turnwire.formats.ledger writes
// them: a put of the session's properties says that itself and so many entries behind it were brought.

import { clone } from "@bufbuild/protobuf";
import { deterministic } from "@turnwire/client";
import { type Revert, RevertSchema, type SessionProperties, SessionPropertiesSchema } from "@turnwire/client/v1";
import { ofSpaces, spacesOf } from "../mapping/extras.js";
import { sha256 } from "../mapping/ids.js";
import { PROGRAM } from "../mapping/index.js";

const SPACE = "turnwire/import";
/** Where the plugin's entries come from, as the marks tell. */
export const SOURCE = "opencode-plugin";
/** `extra_json` of a message summary that stands where there is none: a summary cannot be taken out. */
export const GONE = `{"${SPACE}":{"gone":true}}`;

/** One mark: `entries` entries behind the one at `revision`, and that one itself, were brought. */
export interface Mark {
  readonly program: string;
  readonly source: string;
  readonly revision: bigint;
  readonly entries: number;
}

/** The mark in some properties, which counts only at its own revision. */
export function markOf({ extraJson }: SessionProperties): Mark | undefined {
  const text = spacesOf(extraJson).get(SPACE);
  const found = text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown> | null);
  const { program, source, revision, entries } = found ?? {};
  const isMark = typeof program === "string" && typeof source === "string" && Number.isSafeInteger(revision);
  return isMark && Number.isSafeInteger(entries)
    ? { program, source, revision: BigInt(revision as number), entries: entries as number }
    : undefined;
}

/** The properties with the plugin's own mark. `revert`: the one that the append opens (null: it clears one). */
export function marked(
  properties: SessionProperties,
  revision: bigint,
  entries: number,
  revert: Revert | null | undefined,
): SessionProperties {
  const copy = clone(SessionPropertiesSchema, unmarked(properties));
  const digest = revert ? sha256(deterministic(RevertSchema, revert)).slice(0, 16) : "";
  const mark = {
    program: PROGRAM,
    source: SOURCE,
    revision: Number(revision),
    entries,
    ...(revert === undefined ? {} : { revert: digest }),
  };
  copy.extraJson = ofSpaces([...spacesOf(copy.extraJson), [SPACE, JSON.stringify(mark)]]);
  return copy;
}

/** The properties without a mark. */
export function unmarked(properties: SessionProperties): SessionProperties {
  const spaces = spacesOf(properties.extraJson);
  return spaces.delete(SPACE) ? { ...properties, extraJson: ofSpaces(spaces) } : properties;
}
