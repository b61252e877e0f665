// Live is the peer that other implementations of the protocol are tried against,
// over UDP on 127.0.0.1 and a link that loses, doubles and reorders datagrams.
//
//	go run ./interop/live [flags] command [argument …]
//	go run ./interop/live [flags]
//
// It starts the command with a port as a further, last argument, and ends with 0
// if both sides have got all that they should in time. Without a command it prints
// the port and waits for a peer that somebody else starts.
//
// The command sends to that port from any port of its own. The session has the
// token 0x1122334455667788, is narrow or wide, bare or sealed (AES-128-GCM: the
// command seals with the key 10 11 … 1F and opens with 00 01 … 0F). Each side
//
//   - sends events 0 to 9,999 (or as many as -events says): event i is i as a u32,
//     little-endian, and i mod 64 bytes after it, each i mod 256;
//   - sends every 15 ms or so a datagram of state, whose payload begins with a
//     counter as a u32, little-endian, that grows: Input (3) from the command,
//     Snapshot (4) from here;
//   - checks that it gets each event once, with its bytes, and that the counters of
//     the datagrams that are latest of their type grow.
//
// When this side has got everything, and all that it sent is acknowledged, the link
// becomes a good one; half a second later it leaves. The command must then see
// peer-left, have got everything, have nothing in flight, and end with 0.
//
// With -join the command does not know token and keys but joins a server of package
// endpoint (chapter 13) whose private key is 00 01 … 1F: first with the hello "nobody",
// which is refused with the reason "not you", then with "somebody", of which the server
// thinks until it is asked again, and replies "welcome". Half-way it moves to another
// port of its own, once.
//
// The events of the command are delivered here in order, so that it must keep to
// the send window of 256 ids, and no datagram of it may be refused.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("live: ")
	var o options
	flag.BoolVar(&o.sealed, "sealed", false, "seal the session with the two fixed keys")
	flag.BoolVar(&o.join, "join", false, "be a server that the command joins")
	flag.BoolVar(&o.wide, "wide", false, "the wide header")
	flag.BoolVar(&o.bundle, "bundle", true, "let this side's state carry events")
	flag.BoolVar(&o.adaptive, "adaptive", false, "send copies by the evidence of losses")
	flag.IntVar(&o.events, "events", 10000, "how many events each side sends")
	flag.Uint64Var(&o.seed, "seed", 1, "of what the link does")
	flag.Float64Var(&o.loss, "loss", 0.1, "part of the datagrams that is lost, each way")
	flag.Float64Var(&o.double, "double", 0.05, "part that comes twice")
	flag.DurationVar(&o.delay, "delay", 5*time.Millisecond, "least delay, each way")
	flag.DurationVar(&o.jitter, "jitter", 15*time.Millisecond, "what may be added to it, which reorders")
	flag.IntVar(&o.port, "port", 0, "the port on 127.0.0.1; 0 for any")
	limit := flag.Duration("limit", 30*time.Second, "everything must be done by then")
	flag.Parse()

	if err := run(o, *limit, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(o options, limit time.Duration, command []string) error {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(o.port))))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadBuffer(1 << 20); err != nil {
		return err
	}
	port := strconv.Itoa(conn.LocalAddr().(*net.UDPAddr).Port)
	deadline := time.Now().Add(limit)
	p, err := newPeer(o, conn)
	if err != nil {
		return err
	}
	if len(command) == 0 {
		fmt.Println(port)
		return p.play(deadline)
	}

	other := exec.Command(command[0], append(command[1:], port)...)
	other.Stdout, other.Stderr = os.Stdout, os.Stderr
	if err := other.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- other.Wait() }()
	played := p.play(deadline)
	select {
	case err = <-ended:
	case <-time.After(max(time.Until(deadline), time.Second)):
		err = errors.Join(errors.New("did not end in time"), other.Process.Kill())
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", command[0], err)
	}
	return errors.Join(played, err)
}
