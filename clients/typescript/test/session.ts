import { type EntryInit, entry, textPart } from "@turnwire/client";
import { ToolState } from "@turnwire/client/v1";

export const MODEL = { providerId: "acme", modelId: "m-1" };

/** A turn with a question, and an answer that is begun: a tool that ran, and an open text. */
export function turn(number = 1): EntryInit[] {
  const turnId = `trn_${number}`;
  return [
    entry.turn({ id: turnId, request: { agent: "build", model: MODEL } }),
    entry.user({ id: `msg_${number}u`, turnId, parts: [{ ...textPart("What?"), id: `prt_${number}q` }] }),
    entry.assistant({
      id: `msg_${number}a`,
      turnId,
      parentId: `msg_${number}u`,
      run: { agent: "build", model: MODEL },
      parts: [
        {
          id: `prt_${number}t`,
          kind: {
            case: "tool",
            value: { callId: "call_1", name: "read", state: ToolState.RUNNING, inputJson: '{"n": 1.0}' },
          },
        },
        { id: `prt_${number}x`, kind: { case: "text", value: {} } },
      ],
    }),
  ];
}
