// Package sim plays two ackbits sessions over simnet in virtual time and keeps
// what happened, for a page to show. It is the same code on a command line and
// in a browser, and the same Settings give the same run on both.
package sim

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Field names one number of the Settings.
type Field int

// The fields, by group: what the link does, in both directions alike; what the
// two peers send; and the options of their sessions.
const (
	Loss Field = iota
	RTT
	Jitter
	BurstLength
	BurstEvery
	Reorder
	ReorderBy
	Duplicate
	OutageLength
	OutageEvery
	Rate
	Queue

	ClientTicks
	ServerTicks
	ClientState
	ServerState
	ClientEvents
	ServerEvents
	EventSize

	Adaptive
	Bundle
	Ordered
	Wide
	Sealed
	EventRate

	fieldCount
)

// Group says what a field is about.
type Group string

// Fields of GroupLink and GroupLoad may change while a run goes on; those of
// GroupOptions hold for the whole of it.
const (
	GroupLink    Group = "link"
	GroupLoad    Group = "load"
	GroupOptions Group = "options"
)

// FieldInfo describes a field for those who show or read it.
type FieldInfo struct {
	Key, Label, Unit, Help string
	Group                  Group
	Scale                  int // the value is in units divided by this
	Min, Max, Default      int
	Switch                 bool // 0 is off and 1 is on
}

// percent is the scale of probabilities: a value of 100 is 1 %.
const percent = 100

// Infos describes each Field.
var Infos = [fieldCount]FieldInfo{
	Loss:         {"loss", "Loss", "%", "Datagrams lost by chance, each for itself.", GroupLink, percent, 0, 90 * percent, 0, false},
	RTT:          {"rtt", "Round trip", "ms", "There and back; each direction takes half.", GroupLink, 1, 0, 1000, 60, false},
	Jitter:       {"jitter", "Jitter", "ms", "How much later than that a datagram may come; so they overtake one another.", GroupLink, 1, 0, 300, 0, false},
	BurstLength:  {"burst", "Burst length", "ms", "Losses that come together: three of four datagrams, for so long on average. 0 is off.", GroupLink, 1, 0, 1000, 0, false},
	BurstEvery:   {"every", "Time between bursts", "ms", "The good time between two bursts, on average.", GroupLink, 1, 50, 10_000, 1120, false},
	Reorder:      {"reorder", "Held back", "%", "Datagrams that are held back, so that later ones overtake them.", GroupLink, percent, 0, 100 * percent, 0, false},
	ReorderBy:    {"by", "Held back by", "ms", "For how long.", GroupLink, 1, 1, 500, 40, false},
	Duplicate:    {"dup", "Duplicated", "%", "Datagrams that arrive twice.", GroupLink, percent, 0, 100 * percent, 0, false},
	OutageLength: {"outage", "Outage", "ms", "Everything is lost for so long. 0 is off.", GroupLink, 1, 0, 10_000, 0, false},
	OutageEvery:  {"outages", "Outage every", "ms", "From the beginning of one outage to the next.", GroupLink, 1, 500, 60_000, 5000, false},
	Rate:         {"rate", "Rate", "kbit/s", "What the link carries, IP and UDP headers included. 0 is without limit.", GroupLink, 1, 0, 100_000, 0, false},
	Queue:        {"queue", "Queue", "KiB", "What may wait for its turn when there is a rate; the rest is dropped.", GroupLink, 1, 1, 1024, 16, false},

	ClientTicks:  {"client", "Client sends", "Hz", "Inputs a second.", GroupLoad, 1, 1, 250, 60, false},
	ServerTicks:  {"server", "Server sends", "Hz", "Snapshots a second.", GroupLoad, 1, 1, 250, 20, false},
	ClientState:  {"input", "Input size", "bytes", "The payload of an input.", GroupLoad, 1, 0, 1100, 24, false},
	ServerState:  {"snapshot", "Snapshot size", "bytes", "The payload of a snapshot.", GroupLoad, 1, 0, 1100, 100, false},
	ClientEvents: {"cevents", "Client's events", "a second", "Sent on the client's ticks.", GroupLoad, 1, 0, 1000, 10, false},
	ServerEvents: {"sevents", "Server's events", "a second", "Sent on the server's ticks.", GroupLoad, 1, 0, 1000, 10, false},
	EventSize:    {"size", "Event size", "bytes", "The same for all.", GroupLoad, 1, 0, 1100, 32, false},

	Adaptive:  {"adaptive", "Adaptive", "", "Send events again on evidence rather than after 100 ms, and copies ahead where the link is seen to lose.", GroupOptions, 1, 0, 1, 1, true},
	Bundle:    {"bundle", "Bundle", "", "Events ride in inputs and snapshots instead of datagrams of their own.", GroupOptions, 1, 0, 1, 1, true},
	Ordered:   {"ordered", "Ordered", "", "Deliver events in the order in which they were sent.", GroupOptions, 1, 0, 1, 0, true},
	Wide:      {"wide", "Wide", "", "65 acknowledgements in each header instead of 33.", GroupOptions, 1, 0, 1, 0, true},
	Sealed:    {"sealed", "Sealed", "", "Encrypt and authenticate every datagram with AES-128-GCM.", GroupOptions, 1, 0, 1, 0, true},
	EventRate: {"eventrate", "Event rate", "bytes/s", "What copies of events may use, beyond the first of each. 0 is without limit.", GroupOptions, 1, 0, 1_000_000, 0, false},
}

