package turnwire

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// Turnwire's own rules: what protovalidate cannot say. The fields are marked by the options of options.proto.
const (
	ruleUnknown    = "turnwire.unknown"
	ruleStoredOnly = "turnwire.stored_only"
	ruleHeldBy     = "turnwire.held_by"
	ruleTimestamp  = "turnwire.timestamp"
	ruleCallID     = "turnwire.call_id"
	ruleWireFormat = "turnwire.wire_format"
	ruleRequired   = "required"
)

// surroundings is what is known of a message from outside.
type surroundings struct {
	ids         PartIDs
	role        turnwirev1.Role
	keepUnknown bool
}

type ownCheck struct{ found []Violation }

func (c *ownCheck) add(path, rule, text string) {
	c.found = append(c.found, Violation{Path: path, Rule: rule, Text: text})
}

// message checks a message and all that is inside it; path is its own.
func (c *ownCheck) message(message protoreflect.Message, path string, within surroundings) {
	if time, ok := message.Interface().(*timestamppb.Timestamp); ok {
		if time.CheckValid() != nil {
			c.add(path, ruleTimestamp, "must lie in the years 0001 to 9999, with 0 to 999,999,999 nanoseconds")
		}
		return
	}
	within = inside(message, within)
	c.oneofs(message, path, within)
	fields := message.Descriptor().Fields()
	for index := range fields.Len() {
		field := fields.Get(index)
		at := joinPath(path, string(field.Name()))
		if storedOnly(field) {
			c.partID(message.Get(field).String(), at, within)
		}
		if message.Has(field) {
			c.field(field, message.Get(field), at, within)
		}
	}
	c.callIDs(message, path)
}

// inside is what is known of all that is inside a message.
func inside(message protoreflect.Message, within surroundings) surroundings {
	switch each := message.Interface().(type) {
	case *turnwirev1.User:
		within.role = turnwirev1.Role_ROLE_USER
	case *turnwirev1.Assistant:
		within.role = turnwirev1.Role_ROLE_ASSISTANT
	case interface{ GetRole() turnwirev1.Role }:
		within.role = each.GetRole()
	}
	if isEdit(message.Descriptor()) {
		within.ids = PartIDsTransient
	}
	return within
}

// isEdit tells whether a hook writes all that is inside a message: it is a mutation, or one of its edits.
func isEdit(message protoreflect.MessageDescriptor) bool {
	root := (*turnwirev1.Mutation)(nil).ProtoReflect().Descriptor()
	if message == root {
		return true
	}
	edits := root.Fields()
	for index := range edits.Len() {
		if edits.Get(index).Message() == message {
			return true
		}
	}
	return false
}

// field checks a field that is set.
func (c *ownCheck) field(field protoreflect.FieldDescriptor, value protoreflect.Value, path string, within surroundings) {
	switch {
	case field.IsMap():
		value.Map().Range(func(key protoreflect.MapKey, item protoreflect.Value) bool {
			at := path + "[" + mapKey(key.Interface()) + "]"
			if text, ok := key.Interface().(string); ok {
				c.text(text, at)
			}
			c.value(field.MapValue(), item, at, within)
			return true
		})
	case field.IsList():
		for index := range value.List().Len() {
			c.value(field, value.List().Get(index), fmt.Sprintf("%s[%d]", path, index), within)
		}
	default:
		c.heldBy(field, path, within)
		c.value(field, value, path, within)
	}
}

func (c *ownCheck) value(field protoreflect.FieldDescriptor, value protoreflect.Value, path string, within surroundings) {
	switch field.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		c.message(value.Message(), path, within)
	case protoreflect.EnumKind:
		if definedOnly(field) && field.Enum().Values().ByNumber(value.Enum()) == nil && !within.keepUnknown {
			c.add(path, ruleUnknown, "must be a number that this schema knows")
		}
	case protoreflect.StringKind:
		if !c.text(value.String(), path) {
			return
		}
		shape, _ := option(field, turnwirev1.E_Json).(turnwirev1.JsonShape)
		if shape == turnwirev1.JsonShape_JSON_SHAPE_UNSPECIFIED {
			return
		}
		object := shape == turnwirev1.JsonShape_JSON_SHAPE_OBJECT
		if rule, right := jsonFault(value.String(), object); rule != "" {
			c.add(path, rule, right)
		}
	}
}

