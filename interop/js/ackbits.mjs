// The ackbits protocol, written from docs/protocol.md. The numbers P-… in the
// comments are that document's.
//
// The module does no input or output and reads no clock: the caller carries
// datagrams and passes the time to each call. So it runs wherever JavaScript
// does, browsers included.
//
// Times are integers of nanoseconds in plain numbers, which are exact up to
// 2^53 ns, 104 days; past that they round to 2 ns, which harms nothing. Numbers
// of datagrams and events count from 0 and never come near 2^53. Quotients are
// of such integers by 2, 4 and 8, and exact too. BigInt is for the two values
// that use all of their 64 bits: the token and the history of the tracker.

/** One millisecond, in the nanoseconds that all times are given in. */
export const MS = 1_000_000;

/** Types of datagrams (2.2); the application has 16 to 255 besides 1 to 4. */
export const Type = Object.freeze({
  CONNECT: 1, ACCEPT: 2, INPUT: 3, SNAPSHOT: 4, EVENT: 5, HEARTBEAT: 6, DISCONNECT: 7, BUNDLE: 8,
});

/** The largest datagram (P-2.1.2). */
export const MAX_DATAGRAM = 1200;

const HALF = 32768; // half of the 16-bit numbers: where newer and older meet (P-3.1.2)
const SEND_WINDOW = 256; // ids that may be on the wire at once (P-5.2.2)
const MAX_LIST = 255; // events of one list (P-5.1.1)
const MAX_OUTCOMES = 1024; // outcomes that wait to be fetched (P-7.2.5)
const MAX_SEALED = 2 ** 28; // datagrams sealed with one key (P-11.4.1)
const MAX_FORGED = 2 ** 36;
const EMPTY = new Uint8Array(0);

/** Whether an application may send datagrams of this type (P-2.2.4). @param {number} type */
const isApplication = (type) => (type >= 1 && type <= 4) || (type >= 16 && type <= 255);

/** The low 16 bits of a number, also of a negative one. @param {number} n */
const low16 = (n) => n & 0xffff;

/** The low 16 bits read as two's complement: how far ahead a sequence is (P-3.1.2). @param {number} n */
const signed16 = (n) => (n << 16) >> 16;

/** @param {Uint8Array} bytes */
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** A copy, also of a Buffer, whose slice is none. @param {Uint8Array} bytes */
export const copyOf = (bytes) => new Uint8Array(bytes);

