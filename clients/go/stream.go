package turnwire

import (
	"context"
	"errors"
	"io"
	"iter"

	"google.golang.org/grpc"
)

// responses are those of a call with a stream of them. The call ends with the loop over them.
func responses[Request, Response any](
	ctx context.Context,
	call func(context.Context, *Request, ...grpc.CallOption) (grpc.ServerStreamingClient[Response], error),
	request *Request,
	options []grpc.CallOption,
) iter.Seq2[*Response, error] {
	return func(yield func(*Response, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := call(ctx, request, options...)
		for err == nil {
			var response *Response
			response, err = stream.Recv()
			if err == nil && !yield(response, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(nil, err)
		}
	}
}
