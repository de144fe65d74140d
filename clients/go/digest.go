package turnwire

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// The numbers of payloads in Entry; later fields of the envelope begin behind them.
const firstPayload, behindPayloads = 10, 300

// ChainStart is the digest of a session's log before its first entry, 32 bytes.
func ChainStart(sessionID string) []byte {
	sum := sha256.Sum256([]byte("turnwire/1" + sessionID))
	return sum[:]
}

// ChainLink is the digest of a log after one more entry, 32 bytes: before is the digest so far, field the number of
// the payload in Entry, payload its bytes as they are stored.
func ChainLink(before []byte, revision int64, recorded time.Time, field int32, payload []byte) []byte {
	content := sha256.Sum256(payload)
	link := append([]byte(nil), before...)
	link = binary.BigEndian.AppendUint64(link, uint64(revision))
	link = binary.BigEndian.AppendUint64(link, uint64(recorded.Unix()*int64(time.Second)+int64(recorded.Nanosecond())))
	link = binary.BigEndian.AppendUint32(link, uint32(field))
	sum := sha256.Sum256(append(link, content[:]...))
	return sum[:]
}

// ChainEntry is the digest of a log after one more entry, which is a serialized turnwire.v1.Entry as a server streams
// it or a file keeps it. The payload is cut out of these bytes, since parsing and writing it anew may change them. The
// digest that the entry itself holds is not looked at: it is right if it equals the result.
func ChainEntry(before, entry []byte) ([]byte, error) {
	envelope := &turnwirev1.Entry{}
	if err := proto.Unmarshal(entry, envelope); err != nil {
		return nil, fmt.Errorf("turnwire: no entry: %w", err)
	}
	field, payload, err := storedPayload(entry)
	if err != nil {
		return nil, err
	}
	return ChainLink(before, envelope.GetRevision(), envelope.GetRecorded().AsTime(), field, payload), nil
}

// storedPayload cuts the payload out of a serialized entry.
func storedPayload(entry []byte) (field int32, payload []byte, err error) {
	found := 0
	for rest := entry; len(rest) > 0; {
		number, kind, length := protowire.ConsumeField(rest)
		if length < 0 {
			return 0, nil, fmt.Errorf("turnwire: no entry: %w", protowire.ParseError(length))
		}
		if number >= firstPayload && number < behindPayloads && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(rest)
			payload, _ = protowire.ConsumeBytes(rest[tag:])
			field = int32(number)
			found++
		}
		rest = rest[length:]
	}
	if found != 1 {
		return 0, nil, fmt.Errorf("turnwire: an entry with %d payloads", found)
	}
	return field, payload, nil
}

// PromptDigest is the digest of a prompt, 32 bytes: SHA-256 over, per message, the role as one byte, the number of parts
// as four bytes (big-endian), and per part the SHA-256 of its bytes without its id. Origins and facts do not enter, nor
// do ids, so that a fork's digest equals its parent's. It fails for text that is not UTF-8.
func PromptDigest(items []*turnwirev1.PromptItem) ([]byte, error) {
	total := sha256.New()
	for _, item := range items {
		parts := item.GetMessage().GetParts()
		total.Write([]byte{byte(item.GetMessage().GetRole())})
		total.Write(binary.BigEndian.AppendUint32(nil, uint32(len(parts))))
		for _, part := range parts {
			bare, err := partWithoutID(part)
			if err != nil {
				return nil, fmt.Errorf("turnwire: a part that cannot be serialized: %w", err)
			}
			content := sha256.Sum256(bare)
			total.Write(content[:])
		}
	}
	return total.Sum(nil), nil
}

// partWithoutID serializes a part in the one way in which a server does, without its id.
func partWithoutID(part *turnwirev1.PromptPart) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(part)
	if err != nil || part.GetId() == "" {
		return data, err
	}
	_, _, length := protowire.ConsumeField(data) // the id has the lowest number, so it comes first
	return data[length:], nil
}
