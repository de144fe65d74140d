package turnwire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	turnwire "turnwire.dev/go"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// What earlier versions stored (tests/compat) is read here too, and comes to the same.

type manifest struct {
	Sessions map[string]struct {
		Revision int64
		Digest   string
	}
}

// versions are the folders of what was frozen.
func versions(t *testing.T) []string {
	t.Helper()
	found := must(filepath.Glob("../../tests/compat/*/manifest.json"))
	if len(found) == 0 {
		t.Fatal("nothing was frozen")
	}
	for index, path := range found {
		found[index] = filepath.Dir(path)
	}
	return found
}

// pieces are the messages of a file, each behind its length, and behind a tag if tagged.
func pieces(t *testing.T, path string, tagged bool) (found [][]byte) {
	t.Helper()
	for rest := must(os.ReadFile(path)); len(rest) > 0; {
		if tagged {
			_, _, length := protowire.ConsumeTag(rest)
			if length < 0 {
				t.Fatal(protowire.ParseError(length))
			}
			rest = rest[length:]
		}
		piece, length := protowire.ConsumeBytes(rest)
		if length < 0 {
			t.Fatal(protowire.ParseError(length))
		}
		found, rest = append(found, piece), rest[length:]
	}
	return found
}

func entryOf(t *testing.T, data []byte) *turnwirev1.Entry {
	t.Helper()
	entry := &turnwirev1.Entry{}
	if err := proto.Unmarshal(data, entry); err != nil {
		t.Fatal(err)
	}
	return entry
}

func TestFrozenEntriesBreakNoRuleAndLoseNothing(t *testing.T) {
	for _, version := range versions(t) {
		found := pieces(t, filepath.Join(version, "entries.binpb"), false)
		for index, data := range found {
			entry := entryOf(t, data)
			broken, err := turnwire.Violations(entry, turnwire.WithPartIDs(turnwire.PartIDsStored))
			if err != nil || len(broken) > 0 {
				t.Errorf("entry %d: %v, %v", index, broken, err)
			}
			known := &turnwirev1.Entry{}
			if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, known); err != nil {
				t.Fatal(err)
			}
			equal(t, known, entry)
			// Entries of maps may stand in another order.
			if written := must(proto.Marshal(entry)); len(written) != len(data) {
				t.Errorf("entry %d: %d bytes, want %d", index, len(written), len(data))
			}
		}
	}
}

func TestFrozenSessionsHaveTheirDigestsAndHistories(t *testing.T) {
	for _, version := range versions(t) {
		var told manifest
		if err := json.Unmarshal(must(os.ReadFile(filepath.Join(version, "manifest.json"))), &told); err != nil {
			t.Fatal(err)
		}
		if len(told.Sessions) == 0 {
			t.Fatal("no sessions were frozen")
		}
		for id, want := range told.Sessions {
			t.Run(id, func(t *testing.T) {
				path := filepath.Join(version, "sessions", id+".tw")
				found := pieces(t, path, true)
				session := &turnwirev1.Session{}
				if err := proto.Unmarshal(found[0], session); err != nil {
					t.Fatal(err)
				}
				digest := turnwire.ChainStart(session.GetId())
				var log []*turnwirev1.Entry
				for _, data := range found[1:] {
					digest = must(turnwire.ChainEntry(digest, data))
					log = append(log, entryOf(t, data))
				}
				if hex.EncodeToString(digest) != want.Digest || int64(len(log)) != want.Revision {
					t.Errorf("digest %x at %d, want %s at %d", digest, len(log), want.Digest, want.Revision)
				}
				folded := must(turnwire.Fold(slices.Values(log), want.Revision))
				sameAsFrozen(t, folded.History().Messages, strings.TrimSuffix(path, ".tw")+".history.jsonl")
			})
		}
	}
}

func sameAsFrozen(t *testing.T, messages []turnwire.Message, path string) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(must(os.ReadFile(path))), []byte("\n"))
	if len(messages) != len(lines) {
		t.Fatalf("%d messages, want %d", len(messages), len(lines))
	}
	for index, line := range lines {
		want := messages[index].ProtoReflect().New().Interface()
		if err := protojson.Unmarshal(line, want); err != nil {
			t.Fatal(err)
		}
		equal(t, messages[index], want)
	}
}
