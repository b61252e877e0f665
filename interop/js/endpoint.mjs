// The client of the handshake (chapter 13 of docs/protocol.md, whose numbers the
// comments cite), for Node: it brings a client that knows a server's address, and
// best its public key, to a sealed session. Like ackbits.mjs it does no input or
// output and reads no clock.
import {
  createCipheriv, createDecipheriv, createHash, createHmac, createPrivateKey, createPublicKey,
  diffieHellman, hkdfSync, randomBytes, timingSafeEqual,
} from 'node:crypto';
import { Clock, MS, Session } from './ackbits.mjs';
import { aesGcm } from './aesgcm.mjs';

const MESSAGE = 0x0e; // the format of all messages (P-13.1.1)
const VERSION = 1;
const Kind = Object.freeze({
  HELLO: 1, CHALLENGE: 2, ACCEPT: 3, REFUSE: 4, RESET: 5, PROBE: 6, PROBE_REPLY: 7,
});
/** The shortest and the longest message of each kind that a client takes (13.1). @type {Record<number, [number, number]>} */
const SIZES = { 2: [99, 99], 3: [76, 588], 4: [34, 290], 5: [26, 26], 6: [26, 26] };
const HELLO_SIZE = 640;
const TAG = 16;
const MAX_HELLO = 512; // bytes of the application's hello

const REPEAT = 250 * MS; // from one Hello to the next, and of one cookie (P-13.2.1)
const PATIENCE = 5000 * MS;
const MAX_OFFERS = 32; // cookies that are kept (P-13.2.3)

// -------------------------------------------------------------- primitives

/** What DER puts before the 32 bytes of a key of X25519 (RFC 8410). */
const PRIVATE_DER = Buffer.from('302e020100300506032b656e04220420', 'hex');
const PUBLIC_DER = Buffer.from('302a300506032b656e032100', 'hex');

/** @param {Uint8Array} bytes 32 */
const privateKeyOf = (bytes) =>
  createPrivateKey({ key: Buffer.concat([PRIVATE_DER, bytes]), format: 'der', type: 'pkcs8' });

/** @param {import('node:crypto').KeyObject} privateKey */
const publicBytesOf = (privateKey) =>
  createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(PUBLIC_DER.length);

/**
 * X25519; null for a point of low order (P-13.2.4).
 * @param {import('node:crypto').KeyObject | null} privateKey null once it is forgotten
 * @param {Uint8Array} publicBytes
 */
function agree(privateKey, publicBytes) {
  if (!privateKey) return null;
  const key = Buffer.concat([PUBLIC_DER, publicBytes]);
  try {
    const publicKey = createPublicKey({ key, format: 'der', type: 'spki' });
    const shared = diffieHellman({ privateKey, publicKey });
    return shared.some((byte) => byte !== 0) ? shared : null;
  } catch {
    return null; // how OpenSSL says that all would be zeros
  }
}

/** @param {Uint8Array} bytes */
const sha256 = (bytes) => createHash('sha256').update(bytes).digest();

/** @param {Uint8Array} a @param {Uint8Array} b */
const isSame = (a, b) => a.length === b.length && timingSafeEqual(a, b);

/**
 * Seals a box, whose key is used once, behind the message before it (P-13.1.4).
 * @param {Uint8Array} key @param {Uint8Array} message @param {Uint8Array} plaintext
 */
