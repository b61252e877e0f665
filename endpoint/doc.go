// Package endpoint puts sessions on an open port: it proves that a client is where
// it says it is, agrees on keys, admits or refuses with a reason, keeps the table of
// peers, follows those whose address changes, and tells clients of a server that
// has forgotten them. It opens no socket and starts no goroutine: addresses
// and bytes in, addresses and bytes out, one clock. It runs in a test in virtual
// time and in a browser, behind whatever carries datagrams there.
//
// A [Server] is all of it, a [Client] the other side. A [Gate] is the server's half of
// the handshake alone, for a server with a table of its own; [Path] is what such
// a table needs for peers that move. None is safe for concurrent use.
//
// # What it promises
//
// With ClientConfig.ServerKey set, the client knows before a byte of the game flows
// that it talks to the holder of that key, and its hello is sealed to it. The server
// knows that the client receives what is sent to its address; who the client is, it
// knows as far as the hello proves it to Admit. Each session has fresh keys. Once both
// sides have forgotten them nobody finds them again, not even with the server's key.
//
//   - Who only sees the datagrams learns their sizes, times and headers, no more.
//   - Who can send with any address cannot make a peer, end one or move one, and draws
//     no more bytes from the server than it sent.
//   - Who can do both, wins each race with the datagrams, and relays a Probe and its
//     reply, has a peer's datagrams sent its way for as long as it wins.
//   - Memory and work are bounded.
//
// The file SECURITY.md of the module says against whom each of this holds, what does
// not, and which test shows it.
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
// The client sends its Hello every 250 ms until it is admitted or refused, or its
// Timeout has passed, and one with each cookie that it gets at once, as any of them may
// be forged: 128 a second and 32 together at most, and each once in 250 ms. It keeps
// the last 32. A Challenge that does not echo its key is ignored; one with another
// server key or version than it wants is remembered, and is the reason given at
// Timeout if no better one came.
//
// The server remembers a client that proved its address by its key. The same
// Hello again gets the same Accept, until a datagram of the session opened; the
// same Refuse; or nothing, while the session lives and after it has ended. An answer is
// said again after 100 ms at the earliest, and one of a client waits for Due; until then its Hellos
// are dropped unread. It is remembered for 20 s after the last of its Hellos and the end of its session, which is as
// long as a cookie can be good, and who was refused, plays or has played gets no new
// one that lives longer: a copy of a Hello makes no second peer. A client
// that knocks again, after a crash, say, has a new key and is a new peer.
//
// # On the wire
//
// All numbers are little-endian. Every message begins with the format byte, 0x0E,
// and a kind; beside it on the port are the sealed sessions, 0x0C and 0x0D.
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
// Of another version than its own a reader understands of a Hello bytes 0 to 35, of a
// Challenge bytes 0 to 34; these stay. A server answers a Hello of another version
// with its Challenge. A message of the right kind with the wrong length, and one of a kind
// that is not for its reader, are dropped.
//
// # Keys
//
// A box is AES-256-GCM with a nonce of zeros; each has a key of its own, 32
// bytes. HKDF is HKDF-SHA-256 with a salt of no bytes unless one is named, and info
// begins with a label and a zero byte, the version and the form as one byte each, the
// client's ephemeral key C and the server's static key S. X is X25519, and E the
// server's ephemeral key; a shared secret of zeros is refused. H is
// SHA-256 of the application's hello alone, A SHA-256 of the whole Accept.
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
// The cookie is HMAC-SHA-256, under a secret that a server draws when it starts, of the
// client's address as 16 bytes (IPv4 as ::ffff:a.b.c.d), its port u16, C,
// the number u64 of the slot of 10 s since the start, and the address's zone, if it has
// one. It is good in its slot and the next. Only the server reads it.
//
// A reset code is the first 16 bytes of HMAC-SHA-256 of the token (8 bytes) under the
// key of reset codes. A ProbeReply's answer is the first 16 bytes of HMAC-SHA-256 of the
// Probe's 16 under the key of replies to probes. The keys of the two directions go into
// ackbits.Config.Seal and Open.
//
// # Bounds
//
// For a stranger the server keeps nothing but an answer that waits for Due, one of 256,
// and does two HMACs, or one for a Reset, of which there are at most 1,000 a second, and
// 200 for each IPv4 /24 or IPv6 /64. Who has proved an address can have the X25519 of a join
// computed, and Admit asked, at most 1,000 times a second in all (256 at once), and for each IPv4 address or IPv6 /64 as often as it may have
// clients, MaxPerAddress within 20 s, and as many attempts that are turned away. Four clients for each of
// MaxPeers are remembered, at least 4,096 in all, a quarter of them for one IPv6 /48; when
// that is full nobody is admitted and nobody forgotten. What is held back is not answered: the client asks again.
// Joined peers are touched by none of this. A client computes X25519 for 1,000
// answers a second, 250 at once.
package endpoint
