// A worker of Sheaf in Go: it counts words. docs/reference/worker-protocol.md describes the protocol.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const maxHeaderBytes, maxPayloadBytes = 16 << 20, 1 << 30

type column struct {
	Kind  string `json:"kind"`
	At    int    `json:"at"`
	Bytes int    `json:"bytes"`
	Count int    `json:"count"`
}

type message struct {
	Type     string   `json:"type"`
	Protocol int      `json:"protocol"`
	ID       int      `json:"id"`
	Columns  []column `json:"columns"`
	payload  []byte
}

type object map[string]any

// The model: one result for each text, or an error in its place.
func wordsOf(text string) (int, error) {
	if strings.TrimSpace(text) == "" {
		return 0, fmt.Errorf("a text without words")
	}
	return len(strings.Fields(text)), nil
}

func main() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM) // the parent decides when it ends
	descriptor, err := strconv.Atoi(os.Getenv("SHEAF_WORKER_FD"))
	if err != nil {
		fail("started without SHEAF_WORKER_FD: start it with workerCommand")
	}
	syscall.CloseOnExec(descriptor)
	syscall.Setpgid(0, 0) // a kill takes what it starts, too
	pipe := os.NewFile(uintptr(descriptor), "sheaf")
	messages := make(chan message, 4)
	go read(pipe, messages) // on its own, so that the end of the pipe is seen during a run
	<-messages              // hello: here a model would be loaded
	send(pipe, object{"type": "ready", "inputs": "text", "outputs": "json", "sample": []string{"one two", "three"}}, nil)
	for next := range messages {
		if next.Type == "close" {
			send(pipe, object{"type": "closed"}, nil)
			return
		}
		run(pipe, next)
	}
}

func run(pipe io.Writer, batch message) {
	started := time.Now()
	results, errors := []int{}, []object{}
	for i, text := range texts(batch) {
		if words, err := wordsOf(text); err == nil {
			results = append(results, words)
		} else {
			failure := object{"type": "NoWords", "message": err.Error(), "code": "INVALID_INPUT"}
			errors = append(errors, object{"index": i, "error": failure})
		}
	}
	payload, _ := json.Marshal(results)
	columns := []object{{"kind": "json", "count": len(results), "at": 0, "bytes": len(payload)}}
	runMs := float64(time.Since(started).Microseconds()) / 1000
	send(pipe, object{"type": "result", "id": batch.ID, "columns": columns, "errors": errors, "runMs": runMs}, payload)
}

// n + 1 offsets, then the UTF-8 of all texts.
func texts(batch message) []string {
	at := batch.Columns[0]
	bytes := batch.payload[at.At : at.At+at.Bytes]
	offset := func(i int) int { return int(binary.LittleEndian.Uint32(bytes[4*i:])) }
	blob := bytes[4*(at.Count+1):]
	found := make([]string, at.Count)
	for i := range found {
		found[i] = string(blob[offset(i):offset(i+1)])
	}
	return found
}

func read(pipe io.Reader, messages chan<- message) {
	reader := bufio.NewReaderSize(pipe, 64<<10)
	expected := "hello"
	for {
		var head [8]byte
		if _, err := io.ReadFull(reader, head[:]); err != nil {
			os.Exit(0) // nobody is left to work for
		}
		headerBytes, payloadBytes := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
		if headerBytes > maxHeaderBytes || payloadBytes > maxPayloadBytes {
			fail("a frame over the bound")
		}
		header, payload := make([]byte, headerBytes), make([]byte, payloadBytes)
		if _, err := io.ReadFull(reader, header); err != nil {
			os.Exit(0)
		}
		if _, err := io.ReadFull(reader, payload); err != nil {
			os.Exit(0)
		}
		next := message{payload: payload}
		if err := json.Unmarshal(header, &next); err != nil {
			fail("a header that is not JSON: " + err.Error())
		}
		switch {
		case next.Type == "hello" && expected == "hello" && next.Protocol == 1:
			expected = "run"
			messages <- next
		case (next.Type == "run" || next.Type == "close") && expected == "run":
			messages <- next
		case next.Type == "cancel" && expected == "run": // its runs are too short to be worth a look
		default:
			fail("a message out of order: " + next.Type)
		}
	}
}

func send(pipe io.Writer, header object, payload []byte) {
	text, _ := json.Marshal(header)
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(payload)))
	if _, err := pipe.Write(append(append(frame, text...), payload...)); err != nil {
		os.Exit(0)
	}
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, "worker: "+why)
	os.Exit(1)
}
