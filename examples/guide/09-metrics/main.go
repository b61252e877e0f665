// Metrics is the ninth step of docs/guide.md: a server that Prometheus can watch. Twenty
// bots play in virtual time, then the program asks for its own metrics, as a scraper
// would, and prints what they tell.
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
	"strconv"
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
	values, err := scrape(url)
	if err != nil {
		return err
	}
	report(out, values)
	return nil
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
		line := simnet.Config{Delay: time.Duration(i) * time.Millisecond, Loss: 0.05}
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
	buf := make([]byte, ackbits.MaxDatagramSize)
	network.Every(20, time.Second, func() {
		for i, b := range bots {
			if s := b.Session(); s != nil {
				if datagram, _, err := s.AppendDatagram(buf[:0], ackbits.TypeInput, []byte("left")); err == nil {
					network.Send(simnet.Addr(i+1), simnet.Addr(0), datagram)
				}
			}
		}
	})
	network.Every(1, time.Second, func() { e.update(server.Server) })
	network.At(10*time.Second, func() { bots[0].Session().Shutdown(time.Second) })
	network.Run(20 * time.Second)
}

var errScrape = errors.New("no metrics")

// scrape asks for the metrics at url.
func scrape(url string) (values map[string]float64, err error) {
	answer, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s", errScrape, answer.Status)
	}
	values = make(map[string]float64)
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok && name != "#" { // else it is a comment
			if values[name], err = strconv.ParseFloat(value, 64); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return values, lines.Err()
}

// README: begin guide-report

// report prints what a dashboard would show.
func report(out io.Writer, v map[string]float64) {
	lost, delivered := v["game_datagrams_lost_total"], v["game_datagrams_delivered_total"]
	fmt.Fprintln(out, len(v), "metrics")
	fmt.Fprintln(out, v["game_players"], "players,", v["game_joins_total"], "have joined")
	fmt.Fprintf(out, "%.0f %% of the datagrams lost\n", 100*lost/(lost+delivered))
	fmt.Fprintf(out, "%.1f copies of an event\n", 1+v["game_events_resent_total"]/v["game_events_sent_total"])
	fmt.Fprintf(out, "%v received, never acknowledged\n", v["game_acks_outrun_total"])
}

// README: end guide-report
