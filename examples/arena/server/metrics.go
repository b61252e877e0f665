package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ErrNotLoopback: metrics and profiles are for this machine only.
var ErrNotLoopback = errors.New("arena: not a loopback address")

// ServeHTTP serves /metrics and /debug/pprof at a loopback address until stop is
// called.
func (s *Server) ServeHTTP(addr string) (stop func(), err error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	if !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("%w: %s", ErrNotLoopback, addr)
	}
	listener, err := net.ListenTCP("tcp", tcp)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go web.Serve(listener) // returns when stop closes it
	s.log.Info("metrics", "url", fmt.Sprintf("http://%s/metrics", listener.Addr()))
	return func() { web.Close() }, nil
}

// collector computes the metrics when they are asked for.
type collector struct{ server *Server }

// metric is one of them; kind is a counter unless it is of a moment.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(c *Counters, sum *Sum) float64
}

func counter(name, help string, value func(*Counters, *Sum) float64) metric {
	return metric{prometheus.NewDesc("arena_"+name, help, nil, nil), prometheus.CounterValue, value}
}

func gauge(name, help string, value func(*Counters, *Sum) float64) metric {
	return metric{prometheus.NewDesc("arena_"+name, help, nil, nil), prometheus.GaugeValue, value}
}

var metrics = []metric{
	gauge("players", "Sessions that live.", func(_ *Counters, s *Sum) float64 { return float64(s.Players) }),
	gauge("events_in_flight", "Events that no client has acknowledged yet.", func(_ *Counters, s *Sum) float64 { return float64(s.InFlight) }),
	gauge("rtt_median_seconds", "Smoothed round trip time, median over the players.", func(_ *Counters, s *Sum) float64 { return s.RTTs.Quantile(0.5).Seconds() }),
	gauge("rtt_p99_seconds", "Smoothed round trip time, 99th percentile over the players.", func(_ *Counters, s *Sum) float64 { return s.RTTs.Quantile(0.99).Seconds() }),

	counter("datagrams_received_total", "Datagrams read from the socket, hostile ones included.", func(c *Counters, _ *Sum) float64 { return float64(c.DatagramsIn.Load()) }),
	counter("datagrams_sent_total", "Datagrams written to the socket.", func(c *Counters, _ *Sum) float64 { return float64(c.DatagramsOut.Load()) }),
	counter("bytes_received_total", "Bytes read from the socket.", func(c *Counters, _ *Sum) float64 { return float64(c.BytesIn.Load()) }),
	counter("bytes_sent_total", "Bytes written to the socket.", func(c *Counters, _ *Sum) float64 { return float64(c.BytesOut.Load()) }),
	counter("unsent_total", "Batches that the kernel refused in part.", func(c *Counters, _ *Sum) float64 { return float64(c.Unsent.Load()) }),
	counter("foreign_total", "Datagrams dropped because they belong to no session.", func(c *Counters, _ *Sum) float64 { return float64(c.Foreign.Load()) }),
	counter("malformed_total", "Datagrams of a session that it refused.", func(c *Counters, _ *Sum) float64 { return float64(c.Malformed.Load()) }),
	counter("connects_total", "Connects received.", func(c *Counters, _ *Sum) float64 { return float64(c.Connects.Load()) }),
	counter("sessions_granted_total", "Sessions begun.", func(c *Counters, _ *Sum) float64 { return float64(c.Granted.Load()) }),
	counter("sessions_refused_total", "Connects refused although their cookie was right.", func(c *Counters, _ *Sum) float64 { return float64(c.Refused.Load()) }),
	counter("sessions_ended_total", "Sessions ended.", func(c *Counters, _ *Sum) float64 { return float64(c.Ended.Load()) }),
	counter("ticks_total", "Ticks of all shards.", func(c *Counters, _ *Sum) float64 { return float64(c.Ticks.Load()) }),
	counter("tick_seconds_total", "Time spent in ticks.", func(c *Counters, _ *Sum) float64 { return time.Duration(c.TickNanos.Load()).Seconds() }),
	counter("late_ticks_total", "Ticks that took longer than a sixtieth of a second.", func(c *Counters, _ *Sum) float64 { return float64(c.LateTicks.Load()) }),

	counter("session_datagrams_delivered_total", "Datagrams to players that were acknowledged.", func(_ *Counters, s *Sum) float64 { return float64(s.Sessions.Delivered) }),
	counter("session_datagrams_lost_total", "Datagrams to players that were presumed lost.", func(_ *Counters, s *Sum) float64 { return float64(s.Sessions.Lost) }),
	counter("session_acks_outrun_total", "Datagrams of players that left the acknowledgement window unnamed.", func(_ *Counters, s *Sum) float64 { return float64(s.Sessions.AcksOutrun) }),
	counter("events_sent_total", "Events sent, first copies.", func(_ *Counters, s *Sum) float64 { return float64(s.Sessions.EventsSent) }),
	counter("events_resent_total", "Further copies of events.", func(_ *Counters, s *Sum) float64 { return float64(s.Sessions.EventsResent) }),
	counter("events_delivered_total", "Events acknowledged.", func(_ *Counters, s *Sum) float64 { return float64(s.Sessions.EventsDelivered) }),
	counter("events_received_total", "Events of players handed over.", func(_ *Counters, s *Sum) float64 { return float64(s.Sessions.EventsReceived) }),
}

// Describe is of prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range metrics {
		out <- m.desc
	}
}

// Collect is of prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	sum := c.server.Sum()
	for _, m := range metrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&c.server.counters, &sum))
	}
}
