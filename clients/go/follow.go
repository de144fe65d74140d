package turnwire

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// How long Follow waits between tries to reach a server again, and how long it tries.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
	patience   = time.Minute
)

// Followed is the next of what Follow tells: one of the two is set.
type Followed struct {
	// Entry is the next entry of the log.
	Entry *turnwirev1.Entry
	// CaughtUp is told once: everything up to this head has been told.
	CaughtUp *turnwirev1.Head
}

// Follow tells the entries after a revision (0: from the beginning), then, live, whatever is appended by anybody, each
// once and in order, until the context ends or the loop is left. When the server goes away it goes on from the last
// entry it told as soon as the server is back, trying for a minute.
//
// An error ends it: SESSION_DELETED when the session is deleted, REVISION_OUT_OF_RANGE, an [*Error] that wraps that of
// the context, whether or not the server is there, and one of code Canceled when the client is closed.
func (c *Client) Follow(ctx context.Context, sessionID string, after int64) iter.Seq2[Followed, error] {
	return func(yield func(Followed, error) bool) {
		tail := &tail{client: c, sessionID: sessionID, seen: after, yield: yield}
		tail.run(ctx)
	}
}

type tail struct {
	client    *Client
	sessionID string
	seen      int64 // the last revision that was told
	caughtUp  bool
	tries     int
	lostAt    time.Time // when the server went away; zero: it is there
	yield     func(Followed, error) bool
}

func (t *tail) run(ctx context.Context) {
	for {
		wanted, err := t.once(ctx)
		if !wanted {
			return
		}
		if t.lostAt.IsZero() {
			t.lostAt = time.Now()
		}
		if err != nil && (!t.away(ctx, err) || time.Since(t.lostAt) >= patience) {
			t.yield(Followed{}, err)
			return
		}
		pause := min(firstPause<<min(t.tries, 10), lastPause)
		t.tries++
		select {
		case <-ctx.Done():
			t.yield(Followed{}, failure(ctx, status.FromContextError(ctx.Err()).Err()))
			return
		case <-t.client.closed: // what the next call says
		case <-time.After(time.Duration(float64(pause) * (0.5 + rand.Float64()/2))):
		}
	}
}

// once tells what one call gives; false: nothing more is wanted.
func (t *tail) once(ctx context.Context) (bool, error) {
	if !t.lostAt.IsZero() && t.client.reconnect != nil {
		t.client.reconnect()
	}
	request := &turnwirev1.TailRequest{SessionId: t.sessionID, AfterRevision: t.seen}
	for response, err := range responses(ctx, t.client.Tail, request, nil) {
		if err != nil {
			return true, err
		}
		t.tries, t.lostAt = 0, time.Time{}
		for _, entry := range response.GetEntries() {
			if entry.GetRevision() <= t.seen {
				continue
			}
			t.seen = entry.GetRevision()
			if !t.yield(Followed{Entry: entry}, nil) {
				return false, nil
			}
		}
		if head := response.GetCaughtUp(); head != nil && !t.caughtUp {
			t.caughtUp = true
			if !t.yield(Followed{CaughtUp: head}, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}

// away tells whether an error says that the server is not there, rather than what is wrong.
func (t *tail) away(ctx context.Context, err error) bool {
	found := AsError(err)
	return ctx.Err() == nil && !t.client.shut() && found != nil && (found.Code == codes.Unavailable || found.Code == codes.Canceled)
}
