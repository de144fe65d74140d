package turnwire

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// What a gRPC server of C++ says of a request over its own limit, before any handler has seen it.
var tooLarge = regexp.MustCompile(`Received message larger than max \((\d+) vs\. (\d+)\)`)

// AsError returns the *Error that err is, wraps or carries as a gRPC status; nil if it is neither.
func AsError(err error) *Error {
	var found *Error
	if errors.As(err, &found) {
		return found
	}
	if sent, ok := status.FromError(err); ok && sent != nil && sent.Code() != codes.OK {
		return FromStatus(sent)
	}
	return nil
}

// FromStatus returns the error that a status was made of.
func FromStatus(sent *status.Status) *Error {
	result := &Error{Code: sent.Code(), Text: sent.Message(), Metadata: map[string]string{}}
	var details []proto.Message
	for _, each := range sent.Details() {
		switch detail := each.(type) {
		case *errdetails.ErrorInfo:
			if detail.GetDomain() == ErrorDomain {
				result.ReasonName = detail.GetReason()
				for key, value := range detail.GetMetadata() {
					result.Metadata[key] = value
				}
			}
		case *errdetails.BadRequest:
			for _, field := range detail.GetFieldViolations() {
				found := Violation{Path: field.GetField(), Rule: field.GetReason(), Text: field.GetDescription()}
				result.Violations = append(result.Violations, found)
			}
		case proto.Message:
			details = append(details, detail)
		}
	}
	if result.ReasonName == "" {
		return unreasoned(result)
	}
	result.Reason = turnwirev1.Reason(turnwirev1.Reason_value[reasonPrefix+result.ReasonName])
	result.Text = strings.TrimPrefix(result.Text, result.Path()+": ")
	wanted := reasonOption(result.Reason, turnwirev1.E_Detail)
	for _, each := range details {
		if string(each.ProtoReflect().Descriptor().FullName()) == wanted {
			result.Detail = each
		}
	}
	return result
}

// FromRefusal returns the error by which a request on an AppendStream was refused.
func FromRefusal(refused *turnwirev1.Refusal) *Error {
	sent := &spb.Status{}
	if err := proto.Unmarshal(refused.GetStatus(), sent); err != nil || len(refused.GetStatus()) == 0 {
		sent = &spb.Status{Code: refused.GetCode(), Message: refused.GetMessage()}
	}
	return FromStatus(status.FromProto(sent))
}

// unreasoned finishes the error of a status that came without a reason.
func unreasoned(result *Error) *Error {
	found := tooLarge.FindStringSubmatch(result.Text)
	if result.Code != codes.ResourceExhausted || found == nil {
		return result
	}
	size, _ := strconv.ParseInt(found[1], 10, 64)
	limit, _ := strconv.ParseInt(found[2], 10, 64)
	text := fmt.Sprintf("the request has %d bytes, more than the limit of %d", size, limit)
	named := refusal(turnwirev1.Reason_REASON_REQUEST_TOO_LARGE, text)
	named.Detail = &turnwirev1.SizeLimit{Size: size, Limit: limit, Unit: "bytes"}
	return named
}

// failure is the error of a call, as its context explains it.
func failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	found := AsError(err)
	if found == nil {
		return err
	}
	if found.Code == codes.Canceled || found.Code == codes.DeadlineExceeded {
		found.cause = context.Cause(ctx)
	}
	return found
}
