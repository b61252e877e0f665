// Package endpoint puts sessions on an open port. It proves that a client is at the
// address that it sends from, agrees on keys with it, and admits it or refuses it with a
// reason. It keeps the table of peers, follows those whose address changes, and tells
// clients when the server has forgotten their session. It opens no socket and starts no
// goroutine: addresses and bytes go in, addresses and bytes come out, and there is one
// clock. So it runs in a test in virtual time, in a browser, and over whatever else
// carries datagrams.
//
// A [Server] does all of this on one side, a [Client] on the other. A [Gate] is the
// server's half of the handshake alone, for a server with a table of its own; such a
// server has a [Path] for each peer, to follow its address. None of them is safe for
// concurrent use.
//
// # What it promises
//
// With [ClientConfig].ServerKey set, the client knows before a byte of the game is sent
// that it talks to the holder of that key, and its hello is sealed to that key. The
// server knows that the client receives what is sent to its address. Who the client is,
// it knows only as far as the hello proves it to Admit. Each session has fresh keys: once
// both sides have forgotten them, nobody can compute them again, not even with the
// server's key.
//
//   - An eavesdropper learns sizes, times and headers of datagrams, and no more.
//   - Whoever can send from any address, but sees nothing, cannot make a peer, end one
//     or move one, and draws no more bytes from the server than it sent.
//   - Whoever can do both, whose copies always arrive before the originals, and who
//     relays a Probe and its reply, receives a peer's datagrams for as long as that
//     lasts.
//   - Memory and work are bounded.
//
// The file SECURITY.md of the module says against whom each of this holds, what does not
// hold, and which test shows it.
//
// # The handshake
//
//	client                                            server
//	  Hello (no cookie), 640 bytes          ->
//	                                        <-        Challenge: its key, a cookie; nothing is kept
//	  Hello (cookie, sealed hello)          ->
//	                                        <-        Accept: the terms, sealed; or Refuse: a reason, sealed
//	  datagrams of the session              <->       datagrams of the session
//
// The client sends a Hello every 250 ms, until it is admitted or refused, or its Timeout
// has passed. It also answers each new cookie with a Hello at once. As any Challenge may
// be forged, it keeps the last 32 cookies and shows them in turn; it answers at once 128
// a second and 32 together at most, and each of them once in 250 ms. It ignores a
// Challenge that does not echo its key. A Challenge with another server key or another
// version than the client's ends nothing; it only becomes the error at Timeout, if no
// better Challenge came.
//
// The server remembers a client once it has proved its address, under the client's key.
// To the same Hello it then gives the same answer:
//
//   - of a client that was refused, the same Refuse;
//   - of one that was admitted, the same Accept, until a datagram of the session has
//     opened;
//   - while the session lives after that, and after it has ended, nothing.
//
// Between two answers to one client are at least 100 ms, and while one waits for Due the
// client's Hellos are dropped unread. A client is forgotten 20 s after its last Hello or
// the end of its session, whichever is later. No cookie is good for longer, and a client
// that was refused, plays or has played gets no new cookie that outlives this memory, so
// a copy of a Hello never makes a second peer. A client that comes back, after a crash
// for example, has a new key and is a new peer.
//
// # On the wire
//
// All numbers are little-endian. Every message begins with the format byte, 0x0E, and a
// kind. The same port carries sealed sessions, whose formats are 0x0C and 0x0D.
//
//	Hello, 1 (client; 640 to 1200 bytes, 640 as sent here)
//	  0     format, 0x0E
//	  1     kind
//	  2     version, 1
//	  3     form of the session: 0 narrow, 1 wide
//	  4     the client's ephemeral X25519 key, 32
//	  36    the cookie, 32; zeros: none
//	  68    without a cookie zeros; else a box: length u16 of the application's hello, hello
//	        (0 to 512), zeros; 16 of it are the tag; bytes 0 to 67 are its additional data
//
//	Challenge, 2 (server; 99 bytes)
//	  0     format
//	  1     kind
//	  2     the server's version
//	  3     the client's key, as it came, 32
//	  35    the server's static X25519 key, 32
//	  67    the cookie, 32
//
//	Accept, 3 (server; 76 to 588 bytes)
//	  0     format
//	  1     kind
//	  2     the server's ephemeral X25519 key, 32
//	  34    a box: token u64, reset code (16), length u16 of the reply, reply (0 to 512); bytes 0
//	        to 33 are its additional data
//
//	Refuse, 4 (server; 34 to 290 bytes)
//	  0     format
//	  1     kind
//	  2     a random salt, 16
//	  18    a box: the reason, UTF-8 (0 to 256); bytes 0 to 17 are its additional data
//
//	Reset, 5 (server), Probe, 6 (server), ProbeReply, 7 (client; 26 bytes each)
//	  0     format
//	  1     kind
//	  2     token u64
//	  10    16 bytes: the reset code; random ones; the answer to them
//
// Whatever the version, bytes 0 to 35 of a Hello and bytes 0 to 34 of a Challenge have
// this layout, and a reader of another version reads no more of them. A server answers a
// Hello of another version with a Challenge of its own. A message with a wrong length is
// dropped, and so is one whose kind is not for its reader.
//
// # Keys
//
// A box is sealed with AES-256-GCM under a nonce of zeros; each box has a key of its own
// of 32 bytes. HKDF is HKDF-SHA-256. Its salt is empty unless the table names one. Its
// info is a label and a zero byte, the version and the form as one byte each, the
// client's ephemeral key C and the server's static key S, and then what the table adds. X
// is X25519; a shared secret of zeros is refused. E is the server's ephemeral key, H the
// SHA-256 of the application's hello alone, A the SHA-256 of the whole Accept.
//
//	key of             HKDF of                  info
//	Hello's box        X(C, S)                  "ackbits endpoint hello" … cookie
//	Refuse's box       X(C, S), salt: Refuse's  "ackbits endpoint refuse" …
//	Accept's box       X(C, S) then X(C, E)     "ackbits endpoint accept" … E H
//	client to server   X(C, S) then X(C, E)     "ackbits endpoint client to server" … E H A
//	server to client   X(C, S) then X(C, E)     "ackbits endpoint server to client" … E H A
//	replies to probes  X(C, S) then X(C, E)     "ackbits endpoint probe" … E H A
//	reset codes        the private key of S     "ackbits endpoint reset" and a zero byte, nothing else
//
// A cookie is HMAC-SHA-256 under a secret that the server draws when it starts. What is
// authenticated is the client's address as 16 bytes (IPv4 as ::ffff:a.b.c.d), its port
// u16, C, the number u64 of the current slot of 10 s, counted from the server's start,
// and the address's zone if it has one. A cookie is good in its slot and in the next one.
// Only the server reads it.
//
// A reset code is the first 16 bytes of HMAC-SHA-256 of the token (8 bytes) under the key
// of reset codes. The answer in a ProbeReply is the first 16 bytes of HMAC-SHA-256 of the
// Probe's 16 bytes under the key of replies to probes. The keys of the two directions go
// into ackbits.Config.Seal and Open.
//
// # Bounds
//
// Of a stranger, who has not proved an address, the server keeps nothing but an answer
// that waits for Due, at most 256 of them. An answer costs two HMACs; a Reset costs one,
// and there are at most 1,000 of these a second, 200 for each IPv4 /24 or IPv6 /64.
//
// A client that has proved an address costs the X25519 of a join and a call of Admit.
// There are at most 1,000 of these a second in all, 256 at once. Within 20 s each IPv4
// address or IPv6 /64 may have MaxPerAddress clients, and as many attempts that fail.
//
// The server remembers four clients for each of MaxPeers, at least 4,096 in all, and a
// quarter of them at most for one IPv6 /48. When this memory is full, nobody new is
// admitted and nobody is forgotten early. A client that is held back by one of these
// limits gets no answer and asks again. Peers that have joined are not affected.
//
// A client computes X25519 for at most 1,000 answers a second, 250 at once.
package endpoint
