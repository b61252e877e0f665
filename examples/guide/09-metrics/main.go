// Metrics is the ninth step of docs/guide.md: a server that Prometheus can watch. Twenty
// bots play in virtual time, then the program asks for its own metrics, as a scraper
// would, and prints them.
//
//	go -C examples/guide/09-metrics run .
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/guide/sim"
	"github.com/ackbits/ackbits/simnet"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	e := new(exporter)
	url, stop, err := e.serve("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer stop()
	play(e)
	return scrape(url, out)
}

// README: begin guide-serve

// serve shows the metrics at an address, which should be of this machine alone: they say
// how many play, and what disturbs you most.
func (e *exporter) serve(addr string) (url string, stop func() error, err error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(e); err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go web.Serve(listener) // until stop
	return fmt.Sprintf("http://%v/metrics", listener.Addr()), web.Close, nil
}

// README: end guide-serve

// play lets twenty bots play for 20 s, of whom one leaves after 10.
func play(e *exporter) {
	clock := new(ackbits.ManualClock)
	network := simnet.NewNet(1, clock)
	cfg := endpoint.ServerConfig{Key: sim.Key(1), Clock: clock}
	server := sim.NewServer(cfg, func(endpoint.Incoming) {}, func(news endpoint.Event) {
		if news.Kind == endpoint.Left {
			e.left(news.Peer.Session())
		}
	})
	network.Add(simnet.Addr(0), server, simnet.Config{}, simnet.Config{})
	var bots []*sim.Client
	for i := 1; i <= 20; i++ {
		b := sim.NewClient(endpoint.ClientConfig{Clock: clock}, uint64(i), func(ackbits.Incoming) {})
		line := simnet.Config{Delay: time.Duration(i) * 4 * time.Millisecond, Loss: 0.05}
		network.Dial(simnet.Addr(i), simnet.Addr(0), b, line, line)
		bots = append(bots, b)
	}
	network.Every(4, time.Second, func() {
		for peer := range server.Peers() {
			if s := peer.Session(); s.Room() > 0 {
				s.Send([]byte("a coin is at 3, 4"))
			}
		}
	})
	network.Every(1, time.Second, func() { e.update(server.Server) })
	network.At(10*time.Second, func() { bots[0].Session().Shutdown(time.Second) })
	network.Run(20 * time.Second)
}

var errScrape = errors.New("no metrics")

// scrape prints what is at url, without the help.
func scrape(url string, out io.Writer) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", errScrape, answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "#") {
			fmt.Fprintln(out, lines.Text())
		}
	}
	return lines.Err()
}
