package main

import "runtime/debug"

// version is that of the client which this program was built with.
func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/openai/openai-go/v3" {
			return module.Version
		}
	}
	return "?"
}