// Values holds a number for each Field.
type Values [fieldCount]int

// Settings says all that a run depends on.
type Settings struct {
	Seed   uint64
	Values Values
	Script []Action // what happens on the way, in the order of time

	// With Compare there is a second run that differs in its options only.
	Compare bool
	Versus  Values // only those of GroupOptions are used

	// Moment is where a reader is to look first: the virtual time at which a
	// page stops. It changes nothing in the run.
	Moment time.Duration
}

// Action is something that happens at a certain time of the run: either a Field
// of the link or the load gets another value, or one of Verbs.
type Action struct {
	At    time.Duration // whole microseconds
	Verb  string        // a field's key, or one of Verbs
	Value int
}

// Verb describes an Action that is not the change of a field.
type Verb struct {
	Key, Label string
	Min, Max   int
}

// The verbs.
const (
	VerbBurst = "shout" // the client sends so many events at once
	VerbCut   = "cut"   // everything is lost for so many milliseconds
	VerbLeave = "leave" // Close: 0 the client, 1 the server
)

// Verbs describes them.
var Verbs = []Verb{
	{VerbBurst, "Events at once", 1, 2000},
	{VerbCut, "Cut, ms", 1, 10_000},
	{VerbLeave, "Leave", 0, 1},
}

// Preset is a named link.
type Preset struct {
	Key, Label, About string
	Link              map[Field]int // the other fields of GroupLink are at their defaults
}

// Presets are the links worth seeing first.
var Presets = []Preset{
	{"clean", "Clean", "60 ms there and back, nothing lost.", nil},
	{"cafe", "Café Wi-Fi", "Losses in bursts, jitter, now and then a datagram twice.",
		map[Field]int{Loss: percent, RTT: 45, Jitter: 25, BurstLength: 60, BurstEvery: 2500, Reorder: percent, ReorderBy: 30, Duplicate: percent / 2}},
	{"loss5", "5 % loss", "Each datagram is lost with the same chance.", map[Field]int{Loss: 5 * percent}},
	{"bursts", "Bursts", "5 % lost as well, but together.", map[Field]int{BurstLength: 80, BurstEvery: 1120}},
	{"outage", "Outage", "Nothing gets through for 800 ms, every 4 s.", map[Field]int{OutageLength: 800, OutageEvery: 4000}},
	{"narrow", "Narrow link", "90 kbit/s with a second of queue, 1 % lost.", map[Field]int{Rate: 90, Queue: 11, Loss: percent}},
}

// Default returns what an empty address stands for.
func Default() Settings {
	s := Settings{Seed: 1}
	for f := range s.Values {
		s.Values[f] = Infos[f].Default
	}
	s.Versus = s.Values
	return s
}

