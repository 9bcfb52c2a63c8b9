// Command histories asks Porcupine, a checker of linearizability that is not ours, whether what clients of a topology
// saw is what one server could have shown that applies whole transactions one after the other.
//
//	histories [-seconds N] [-picture FILE] FOLDER
//
// It prints one line of JSON; its exit code is 0 if the history is accepted, 1 if it is rejected, 2 if nothing is known.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

var codes = map[porcupine.CheckResult]int{porcupine.Ok: 0, porcupine.Illegal: 1, porcupine.Unknown: 2}
var words = map[porcupine.CheckResult]string{
	porcupine.Ok: "accepted", porcupine.Illegal: "rejected", porcupine.Unknown: "undecided",
}

func main() {
	seconds := flag.Int("seconds", 60, "give up after this time")
	picture := flag.String("picture", "", "file for a page that shows the history")
	flag.Parse()
	history, err := readHistory(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	model := transactions()
	result, info := porcupine.CheckOperationsVerbose(model, history, time.Duration(*seconds)*time.Second)
	if *picture != "" {
		if err := porcupine.VisualizePath(model, info, *picture); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	line, _ := json.Marshal(map[string]interface{}{"verdict": words[result], "operations": len(history)})
	fmt.Println(string(line))
	os.Exit(codes[result])
}
