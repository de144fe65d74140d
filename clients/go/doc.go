// Package turnwire is the Go client of Turnwire: a message format for the sessions of AI agents and a store that speaks
// it.
//
// What needs a server is [Client]: the service's methods as they are in the schema, readers that put streamed pieces
// together ([Client.ReadHistory], [Client.ReadPrompt], [Client.Follow]), and errors with their reasons ([Error]).
//
// What needs none is pure, without clock or randomness: [Fold] takes entries to the history at a revision, [Assemble]
// the history to the prompt of a turn, [PromptEditor] edits a prompt, [PromptDigest] and [ChainLink] compute digests,
// [Validate] tells which rules of the schema a message breaks. The service computes the same from the same.
//
// The messages themselves are generated from the schema: package turnwire.dev/go/turnwire/v1.
package turnwire
