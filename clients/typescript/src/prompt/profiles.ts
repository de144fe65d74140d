import { TurnwireError } from "../errors.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";

/** The choices that assembling leaves open. */
export interface Profile {
  /** A summary without text completes a compaction too. */
  readonly emptySummary: boolean;
  /**
   * What stands between a compaction message and the first summary that names it, complete or not, stays before the kept
   * tail. Else the summary that completed the compaction follows the compaction message directly.
   */
  readonly summaryInPlace: boolean;
  /** A compaction whose tail start is not before it leaves nothing out. Else it just has no tail. */
  readonly lostTailKeepsAll: boolean;
}

const PROFILES: Record<string, Profile> = {
  default: { emptySummary: false, summaryInPlace: false, lostTailKeepsAll: false },
  // What opencode 1.18 sends for the same history.
  opencode: { emptySummary: true, summaryInPlace: true, lostTailKeepsAll: true },
};

/** The profile of a name; empty: "default". Throws UNKNOWN_PROFILE. */
export function profileNamed(name: string): Profile {
  const profile = Object.hasOwn(PROFILES, name || "default") ? PROFILES[name || "default"] : undefined;
  if (profile === undefined) {
    const text = `the known profiles are ${Object.keys(PROFILES).join(", ")}`;
    throw new TurnwireError(Reason.UNKNOWN_PROFILE, text, { metadata: { profile: name } });
  }
  return profile;
}
