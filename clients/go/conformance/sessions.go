package main

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	turnwire "turnwire.dev/go"
	conformancev1 "turnwire.dev/go/turnwire/conformance/v1"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// fold makes the history of entries.
func fold(request *conformancev1.FoldRequest) (*conformancev1.Response, error) {
	folded, err := foldRaw(request.GetEntries(), request.Revision)
	if err != nil {
		return nil, err
	}
	history := folded.History()
	made := &conformancev1.History{
		Revision:   history.Revision,
		Properties: folded.Properties(),
		Turns:      history.Turns,
		Revert:     folded.OpenRevert(),
	}
	for _, message := range history.Messages {
		each := &conformancev1.HistoryMessage{Summary: history.Summaries[message.GetId()]}
		switch of := message.(type) {
		case *turnwirev1.User:
			each.Message = &conformancev1.HistoryMessage_User{User: of}
		case *turnwirev1.Assistant:
			each.Message = &conformancev1.HistoryMessage_Assistant{Assistant: of}
		}
		made.Messages = append(made.Messages, each)
	}
	return &conformancev1.Response{Response: &conformancev1.Response_Fold{Fold: made}}, nil
}

// assemble makes the prompt of a turn.
func assemble(request *conformancev1.AssemblyRequest) (*conformancev1.Response, error) {
	folded, err := foldRaw(request.GetEntries(), request.Revision)
	if err != nil {
		return nil, err
	}
	assembly, err := turnwire.Assemble(folded.History(), request.GetTurnId(), request.GetProfile())
	if err != nil {
		return nil, err
	}
	made, err := prompt(turnwire.NewPromptEditor(assembly.Items, assembly))
	if err != nil {
		return nil, err
	}
	return &conformancev1.Response{Response: &conformancev1.Response_Assembly{Assembly: made}}, nil
}

// mutate mutates a prompt.
func mutate(request *conformancev1.MutationRequest) (*conformancev1.Response, error) {
	items := request.GetItems()
	if request.BasePromptId != nil {
		items = turnwire.BasedOn(items, request.GetBasePromptId())
	}
	editor := turnwire.NewPromptEditor(items, fates(request.GetFates()))
	if err := editor.Apply(request.GetMutations()...); err != nil {
		return nil, err
	}
	made, err := prompt(editor)
	if err != nil {
		return nil, err
	}
	return &conformancev1.Response{Response: &conformancev1.Response_Mutation{Mutation: made}}, nil
}

// digest computes digests of a log or a prompt.
func digest(request *conformancev1.DigestRequest) (*conformancev1.Response, error) {
	made := &conformancev1.DigestResponse{}
	switch of := request.GetInput().(type) {
	case *conformancev1.DigestRequest_Log:
		chain := turnwire.ChainStart(of.Log.GetSessionId())
		for _, entry := range of.Log.GetEntries() {
			next, err := turnwire.ChainEntry(chain, entry)
			if err != nil {
				return nil, err
			}
			made.Digests = append(made.Digests, next)
			chain = next
		}
	case *conformancev1.DigestRequest_Prompt:
		var items []*turnwirev1.PromptItem
		for _, message := range of.Prompt.GetMessages() {
			items = append(items, &turnwirev1.PromptItem{Message: message})
		}
		sum, err := turnwire.PromptDigest(items)
		if err != nil {
			return nil, err
		}
		made.Digests = [][]byte{sum}
	}
	return &conformancev1.Response{Response: &conformancev1.Response_Digest{Digest: made}}, nil
}

// foldRaw folds serialized entries up to a revision; nil: all of them.
func foldRaw(entries [][]byte, revision *int64) (*turnwire.Folded, error) {
	last := int64(math.MaxInt64)
	if revision != nil {
		last = *revision
	}
	folded := &turnwire.Folded{}
	for _, data := range entries {
		entry := &turnwirev1.Entry{}
		if err := proto.Unmarshal(data, entry); err != nil {
			return nil, fmt.Errorf("no entry: %w", err)
		}
		if entry.GetRevision() > last {
			break
		}
		if err := folded.Apply(entry); err != nil {
			return nil, err
		}
	}
	return folded, nil
}

func prompt(editor *turnwire.PromptEditor) (*conformancev1.Prompt, error) {
	sum, err := editor.Digest()
	if err != nil {
		return nil, err
	}
	return &conformancev1.Prompt{Items: editor.Items(), Digest: sum}, nil
}

// fates are those that a request names.
type fates []*conformancev1.AnchorFate

func (f fates) MessageFate(id string) turnwire.Fate {
	for _, each := range f {
		if of, ok := each.GetAnchor().(*conformancev1.AnchorFate_MessageId); ok && of.MessageId == id {
			return known[each.GetFate()]
		}
	}
	return turnwire.FateUnknown
}

func (f fates) PartFate(id string) turnwire.Fate {
	for _, each := range f {
		if of, ok := each.GetAnchor().(*conformancev1.AnchorFate_PartId); ok && of.PartId == id {
			return known[each.GetFate()]
		}
	}
	return turnwire.FateUnknown
}

var known = map[conformancev1.Fate]turnwire.Fate{
	conformancev1.Fate_FATE_LIVE:      turnwire.FateLive,
	conformancev1.Fate_FATE_COMPACTED: turnwire.FateCompacted,
	conformancev1.Fate_FATE_REMOVED:   turnwire.FateRemoved,
}