/** @param {Uint8Array[]} parts */
function join(...parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

// ---------------------------------------------------------------- the clock

/**
 * Turns the caller's readings into the time of a session, which begins at 0
 * and never goes back: a reading earlier than the last counts as the last, and
 * time goes on from there (P-1.1.1).
 */
export class Clock {
  now = 0;
  #reading;

  /** @param {number} start the reading at which time is 0 */
  constructor(start) {
    this.#reading = start;
  }

  /** @param {number} reading */
  read(reading) {
    if (!Number.isInteger(reading)) throw new RangeError('a time is an integer of nanoseconds');
    this.now += Math.max(0, reading - this.#reading);
    this.#reading = reading;
    return this.now;
  }

  /** The reading at which it will be `time`, or that of now if it is over. @param {number} time */
  readingAt(time) {
    return this.#reading + Math.max(0, time - this.now);
  }
}

// ------------------------------------------------------- datagrams as bytes

/** @typedef {{ format: number, type: number, token: bigint, seq: number, ack: number, ackBits: bigint }} Header */

/** The format byte (P-2.1.3). @param {boolean} wide @param {boolean} sealed */
export const formatOf = (wide, sealed) => 0x0a + (wide ? 1 : 0) + (sealed ? 2 : 0);

/** @param {number} format */
const isWide = (format) => (format & 1) === 1;

/** Bytes of the header. @param {number} format */
export const headerSize = (format) => (isWide(format) ? 22 : 18);

/** @param {Header} header @returns {Uint8Array} */
export function writeHeader(header) {
  const bytes = new Uint8Array(headerSize(header.format));
  const view = viewOf(bytes);
  view.setUint8(0, header.format);
  view.setUint8(1, header.type);
  view.setBigUint64(2, header.token, true);
  view.setUint16(10, header.seq, true);
  view.setUint16(12, header.ack, true);
  if (isWide(header.format)) view.setBigUint64(14, header.ackBits, true);
  else view.setUint32(14, Number(BigInt.asUintN(32, header.ackBits)), true); // P-4.1.5
  return bytes;
}

/** Reads a header that is known to be there whole. @param {Uint8Array} bytes @returns {Header} */
export function readHeader(bytes) {
  const view = viewOf(bytes);
  const format = view.getUint8(0);
  return {
    format,
    type: view.getUint8(1),
    token: view.getBigUint64(2, true),
    seq: view.getUint16(10, true),
    ack: view.getUint16(12, true),
    ackBits: isWide(format) ? view.getBigUint64(14, true) : BigInt(view.getUint32(14, true)),
  };
}

/** @typedef {{ id: number, data: Uint8Array }} Event */

/** A list of events (5.1). @param {Event[]} events @returns {Uint8Array} */
export function writeList(events) {
  const bytes = new Uint8Array(events.reduce((sum, e) => sum + 4 + e.data.length, 1));
  const view = viewOf(bytes);
  view.setUint8(0, events.length);
  let at = 1;
  for (const { id, data } of events) {
    view.setUint16(at, id, true);
    view.setUint16(at + 2, data.length, true);
    bytes.set(data, at + 4);
    at += 4 + data.length;
  }
  return bytes;
}

/**
 * Reads the list that bytes begin with: the events, which refer to the bytes,
 * and how long it is; or null if it is malformed (P-5.1.1). The list is judged
 * as a whole before any of it takes memory (P-2.3.3).
 * @param {Uint8Array} bytes @returns {{ events: Event[], size: number } | null}
 */
export function readList(bytes) {
  const view = viewOf(bytes);
  const count = bytes.length > 0 ? bytes[0] : 0;
  let size = 1;
  for (let i = 0; i < count; i++) {
    if (size + 4 > bytes.length) return null;
    size += 4 + view.getUint16(size + 2, true);
  }
  if (count === 0 || size > bytes.length) return null;
  const events = [];
  for (let at = 1; at < size; ) {
    const end = at + 4 + view.getUint16(at + 2, true);
    events.push({ id: view.getUint16(at, true), data: bytes.subarray(at + 4, end) });
    at = end;
  }
  return { events, size };
}

/** @typedef {{ type: number, payload: Uint8Array | null, events: Event[] }} Body */

/**
 * What a datagram holds behind its header; null if it is malformed. The
 * payload is null where the datagram is not the application's.
 * @param {number} type not 0 and not reserved
 * @param {Uint8Array} bytes @returns {Body | null}
 */
function readBody(type, bytes) {
  switch (type) {
    case Type.HEARTBEAT:
    case Type.DISCONNECT: // P-2.2.3
      return bytes.length === 0 ? { type, payload: null, events: [] } : null;
    case Type.EVENT: {
      const list = readList(bytes);
      return list && list.size === bytes.length ? { type, payload: null, events: list.events } : null;
    }
    case Type.BUNDLE: { // P-10.1.2
      if (bytes.length === 0 || !isApplication(bytes[0])) return null;
      const list = readList(bytes.subarray(1));
      return list && { type: bytes[0], payload: bytes.subarray(1 + list.size), events: list.events };
    }
    default:
      return { type, payload: bytes, events: [] };
  }
}

// -------------------------------------------------------------- the tracker

/** @typedef {'newest' | 'late' | 'duplicate' | 'stale'} Arrival */

/**
 * Which sequences were accepted (4.1). It keeps the number of the newest one,
 * −1 before any, whose low 16 bits are the ack of the document.
 */
export class Tracker {
  newest = -1;
  history = 0n; // bit n stands for number newest − 1 − n

  get ack() { return low16(this.newest); }

  /** The number nearest to the newest that has this sequence (P-11.2.2). @param {number} seq */
  numberOf(seq) {
    return this.newest + signed16(seq - this.newest);
  }

  /** P-4.1.2. @param {number} seq @returns {Arrival} */
  classify(seq) {
    const behind = this.newest - this.numberOf(seq);
    if (behind < 0) return 'newest';
    if (this.newest < 0 || behind > 64) return 'stale';
    if (behind === 0) return 'duplicate';
    return (this.history >> BigInt(behind - 1)) & 1n ? 'duplicate' : 'late';
  }

  /** Notes a sequence that is Newest or Late (P-4.1.3, P-4.1.4). @param {number} seq */
  take(seq) {
    const number = this.numberOf(seq);
    const step = number - this.newest;
    if (step <= 0) {
      this.history |= 1n << BigInt(-step - 1);
      return;
    }
    if (step > 64) {
      this.history = 0n;
    } else {
      const previous = this.newest < 0 ? 0n : 1n << BigInt(step - 1); // P-4.1.1
      this.history = BigInt.asUintN(64, this.history << BigInt(step)) | previous;
    }
    this.newest = number;
  }
}

// --------------------------------------------------------- events, received

/** Which events were received, and those that wait for an earlier one (5.3, chapter 9). */
class Inbox {
  #ordered;
  #window;
  #oldest = 0; // the oldest id that is missing
  /** @type {Map<number, Uint8Array>} */
  #ahead = new Map(); // what was received of the window; ordered, with the bytes

  /** @param {boolean} ordered */
  constructor(ordered) {
    this.#ordered = ordered;
    this.#window = ordered ? 256 : 4096;
  }

  /**
   * The new events of a list, in its order; null if an id is outside the
   * window. Each is judged as if those before it had been received (P-5.3.2),
   * while nothing changes yet.
   * @param {Event[]} events @returns {Event[] | null}
   */
  judge(events) {
    const fresh = new Map();
    let oldest = this.#oldest;
    for (const event of events) {
      const a = low16(event.id - oldest);
      if (a > HALF) continue; // old
      if (a >= this.#window) return null;
      if (this.#ahead.has(event.id) || fresh.has(event.id)) continue; // known
      fresh.set(event.id, event);
      while (this.#ahead.has(oldest) || fresh.has(oldest)) oldest = low16(oldest + 1);
    }
    return [...fresh.values()];
  }

  /** Receives what judge returned, and returns what is to be delivered. @param {Event[]} fresh */
  take(fresh) {
    for (const { id, data } of fresh) this.#ahead.set(id, this.#ordered ? copyOf(data) : EMPTY);
    const passed = []; // what the oldest missing id moves past
    for (let data; (data = this.#ahead.get(this.#oldest)); this.#oldest = low16(this.#oldest + 1)) {
      passed.push({ id: this.#oldest, data });
      this.#ahead.delete(this.#oldest);
    }
    return this.#ordered ? passed : fresh; // P-9.1.1, P-5.3.3
  }
}

// ------------------------------------------------------------- events, sent

/**
 * @typedef {object} Pending an event that is undelivered
 * @property {number} number counts the events of the session
 * @property {number} id its low 16 bits
 * @property {Uint8Array} data
 * @property {number} copies how often it was sent
 * @property {number} firstAt when its first copy was sent
 * @property {number} lastAt when its last copy was sent
 */

/** The undelivered events of a session (5.2, 6.4). */
class Outbox {
  #resend;
  #next = 0;
  #oldest = 0; // number of the oldest undelivered event
  #oldestSince = 0; // when it became the oldest
  /** @type {Map<number, Pending>} */
  #events = new Map();

  /** @param {number} resend */
  constructor(resend) {
    this.#resend = resend;
  }

  get size() { return this.#events.size; }

  /** Queues a copy of the bytes and returns the id (P-5.2.1). @param {Uint8Array} data */
  add(data) {
    const number = this.#next++;
    const id = low16(number);
    this.#events.set(number, { number, id, data: copyOf(data), copies: 0, firstAt: 0, lastAt: 0 });
    return id;
  }

  undelivered() { return [...this.#events.values()].map((event) => copyOf(event.data)); }

  /** The undelivered events that may be on the wire, in order (P-5.2.2). */
  *#inSendWindow() {
    const end = Math.min(this.#oldest + SEND_WINDOW, this.#next);
    for (let number = this.#oldest; number < end; number++) {
      const event = this.#events.get(number);
      if (event) yield event;
    }
  }

  /** When an event is due, if it is inside the send window (P-6.4.1). @param {Pending} event */
  #dueAt(event) {
    return event.copies === 0 ? 0 : event.lastAt + this.#resend;
  }

  /** When the next event is due. */
  nextAt() {
    let next = Infinity;
    for (const event of this.#inSendWindow()) next = Math.min(next, this.#dueAt(event));
    return next;
  }

  /** When the oldest event stalls after `patience` of being it, and on the wire (P-8.2.1). @param {number} patience */
  stallAt(patience) {
    const oldest = this.#events.get(this.#oldest);
    if (!oldest || oldest.copies === 0) return Infinity;
    return Math.max(oldest.firstAt, this.#oldestSince) + patience;
  }

  /**
   * The due events for a list of `room` bytes: up to the first that does not
   * fit or that had `maxCopies` already (P-6.4.2, P-10.1.5).
   * @param {number} now @param {number} room @param {number} [maxCopies]
   */
  due(now, room, maxCopies = Infinity) {
    return this.#fill(room, (e) => this.#dueAt(e) <= now, maxCopies);
  }

  /** The same of those that were never sent (P-8.4.2). @param {number} room */
  unsent(room) {
    return this.#fill(room, (e) => e.copies === 0, Infinity);
  }

  /** @param {number} room @param {(event: Pending) => boolean} isWanted @param {number} maxCopies */
  #fill(room, isWanted, maxCopies) {
    const list = [];
    let size = 1;
    for (const event of this.#inSendWindow()) {
      if (!isWanted(event)) continue;
      size += 4 + event.data.length;
      if (size > room || event.copies >= maxCopies || list.length === MAX_LIST) break;
      list.push(event);
    }
    return list;
  }

  /** Notes that a copy of each leaves now (P-6.4.4). @param {Pending[]} list @param {number} now */
  sent(list, now) {
    for (const event of list) {
      if (event.copies++ === 0) event.firstAt = now;
      event.lastAt = now;
    }
  }

  /** @param {Pending} event */
  has(event) {
    return this.#events.has(event.number);
  }

  /** The peer has these (P-5.2.6). @param {Pending[]} list @param {number} now */
  deliver(list, now) {
    for (const event of list) this.#events.delete(event.number);
    while (this.#oldest < this.#next && !this.#events.has(this.#oldest)) {
      this.#oldest++;
      this.#oldestSince = now;
    }
  }
}

// --------------------------------------------------------- datagrams, sent

/** @typedef {{ seq: number, type: number, delivered: boolean, rtt: number }} Outcome */

/**
 * @typedef {object} Sent a datagram that is remembered (15.2)
 * @property {number} at when it was sent
 * @property {number} type the inner one of a Bundle
 * @property {Pending[]} events that it carried
 * @property {'undecided' | 'lost' | 'delivered' | 'late'} state late: lost first, acknowledged then
 * @property {number} lostAt
 */

/** The datagrams that were sent, what became of them, and the round trip (4.2, chapter 7). */
class SentLog {
  #outbox;
  #lossDelay;
  #next = 0; // number of the next datagram
  #newestAcked = -1;
  #first = 0; // the oldest that is remembered
  #undecided = 0; // none before this one is undecided
  /** @type {Map<number, Sent>} */
  #sent = new Map();
  /** @type {Outcome[]} */
  #outcomes = [];
  #sampled = false;
  srtt = 0;
  rttvar = 0;

  /** @param {Outbox} outbox @param {number} lossDelay */
  constructor(outbox, lossDelay) {
    this.#outbox = outbox;
    this.#lossDelay = lossDelay;
  }

  get next() { return this.#next; }

  /** Whether a further datagram could make old acknowledgements ambiguous (P-3.1.4). */
  get isHalfAhead() { return this.#next - this.#newestAcked >= HALF; }

  /** Numbers a datagram that leaves now. @param {number} now @param {number} type @param {Pending[]} events */
  add(now, type, events) {
    this.#outbox.sent(events, now);
    this.#sent.set(this.#next++, { at: now, type, events, state: 'undecided', lostAt: 0 });
    this.#forget(now);
  }

  /** Judges losses in the order of numbers (P-7.2.2). @param {number} now */
  judge(now) {
    for (; this.#undecided < this.#next; this.#undecided++) {
      const sent = this.#sent.get(this.#undecided);
      if (sent?.state !== 'undecided') continue;
      if (now - sent.at < this.srtt + this.#lossDelay) break;
      this.#lose(this.#undecided, sent, now);
    }
    this.#forget(now);
  }

  /** The oldest outcome that was not fetched. */
  takeOutcome() {
    return this.#outcomes.shift() ?? null;
  }

  /** Reads the acknowledgements of a header (4.2). @param {number} ack @param {bigint} bits @param {number} now */
  acknowledge(ack, bits, now) {
    const last = this.#next - 1;
    const behind = low16(last - ack);
    const named = last - behind;
    if (behind >= HALF || !this.#sent.has(named)) return; // P-4.2.2
    this.#newestAcked = Math.max(this.#newestAcked, named);
    for (let n = 63; n >= 0; n--) { // P-4.2.4
      if ((bits >> BigInt(n)) & 1n) this.#deliver(named - 1 - n, now, false);
    }
    this.#deliver(named, now, true);
  }

  /** @param {number} number @param {number} now @param {boolean} isAck whether the ack field names it */
  #deliver(number, now, isAck) {
    const sent = this.#sent.get(number);
    if (sent?.state !== 'undecided' && sent?.state !== 'lost') return;
    if (isAck) this.#sample(now - sent.at); // P-7.1.1
    if (sent.state === 'undecided') {
      sent.state = 'delivered';
      this.#report({ seq: low16(number), type: sent.type, delivered: true, rtt: now - sent.at });
    } else {
      sent.state = 'late'; // P-7.2.4
    }
    this.#outbox.deliver(sent.events, now);
    sent.events = [];
  }

  /** @param {number} number @param {Sent} sent @param {number} now */
  #lose(number, sent, now) {
    sent.state = 'lost';
    sent.lostAt = now;
    this.#report({ seq: low16(number), type: sent.type, delivered: false, rtt: 0 });
  }

  /** @param {Outcome} outcome */
  #report(outcome) {
    this.#outcomes.push(outcome);
    if (this.#outcomes.length > MAX_OUTCOMES) this.#outcomes.shift();
  }

  /** RFC 6298 in integers (P-7.1.2). @param {number} rtt */
  #sample(rtt) {
    if (this.#sampled) {
      this.rttvar += Math.trunc((Math.abs(this.srtt - rtt) - this.rttvar) / 4);
      this.srtt += Math.trunc((rtt - this.srtt) / 8);
    } else {
      this.#sampled = true;
      this.srtt = rtt;
      this.rttvar = Math.trunc(rtt / 2);
    }
  }

  /** Drops from memory what P-4.2.6 lets go. @param {number} now */
  #forget(now) {
    for (; this.#first < this.#next; this.#first++) {
      const sent = /** @type {Sent} */ (this.#sent.get(this.#first));
      const newer = this.#next - 1 - this.#first;
      if (newer >= HALF) {
        if (sent.state === 'undecided') this.#lose(this.#first, sent, now);
      } else {
        if (newer < 256 || sent.state === 'undecided') return;
        const mayStillDeliver = sent.state === 'lost' && now - sent.lostAt < 6000 * MS;
        if (mayStillDeliver && sent.events.some((event) => this.#outbox.has(event))) return;
      }
      this.#sent.delete(this.#first);
    }
  }
}

// -------------------------------------------------------------- the session

/**
 * An AEAD with one key for each direction (chapter 11). Both calls answer at
 * once, and leave their arguments as they are.
 * @typedef {object} Aead
 * @property {number} overhead bytes of the tag
 * @property {number} nonceSize at least 8
 * @property {(nonce: Uint8Array, plaintext: Uint8Array, additional: Uint8Array) => Uint8Array} seal
 * @property {(nonce: Uint8Array, sealed: Uint8Array, additional: Uint8Array) => Uint8Array | null} open
 *   null if it is forged
 */

/** Zeros, then the number in 64 bits, big-endian (P-11.2.1). @param {Aead} aead @param {number} number */
function nonceOf(aead, number) {
  const nonce = new Uint8Array(aead.nonceSize);
  viewOf(nonce).setBigUint64(aead.nonceSize - 8, BigInt(number));
  return nonce;
}

/**
 * @typedef {object} Config all times in nanoseconds
 * @property {bigint} token names the session; fresh for each (P-2.1.6)
 * @property {number} [start] the reading of the clock at which the session begins; 0
 * @property {boolean} [wide] 65 acknowledgements in a header instead of 33
 * @property {Aead} [aead] seals the session
 * @property {boolean} [ordered] delivers events in the order of their ids
 * @property {boolean} [bundle] lets events ride in application datagrams
 * @property {(type: number, payload: Uint8Array) => 'accept' | 'refuse' | 'withhold'} [judge]
 *   the application's word on a datagram, before it is acknowledged (P-2.3.5)
 * @property {number} [heartbeat] 50 ms
 * @property {number} [poll] the tick on which the caller calls, if it does not go by the deadline (P-6.3.2)
 * @property {number} [timeout] 5 s
 * @property {number} [stall] 15 s, or the timeout if that is longer; Infinity is off
 * @property {number} [resend] the retransmission delay, 100 ms
 * @property {number} [lossDelay] 1 s
 * @property {number} [backlog] events that may wait beyond the send window of 256; 0, at most 65024
 * @property {number} [maxDatagram] bytes of a datagram that is sent, 128 to 1200
 */

/**
 * What a datagram brought. Payload and events may refer to the datagram's bytes.
 * @typedef {object} Received
 * @property {string} error why it was dropped, or why the session has ended; '' if neither
 * @property {Arrival | ''} arrival
 * @property {number} type the inner one of a Bundle
 * @property {number} seq
 * @property {boolean} handed whether there is a payload for the application
 * @property {boolean} latest no newer one of its type was accepted before (P-2.3.7)
 * @property {Uint8Array} payload
 * @property {Event[]} events new ones, each once
 */

/** One end of a session (chapters 2 to 11). */
export class Session {
  #config; // what of it is asked for later
  #clock;
  #format;
  #beat; // silence after which a Heartbeat is due
  #room; // bytes behind the header

  #tracker = new Tracker();
  #opened = new Tracker(); // sealed: what was opened (P-11.3.1)
  #forged = 0;
  #inbox;
  #outbox;
  #sentLog;
  /** @type {Map<number, number>} */
  #latest = new Map(); // type to the number of the newest datagram accepted
  #heardAt = 0;
  #sentAt = 0;
  #receivedSinceSent = 0;

  /** @type {'live' | 'closing' | 'leaving' | 'ended'} */
  #state = 'live'; // 15.1
  #patienceEnd = Infinity;
  #disconnects = 0;
  #ended = '';

  /** @param {Config} config */
  constructor(config) {
    const {
      token, aead, judge, start = 0, wide = false, ordered = false, bundle = false,
      heartbeat = 50 * MS, poll = 0, timeout = 5000 * MS, stall = Math.max(15000 * MS, timeout),
      resend = 100 * MS, lossDelay = 1000 * MS, backlog = 0, maxDatagram = MAX_DATAGRAM,
    } = config;
    if (!(heartbeat > 0 && resend > 0)) throw new RangeError('heartbeat and resend are more than 0');
    if (backlog < 0 || backlog > 65024) throw new RangeError('backlog is 0 to 65024');
    if (maxDatagram < 128 || maxDatagram > MAX_DATAGRAM) throw new RangeError('maxDatagram is 128 to 1200');
    if (aead && aead.nonceSize < 8) throw new RangeError('nonceSize is at least 8');
    this.#config = { token, aead, judge, bundle, timeout, stall, backlog };
    this.#clock = new Clock(start);
    this.#format = formatOf(wide, aead !== undefined);
    const early = Math.max(heartbeat - poll + 1, Math.ceil(poll / 2)); // P-6.3.2
    this.#beat = poll > 0 ? Math.min(heartbeat, early) : heartbeat;
    this.#room = maxDatagram - headerSize(this.#format) - (aead?.overhead ?? 0);
    this.#inbox = new Inbox(ordered);
    this.#outbox = new Outbox(resend);
    this.#sentLog = new SentLog(this.#outbox, lossDelay);
  }

  /** The reason of the end; '' while there is none. */
  get ended() { return this.#ended; }

  /** Events that are undelivered. */
  get inFlight() { return this.#outbox.size; }

  /** How many events `send` takes before it would end the session. */
  get room() { return this.#state === 'live' ? SEND_WINDOW + this.#config.backlog - this.#outbox.size : 0; }

  /** Copies of the undelivered events in their order, for another session after the end (15.3). */
  undelivered() { return this.#outbox.undelivered(); }

  get srtt() { return this.#sentLog.srtt; }

  get rttvar() { return this.#sentLog.rttvar; }

  /** The newest sequence accepted. */
  get ack() { return this.#tracker.ack; }

  /** Which of the 64 before it were. */
  get history() { return this.#tracker.history; }

  /**
   * Accepts one datagram, or drops it whole (2.3).
   * @param {number} now @param {Uint8Array} datagram @returns {Received}
   */
  receive(now, datagram) {
    now = this.#clock.read(now);
    /** @type {Received} */
    const result = {
      error: '', arrival: '', type: 0, seq: 0, handed: false, latest: false, payload: EMPTY, events: [],
    };
    /** @param {string} error */
    const drop = (error) => ({ ...result, error });
    if (this.#ended) return drop(this.#ended);
    const { aead, token, judge } = this.#config;

    // Checks 1 to 9 of P-2.3.2.
    if (datagram.length < 18) return drop('short');
    if (datagram.length > MAX_DATAGRAM) return drop('oversize');
    if (datagram[0] !== this.#format) return drop('format');
    if (datagram.length < headerSize(this.#format) + (aead?.overhead ?? 0)) return drop('short');
    const header = readHeader(datagram);
    const { type, seq } = header;
    if (type === 0) return drop('type');
    if (header.token !== token) return drop('token');
    const { error, bytes } = this.#open(seq, datagram);
    if (error) return drop(error);
    if (type >= 9 && type <= 15) return drop('type');
    const body = readBody(type, bytes);
    if (!body) return drop('payload');

    const arrival = this.#tracker.classify(seq);
    const accepted = { ...result, arrival, type: body.type, seq };
    if (arrival === 'newest' || arrival === 'late') {
      const fresh = this.#inbox.judge(body.events);
      if (!fresh) return drop('window');
      const decision = body.payload ? judge?.(body.type, body.payload) : 'accept';
      if (decision === 'refuse') return drop('rejected');
      if (decision !== 'withhold') {
        this.#tracker.take(seq);
        this.#receivedSinceSent++;
        accepted.events = this.#inbox.take(fresh);
        if (body.payload) {
          accepted.handed = true;
          accepted.payload = body.payload;
          accepted.latest = this.#isLatest(body.type, this.#tracker.numberOf(seq));
        }
      }
      this.#heardAt = now; // P-8.1.1
    }
    this.#sentLog.acknowledge(header.ack, header.ackBits, now); // P-4.2.1
    if (type === Type.DISCONNECT && arrival === 'newest') this.#end('peer-left'); // P-8.4.4
    return accepted;
  }

  /**
   * Queues an event, of which a copy is made. A refused one has an error.
   * @param {number} now @param {Uint8Array} event @returns {{ error: string, id: number }}
   */
  send(now, event) {
    this.#clock.read(now);
    if (this.#state !== 'live') return { error: this.#ended || 'closed', id: 0 };
    if (5 + event.length > this.#room) return { error: 'event-too-large', id: 0 }; // P-5.1.2
    if (this.room === 0) { // P-5.2.3
      this.#end('unacknowledged');
      return { error: this.#ended, id: 0 };
    }
    return { error: '', id: this.#outbox.add(event) };
  }

  /**
   * Makes an application datagram, which is to be sent now, once.
   * @param {number} now @param {number} type 1 to 4, 16 to 255 @param {Uint8Array} payload
   * @returns {{ error: string, datagram: Uint8Array, seq: number }}
   */
  makeDatagram(now, type, payload) {
    now = this.#clock.read(now);
    /** @param {string} error */
    const refuse = (error) => ({ error, datagram: EMPTY, seq: 0 });
    if (this.#state !== 'live') return refuse(this.#ended || 'closed');
    if (!isApplication(type)) return refuse('reserved-type');
    if (payload.length > this.#room) return refuse('datagram-too-large');
    if (!this.#mayWrite()) return refuse(this.#ended);
    this.#sentLog.judge(now);
    const seq = low16(this.#sentLog.next);
    const bundles = this.#config.bundle && type !== Type.CONNECT && type !== Type.ACCEPT; // P-10.1.6
    const riders = bundles ? this.#outbox.due(now, this.#room - 1 - payload.length, 2) : [];
    if (riders.length === 0) return { error: '', datagram: this.#write(now, type, type, payload, []), seq };
    const body = join(Uint8Array.of(type), writeList(riders), payload);
    return { error: '', datagram: this.#write(now, Type.BUNDLE, type, body, riders), seq };
  }

  /**
   * The next datagram that is due, or null. It is called until it returns
   * null, after each receive and at the deadline (6.1).
   * @param {number} now @returns {Uint8Array | null}
   */
  nextDue(now) {
    now = this.#clock.read(now);
    if (this.#ended) return null;
    this.#sentLog.judge(now);
    if (this.#state === 'closing' && now >= this.#shutdownAt()) this.#state = 'leaving'; // P-8.4.6
    if (this.#state === 'leaving') return this.#nextWhileLeaving(now);
    if (now - this.#heardAt >= this.#config.timeout) return this.#end('timeout');
    if (now >= this.#outbox.stallAt(this.#config.stall)) return this.#end('stalled');
    const events = this.#outbox.due(now, this.#room);
    if (events.length === 0 && now < this.#heartbeatAt()) return null;
    if (!this.#mayWrite()) return null;
    if (events.length > 0) return this.#write(now, Type.EVENT, Type.EVENT, writeList(events), events);
    return this.#write(now, Type.HEARTBEAT, Type.HEARTBEAT, EMPTY, []);
  }

  /** What became of a datagram, in the order of decisions, or null (7.2). @param {number} now */
  nextOutcome(now) {
    this.#sentLog.judge(this.#clock.read(now));
    return this.#sentLog.takeOutcome();
  }

  /** Begins to leave: nextDue returns what is left to say (8.4). @param {number} now */
  close(now) {
    this.#clock.read(now);
    if (!this.#ended) this.#state = 'leaving';
  }

  /**
   * Leaves as soon as all events are delivered, or patience is over (P-8.4.6).
   * @param {number} now @param {number} patience
   */
  shutdown(now, patience) {
    now = this.#clock.read(now);
    if (this.#state !== 'live' && this.#state !== 'closing') return;
    this.#state = patience > 0 ? 'closing' : 'leaving';
    this.#patienceEnd = Math.min(this.#patienceEnd, now + patience);
  }

  /** The reading of the clock at which nextDue next has something to do; Infinity for never (6.6). */
  deadline() {
    switch (this.#state) {
      case 'ended':
        return Infinity;
      case 'leaving':
        return this.#clock.readingAt(this.#clock.now);
      default:
        return this.#clock.readingAt(Math.min(
          this.#heardAt + this.#config.timeout, this.#outbox.stallAt(this.#config.stall), this.#heartbeatAt(),
          this.#outbox.nextAt(), this.#state === 'closing' ? this.#shutdownAt() : Infinity,
        ));
    }
  }

  /** When a Heartbeat is due (6.3). */
  #heartbeatAt() {
    const limit = isWide(this.#format) ? 64 : 32;
    return this.#receivedSinceSent >= limit ? 0 : this.#sentAt + this.#beat;
  }

  /** When a closing session leaves. */
  #shutdownAt() {
    return this.#outbox.size === 0 ? 0 : this.#patienceEnd;
  }

  /** P-8.4.2. @param {number} now */
  #nextWhileLeaving(now) {
    const events = this.#disconnects === 0 ? this.#outbox.unsent(this.#room) : [];
    if (events.length === 0 && this.#disconnects === 3) return this.#end('closed');
    if (!this.#mayWrite()) return null;
    if (events.length > 0) return this.#write(now, Type.EVENT, Type.EVENT, writeList(events), events);
    this.#disconnects++;
    return this.#write(now, Type.DISCONNECT, Type.DISCONNECT, EMPTY, []);
  }

  /** The first reason counts. @param {string} reason @returns {null} */
  #end(reason) {
    this.#state = 'ended';
    this.#ended = reason;
    return null;
  }

  /** Whether a further datagram may be sent; if not, the session has ended (P-3.1.4, P-11.4.1). */
  #mayWrite() {
    const exhausted = this.#config.aead !== undefined && this.#sentLog.next >= MAX_SEALED;
    if (!this.#sentLog.isHalfAhead && !exhausted) return true;
    const reason = this.#sentLog.isHalfAhead ? 'stalled' : 'key-exhausted';
    this.#end(this.#state === 'leaving' ? 'closed' : reason);
    return false;
  }

  /**
   * Writes the datagram that leaves now.
   * @param {number} now @param {number} type @param {number} inner the type for its outcome
   * @param {Uint8Array} body @param {Pending[]} events
   */
  #write(now, type, inner, body, events) {
    const { aead, token } = this.#config;
    const number = this.#sentLog.next;
    const header = writeHeader({
      format: this.#format, type, token, seq: low16(number),
      ack: this.#tracker.ack, ackBits: this.#tracker.history,
    });
    const sealed = aead ? aead.seal(nonceOf(aead, number), body, header) : body;
    this.#sentLog.add(now, inner, events);
    this.#sentAt = now;
    this.#receivedSinceSent = 0;
    return join(header, sealed);
  }

  /**
   * What is behind the header: as it is, or opened (11.3).
   * @param {number} seq @param {Uint8Array} datagram
   * @returns {{ error: string, bytes: Uint8Array }}
   */
  #open(seq, datagram) {
    const { aead } = this.#config;
    const size = headerSize(this.#format);
    const bytes = datagram.subarray(size);
    if (!aead) return { error: '', bytes };
    const arrival = this.#opened.classify(seq);
    const number = this.#opened.numberOf(seq);
    if (arrival === 'duplicate' || arrival === 'stale' || number < 0) return { error: 'replayed', bytes: EMPTY };
    const opened = aead.open(nonceOf(aead, number), bytes, datagram.subarray(0, size));
    if (!opened) {
      if (++this.#forged >= MAX_FORGED) this.#end('key-exhausted'); // P-11.4.1
      return { error: 'forged', bytes: EMPTY };
    }
    this.#opened.take(seq); // P-11.3.3
    return { error: '', bytes: opened };
  }

  /** P-2.3.7. @param {number} type @param {number} number of a datagram that is accepted */
  #isLatest(type, number) {
    const newest = this.#latest.get(type);
    if (newest !== undefined && newest > number) return false;
    this.#latest.set(type, number);
    return true;
  }
}