func (c *ownCheck) text(text, path string) bool {
	valid := utf8.ValidString(text)
	if !valid {
		c.add(path, ruleWireFormat, "must be valid UTF-8")
	}
	return valid
}

// oneofs checks that those have a member that must.
func (c *ownCheck) oneofs(message protoreflect.Message, path string, within surroundings) {
	oneofs := message.Descriptor().Oneofs()
	for index := range oneofs.Len() {
		oneof := oneofs.Get(index)
		rules, _ := proto.GetExtension(oneof.Options(), validate.E_Oneof).(*validate.OneofRules)
		if !rules.GetRequired() || message.WhichOneof(oneof) != nil {
			continue
		}
		at := joinPath(path, string(oneof.Name()))
		if len(message.GetUnknown()) == 0 {
			c.add(at, ruleUnknown, "must have one member set")
		} else if !within.keepUnknown {
			c.add(at, ruleUnknown, "must have a member set that this schema knows; a later schema has written it")
		}
	}
}

func (c *ownCheck) partID(id, path string, within surroundings) {
	switch {
	case within.ids == PartIDsStored && id == "":
		c.add(path, ruleRequired, "must be set in what is stored")
	case within.ids == PartIDsTransient && id != "":
		c.add(path, ruleStoredOnly, "must be empty in what a hook writes")
	}
}

// heldBy checks that a message of the role around it may hold this kind of part.
func (c *ownCheck) heldBy(field protoreflect.FieldDescriptor, path string, within surroundings) {
	roles, _ := option(field, turnwirev1.E_HeldBy).([]turnwirev1.Role)
	known := within.role == turnwirev1.Role_ROLE_USER || within.role == turnwirev1.Role_ROLE_ASSISTANT
	if len(roles) == 0 || !known || slices.Contains(roles, within.role) {
		return
	}
	names := make([]string, len(roles))
	for index, role := range roles {
		names[index] = strings.ToLower(strings.TrimPrefix(role.String(), "ROLE_"))
	}
	c.add(path, ruleHeldBy, "must be in a message of role "+strings.Join(names, " or "))
}

// callIDs checks that no two tool parts of a message have the same call id.
func (c *ownCheck) callIDs(message protoreflect.Message, path string) {
	var parts []*turnwirev1.PromptPart
	switch each := message.Interface().(type) {
	case *turnwirev1.User:
		parts = each.GetParts()
	case *turnwirev1.Assistant:
		parts = each.GetParts()
	case *turnwirev1.PromptMessage:
		parts = each.GetParts()
	case *turnwirev1.AppendTo:
		parts = each.GetParts()
	}
	seen := map[string]bool{}
	for index, part := range parts {
		call := part.GetTool().GetCallId()
		if call != "" && seen[call] {
			at := fmt.Sprintf("%s[%d].tool.call_id", joinPath(path, "parts"), index)
			c.add(at, ruleCallID, "must be unique in the message")
		}
		seen[call] = true
	}
}

func storedOnly(field protoreflect.FieldDescriptor) bool {
	marked, _ := option(field, turnwirev1.E_StoredOnly).(bool)
	return marked
}

// definedOnly tells whether an enum field must have a number that the schema knows, as the value or as an item.
func definedOnly(field protoreflect.FieldDescriptor) bool {
	rules, _ := option(field, validate.E_Field).(*validate.FieldRules)
	return rules.GetEnum().GetDefinedOnly() || rules.GetRepeated().GetItems().GetEnum().GetDefinedOnly()
}

func option(field protoreflect.FieldDescriptor, extension protoreflect.ExtensionType) any {
	return proto.GetExtension(field.Options(), extension)
}
