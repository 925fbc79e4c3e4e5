// A client of the gRPC port in Go: it knows nothing but the address, and learns the service by reflection.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

const service = "inference.GRPCInferenceService"

type given struct {
	Address string            `json:"address"`
	Key     string            `json:"key"`
	Request json.RawMessage   `json:"request"`
	Stream  []json.RawMessage `json:"stream"`
}

func main() {
	var input given
	must(json.NewDecoder(os.Stdin).Decode(&input))
	connection, err := grpc.NewClient(input.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	health, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
	must(err)
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+input.Key)
	messages := reflected(ctx, connection)

	message := func(name string, content []byte) *dynamicpb.Message {
		made := dynamicpb.NewMessage(messages.ByName(protoreflect.Name(name)))
		if content != nil {
			must(protojson.Unmarshal(content, made))
		}
		return made
	}
	infer := func(ctx context.Context) (json.RawMessage, error) {
		reply := message("ModelInferResponse", nil)
		err := connection.Invoke(ctx, "/"+service+"/ModelInfer", message("ModelInferRequest", input.Request), reply)
		return asJSON(reply), err
	}
	reply, err := infer(ctx)
	must(err)
	_, refused := infer(metadata.NewOutgoingContext(ctx, metadata.MD{}))
	late, stop := context.WithTimeout(ctx, time.Nanosecond)
	defer stop()
	_, expired := infer(late)

	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/"+service+"/ModelStreamInfer")
	must(err)
	var streamed []json.RawMessage
	for _, request := range input.Stream {
		must(stream.SendMsg(message("ModelInferRequest", request)))
	}
	must(stream.CloseSend())
	for range input.Stream {
		one := message("ModelStreamInferResponse", nil)
		must(stream.RecvMsg(one))
		streamed = append(streamed, asJSON(one))
	}
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"health": health.Status.String(), "reply": reply, "stream": streamed,
		"refused": status.Code(refused).String(), "expired": status.Code(expired).String(),
	}))
}

// The messages of the service's own definition, as the server gives it.
func reflected(ctx context.Context, connection *grpc.ClientConn) protoreflect.MessageDescriptors {
	stream, err := grpc_reflection_v1.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
	must(err)
	must(stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service},
	}))
	answer, err := stream.Recv()
	must(err)
	must(stream.CloseSend())
	var file descriptorpb.FileDescriptorProto
	must(proto.Unmarshal(answer.GetFileDescriptorResponse().FileDescriptorProto[0], &file))
	descriptor, err := protodesc.NewFile(&file, nil)
	must(err)
	return descriptor.Messages()
}

func asJSON(message proto.Message) json.RawMessage {
	content, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	must(err)
	return content
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