function sealBox(key, message, plaintext) {
  const cipher = createCipheriv('aes-256-gcm', key, Buffer.alloc(12)).setAAD(message);
  return Buffer.concat([message, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/**
 * Opens the box that begins at `at`; null if it does not open.
 * @param {Uint8Array} key @param {Uint8Array} message @param {number} at
 */
function openBox(key, message, at) {
  const end = message.length - TAG;
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.alloc(12), { authTagLength: TAG });
  decipher.setAAD(message.subarray(0, at)).setAuthTag(message.subarray(end));
  const plaintext = decipher.update(message.subarray(at, end));
  try {
    decipher.final();
  } catch {
    return null;
  }
  return plaintext;
}

/** So many a second, and so many at once. */
class Bucket {
  #interval; // of time, for each
  #burst;
  #paid = 0; // the time up to which what was taken is paid for

  /** @param {number} rate @param {number} burst */
  constructor(rate, burst) {
    this.#interval = (1000 * MS) / rate;
    this.#burst = burst;
  }

  /** Takes one, if there is one. @param {number} now */
  take(now) {
    const paid = Math.max(this.#paid, now) + this.#interval;
    if (paid - now > this.#burst * this.#interval) return false;
    this.#paid = paid;
    return true;
  }
}

// ------------------------------------------------------------------ client

/**
 * @typedef {object} Offer a Challenge that may be the server's
 * @property {Uint8Array} serverKey
 * @property {Uint8Array} shared X(C, S)
 * @property {Uint8Array} cookie
 * @property {number} shownAt when a Hello last showed the cookie; −Infinity if one is to at once
 */

/**
 * @typedef {object} ClientConfig
 * @property {Uint8Array} [serverKey] 32 bytes; without it the client talks to whoever answers
 * @property {Uint8Array} [hello] what the server's application reads, up to 512 bytes
 * @property {boolean} [wide] asks for a wide session
 * @property {Partial<import('./ackbits.mjs').Config>} [session] all else of the session's
 * @property {number} [start] the reading of the clock at which the attempt begins; 0
 * @property {Uint8Array} [privateKey] 32 random bytes for this attempt alone; drawn if left out
 */

/**
 * One attempt to join, and the session that comes of it. The caller hands in what comes from
 * the server's address alone, and sends what nextDue returns there.
 */
export class Client {
  /** The session, once the server has admitted this client. @type {Session | null} */
  session = null;
  /** What the server's application said to that. */
  reply = new Uint8Array(0);
  /** The server's words, if it refused. */
  reason = '';

  #config;
  #clock;
  /** @type {import('node:crypto').KeyObject | null} */
  #privateKey;
  #key; // C
  #hello;
  /** @type {Offer[]} in the order in which they came */
  #offers = [];
  #saidAt = -Infinity; // when the last Hello was sent
  #hurries = new Bucket(128, 32); // of cookies that are shown at once
  #tries = new Bucket(1000, 250); // of X25519 (P-13.2.7)
  #ended = '';
  #why = 'timeout'; // the reason if time is over

  #token = new Uint8Array(8); // as on the wire
  #resetCode = new Uint8Array(16);
  #probeKey = new Uint8Array(32);
  /** @type {Uint8Array | null} the ProbeReply that waits to be sent */
  #probeReply = null;

  /** @param {ClientConfig} config */
  constructor({ serverKey, hello = new Uint8Array(0), wide = false, session, start = 0, privateKey = randomBytes(32) }) {
    if (hello.length > MAX_HELLO) throw new RangeError(`hello is up to ${MAX_HELLO} bytes`);
    if (serverKey && serverKey.length !== 32) throw new RangeError('serverKey is 32 bytes');
    this.#config = { serverKey, wide, session };
    this.#clock = new Clock(start);
    const key = privateKeyOf(privateKey);
    this.#privateKey = key;
    this.#key = publicBytesOf(key);
    this.#hello = new Uint8Array(hello);
  }

  /**
   * Why it is over: `refused`; `reset` (the server has forgotten the session); `timeout` (no
   * answer), `version` or `server-key` (an answer of that other kind alone); or the reason of
   * the session. '' while it is not over.
   */
  get ended() { return this.#ended || (this.session?.ended ?? ''); }

  /**
   * Takes in one datagram. Returns what the session makes of it, or null if it was none of the
   * session's.
   * @param {number} now @param {Uint8Array} datagram @returns {import('./ackbits.mjs').Received | null}
   */
  receive(now, datagram) {
    const time = this.#clock.read(now);
    if (this.ended) return null;
    if (datagram[0] !== MESSAGE) return this.session?.receive(now, datagram) ?? null;
    const kind = datagram[1];
    if (kind === Kind.CHALLENGE && datagram.length >= 35) this.#challenged(time, datagram);
    const [least, most] = SIZES[kind] ?? [Infinity, 0];
    if (datagram.length < least || datagram.length > most) return null;
    if (kind === Kind.ACCEPT && this.#offers.length > 0 && this.#tries.take(time)) this.#accepted(now, datagram);
    if (!this.session && kind === Kind.REFUSE) this.#refused(datagram);
    if (this.session && kind === Kind.PROBE) this.#probed(datagram);
    if (this.session && kind === Kind.RESET) this.#reset(datagram);
    return null;
  }

  /**
   * The next datagram that is due, or null: to be called until it returns null.
   * @param {number} now @returns {Uint8Array | null}
   */
  nextDue(now) {
    const time = this.#clock.read(now);
    if (this.#ended) return null;
    if (this.session) {
      const reply = this.#probeReply;
      this.#probeReply = null;
      return reply ?? this.session.nextDue(now);
    }
    if (time >= PATIENCE) {
      this.#ended = this.#why;
      return null;
    }
    if (time < this.#helloAt()) return null;
    this.#saidAt = time;
    const offer = this.#nextOffer();
    if (!offer) return Buffer.concat([this.#helloHead(), Buffer.alloc(HELLO_SIZE - 36)]);
    offer.shownAt = time;
    return this.#helloOf(offer);
  }

  /** The reading of the clock at which nextDue next has something to do; Infinity for never. */
  deadline() {
    if (this.ended) return Infinity;
    if (!this.session) return this.#clock.readingAt(Math.min(PATIENCE, this.#helloAt()));
    return this.#probeReply ? this.#clock.readingAt(this.#clock.now) : this.session.deadline();
  }

  /** The cookie whose turn it is (P-13.2.3). @returns {Offer | undefined} */
  #nextOffer() {
    const longestAgo = Math.min(...this.#offers.map((offer) => offer.shownAt));
    return this.#offers.find((offer) => offer.shownAt === longestAgo);
  }

  /** When the next Hello is due (P-13.2.1). */
  #helloAt() {
    return this.#nextOffer()?.shownAt === -Infinity ? 0 : Math.max(0, this.#saidAt + REPEAT);
  }

  #helloHead() {
    return Buffer.concat([Uint8Array.of(MESSAGE, Kind.HELLO, VERSION, this.#form), this.#key]);
  }

  get #form() { return this.#config.wide ? 1 : 0; }

  /** A Hello with cookie and box. @param {Offer} offer */
  #helloOf({ serverKey, shared, cookie }) {
    const message = Buffer.concat([this.#helloHead(), cookie]);
    const plaintext = Buffer.alloc(HELLO_SIZE - message.length - TAG);
    plaintext.writeUInt16LE(this.#hello.length);
    plaintext.set(this.#hello, 2);
    return sealBox(this.#derive('hello', serverKey, shared, [cookie]), message, plaintext);
  }

  /**
   * P-13.3.1.
   * @param {string} label @param {Uint8Array} serverKey @param {Uint8Array} secret
   * @param {Uint8Array[]} added @param {Uint8Array} [salt]
   */
  #derive(label, serverKey, secret, added, salt = new Uint8Array(0)) {
    const info = Buffer.concat([
      Buffer.from(`ackbits endpoint ${label}\0`), Uint8Array.of(VERSION, this.#form), this.#key, serverKey, ...added,
    ]);
    return Buffer.from(hkdfSync('sha256', secret, salt, info, 32));
  }

  /** A Challenge of any version (P-13.1.3, P-13.2.3). @param {number} time @param {Uint8Array} message */
  #challenged(time, message) {
    if (this.session || !isSame(message.subarray(3, 35), this.#key)) return;
    if (message[2] !== VERSION) return this.#blame('version');
    if (message.length !== SIZES[Kind.CHALLENGE][0]) return;
    const serverKey = new Uint8Array(message.subarray(35, 67));
    const cookie = new Uint8Array(message.subarray(67));
    if (!isSame(this.#config.serverKey ?? serverKey, serverKey)) return this.#blame('server-key');
    const held = this.#offers.find((offer) => isSame(offer.cookie, cookie) && isSame(offer.serverKey, serverKey));
    if (held && (held.shownAt === -Infinity || time - held.shownAt < REPEAT)) return;
    if (!this.#hurries.take(time)) return;
    const same = this.#offers.find((offer) => isSame(offer.serverKey, serverKey));
    const shared = same ? same.shared : this.#tries.take(time) && agree(this.#privateKey, serverKey);
    if (!shared) return;
    const gone = held ?? (this.#offers.length === MAX_OFFERS ? this.#shownLongestAgo() : null);
    if (gone === undefined) return;
    this.#offers = this.#offers.filter((offer) => offer !== gone);
    this.#offers.push({ serverKey, shared, cookie, shownAt: -Infinity });
    this.#why = 'timeout';
  }

  /** Of the cookies that were shown. */
  #shownLongestAgo() {
    const shown = this.#offers.filter((offer) => offer.shownAt >= 0);
    return shown.sort((a, b) => a.shownAt - b.shownAt)[0];
  }

  /** The reason to give if nothing better comes. @param {string} why */
  #blame(why) {
    if (this.#offers.length === 0 && this.#why !== 'server-key') this.#why = why;
  }

  /** The offers with different server keys. */
  get #servers() {
    return this.#offers.filter((offer, i, all) => all.findIndex((other) => isSame(other.serverKey, offer.serverKey)) === i);
  }

  /** @param {number} now @param {Uint8Array} message an Accept */
  #accepted(now, message) {
    const ephemeral = message.subarray(2, 34); // E
    const second = agree(this.#privateKey, ephemeral);
    if (!second) return;
    const helloHash = sha256(this.#hello); // H
    for (const { serverKey, shared } of this.#servers) {
      const secret = Buffer.concat([shared, second]);
      /** @param {string} label @param {Uint8Array[]} added */
      const key = (label, ...added) => this.#derive(label, serverKey, secret, [ephemeral, helloHash, ...added]);
      const box = openBox(key('accept'), message, 34);
      if (!box) continue;
      const length = box.readUInt16LE(24);
      if (26 + length !== box.length) return;
      const acceptHash = sha256(message); // A
      this.#token = new Uint8Array(box.subarray(0, 8));
      this.#resetCode = new Uint8Array(box.subarray(8, 24));
      this.reply = new Uint8Array(box.subarray(26));
      this.#probeKey = key('probe', acceptHash);
      this.session = new Session({
        ...this.#config.session,
        token: box.readBigUInt64LE(0),
        wide: this.#config.wide,
        start: now,
        aead: aesGcm(key('client to server', acceptHash), key('server to client', acceptHash)), // P-13.3.2
      });
      [this.#privateKey, this.#offers] = [null, []]; // what could open this session again (P-13.3.3)
      return;
    }
  }

  /** @param {Uint8Array} message a Refuse */
  #refused(message) {
    for (const { serverKey, shared } of this.#servers) {
      const box = openBox(this.#derive('refuse', serverKey, shared, [], message.subarray(2, 18)), message, 18);
      if (!box) continue;
      this.#ended = 'refused';
      this.reason = box.toString();
      return;
    }
  }

  /** P-13.4.3. @param {Uint8Array} message a Probe */
  #probed(message) {
    if (!isSame(message.subarray(2, 10), this.#token)) return;
    const answer = createHmac('sha256', this.#probeKey).update(message.subarray(10)).digest().subarray(0, 16);
    this.#probeReply = Buffer.concat([Uint8Array.of(MESSAGE, Kind.PROBE_REPLY), this.#token, answer]);
  }

  /** P-13.5.2. @param {Uint8Array} message a Reset */
  #reset(message) {
    if (isSame(message.subarray(2, 10), this.#token) && isSame(message.subarray(10), this.#resetCode)) this.#ended = 'reset';
  }
}
