package turnwire

import (
	"crypto/rand"
	"math/big"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	idAlphabet   = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	timeDigits   = 8
	randomDigits = 12
)

// newID makes an id as a server does: a prefix, then 20 base-62 digits, of which the first tell the time.
func newID(prefix string) string {
	span := new(big.Int).Exp(big.NewInt(int64(len(idAlphabet))), big.NewInt(randomDigits), nil)
	number, err := rand.Int(rand.Reader, span)
	if err != nil {
		panic(err) // the system has no randomness
	}
	return prefix + digits(big.NewInt(time.Now().UnixMilli()), timeDigits) + digits(number, randomDigits)
}

func digits(number *big.Int, count int) string {
	written := make([]byte, count)
	base, rest := big.NewInt(int64(len(idAlphabet))), new(big.Int)
	for index := count - 1; index >= 0; index-- {
		number.DivMod(number, base, rest)
		written[index] = idAlphabet[rest.Int64()]
	}
	return string(written)
}

// shallow copies a message of which one field is to be changed; the others are shared.
func shallow(message protoreflect.Message) protoreflect.Message {
	made := message.New()
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		made.Set(field, value)
		return true
	})
	made.SetUnknown(message.GetUnknown())
	return made
}
