package main

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// README: begin guide-exporter

// exporter shows what a server does as a prometheus.Collector. The game's goroutine
// updates it; a scrape, in a goroutine of the web server's, reads a copy.
type exporter struct {
	ended ackbits.Stats // of sessions that are over: a counter must not fall when one ends

	mu          sync.Mutex // of what follows
	live, total ackbits.Stats
	door        endpoint.Stats
}

// left keeps the counters of a session that has ended.
func (e *exporter) left(s *ackbits.Session) { e.ended.Add(s.Stats()) }

// update is called by the game, once a second: it looks at every session.
func (e *exporter) update(server *endpoint.Server) {
	var live ackbits.Stats
	for peer := range server.Peers() {
		live.Add(peer.Session().Stats())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.live, e.total, e.door = live, e.ended, server.Stats()
	e.total.Add(live)
}

// README: end guide-exporter

// metric is one line of a scrape.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*exporter) float64
}

func counter(name, help string, value func(*exporter) uint64) metric {
	desc := prometheus.NewDesc("game_"+name, help, nil, nil)
	return metric{desc, prometheus.CounterValue, func(e *exporter) float64 { return float64(value(e)) }}
}

func gauge(name, help string, value func(*exporter) float64) metric {
	return metric{prometheus.NewDesc("game_"+name, help, nil, nil), prometheus.GaugeValue, value}
}

// README: begin guide-metrics
var metrics = []metric{
	gauge("players", "Sessions.", func(e *exporter) float64 { return float64(e.door.Peers) }),
	gauge("rtt_worst_seconds", "The longest smoothed round trip.", func(e *exporter) float64 { return e.live.RTT.Seconds() }),
	counter("datagrams_delivered_total", "Datagrams that arrived.", func(e *exporter) uint64 { return e.total.Delivered }),
	counter("datagrams_lost_total", "Datagrams presumed lost.", func(e *exporter) uint64 { return e.total.Lost }),
	counter("bytes_sent_total", "Bytes of datagrams.", func(e *exporter) uint64 { return e.total.BytesSent }),
	counter("events_sent_total", "Events, first copies.", func(e *exporter) uint64 { return e.total.EventsSent }),
	counter("events_resent_total", "Further copies of events.", func(e *exporter) uint64 { return e.total.EventsResent }),
	counter("acks_outrun_total", "Datagrams received and never acknowledged: flush more often.", func(e *exporter) uint64 { return e.total.AcksOutrun }),
	counter("forged_total", "Datagrams of sessions that did not open.", func(e *exporter) uint64 { return e.total.Forged }),
	counter("joins_total", "Clients admitted.", func(e *exporter) uint64 { return e.door.Joins }),
	counter("foreign_total", "Datagrams of strangers.", func(e *exporter) uint64 { return e.door.Foreign }),
}

// README: end guide-metrics

// Describe is of prometheus.Collector.
func (e *exporter) Describe(out chan<- *prometheus.Desc) {
	for _, m := range metrics {
		out <- m.desc
	}
}

// Collect is of prometheus.Collector.
func (e *exporter) Collect(out chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range metrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(e))
	}
}
