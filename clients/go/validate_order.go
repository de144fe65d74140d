package turnwire

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// step is a name of a path, the key of a map that is a text, or an index or other key.
var step = regexp.MustCompile(`(?s)([a-z0-9_]+)|\[("(?:[^"\\]|\\.)*")]|\[([^\]]*)]`)

// place is one step of a path as it is ordered: a number, or the text of a key.
type place struct {
	number int
	text   string
}

// inOrder sorts violations, so that every language names the same one first: by the numbers of fields from the message
// on, a field before what is inside it, items by index, entries of maps by the bytes of their keys; several rules of one
// place by their ids.
func inOrder(message protoreflect.MessageDescriptor, violations []Violation) {
	type placed struct {
		Violation
		places []place
	}
	sorted := make([]placed, len(violations))
	for index, each := range violations {
		sorted[index] = placed{each, placesOf(message, each.Path)}
	}
	slices.SortStableFunc(sorted, func(a, b placed) int {
		order := slices.CompareFunc(a.places, b.places, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text))
		})
		return cmp.Or(order, cmp.Compare(a.Rule, b.Rule))
	})
	for index, each := range sorted {
		violations[index] = each.Violation
	}
}

func placesOf(message protoreflect.MessageDescriptor, path string) []place {
	var places []place
	for _, found := range step.FindAllStringSubmatch(path, -1) {
		name, key, index := found[1], found[2], found[3]
		switch {
		case key != "":
			var text string
			_ = json.Unmarshal([]byte(key), &text) // a key is written as JSON
			places = append(places, place{text: text})
		case name == "":
			number, err := strconv.Atoi(index)
			if err != nil {
				places = append(places, place{text: index})
			} else {
				places = append(places, place{number: number})
			}
		case message != nil:
			var number protoreflect.FieldNumber
			number, message = fieldOrOneof(message, protoreflect.Name(name))
			places = append(places, place{number: int(number)})
		}
	}
	return places
}

// fieldOrOneof is the number of a field, or of the first member of a oneof, and the message that is in it.
func fieldOrOneof(
	message protoreflect.MessageDescriptor, name protoreflect.Name,
) (protoreflect.FieldNumber, protoreflect.MessageDescriptor) {
	if field := message.Fields().ByName(name); field != nil {
		if field.IsMap() {
			return field.Number(), field.MapValue().Message()
		}
		return field.Number(), field.Message()
	}
	lowest := protoreflect.FieldNumber(0)
	if oneof := message.Oneofs().ByName(name); oneof != nil {
		for index := range oneof.Fields().Len() {
			if number := oneof.Fields().Get(index).Number(); lowest == 0 || number < lowest {
				lowest = number
			}
		}
	}
	return lowest, message
}
