// The program openai.mjs, with OpenAI's client for Go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

type given struct {
	Model string   `json:"model"`
	Texts []string `json:"texts"`
	Many  []string `json:"many"`
}

type reply struct {
	Query     []float64         `json:"query"`
	Documents [][]float64       `json:"documents"`
	Together  [][]float64       `json:"together"`
	Many      [][]float64       `json:"many"`
	Model     string            `json:"model"`
	Errors    map[string]string `json:"errors"`
}

func main() {
	var input given
	must(json.NewDecoder(os.Stdin).Decode(&input))
	var replies []reply
	for _, baseURL := range os.Args[1:] {
		replies = append(replies, replyOf(baseURL, input))
	}
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{"version": version(), "replies": replies}))
}

func replyOf(baseURL string, input given) reply {
	client := openai.NewClient(option.WithBaseURL(baseURL), option.WithAPIKey("none"), option.WithMaxRetries(0))
	embed := func(model string, texts openai.EmbeddingNewParamsInputUnion, options ...option.RequestOption) ([][]float64, error) {
		params := openai.EmbeddingNewParams{Model: model, Input: texts}
		response, err := client.Embeddings.New(context.Background(), params, options...)
		if err != nil {
			return nil, err
		}
		var vectors [][]float64
		for _, entry := range response.Data {
			vectors = append(vectors, entry.Embedding)
		}
		return vectors, nil
	}
	one := func(text string) openai.EmbeddingNewParamsInputUnion {
		return openai.EmbeddingNewParamsInputUnion{OfString: openai.String(text)}
	}
	list := func(texts []string) openai.EmbeddingNewParamsInputUnion {
		return openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts}
	}
	vectors := func(texts openai.EmbeddingNewParamsInputUnion) [][]float64 {
		found, err := embed(input.Model, texts)
		must(err)
		return found
	}
	errorOf := func(_ [][]float64, err error) string {
		// Error() gives the status only; the message is a field.
		var refused *openai.Error
		if errors.As(err, &refused) {
			return refused.Message
		}
		return fmt.Sprint(err)
	}

	together := make([][]float64, 10*len(input.Texts))
	done := make(chan error)
	for i := range together {
		go func(i int) {
			found, err := embed(input.Model, one(input.Texts[i%len(input.Texts)]))
			if err == nil {
				together[i] = found[0]
			}
			done <- err
		}(i)
	}
	for range together {
		must(<-done)
	}
	model, err := client.Models.Get(context.Background(), input.Model)
	must(err)
	tokens := openai.EmbeddingNewParamsInputUnion{OfArrayOfTokenArrays: [][]int64{{1, 2, 3}}}
	return reply{
		Query:     vectors(one(input.Texts[0]))[0],
		Documents: vectors(list(input.Texts)),
		Together:  together,
		Many:      vectors(list(input.Many)),
		Model:     model.ID,
		Errors: map[string]string{
			"empty":   errorOf(embed(input.Model, one(""))),
			"unknown": errorOf(embed("ada-002", one("x"))),
			"tokens":  errorOf(embed(input.Model, tokens)),
			"timeout": errorOf(embed(input.Model, list(input.Many), option.WithRequestTimeout(time.Millisecond))),
		},
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
