// Callers of /infer that share a net/http client's kept connections, until connections are refused. Takes {"url",
// "callers", "pauseMs"}; prints the calls by their ids and how each ended: a status, "refused", or the error.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

var given struct {
	URL     string  `json:"url"`
	Callers int     `json:"callers"`
	PauseMs float64 `json:"pauseMs"`
}

func call(client *http.Client, id string) string {
	request, err := http.NewRequest("POST", given.URL+"/infer", strings.NewReader(`"text"`))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Request-Id", id)
	reply, err := client.Do(request)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "refused"
	}
	if err != nil {
		return err.Error()
	}
	defer reply.Body.Close()
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		return err.Error()
	}
	return fmt.Sprint(reply.StatusCode)
}

func main() {
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: given.Callers}}
	outcomes := map[string]string{}
	var lock sync.Mutex
	var callers sync.WaitGroup
	for number := range given.Callers {
		callers.Go(func() {
			for i, outcome := 0, ""; outcome != "refused"; i++ {
				id := fmt.Sprintf("go-%d-%d", number, i)
				outcome = call(client, id)
				lock.Lock()
				outcomes[id] = outcome
				lock.Unlock()
				// Every other caller leaves its connection idle now and then.
				if number%2 == 1 {
					time.Sleep(time.Duration(7*i%int(given.PauseMs)) * time.Millisecond)
				}
			}
		})
	}
	callers.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(outcomes); err != nil {
		panic(err)
	}
}
