package main

import (
	"fmt"
	"hash/fnv"

	"github.com/anishathalye/porcupine"
)

// state is what a server holds after some commits, and what it held before the last of them.
type state struct {
	committed int64
	id        string
	values    map[string]int64
	before    *state
	hash      uint64
}

func (s *state) after(commit *line) *state {
	values := make(map[string]int64, len(s.values)+len(commit.Set)+len(commit.Add))
	for key, value := range s.values {
		values[key] = value
	}
	for key, value := range commit.Set {
		values[key] = value
	}
	for key, value := range commit.Add {
		values[key] += value
	}
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %s", s.hash, commit.ID)
	return &state{commit.Last, commit.ID, values, s, hash.Sum64()}
}

func (s *state) has(id string) bool {
	for ; s != nil; s = s.before {
		if s.id == id {
			return true
		}
	}
	return false
}

func (s *state) shows(read *line) bool {
	if s.committed != read.Committed {
		return false
	}
	if read.Shows == nil { // it asked for the position alone
		return true
	}
	for key, value := range read.Shows {
		if s.values[key] != value {
			return false
		}
	}
	for key, value := range s.values {
		if read.Shows[key] != value {
			return false
		}
	}
	return true
}

// step returns what the server may hold after an operation.
func step(given, input, output interface{}) []interface{} {
	now, operation := given.(*state), input.(*line)
	switch operation.Kind {
	case "read":
		if now.shows(operation) {
			return []interface{}{now}
		}
		return nil
	case "loss": // of its last writes, of all, or of none
		var states []interface{}
		for s := now; s != nil; s = s.before {
			states = append(states, s)
		}
		return states
	}
	var states []interface{}
	if now.committed == operation.First-1 {
		states = append(states, now.after(operation))
	}
	answer := output.(string)
	if answer == "" || answer == "ALREADY" && now.has(operation.ID) {
		states = append(states, now)
	}
	return states
}

// transactions is the sequential specification: whole groups, one after the other, each once.
func transactions() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init:  func() []interface{} { return []interface{}{&state{}} },
		Step:  step,
		Equal: func(one, other interface{}) bool { return one.(*state).hash == other.(*state).hash },
		Hash:  func(given interface{}) uint64 { return given.(*state).hash },
		DescribeOperation: func(input, output interface{}) string {
			operation := input.(*line)
			switch operation.Kind {
			case "read":
				return fmt.Sprintf("read: %d committed", operation.Committed)
			case "loss":
				return "the server may lose writes"
			}
			return fmt.Sprintf("commit %d to %d: %q", operation.First, operation.Last, output)
		},
		DescribeState: func(given interface{}) string { return fmt.Sprint(given.(*state).committed) },
	}
	return model.ToModel()
}
