package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"

	"github.com/anishathalye/porcupine"
)

// line is what a client writes: an operation, or, of a call that may never be answered, first its begin and then its
// end, which has the same number.
type line struct {
	Kind      string           `json:"kind"`
	Number    int              `json:"number"`
	Call      int64            `json:"call"`
	Return    int64            `json:"return"`
	ID        string           `json:"id"`
	First     int64            `json:"first"`
	Last      int64            `json:"last"`
	Set       map[string]int64 `json:"set"`
	Add       map[string]int64 `json:"add"`
	Answer    string           `json:"answer"`
	Committed int64            `json:"committed"`
	Shows     map[string]int64 `json:"shows"`
}

// readHistory reads what all clients of a folder have written, a file each. A call without an answer never returns.
func readHistory(folder string) ([]porcupine.Operation, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	sort.Strings(paths)
	var history []porcupine.Operation
	for client, path := range paths {
		lines, err := readLines(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, found := range lines {
			history = append(history, porcupine.Operation{
				ClientId: client, Input: found, Call: found.Call, Output: found.Answer, Return: found.Return,
			})
		}
	}
	return history, nil
}

func readLines(path string) ([]*line, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var found []*line
	open := map[int]*line{}
	for _, text := range bytes.SplitAfter(content, []byte("\n")) {
		if !bytes.HasSuffix(text, []byte("\n")) {
			break // the end, or a line that its writer was killed in: what it tells of was not sent yet, or not heard
		}
		read := new(line)
		if err := json.Unmarshal(text, read); err != nil {
			return nil, err
		}
		switch read.Kind {
		case "answer":
			began, ok := open[read.Number]
			if !ok {
				return nil, fmt.Errorf("an answer to call %d, which nobody made", read.Number)
			}
			if read.Answer == "OK" || read.Answer == "ALREADY" {
				began.Answer, began.Return = read.Answer, read.Return
			} // a refusal does not say that no earlier sending of the same call was applied
		case "commit":
			read.Return = math.MaxInt64
			open[read.Number] = read
			found = append(found, read)
		case "read", "loss":
			found = append(found, read)
		default:
			return nil, fmt.Errorf("unknown kind %q", read.Kind)
		}
	}
	return found, nil
}
