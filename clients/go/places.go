package turnwire

import (
	"container/list"
	"iter"
)

// places are things in an order, by id: a new one goes to the end or before another.
type places[T any] struct {
	order list.List
	byID  map[string]*list.Element
}

func (p *places[T]) get(id string) (T, bool) {
	if at, ok := p.byID[id]; ok {
		return at.Value.(T), true
	}
	var none T
	return none, false
}

// insert puts a thing before another, or at the end if there is no such other.
func (p *places[T]) insert(id string, thing T, beforeID string) {
	if p.byID == nil {
		p.byID = map[string]*list.Element{}
	}
	if at, ok := p.byID[beforeID]; ok {
		p.byID[id] = p.order.InsertBefore(thing, at)
	} else {
		p.byID[id] = p.order.PushBack(thing)
	}
}

func (p *places[T]) remove(id string) (T, bool) {
	at, ok := p.byID[id]
	if !ok {
		var none T
		return none, false
	}
	delete(p.byID, id)
	return p.order.Remove(at).(T), true
}

// all gives the things in order; the one that was given last may be removed meanwhile.
func (p *places[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		for at := p.order.Front(); at != nil; {
			next := at.Next()
			if !yield(at.Value.(T)) {
				return
			}
			at = next
		}
	}
}