// UsePreset gives the link the values of a preset.
func (v *Values) UsePreset(p Preset) {
	for f := range fieldCount {
		if Infos[f].Group != GroupLink {
			continue
		}
		v[f] = Infos[f].Default
		if value, ok := p.Link[f]; ok {
			v[f] = value
		}
	}
}

// Second returns the settings of the second run of a comparison.
func (s Settings) Second() Settings {
	for f := range fieldCount {
		if Infos[f].Group == GroupOptions {
			s.Values[f] = s.Versus[f]
		}
	}
	return s
}

// maxScript bounds what an address may ask for.
const maxScript = 500

// maxTime bounds Moment and the times of actions: what a page would have to play
// before it shows anything.
const maxTime = time.Hour

// Parse reads settings from an address's fragment, without the #: pairs like
// loss=2.5 joined by &. What is not said is at its default, and of what is said
// twice the later counts, but for do, which adds. An error says what was wrong.
func Parse(fragment string) (Settings, error) {
	s := Default()
	if fragment == "" {
		return s, nil
	}
	versus := ""
	for pair := range strings.SplitSeq(fragment, "&") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return Default(), fmt.Errorf("%q has no value", pair)
		}
		if err := s.set(key, value, &versus); err != nil {
			return Default(), err
		}
	}
	s.Versus = s.Values
	if s.Compare {
		if err := s.parseVersus(versus); err != nil {
			return Default(), err
		}
	}
	return s, nil
}

// set reads one pair of an address.
func (s *Settings) set(key, value string, versus *string) (err error) {
	switch key {
	case "seed":
		if s.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return fmt.Errorf("seed: %q is not a whole number", value)
		}
		return nil
	case "link":
		for _, p := range Presets {
			if p.Key == value {
				s.Values.UsePreset(p)
				return nil
			}
		}
		return fmt.Errorf("link: there is no preset %q", value)
	case "vs":
		s.Compare, *versus = value != "off", value
		return nil
	case "do":
		if value == "none" {
			s.Script = nil
			return nil
		}
		return s.parseScript(value)
	case "t":
		s.Moment, err = parseTime(value)
		return err
	}
	f, ok := byKey(key)
	if !ok {
		return fmt.Errorf("there is no setting %q", key)
	}
	s.Values[f], err = Infos[f].parse(value)
	return err
}

// parseVersus reads the options of the second run: those that are on.
func (s *Settings) parseVersus(text string) error {
	for f := range fieldCount {
		if Infos[f].Group == GroupOptions {
			s.Versus[f] = 0
		}
	}
	if text == "none" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "-")
		if !ok {
			value = "1"
		}
		f, ok := byKey(key)
		if !ok || Infos[f].Group != GroupOptions {
			return fmt.Errorf("vs: there is no option %q", key)
		}
		n, err := Infos[f].parse(value)
		if err != nil {
			return fmt.Errorf("vs: %w", err)
		}
		s.Versus[f] = n
	}
	return nil
}

// parseScript reads actions like 1.5:loss-20,3:shout-50.
func (s *Settings) parseScript(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		at, what, _ := strings.Cut(part, ":")
		verb, value, ok := strings.Cut(what, "-")
		if !ok {
			return fmt.Errorf("do: %q is not of the form time:what-value", part)
		}
		a := Action{Verb: verb}
		var err error
		if a.At, err = parseTime(at); err != nil {
			return fmt.Errorf("do: %w", err)
		}
		if f, ok := byKey(verb); ok {
			a.Value, err = Infos[f].parse(value)
		} else if a.Value, err = strconv.Atoi(value); err != nil {
			err = fmt.Errorf("%s: %q is not a whole number", verb, value)
		}
		if err == nil {
			err = a.check()
		}
		if err != nil {
			return fmt.Errorf("do: %w", err)
		}
		if n := len(s.Script); n > 0 && a.At < s.Script[n-1].At {
			return fmt.Errorf("do: %q comes after something later", part)
		}
		if s.Script = append(s.Script, a); len(s.Script) > maxScript {
			return fmt.Errorf("do: more than %d actions", maxScript)
		}
	}
	return nil
}

