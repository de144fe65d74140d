package turnwire

import (
	"context"
	_ "embed" // for the service config
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// connecting is how long the connection waits between tries to reach a server. What grpc-go does by itself grows to two
// minutes, for which a client would go on failing after the server is back.
var connecting = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: lastPause},
	MinConnectTimeout: 10 * time.Second,
}

//go:embed service_config.json
var serviceConfig string

// ServiceConfig is the published gRPC service config, as JSON: which methods are tried again when the server is not
// there, and how. It is right for a client that gives its writing calls request ids, as [Client] does.
func ServiceConfig() string { return serviceConfig }

// Client is a connection to a server's sessions. The methods of the service are those of the schema; they return
// errors that are an [*Error], and their writes bear request ids, so that what is tried again is done once. The
// Read methods and Follow put together what the service streams in pieces.
//
// A Client is safe for use by several goroutines.
type Client struct {
	turnwirev1.SessionServiceClient

	close     func() error  // nil: the connection is the caller's
	closed    chan struct{} // is closed by Close
	reconnect func()        // has the connection try at once, if it is waiting; nil: it cannot
	shut      func() bool   // tells whether the connection is closed for good
}

// Dial makes a client of the server at a target, "HOST:PORT" or "unix:PATH"; it connects when the first call is made.
//
// The connection is without credentials unless options give some, keeps the service config that is published,
// looks every minute whether the server of a silent stream is still there, and tries at least every two seconds to reach
// a server that is away. Options are set over these.
func Dial(target string, options ...grpc.DialOption) (*Client, error) {
	own := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(serviceConfig),
		// The server's limits hold; a part can be as large as it allows.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.WithConnectParams(connecting),
	}
	conn, err := grpc.NewClient(target, append(own, options...)...)
	if err != nil {
		return nil, err
	}
	client := New(conn)
	client.close = sync.OnceValue(func() error {
		defer close(client.closed)
		return conn.Close()
	})
	return client, nil
}

// New makes a client of a connection that the caller made and closes. It should have the config of [ServiceConfig].
func New(conn grpc.ClientConnInterface) *Client {
	client := &Client{
		SessionServiceClient: turnwirev1.NewSessionServiceClient(safely{conn}),
		closed:               make(chan struct{}),
		shut:                 func() bool { return false },
	}
	if waiting, ok := conn.(interface{ ResetConnectBackoff() }); ok {
		client.reconnect = waiting.ResetConnectBackoff
	}
	if known, ok := conn.(interface{ GetState() connectivity.State }); ok {
		client.shut = func() bool { return known.GetState() == connectivity.Shutdown }
	}
	return client
}

// Close closes the connection that Dial made, for good: calls that are open, and any later one, fail with the code
// Canceled. Closing again does nothing.
func (c *Client) Close() error {
	if c.close == nil {
		return nil
	}
	return c.close()
}

// safely is a connection whose writes bear request ids and whose errors have their reasons.
type safely struct{ grpc.ClientConnInterface }

func (s safely) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	err := s.ClientConnInterface.Invoke(ctx, method, withRequestID(args), reply, options...)
	return failure(ctx, unsendable(args, err))
}

func (s safely) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := s.ClientConnInterface.NewStream(ctx, desc, method, options...)
	if err != nil {
		return nil, failure(ctx, err)
	}
	return safeStream{stream, desc.ClientStreams}, nil
}

type safeStream struct {
	grpc.ClientStream

	// Such a stream is never sent again as a whole, so that a made-up id would only cost the server room.
	sendsMany bool
}

func (s safeStream) SendMsg(message any) error {
	sent := message
	if !s.sendsMany {
		sent = withRequestID(message)
	}
	return failure(s.Context(), unsendable(message, s.ClientStream.SendMsg(sent)))
}

func (s safeStream) RecvMsg(message any) error {
	return failure(s.Context(), s.ClientStream.RecvMsg(message))
}

// withRequestID returns a write with a request id, where it has none and a retry would not be told otherwise. The
// message itself is not changed.
func withRequestID(message any) any {
	request, ok := message.(proto.Message)
	if !ok {
		return message
	}
	into := request.ProtoReflect()
	if !into.IsValid() {
		// A nil request is sent as an empty one.
		request = into.New().Interface()
		into = request.ProtoReflect()
		message = request
	}
	field := into.Descriptor().Fields().ByName("request_id")
	if field == nil || into.Has(field) || repeatsSafely(request) {
		return message
	}
	made := shallow(into)
	if create, is := made.Interface().(*turnwirev1.CreateSessionRequest); is && create.GetSessionId() == "" {
		// A request id is scoped to the session, so that a session without an id could be created twice.
		create.SessionId = newID("ses_")
	}
	made.Set(field, protoreflect.ValueOfString(newID("")))
	return made.Interface()
}

// unsendable returns the error of a request that could not be sent: the rule that it breaks, if it has text that is no
// UTF-8. That is looked for only then, as it costs a walk through the whole request.
func unsendable(message any, err error) error {
	request, ok := message.(proto.Message)
	if !ok || status.Code(err) != codes.Internal {
		return err
	}
	check := &ownCheck{}
	check.message(request.ProtoReflect(), "", surroundings{keepUnknown: true})
	broken := slices.DeleteFunc(check.found, func(each Violation) bool { return each.Rule != ruleWireFormat })
	if len(broken) == 0 {
		return err
	}
	inOrder(request.ProtoReflect().Descriptor(), broken)
	return violated(turnwirev1.Reason_REASON_RULE_VIOLATION, broken)
}

// repeatsSafely tells whether a request can be sent twice without a request id: it writes nothing, or deltas alone,
// whose offsets tell a retry.
func repeatsSafely(message proto.Message) bool {
	switch request := message.(type) {
	case *turnwirev1.MutatePromptRequest:
		return request.GetDryRun()
	case *turnwirev1.RenderPromptRequest:
		return !request.GetRecord()
	case *turnwirev1.AppendRequest:
		for _, entry := range request.GetEntries() {
			if entry.GetDelta() == nil {
				return false
			}
		}
		return request.ExpectedRevision == nil
	}
	return false
}
