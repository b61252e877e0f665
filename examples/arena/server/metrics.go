package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/ackbits/ackbits/endpoint"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ErrNotLoopback: metrics and profiles are for this machine only.
var ErrNotLoopback = errors.New("not a loopback address")

// ServeHTTP serves /metrics at a loopback address, and with profiles
// /debug/pprof/, until stop is called.
func (s *Server) ServeHTTP(addr string, profiles bool) (stop func(), err error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	if !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("metrics: %w: %s", ErrNotLoopback, addr)
	}
	listener, err := net.ListenTCP("tcp", tcp)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	if profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	web := &http.Server{Handler: loopbackOnly(mux), ReadHeaderTimeout: 5 * time.Second}
	go web.Serve(listener) // returns when stop closes it
	s.log.Info("metrics", "url", fmt.Sprintf("http://%s/metrics", listener.Addr()), "pprof", profiles)
	return func() { web.Close() }, nil
}

// loopbackOnly refuses a request whose Host is not this machine: a page in the
// operator's browser can have its own name resolve to 127.0.0.1, and would else
// read what we serve.
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this is served to the host localhost only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// collector computes the metrics when they are asked for.
type collector struct{ server *Server }

// metric is one of them; kind is a counter unless it is of a moment.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*figures) float64
}

// figures are what a scrape sees.
type figures struct {
	*Counters
	Sum
	gate endpoint.Stats
}

func counter(name, help string, value func(*figures) float64) metric {
	return metric{prometheus.NewDesc("arena_"+name, help, nil, nil), prometheus.CounterValue, value}
}

func gauge(name, help string, value func(*figures) float64) metric {
	return metric{prometheus.NewDesc("arena_"+name, help, nil, nil), prometheus.GaugeValue, value}
}

var metrics = []metric{
	gauge("players", "Active sessions.", func(f *figures) float64 { return float64(f.Players) }),
	gauge("loading", "Players of these who watch until they have the map.", func(f *figures) float64 { return float64(f.Loading) }),
	gauge("events_in_flight", "Events that no client has acknowledged yet.", func(f *figures) float64 { return float64(f.InFlight) }),
	gauge("rtt_median_seconds", "Smoothed round trip time, median over the players.", func(f *figures) float64 { return f.RTTs.Quantile(0.5).Seconds() }),
	gauge("rtt_p99_seconds", "Smoothed round trip time, 99th percentile over the players.", func(f *figures) float64 { return f.RTTs.Quantile(0.99).Seconds() }),

	counter("datagrams_received_total", "Datagrams read from the socket, hostile ones included.", func(f *figures) float64 { return float64(f.DatagramsIn.Load()) }),
	counter("datagrams_sent_total", "Datagrams written to the socket.", func(f *figures) float64 { return float64(f.DatagramsOut.Load()) }),
	counter("bytes_received_total", "Bytes read from the socket.", func(f *figures) float64 { return float64(f.BytesIn.Load()) }),
	counter("bytes_sent_total", "Bytes written to the socket.", func(f *figures) float64 { return float64(f.BytesOut.Load()) }),
	counter("unsent_total", "Datagrams that the kernel refused to send.", func(f *figures) float64 { return float64(f.Unsent.Load()) }),
	counter("foreign_total", "Datagrams dropped because they belong to no session and to no handshake.", func(f *figures) float64 { return float64(f.Foreign.Load()) }),
	counter("malformed_total", "Datagrams with the token of a session that did not open, came twice, or were refused.", func(f *figures) float64 { return float64(f.Malformed.Load()) }),
	counter("throttled_total", "Datagrams of sessions that sent too many.", func(f *figures) float64 { return float64(f.Throttled.Load()) }),
	counter("overrun_total", "Datagrams dropped because a shard could not keep up.", func(f *figures) float64 { return float64(f.Overrun.Load()) }),
	counter("moves_total", "Players who went on from another address.", func(f *figures) float64 { return float64(f.Moves.Load()) }),
	counter("kicked_total", "Players kicked: idle, without the map, or for too many events.", func(f *figures) float64 { return float64(f.Kicked.Load()) }),
	counter("events_merged_total", "Events of a room not sent to a player who was slow.", func(f *figures) float64 { return float64(f.Merged.Load()) }),

	counter("maps_total", "Maps that have arrived, and were found right.", func(f *figures) float64 { return float64(f.Maps.Load()) }),

	counter("hellos_total", "Hellos received.", func(f *figures) float64 { return float64(f.gate.Hellos) }),
	counter("challenges_total", "Challenges sent to clients whose address is not proved.", func(f *figures) float64 { return float64(f.gate.Challenges) }),
	counter("joins_total", "Sessions begun.", func(f *figures) float64 { return float64(f.gate.Joins) }),
	counter("refused_total", "Clients refused: full, too many of a network or address, or another version.", func(f *figures) float64 {
		g := &f.gate
		return float64(g.RefusedByAdmit + g.RefusedFull + g.RefusedByAddress + g.RefusedForm + g.RefusedLeaving)
	}),
	counter("held_total", "Hellos with a good cookie left unanswered, because of the join rate or the limits of memory.", func(f *figures) float64 {
		return float64(f.gate.HeldByRate + f.gate.HeldByAddress + f.gate.HeldByMemory)
	}),
	counter("resets_total", "Clients told that their session is not known.", func(f *figures) float64 { return float64(f.gate.Resets) }),
	counter("sessions_ended_total", "Sessions ended.", func(f *figures) float64 { return float64(f.Ended.Load()) }),
	counter("ticks_total", "Ticks of all shards.", func(f *figures) float64 { return float64(f.Ticks.Load()) }),
	counter("tick_seconds_total", "Time spent in ticks.", func(f *figures) float64 { return time.Duration(f.TickNanos.Load()).Seconds() }),
	counter("late_ticks_total", "Ticks that took longer than a sixtieth of a second.", func(f *figures) float64 { return float64(f.LateTicks.Load()) }),

	counter("session_datagrams_delivered_total", "Datagrams to players that were acknowledged.", func(f *figures) float64 { return float64(f.Sessions.Delivered) }),
	counter("session_datagrams_lost_total", "Datagrams to players that were presumed lost.", func(f *figures) float64 { return float64(f.Sessions.Lost) }),
	counter("session_acks_outrun_total", "Datagrams of players that fell out of the ack window before an ack was sent.", func(f *figures) float64 { return float64(f.Sessions.AcksOutrun) }),
	counter("events_sent_total", "Events sent, first copies.", func(f *figures) float64 { return float64(f.Sessions.EventsSent) }),
	counter("events_resent_total", "Further copies of events.", func(f *figures) float64 { return float64(f.Sessions.EventsResent) }),
	counter("events_delivered_total", "Events acknowledged.", func(f *figures) float64 { return float64(f.Sessions.EventsDelivered) }),
	counter("events_received_total", "Events of players delivered.", func(f *figures) float64 { return float64(f.Sessions.EventsReceived) }),
}

// Describe is of prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range metrics {
		out <- m.desc
	}
}

// Collect is of prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	f := figures{&c.server.counters, c.server.Sum(), c.server.door.stats()}
	for _, m := range metrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&f))
	}
}