// check says what is wrong with an action, apart from its time.
func (a Action) check() error {
	if f, ok := byKey(a.Verb); ok {
		if Infos[f].Group == GroupOptions {
			return fmt.Errorf("%s cannot change on the way", a.Verb)
		}
		return Infos[f].check(a.Value)
	}
	for _, v := range Verbs {
		if v.Key == a.Verb {
			if a.Value < v.Min || a.Value > v.Max {
				return fmt.Errorf("%s: %d is not from %d to %d", v.Key, a.Value, v.Min, v.Max)
			}
			return nil
		}
	}
	return fmt.Errorf("there is nothing called %q to do", a.Verb)
}

func byKey(key string) (Field, bool) {
	for f := range fieldCount {
		if Infos[f].Key == key {
			return f, true
		}
	}
	return 0, false
}

// parse reads a value in the field's unit.
func (i FieldInfo) parse(text string) (int, error) {
	n, err := parseFixed(text, int64(i.Scale))
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a number of this kind", i.Key, text)
	}
	n = min(n, math.MaxInt32) // too much for every field
	return int(n), i.check(int(n))
}

func (i FieldInfo) check(n int) error {
	if n < i.Min || n > i.Max {
		return fmt.Errorf("%s: %s is not from %s to %s", i.Key, i.format(n), i.format(i.Min), i.format(i.Max))
	}
	return nil
}

// format writes a value in the field's unit.
func (i FieldInfo) format(n int) string { return formatFixed(int64(n), int64(i.Scale)) }

var errNumber = errors.New("not a number")

// parseFixed reads a decimal number, not negative, in units of 1/scale, a power
// of ten: no floating point, so that every machine reads the same.
func parseFixed(text string, scale int64) (value int64, err error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole, 10, 31)
	if err != nil {
		return 0, errNumber
	}
	value = int64(n) * scale
	for unit := scale; fraction != ""; fraction = fraction[1:] {
		unit /= 10
		d := fraction[0]
		if unit == 0 || d < '0' || d > '9' {
			return 0, errNumber
		}
		value += unit * int64(d-'0')
	}
	return value, nil
}

func formatFixed(n, scale int64) string {
	s := strconv.FormatInt(n/scale, 10)
	if rest := n % scale; rest != 0 {
		digits := strconv.FormatInt(scale+rest, 10)[1:]
		s += "." + strings.TrimRight(digits, "0")
	}
	return s
}

const second = int64(time.Second / time.Microsecond)

func parseTime(text string) (time.Duration, error) {
	n, err := parseFixed(text, second)
	t := time.Duration(n) * time.Microsecond
	if err != nil || t > maxTime {
		return 0, fmt.Errorf("%q is not a time in seconds, up to %d", text, maxTime/time.Second)
	}
	return t, nil
}

func formatTime(t time.Duration) string { return formatFixed(int64(t/time.Microsecond), second) }

// String writes the settings as Parse reads them, without what is at its default.
func (s Settings) String() string {
	parts := []string{"seed=" + strconv.FormatUint(s.Seed, 10)}
	for f, info := range Infos {
		if s.Values[f] != info.Default {
			parts = append(parts, info.Key+"="+info.format(s.Values[f]))
		}
	}
	if s.Compare {
		var on []string
		for f, info := range Infos {
			if value := s.Versus[f]; info.Group == GroupOptions && value != 0 {
				if info.Switch {
					on = append(on, info.Key)
				} else {
					on = append(on, info.Key+"-"+info.format(value))
				}
			}
		}
		if on == nil {
			on = []string{"none"}
		}
		parts = append(parts, "vs="+strings.Join(on, ","))
	}
	if len(s.Script) > 0 {
		var actions []string
		for _, a := range s.Script {
			value := strconv.Itoa(a.Value)
			if f, ok := byKey(a.Verb); ok {
				value = Infos[f].format(a.Value)
			}
			actions = append(actions, formatTime(a.At)+":"+a.Verb+"-"+value)
		}
		parts = append(parts, "do="+strings.Join(actions, ","))
	}
	if s.Moment > 0 {
		parts = append(parts, "t="+formatTime(s.Moment))
	}
	return strings.Join(parts, "&")
}
