package main

import (
	"errors"
	"os"
	"time"

	"github.com/ackbits/ackbits/transfer"
)

// store is where a file goes: path.part until it is complete, and path.have says what
// of it is there, for another run.
type store struct {
	path  string
	file  *os.File
	saved time.Time
	err   error // why the file could not be opened
}

// saveEvery is how much may have to be sent again after a crash. More often costs the
// disk more: what is said to be there must be there.
const saveEvery = 2 * time.Second

// open is the Accept of the transfers.
func (s *store) open(transfer.Offer) (sink transfer.Sink, err error) {
	if s.file != nil {
		return nil, errors.New("one file is enough")
	}
	s.saved = time.Now()
	if s.file, err = os.OpenFile(s.path+".part", os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		s.err = err                                         // for us
		return nil, errors.New("the file cannot be stored") // for the peer, who has no use for paths
	}
	return s.file, nil
}

// have is the Resume of the transfers, which find out whether it is of this file.
func (s *store) have(transfer.Offer) []byte {
	saved, _ := os.ReadFile(s.path + ".have") // nil if there is none
	return saved
}

// saveNow and then saves what is there.
func (s *store) saveNowAndThen(in *transfer.Incoming) error {
	if time.Since(s.saved) < saveEvery {
		return nil
	}
	return s.save(in)
}

// save notes what is there, once it is on the disk.
func (s *store) save(in *transfer.Incoming) error {
	s.saved = time.Now()
	if err := s.file.Sync(); err != nil {
		return err
	}
	if err := os.WriteFile(s.path+".have.new", in.Have(), 0o666); err != nil {
		return err
	}
	return os.Rename(s.path+".have.new", s.path+".have")
}

// finish gives a complete file its name.
func (s *store) finish() error {
	if err := s.file.Close(); err != nil {
		return err
	}
	s.file = nil
	if err := os.Rename(s.path+".part", s.path); err != nil {
		return err
	}
	return s.forget()
}

// discard throws away what turned out to be wrong.
func (s *store) discard() {
	_ = os.Remove(s.path + ".part")
	_ = s.forget()
}

func (s *store) forget() error {
	if err := os.Remove(s.path + ".have"); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (s *store) close() {
	if s.file != nil {
		s.file.Close()
	}
}
