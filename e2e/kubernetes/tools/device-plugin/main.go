// A device plugin whose devices do not exist: kubelet counts them, gives them to containers and shows each container
// its own, by a variable. It speaks to kubelet as the plugins of GPUs' makers do.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const lookEvery = 100 * time.Millisecond

type plugin struct {
	api.UnimplementedDevicePluginServer
	resource string
	count    int
	// The IDs of devices that are unhealthy stand there, one per line. It need not exist.
	unhealthy string
}

func (p *plugin) devices() []*api.Device {
	text, _ := os.ReadFile(p.unhealthy)
	failed := map[string]bool{}
	for _, id := range strings.Fields(string(text)) {
		failed[id] = true
	}
	var all []*api.Device
	for i := 0; i < p.count; i++ {
		device := &api.Device{ID: fmt.Sprintf("dev-%d", i), Health: api.Healthy}
		if failed[device.ID] {
			device.Health = api.Unhealthy
		}
		all = append(all, device)
	}
	return all
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	told := ""
	for stream.Context().Err() == nil {
		devices := p.devices()
		if now := fmt.Sprint(devices); now != told {
			told = now
			if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
				return err
			}
		}
		time.Sleep(lookEvery)
	}
	return nil
}

func (p *plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range asked.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"E2E_DEVICES": strings.Join(container.DevicesIds, ",")},
		})
	}
	return answer, nil
}

// Serves until the socket is gone: kubelet removes all of them when it starts, and plugins register again.
func (p *plugin) serve(socket string) error {
	if err := os.RemoveAll(socket); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	defer server.Stop()
	api.RegisterDevicePluginServer(server, p)
	go func() { _ = server.Serve(listener) }()

	kubelet, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	within, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(kubelet).Register(within, &api.RegisterRequest{
		Version: api.Version, Endpoint: filepath.Base(socket), ResourceName: p.resource})
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(socket); err != nil {
			return fmt.Errorf("kubelet has started again: %w", err)
		}
		time.Sleep(lookEvery)
	}
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: device-plugin RESOURCE COUNT FILE-OF-UNHEALTHY-DEVICES")
	}
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	p := &plugin{resource: os.Args[1], count: count, unhealthy: os.Args[3]}
	socket := api.DevicePluginPath + strings.ReplaceAll(p.resource, "/", "-") + ".sock"
	for {
		log.Print(p.serve(socket))
		time.Sleep(lookEvery)
	}
}
